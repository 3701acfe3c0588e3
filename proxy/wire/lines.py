"""Bytes to lines, whatever way the bytes were cut into reads (contract W2, limit of W7).

In: reads. Out: whole lines without their ends. Lines end at CR, LF or CRLF and nowhere else: models do write U+2028,
U+2029 and U+0085 inside JSON strings, and a line cut there would no longer parse. Never decodes, never drops a byte.
"""

from __future__ import annotations

from proxy.errors import LimitExceeded

_CR = 0x0D
_LF = 0x0A
_BOM = b"\xef\xbb\xbf"


class LineBuffer:
    """Holds at most one partial line of at most `max_line_bytes`.

    A line longer than that (its end not counted) is refused whether its end has come or not, so the cuts do not decide.
    The lines in front of it are returned first, for the same reason: `feed` raises `LimitExceeded` only when it has
    nothing to return, otherwise the next call does. `over` is the exception as soon as it is known.
    """

    __slots__ = ("_held", "_limit", "after_cr", "over")

    def __init__(self, max_line_bytes: int) -> None:
        self._limit = max_line_bytes
        # A bytearray grows by an eighth at a time: linear for a long line in tiny reads, and lighter than a list.
        self._held = bytearray()
        self.after_cr = False
        """Did the last read end with a CR? A LF at the head of the next one is then no line end of its own."""
        self.over: LimitExceeded | None = None

    @property
    def pending(self) -> bool:
        """Is a partial line held?"""
        return bool(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        return self.split(self.unify(data))

    def unify(self, data: bytes) -> bytes:
        """One read with every line end written as LF. To be followed by `split`, of it whole or in pieces.

        A CR ends the line at once; a LF after it belongs to it even when it comes with the next read. Waiting for that
        LF would hold the last event of a CR-only stream back.
        """
        if self.after_cr and data:
            self.after_cr = False
            if data[0] == _LF:
                data = data[1:]
        if b"\r" in data:
            self.after_cr = data[-1] == _CR
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def split(self, text: bytes) -> list[bytes]:
        """The whole lines in `text`, which has LF line ends only; the partial line at its end is held."""
        if self.over is not None:
            raise self.over
        may_be_over = len(text) + len(self._held) > self._limit
        lines = text.split(b"\n")
        rest = lines.pop()
        if lines and self._held:
            self._held += lines[0]
            lines[0] = bytes(self._held)
            self._held.clear()
        self._held += rest
        return self._within_limit(lines) if may_be_over else lines

    def finish(self) -> bytes | None:
        """The last line, if the input ended without its line end. Called once."""
        if self.over is not None:
            raise self.over
        rest = bytes(self._held) if self._held else None
        self._held.clear()
        return rest

    def _within_limit(self, lines: list[bytes]) -> list[bytes]:
        for index, line in enumerate(lines):
            if len(line) > self._limit:
                return self._up_to(lines[:index], len(line))
        if len(self._held) > self._limit:
            return self._up_to(lines, len(self._held))
        return lines

    def _up_to(self, lines: list[bytes], seen: int) -> list[bytes]:
        self.over = LimitExceeded("line", self._limit, seen)
        self._held.clear()
        if not lines:
            raise self.over
        return lines


class BomFilter:
    """Drops one byte order mark at the very start of the input, also when it comes in pieces."""

    __slots__ = ("_held", "settled")

    def __init__(self) -> None:
        self._held = b""
        self.settled = False
        """True once it is known whether the input began with one; from then on `feed` must not be called."""

    def feed(self, data: bytes) -> bytes:
        data = self._held + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._held = data
            return b""
        self.settled = True
        self._held = b""
        return data.removeprefix(_BOM)

    def finish(self) -> bytes:
        """The beginning of a mark that never became whole: bytes like any other."""
        self.settled = True
        return self._held
