"""AWS event streams: binary messages to frames (contracts W2, W7; the format is vnd.amazon.eventstream).

In: the reads of one response body, cut anywhere. Out: a `Frame` per message: its payload as `data`, its `:event-type`
or `:exception-type` as `event` (which is which, its reader knows by name). An error that is told in headers alone
becomes an event `error` with its code and message as JSON, as AWS writes them into a body. A message whose checksum
is wrong ends the stream, for behind it nobody knows where the next one begins: a frame without data, which no reader
understands, stands in its place. Never parses a payload, never raises but for `LimitExceeded`.

A message: total length (4 bytes, big endian), length of headers (4), CRC32 of these eight (4), headers, payload, CRC32
of all before (4). A header: length of name (1), name, type of value (1), value.
"""

from __future__ import annotations

import json
import zlib
from struct import unpack_from

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame

_PRELUDE = 12
_LEAST = 16
# Sizes of a header's value by its type; None: a length of two bytes stands in front of it.
_SIZES: dict[int, int | None] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: None, 7: None, 8: 8, 9: 16}
_STRING = 7


class EventStreamDecoder:
    """Holds at most one partial message. A limit is handled as in `LineBuffer`: what stood in front of the long message
    is returned first. `broken` says that a checksum or a length was wrong."""

    __slots__ = ("_held", "_limit", "_wanted", "broken", "over")

    def __init__(self, max_line_bytes: int) -> None:
        self._limit = max_line_bytes
        self._held = bytearray()
        self._wanted = _PRELUDE  # bytes without which there is nothing to look at
        self.broken = False
        self.over: LimitExceeded | None = None

    def feed(self, data: bytes) -> list[Frame]:
        if self.over is not None:
            raise self.over
        if self.broken:
            return []
        self._held += data
        # A long message comes in many reads: none of them looks at it again before it is whole.
        if len(self._held) < self._wanted:
            return []
        frames: list[Frame] = []
        start = 0
        while (size := self._size_at(start)) is not None and len(self._held) - start >= size:
            message = bytes(self._held[start : start + size])
            start += size
            if size < _LEAST or unpack_from(">I", message, size - 4)[0] != zlib.crc32(message[:-4]):
                self.broken = True
                frames.append(Frame(b""))
                break
            frames.append(_frame(message))
        del self._held[: len(self._held) if self.broken or self.over is not None else start]
        if self.over is not None and not frames:
            raise self.over
        return frames

    def finish(self) -> list[Frame]:
        """The end of input. What came of a message that is not whole says nothing."""
        if self.over is not None:
            raise self.over
        self._held.clear()
        return []

    def _size_at(self, start: int) -> int | None:
        """How long the message is that begins here; None if that is not known yet, or it is too long. One that says
        nonsense of its lengths is as long as what was read of it."""
        if len(self._held) - start < _PRELUDE:
            self._wanted = _PRELUDE
            return None
        size, headers, crc = unpack_from(">III", self._held, start)
        if crc != zlib.crc32(self._held[start : start + 8]) or size < _LEAST or headers > size - _LEAST:
            return _PRELUDE
        if size > self._limit:
            self.over = LimitExceeded("line", self._limit, size)
            return None
        self._wanted = size
        return int(size)


def _frame(message: bytes) -> Frame:
    payload = _PRELUDE + unpack_from(">I", message, 4)[0]
    named = _headers(message[_PRELUDE:payload])
    event = named.get(":exception-type") or named.get(":event-type")
    data = message[payload:-4]
    if not event and (":error-code" in named or ":error-message" in named or named.get(":message-type") == "error"):
        told = {"__type": named.get(":error-code", ""), "message": named.get(":error-message", "")}
        return Frame(data or json.dumps(told, ensure_ascii=False).encode(), "error")
    return Frame(data, event or None)


def _headers(data: bytes) -> dict[str, str]:
    """The headers that are strings, the first of each name. What is malformed ends them."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        name = data[at + 1 : at + 1 + data[at]].decode("utf-8", "replace")
        at += 1 + data[at]
        if at >= len(data) or data[at] not in _SIZES:
            break
        kind, at = data[at], at + 1
        size = _SIZES[kind]
        if size is None:
            if at + 2 > len(data):
                break
            size, at = unpack_from(">H", data, at)[0], at + 2
        if at + size > len(data):
            break
        if kind == _STRING:
            found.setdefault(name, data[at : at + size].decode("utf-8", "replace"))
        at += size
    return found
