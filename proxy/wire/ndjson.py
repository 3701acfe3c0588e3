"""Newline-delimited JSON: bytes to one frame per line (contracts W2, W7).

In: the reads of one response body, cut anywhere. Out: a `Frame` per line that is not blank; blank ones are counted.
One byte order mark at the start is dropped. An object that is printed over several lines (a gateway's error in the
middle of a stream) is one frame: it begins with a line that is a lone bracket, and ends with the bracket that stands
as far to the right. Never parses the JSON, never raises but for `LimitExceeded`.
"""

from __future__ import annotations

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame
from proxy.wire.lines import BomFilter, LineBuffer


class NdjsonDecoder:
    """A limit is handled as in `LineBuffer`: what stood in front of the long line is returned first."""

    __slots__ = ("_bom", "_end", "_limit", "_lines", "_open", "_over", "_size", "blank")

    def __init__(self, max_line_bytes: int) -> None:
        self._limit = max_line_bytes
        self._open: list[bytes] = []  # lines of an object that has not ended
        self._size = 0
        self._end = b""
        self._over: LimitExceeded | None = None
        self._bom = BomFilter()
        self._lines = LineBuffer(max_line_bytes)
        self.blank = 0

    @property
    def over(self) -> LimitExceeded | None:
        return self._over or self._lines.over

    @property
    def at_boundary(self) -> bool:
        """Would the next byte begin a new line? As in `SseDecoder`, exactly then whole lines may go past."""
        return self._bom.settled and not (self._lines.pending or self._lines.after_cr or self._open)

    def feed(self, data: bytes) -> list[Frame]:
        if self._over is not None:
            raise self._over
        frames: list[Frame] = []
        # Blank lines in front of a long one are no frames: then the limit is known, and nothing is left to return.
        self._take(self._lines.feed(data if self._bom.settled else self._bom.feed(data)), frames, terminated=True)
        if self.over is not None and not frames:
            raise self.over
        return frames

    def finish(self) -> list[Frame]:
        """The last line, if it came without its line end; marked as not terminated."""
        if self._over is not None:
            raise self._over
        frames: list[Frame] = []
        self._take(self._lines.feed(self._bom.finish()), frames, terminated=True)
        last = self._lines.finish()
        if last is not None:
            self._take([last], frames, terminated=False)
        if self._open:
            frames.append(Frame(b"\n".join(self._open), terminated=False))
            self._open.clear()
        if self.over is not None and not frames:
            raise self.over
        return frames

    def _take(self, lines: list[bytes], frames: list[Frame], *, terminated: bool) -> None:
        for line in lines:
            if self._over is not None:
                return
            bare = line.strip()
            if self._open:
                self._go_on(line, frames, terminated=terminated)
            elif bare in (b"{", b"["):
                self._end = line.rstrip().replace(b"{", b"}").replace(b"[", b"]")
                self._open, self._size = [line], len(line)
            elif bare:
                frames.append(Frame(line, terminated=terminated))
            else:
                self.blank += 1

    def _go_on(self, line: bytes, frames: list[Frame], *, terminated: bool) -> None:
        """The next line of an object that is printed over several; all of it together is a line for the limit."""
        self._open.append(line)
        self._size += 1 + len(line)
        if self._size > self._limit:
            self._over = LimitExceeded("line", self._limit, self._size)
            self._open.clear()
        elif line.rstrip(b" \t,") == self._end:
            frames.append(Frame(b"\n".join(self._open), terminated=terminated))
            self._open.clear()
