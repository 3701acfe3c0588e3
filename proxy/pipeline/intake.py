"""The beginning of the pipeline: an upstream's bytes to frames, or to one body.

The content type is a claim, the first character is a fact: vendors send JSON errors as event streams, event streams as
text/plain, and what stands in front of them sends pages of HTML as anything. So the first non-blank byte decides how an
answer is read, except that one whose status is an error is always a body. The claim helps only where a first character
can be two things: `{` begins a body as well as the first of many lines. Compressed bodies are inflated first.
Nothing is awaited, nothing interpreted.
(contract W2, W7; facts of vendors: JSON under 200 although a stream was asked, an event stream although none was)
"""

from __future__ import annotations

from enum import Enum, auto

from proxy.dialects.base import Framing
from proxy.errors import LimitExceeded
from proxy.wire.eventstream import EventStreamDecoder
from proxy.wire.frame import Frame
from proxy.wire.inflate import Inflater
from proxy.wire.jsonarray import JsonArrayDecoder
from proxy.wire.ndjson import NdjsonDecoder
from proxy.wire.sse import SseDecoder

# Enough for every error page seen; what is beyond it is read and dropped.
MAX_ERROR_BODY = 64 * 1024
# What some write into content-encoding, and what is no encoding.
_NO_ENCODING = ("", "identity", "none", "utf-8", "utf8", "chunked")
_BLANK = b" \t\r\n\xef\xbb\xbf"
_SSE_ONLY = frozenset((Framing.SSE,))


class Shape(Enum):
    UNKNOWN = auto()
    SSE = auto()
    NDJSON = auto()
    ARRAY = auto()
    EVENTSTREAM = auto()
    BODY = auto()
    ERROR_BODY = auto()


class Intake:
    """`feed` returns frames; a body is kept in `body`. `broken` says why a compressed body could not be read on."""

    def __init__(
        self,
        status: int,
        content_type: str,
        encoding: str,
        max_line_bytes: int,
        max_answer_bytes: int,
        framings: frozenset[Framing] = _SSE_ONLY,
    ) -> None:
        self.sse = SseDecoder(max_line_bytes, max_line_bytes)
        self._framings, self._content_type = framings, content_type
        self._other: NdjsonDecoder | JsonArrayDecoder | EventStreamDecoder = NdjsonDecoder(max_line_bytes)
        self._max_line = max_line_bytes
        self._encoding = ",".join(word for word in map(str.strip, encoding.split(",")) if word not in _NO_ENCODING)
        self._inflater = Inflater(self._encoding) if self._encoding else None
        self._head: bytes | None = b""  # None once it was looked at
        self._max_answer = max_answer_bytes
        self._kept = bytearray()
        if not 200 <= status < 300:
            self.shape = Shape.ERROR_BODY
        else:
            self.shape = Shape.UNKNOWN

    @property
    def is_sse(self) -> bool:
        return self.shape is Shape.SSE

    @property
    def plain(self) -> bool:
        """No compression: bytes may be looked at as they are."""
        return self._inflater is None

    @property
    def exceeded(self) -> LimitExceeded | None:
        """The limit that the input has passed, after everything before it was returned."""
        return self.sse.over or self._other.over

    @property
    def broken(self) -> str | None:
        return self._inflater.broken if self._inflater is not None else None

    @property
    def body(self) -> bytes:
        return b"" if self.shape is Shape.UNKNOWN else bytes(self._kept)

    def inflate(self, data: bytes) -> list[bytes]:
        """The bytes behind the compression. A body that is called gzip and does not begin like one is taken as it is:
        relays inflate what they pass on and forget the header."""
        if self._inflater is None:
            return [data]
        if self._encoding in ("gzip", "x-gzip") and self._head is not None:
            self._head += data
            if len(self._head) < 2:
                return []
            data, self._head = self._head, None
            if not data.startswith(b"\x1f\x8b"):
                self._inflater = None
                return [data]
        return self._inflater.feed(data)

    @property
    def unreadable(self) -> str | None:
        """The encoding that nothing at all could be read of."""
        return self._encoding if self.broken is not None and self.shape is Shape.UNKNOWN else None

    def feed(self, data: bytes) -> list[Frame]:
        """Frames that these (inflated) bytes complete. Raises LimitExceeded."""
        match self.shape:
            case Shape.SSE:
                return self.sse.feed(data)
            case Shape.UNKNOWN:
                return self._first(data)
            case Shape.NDJSON | Shape.ARRAY | Shape.EVENTSTREAM:
                return self._other.feed(data)
            case Shape.BODY:
                self._keep(data, self._max_answer, drop=False)
            case Shape.ERROR_BODY:
                self._keep(data, MAX_ERROR_BODY, drop=True)
        return []

    def finish(self) -> list[Frame]:
        """End of input: what was not yet ended by a blank line (its `terminated` is False)."""
        match self.shape:
            case Shape.SSE:
                return self.sse.finish()
            case Shape.NDJSON | Shape.ARRAY | Shape.EVENTSTREAM:
                return self._other.finish()
            case _:
                return []

    def _first(self, data: bytes) -> list[Frame]:
        self._kept += data
        head = data.lstrip(_BLANK)
        if not head:
            if len(self._kept) > MAX_ERROR_BODY:  # blanks may be heartbeats (DeepSeek), their number says nothing
                del self._kept[:-16]
            return []
        start = bytes(self._kept)
        self._kept.clear()
        if self._is_binary(start):
            self._other, self.shape = EventStreamDecoder(self._max_line), Shape.EVENTSTREAM
            return self.feed(start)
        if head[:1] == b"[" and Framing.ARRAY in self._framings:
            self._other, self.shape = JsonArrayDecoder(self._max_line), Shape.ARRAY
            return self.feed(start.lstrip(_BLANK))
        if head[:1] == b"{" and self._may_be_lines:
            self.shape = Shape.NDJSON
            return self.feed(start)
        if head[:1] in b'{["<':
            self.shape = Shape.BODY  # without the blanks, and the byte order mark that parsers refuse
            return self.feed(start.lstrip(_BLANK))
        self.shape = Shape.SSE
        return self.feed(start)

    def _is_binary(self, start: bytes) -> bool:
        """Every message of an event stream begins with its length, whose first byte is 0 below 16 MiB."""
        if "amazon.eventstream" in self._content_type:
            return not 0x20 <= start.lstrip(_BLANK)[0] < 0x7F
        return start[:1] == b"\0" and Framing.EVENTSTREAM in self._framings

    @property
    def _may_be_lines(self) -> bool:
        if "ndjson" in self._content_type or "jsonl" in self._content_type:
            return True
        return Framing.NDJSON in self._framings and "application/json" not in self._content_type

    def _keep(self, data: bytes, limit: int, *, drop: bool) -> None:
        room = limit - len(self._kept)
        if len(data) > room and not drop:
            raise LimitExceeded("answer", limit, len(self._kept) + len(data))
        self._kept += data[:room]
