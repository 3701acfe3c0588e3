"""JSON arrays that are streamed: bytes to one frame per element (contracts W2, W7).

In: the reads of a body that begins with `[`, cut anywhere. Out: a `Frame` per element, as soon as it is closed; what
stands behind the array's end is cut in the same way and comes out too, so that nobody's error gets lost there. Never
parses an element: it counts brackets outside of strings. What is no JSON comes out in some pieces, the same for all
cuts, and its reader says so.
"""

from __future__ import annotations

import re

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame

_INSIDE = re.compile(rb'[\[\]{}"]')
_BETWEEN = re.compile(rb'[\[\]{}",]|[ \t\r\n]+')
_STRING_END = re.compile(rb'[\\"]')


class JsonArrayDecoder:
    """`over` is set as soon as an element is known to be longer than `max_line_bytes`; what stood in front of it is
    returned first (as in `LineBuffer`). Blanks and commas between elements are no part of any."""

    __slots__ = ("_at", "_depth", "_floor", "_held", "_in_string", "_limit", "over")

    def __init__(self, max_line_bytes: int) -> None:
        self._limit = max_line_bytes
        self._held = bytearray()  # the element that is being read
        self._at = 0  # how far it was looked at
        self._depth = 0
        self._floor = 0  # the depth at which elements stand: 1 inside of the array, 0 outside
        self._in_string = False
        self.over: LimitExceeded | None = None

    def feed(self, data: bytes) -> list[Frame]:
        if self.over is not None:
            raise self.over
        self._held += data
        frames: list[Frame] = []
        while self._step(frames):
            pass
        return self._within_limit(frames)

    def _within_limit(self, frames: list[Frame]) -> list[Frame]:
        if len(self._held) > self._limit:
            self._exceed(len(self._held))
        if self.over is not None and not frames:
            raise self.over
        return frames

    def finish(self) -> list[Frame]:
        """An element that was never closed, or nothing where only the array was not; marked as not terminated."""
        if self.over is not None:
            raise self.over
        rest = bytes(self._held)
        self._held.clear()
        return [Frame(rest, terminated=False)] if rest or self._floor else []

    def _step(self, frames: list[Frame]) -> bool:
        """Go to the next character that tells something; False where more is needed."""
        if self.over is not None:
            return False
        if self._in_string:
            return self._skip_string()
        is_between = self._depth == self._floor
        found = (_BETWEEN if is_between else _INSIDE).search(self._held, self._at)
        if found is None:
            self._at = len(self._held)
            return False
        at, char = found.start(), found[0]
        self._at = found.end()
        if char == b'"':
            self._in_string = True
        elif char in (b"[", b"{"):
            self._open(at, char)
        elif char in (b"]", b"}"):
            self._close(at, char, frames)
        else:
            self._end(at, found.end(), frames)
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

    def _open(self, at: int, char: bytes) -> None:
        self._depth += 1
        if char == b"[" and self._depth == 1 and not (self._floor or at):
            self._floor = 1  # the array's own bracket belongs to no element
            self._cut(at + 1)

    def _close(self, at: int, char: bytes, frames: list[Frame]) -> None:
        if self._depth > self._floor:
            self._depth -= 1
            if self._depth == self._floor:
                self._end(at + 1, at + 1, frames)
        elif self._floor and char == b"]":
            self._depth = self._floor = 0
            self._end(at, at + 1, frames)
        # Any other bracket closes nothing: it stays in the piece, whose reader will refuse it.

    def _end(self, end: int, next_one: int, frames: list[Frame]) -> None:
        """What stands before `end` is one element, if it is anything."""
        data = bytes(self._held[:end])
        if len(data) > self._limit:
            self._exceed(len(data))
        else:
            self._cut(next_one)
            if data:
                frames.append(Frame(data))

    def _cut(self, end: int) -> None:
        del self._held[:end]
        self._at = 0

    def _exceed(self, seen: int) -> None:
        self.over = LimitExceeded("line", self._limit, seen)
        self._held.clear()
