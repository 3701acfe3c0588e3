"""AWS event streams: binary messages to frames (contracts W2, W7; the format is vnd.amazon.eventstream).

In: the reads of one response body, cut anywhere. Out: a `Frame` per message: its payload as `data`, its `:event-type`,
or `:exception-type`, or `:error-code` as `event` (which is which, its reader knows by name). A message whose checksum
is wrong ends the stream: behind it nobody knows where the next one begins. Its bytes come out as one frame. Never parses a
payload, never raises but for `LimitExceeded`.

A message: total length (4 bytes, big endian), length of headers (4), CRC32 of these eight (4), headers, payload, CRC32
of all before (4). A header: length of name (1), name, type of value (1), value.
"""

from __future__ import annotations

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
    """Holds at most one partial message. `broken` says that a checksum was wrong."""

    __slots__ = ("_held", "_limit", "broken", "over")

    def __init__(self, max_line_bytes: int) -> None:
        self._limit = max_line_bytes
        self._held = bytearray()
        self.broken = False
        self.over: LimitExceeded | None = None

    def feed(self, data: bytes) -> list[Frame]:
        if self.over is not None:
            raise self.over
        if self.broken:
            return []
        self._held += data
        frames: list[Frame] = []
        start = 0
        while len(self._held) - start >= _PRELUDE and self.over is None:
            total, headers, crc = unpack_from(">III", self._held, start)
            if crc != zlib.crc32(self._held[start : start + 8]) or total < _LEAST or headers > total - _LEAST:
                self._break(frames, start)
                return frames
            if total > self._limit:
                self.over = LimitExceeded("line", self._limit, total)
                break
            if len(self._held) - start < total:
                break
            message = bytes(self._held[start : start + total])
            if unpack_from(">I", message, total - 4)[0] != zlib.crc32(message[:-4]):
                self._break(frames, start)
                return frames
            frames.append(_frame(message, headers))
            start += total
        del self._held[:start]
        if self.over is not None and not frames:
            raise self.over
        return frames

    def finish(self) -> list[Frame]:
        """A message that did not come whole: it says nothing."""
        rest = bytes(self._held)
        self._held.clear()
        return [Frame(rest, terminated=False)] if rest and not self.broken else []

    def _break(self, frames: list[Frame], start: int) -> None:
        self.broken = True
        frames.append(Frame(bytes(self._held[start:])))
        self._held.clear()


def _frame(message: bytes, headers: int) -> Frame:
    named = _headers(message[_PRELUDE : _PRELUDE + headers])
    event = named.get(":exception-type") or named.get(":event-type") or named.get(":error-code")
    data = message[_PRELUDE + headers : -4]
    if not data and ":error-message" in named:
        data = named[":error-message"].encode()
    return Frame(data, event)


def _headers(data: bytes) -> dict[str, str]:
    """The headers that are strings. What is malformed ends them."""
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
        if kind == _STRING:
            found[name] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return found
