"""Ids of requests and attempts: 128 random bits, as 32 hex digits.

They must be unique, not secret, so the generator of the process will do: it is seeded from the system at the start and
again in each forked worker, and asking it costs no system call.
"""

from __future__ import annotations

from random import getrandbits


def new_id() -> str:
    return f"{getrandbits(128):032x}"
