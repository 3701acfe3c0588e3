"""The unit of framing that every decoder of this package returns. A plain value: it decides and parses nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Frame:
    """One SSE event or NDJSON line.

    `data` is the event's data lines joined by LF, `lines` how many they were. `event` is the SSE event name (None where
    the upstream gave none), `comments` the comment lines that stood in the event or, with no event of their own, before
    it: whole lines, colon included, the last few of them. `terminated` is False where the input ended before the blank
    line (or line end) that would have made it whole: the caller decides whether its data is whole (contract W2).

    Not frozen only because a frozen dataclass costs three times as much to make, and there is one per event.
    """

    data: bytes
    event: str | None = None
    comments: tuple[bytes, ...] = ()
    lines: int = 1
    terminated: bool = True
