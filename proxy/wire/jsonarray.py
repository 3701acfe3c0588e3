"""One JSON array that is streamed: bytes to one frame per element (contracts W2, W7).

In: the reads of a body that begins with `[`, cut anywhere. Out: a `Frame` per element, as soon as it is closed; what
stands behind the array's end is a frame too, so that a caller can see it. Never parses an element: it counts brackets
outside of strings, so what is no JSON comes out in some pieces, and its reader says so.
"""

from __future__ import annotations

import re

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame

_TELLING = re.compile(rb'[\[\]{}",]')
_STRING_END = re.compile(rb'[\\"]')
_BLANK = b" \t\r\n"


class JsonArrayDecoder:
    """An element longer than `max_line_bytes` is refused; what stood in front of it is returned first (as in
    `LineBuffer`)."""

    __slots__ = ("_at", "_depth", "_held", "_in_string", "_limit", "over")

    def __init__(self, max_line_bytes: int) -> None:
        self._limit = max_line_bytes
        self._held = bytearray()  # of the element that is being read
        self._at = 0  # how far it was looked at
        self._depth = 0
        self._in_string = False
        self.over: LimitExceeded | None = None

    def feed(self, data: bytes) -> list[Frame]:
        if self.over is not None:
            raise self.over
        self._held += data
        frames: list[Frame] = []
        while self._step(frames):
            pass
        if len(self._held) > self._limit:
            self._exceed(len(self._held))
        return self._checked(frames)

    def finish(self) -> list[Frame]:
        """An element that was never closed; marked as not terminated."""
        rest = bytes(self._held).strip(_BLANK)
        self._held.clear()
        return [Frame(rest, terminated=False)] if rest else []

    def _checked(self, frames: list[Frame]) -> list[Frame]:
        if self.over is not None and not frames:
            raise self.over
        return frames

    def _step(self, frames: list[Frame]) -> bool:
        """Go to the next character that tells something; False where more is needed."""
        if self.over is not None:
            return False
        if self._in_string:
            return self._skip_string()
        found = _TELLING.search(self._held, self._at)
        if found is None:
            self._at = len(self._held)
            return False
        at, char = found.start(), found[0]
        self._at = at + 1
        if char == b'"':
            self._in_string = True
        elif char in b"[{":
            self._open(at)
        elif char == b",":
            if self._depth <= 1:
                self._element(at, frames)
        else:
            self._close(at, frames)
        return True

    def _skip_string(self) -> bool:
        found = _STRING_END.search(self._held, self._at)
        if found is None:
            self._at = len(self._held)
            return False
        if found[0] == b'"':
            self._in_string = False
            self._at = found.end()
            return True
        if found.end() == len(self._held):  # the escaped character is still to come
            self._at = found.start()
            return False
        self._at = found.end() + 1
        return True

    def _open(self, at: int) -> None:
        self._depth += 1
        if self._depth == 1 and not bytes(self._held[:at]).strip(_BLANK):
            self._cut(at + 1)  # the array's own bracket belongs to no element

    def _close(self, at: int, frames: list[Frame]) -> None:
        self._depth = max(self._depth - 1, 0)
        if self._depth == 0:
            self._element(at, frames)
        elif self._depth == 1:
            self._element(at + 1, frames)

    def _element(self, end: int, frames: list[Frame]) -> None:
        """What stands before `end` is one element, if it is anything."""
        data = bytes(self._held[:end]).strip(_BLANK)
        if len(data) > self._limit:
            self._exceed(len(data))
            return
        self._cut(end + (bytes(self._held[end : end + 1]) in (b",", b"]", b"}")))
        if data:
            frames.append(Frame(data))

    def _cut(self, end: int) -> None:
        del self._held[:end]
        self._at = 0

    def _exceed(self, seen: int) -> None:
        self.over = LimitExceeded("line", self._limit, seen)
        self._held.clear()
