"""Newline-delimited JSON: bytes to one frame per line (contracts W2, W7).

In: the reads of one response body, cut anywhere. Out: a `Frame` per line that is not blank; blank ones are counted.
One byte order mark at the start is dropped. Never parses the JSON, never raises but for `LimitExceeded`.
"""

from __future__ import annotations

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame
from proxy.wire.lines import BomFilter, LineBuffer


class NdjsonDecoder:
    """A limit is handled as in `LineBuffer`: what stood in front of the long line is returned first."""

    __slots__ = ("_bom", "_lines", "blank")

    def __init__(self, max_line_bytes: int) -> None:
        self._bom = BomFilter()
        self._lines = LineBuffer(max_line_bytes)
        self.blank = 0

    @property
    def over(self) -> LimitExceeded | None:
        return self._lines.over

    @property
    def at_boundary(self) -> bool:
        """Would the next byte begin a new line? As in `SseDecoder`, exactly then whole lines may go past."""
        return self._bom.settled and not (self._lines.pending or self._lines.after_cr)

    def feed(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        # Blank lines in front of a long one are no frames: then the limit is known, and nothing is left to return.
        self._take(self._lines.feed(data if self._bom.settled else self._bom.feed(data)), frames, terminated=True)
        if self._lines.over is not None and not frames:
            raise self._lines.over
        return frames

    def finish(self) -> list[Frame]:
        """The last line, if it came without its line end; marked as not terminated."""
        frames: list[Frame] = []
        self._take(self._lines.feed(self._bom.finish()), frames, terminated=True)
        last = self._lines.finish()
        if last is not None:
            self._take([last], frames, terminated=False)
        return frames

    def _take(self, lines: list[bytes], frames: list[Frame], *, terminated: bool) -> None:
        for line in lines:
            if line.strip():
                frames.append(Frame(line, terminated=terminated))
            else:
                self.blank += 1
