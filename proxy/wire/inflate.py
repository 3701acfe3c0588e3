"""Undoes `Content-Encoding`, read by read (contracts W2, W7).

In: the reads of a body as they came. Out: its bytes, in pieces. What an upstream flushed comes out at once, so a stream
of events stays one. Compressed bytes that are wrong or cut are values, not exceptions: what could be decoded comes out,
`broken` says what was wrong, `finish` whether the end was reached. Nothing decoded is held from one read to the next.

Memory: a bomb swells inside a single read, where no later stage can stop it. So one read may bring `max_out_per_feed`
bytes, and beyond that `MAX_RATIO` times its own length. Events and JSON compress 5 to 40 times, the worst that a model
does (one token for ever) some 100 times; deflate can reach 1,032, brotli far more. This guards memory and nothing else:
how long an answer may be is another limit, and not decided here.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import brotli  # type: ignore[import-untyped]  # it ships no types

from proxy.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_RATIO = 100

# Each further coding multiplies what a bomb can do; nobody sends more than one.
MAX_CODINGS = 3

_PIECE_BYTES = 65536

# A brotli decoder that met an error gives nothing more, not even what it had decoded in the same call: so little at a
# time. (zlib's can be copied first.)
_BROTLI_SLICE_BYTES = 16

_GZIP_FIRST_BYTE = 0x1F
_WBITS_GZIP, _WBITS_ZLIB, _WBITS_RAW = 31, 15, -15


class Inflater:
    """For one body. `encoding` is the value of its `Content-Encoding`: `gzip`, `deflate` (with or without the zlib
    head), `br`, `identity`, or several with commas. `broken` says in words what was wrong, from the construction on if
    the coding is unknown; nothing comes out after it."""

    __slots__ = ("_max_out_per_feed", "_stages", "broken")

    def __init__(self, encoding: str, max_out_per_feed: int = 1 << 20) -> None:
        self._max_out_per_feed = max_out_per_feed
        self._stages: list[_Stage] = []
        self.broken: str | None = None
        names = [name.strip().lower() for name in encoding.split(",")]
        codings = [name for name in names if name not in ("", "identity")]
        unknown = [name for name in codings if name not in _STAGES]
        if unknown:
            self.broken = f"unknown content coding {unknown[0][:40]!r}"
        elif len(codings) > MAX_CODINGS:
            self.broken = f"{len(codings)} content codings, at most {MAX_CODINGS} are undone"
        else:
            # They stand in the order in which they were applied.
            self._stages = [_STAGES[name]() for name in reversed(codings)]

    def feed(self, data: bytes) -> list[bytes]:
        """The decoded bytes that this read brought. Raises `LimitExceeded` for a bomb."""
        if self.broken is not None or not data:
            return []
        # In slices: zlib copies what a full piece left of its input, which would make one large read quadratic.
        pieces = [data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES)]
        limit = self._max_out_per_feed + MAX_RATIO * len(data)
        for stage in self._stages:
            out = _Out(limit)
            try:
                for piece in pieces:
                    stage.feed(piece, out)
            except (zlib.error, brotli.error) as error:
                self.broken = f"broken compressed body: {error}"
            pieces = out.pieces
        return pieces

    def finish(self) -> bool:
        """Was the compressed stream whole? (As is one of which not a byte came: nothing of it was cut.)"""
        return self.broken is None and all(stage.is_whole for stage in self._stages)


class _Out:
    """What one read brought out of one coding."""

    __slots__ = ("_limit", "_size", "pieces")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self.pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise LimitExceeded("inflated read", self._limit, self._size)
        if piece:
            self.pieces.append(piece)


class _Stage(Protocol):
    """One coding. `feed` adds all that can be decoded to `out`, then raises the library's error, if there was one."""

    def feed(self, data: bytes, out: _Out) -> None: ...

    @property
    def is_whole(self) -> bool: ...


class _Gzip:
    """One or more members. Between and after them zeros are padding; what else follows the last one is ignored, as
    browsers do."""

    __slots__ = ("_after_a_member", "_ignores_the_rest", "_member")

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._after_a_member = False
        self._ignores_the_rest = False

    @property
    def is_whole(self) -> bool:
        return self._member is None

    def feed(self, data: bytes, out: _Out) -> None:
        while data and not self._ignores_the_rest:
            if self._member is None:
                data = self._open_member(data)
            else:
                _inflate(self._member, data, out)
                data = self._member.unused_data
                if self._member.eof:
                    self._member, self._after_a_member = None, True

    def _open_member(self, data: bytes) -> bytes:
        if self._after_a_member:
            data = data.lstrip(b"\0")
        if data and self._after_a_member and data[0] != _GZIP_FIRST_BYTE:
            self._ignores_the_rest = True
        elif data:
            self._member = zlib.decompressobj(_WBITS_GZIP)
        return data


class _Deflate:
    """The zlib format, as the standard says, or the bare deflate that some servers send: the first two bytes tell."""

    __slots__ = ("_first", "_stream")

    def __init__(self) -> None:
        self._first = b""
        self._stream: zlib._Decompress | None = None

    @property
    def is_whole(self) -> bool:
        return self._stream.eof if self._stream is not None else not self._first

    def feed(self, data: bytes, out: _Out) -> None:
        if self._stream is None:
            data = self._first + data
            if len(data) < 2:
                self._first = data
                return
            is_zlib = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(_WBITS_ZLIB if is_zlib else _WBITS_RAW)
        if not self._stream.eof:
            _inflate(self._stream, data, out)


class _Brotli:
    __slots__ = ("_begun", "_stream")

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._begun = False

    @property
    def is_whole(self) -> bool:
        return self._stream.is_finished() or not self._begun

    def feed(self, data: bytes, out: _Out) -> None:
        self._begun = True
        for start in range(0, len(data), _BROTLI_SLICE_BYTES):
            if self._stream.is_finished():
                return
            piece = self._process(data[start : start + _BROTLI_SLICE_BYTES], out)
            # The decoder may have taken all input and still hold output back: a full piece is not the last one.
            while len(piece) >= _PIECE_BYTES or not self._stream.can_accept_more_data():
                piece = self._process(b"", out)

    def _process(self, data: bytes, out: _Out) -> bytes:
        # The library doubles its buffer until it reaches the limit, so a piece may be a little less than two.
        piece: bytes = self._stream.process(data, output_buffer_limit=_PIECE_BYTES)
        out.add(piece)
        return piece


_STAGES: dict[str, Callable[[], _Stage]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
}


def _inflate(stream: zlib._Decompress, data: bytes, out: _Out) -> None:
    """All that `data` brings, piece by piece. What stands in front of an error comes out, wherever the reads were cut:
    zlib throws away what it decoded in the call that fails, so a copy decodes it again, byte by byte."""
    size = _PIECE_BYTES
    while not stream.eof and (data or size == _PIECE_BYTES):
        before = stream.copy()
        try:
            piece = stream.decompress(data, _PIECE_BYTES)
        except zlib.error:
            with suppress(zlib.error):
                for byte in data:  # pragma: no branch: the same bytes fail again
                    out.add(before.decompress(bytes((byte,))))
            raise
        out.add(piece)
        # A full piece may leave output inside although all input is taken.
        data, size = stream.unconsumed_tail, len(piece)
