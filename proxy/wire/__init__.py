"""Bytes and text: framing in, framing out, and the holding that keeps characters whole. Knows no vendor and no I/O.

Every stage here is fed: `feed` takes what one read brought and returns what is whole, `finish` what the end of input
makes of the rest. Nothing but `LimitExceeded` leaves a stage, and never before what was whole in front of it.
"""
