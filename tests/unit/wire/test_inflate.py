"""What `wire.inflate` makes of compressed bodies, whole, flushed event by event, cut and broken."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest

from proxy.errors import LimitExceeded
from proxy.wire.inflate import MAX_CODINGS, MAX_RATIO, Inflater
from tests.support.cuts import one_by_one, three_ways

EVENTS = [f'data: {{"text":"سلام {n} 你好"}}\n\n'.encode() for n in range(50)]
BODY = b"".join(EVENTS)


def deflated(events: list[bytes], wbits: int) -> list[bytes]:
    """Each event compressed and flushed, as a server sends a stream; the end stands in the last block."""
    coder = zlib.compressobj(6, zlib.DEFLATED, wbits)
    blocks = [coder.compress(event) + coder.flush(zlib.Z_SYNC_FLUSH) for event in events]
    blocks[-1] += coder.flush()
    return blocks


def brotlied(events: list[bytes]) -> list[bytes]:
    coder = brotli.Compressor()
    blocks = [coder.process(event) + coder.flush() for event in events]
    blocks[-1] += coder.finish()
    return blocks


CODINGS: dict[str, tuple[str, Callable[[list[bytes]], list[bytes]]]] = {
    "gzip": ("gzip", lambda events: deflated(events, 31)),
    "x-gzip": ("X-GZIP", lambda events: deflated(events, 31)),
    "zlib": ("deflate", lambda events: deflated(events, 15)),
    "raw": (" Deflate ", lambda events: deflated(events, -15)),
    "br": ("br", brotlied),
    "identity": ("identity", lambda events: events),
    "none": ("", lambda events: events),
    "gzip, then br": ("gzip, identity, br", lambda events: brotlied(deflated(events, 31))),
}
every_coding = pytest.mark.parametrize(("encoding", "encode"), CODINGS.values(), ids=CODINGS)


def body_of(encoding: str, reads: list[bytes]) -> tuple[bytes, bool, str | None]:
    inflater = Inflater(encoding)
    out = b"".join(piece for read in reads for piece in inflater.feed(read))
    return out, inflater.finish(), inflater.broken


@pytest.mark.clause("W2")
@every_coding
def test_every_coding_is_undone_however_it_is_cut(encoding: str, encode: Callable[[list[bytes]], list[bytes]]) -> None:
    """Whole or byte by byte, the body is what was encoded, and its end is seen."""
    encoded = b"".join(encode(EVENTS))
    assert three_ways(lambda reads: body_of(encoding, reads), encoded, b"") == (BODY, True, None)


@pytest.mark.clause("W2")
@every_coding
def test_flushed_blocks_come_out_at_once(encoding: str, encode: Callable[[list[bytes]], list[bytes]]) -> None:
    """An event that the upstream flushed is there with the read that brought it; none waits for the next."""
    inflater = Inflater(encoding)
    assert [b"".join(inflater.feed(block)) for block in encode(EVENTS)] == EVENTS


@every_coding
def test_a_body_of_no_bytes_is_whole_and_a_cut_one_is_not(
    encoding: str, encode: Callable[[list[bytes]], list[bytes]]
) -> None:
    """Where the coding knows its end, `finish` tells a cut from an end; what came before the cut came out."""
    assert body_of(encoding, [b""]) == (b"", True, None)
    encoded = b"".join(encode(EVENTS))
    for cut in (1, 2, 11, len(encoded) // 2, len(encoded) - 1):
        out, whole, broken = body_of(encoding, [encoded[:cut]])
        assert BODY.startswith(out)
        assert (whole, broken) == (encoding in ("", "identity"), None)


@pytest.mark.clause("W2")
def test_gzip_may_have_several_members_and_padding() -> None:
    """Members follow each other; zeros between and behind them, and anything else behind the last, are nothing."""
    members = gzip.compress("سلام ".encode()) + b"\0\0\0" + gzip.compress("你好".encode())
    for tail in (b"", b"\0" * 9, b"\0\0<!-- served by -->", b"\n", b"\n\x1f\x8b"):
        got = three_ways(lambda reads: body_of("gzip", reads), members + tail, b"")
        assert got == ("سلام 你好".encode(), True, None)
    out, whole, broken = body_of("gzip", [members, b"\x1f"])
    assert (out, whole, broken) == ("سلام 你好".encode(), False, None)


@pytest.mark.parametrize("wbits", [15, -15])
def test_what_follows_the_end_of_deflate_or_brotli_is_ignored(wbits: int) -> None:
    """The end is the end."""
    encoded = zlib.compress(BODY, wbits=wbits)
    assert three_ways(lambda reads: body_of("deflate", reads), encoded, b"trailing")[:2] == (BODY, True)
    assert body_of("br", [brotli.compress(BODY), b"trailing"]) == (BODY, True, None)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_what_stands_before_a_broken_byte_comes_out(encoding: str, wbits: int) -> None:
    """Wrong compressed bytes raise nothing: the events before them come out whatever the cuts, then nothing more."""
    blocks = deflated(EVENTS, wbits)
    encoded = b"".join(blocks[:20]) + b"\xff" * 30 + b"".join(blocks[20:])
    out, whole, broken = three_ways(lambda reads: body_of(encoding, reads), encoded, b"")
    assert out == b"".join(EVENTS[:20])
    assert not whole
    assert broken is not None
    assert "broken compressed body" in broken


@pytest.mark.clause("W2")
def test_broken_brotli_ends_after_what_was_flushed_before_it() -> None:
    """Brotli's decoder cannot be asked twice: what one of its small slices would have brought may be lost, no more."""
    good = b"".join(brotlied(EVENTS)[:20])
    before_its_slice = b"".join(Inflater("br").feed(good[: len(good) // 16 * 16]))
    for reads in ([good + b"\xff" * 99], one_by_one(good + b"\xff" * 99)):
        out, whole, broken = body_of("br", reads)
        assert BODY.startswith(out)
        assert out.startswith(before_its_slice)
        assert (whole, broken is not None) == (False, True)


def test_a_broken_body_takes_no_more_bytes() -> None:
    """After the break the rest is noise."""
    inflater = Inflater("gzip")
    assert inflater.feed(b"<html>this is no gzip</html>") == []
    assert inflater.broken is not None
    assert inflater.feed(gzip.compress(BODY)) == []
    assert not inflater.finish()


def test_a_wrong_checksum_breaks_the_body_after_its_last_byte() -> None:
    """All of the text is there, but the stream was not whole."""
    encoded = bytearray(gzip.compress(BODY))
    encoded[-5] ^= 1
    assert three_ways(lambda reads: body_of("gzip", reads)[:2], bytes(encoded), b"") == (BODY, False)


@pytest.mark.parametrize(
    ("encoding", "word"),
    [("zstd", "zstd"), ("gzip, sdch", "sdch"), (", ".join(["gzip"] * (MAX_CODINGS + 1)), "4 content codings")],
)
def test_an_unknown_coding_is_broken_from_the_start(encoding: str, word: str) -> None:
    """What cannot be undone says so before the first byte, and lets none through."""
    inflater = Inflater(encoding)
    assert inflater.broken is not None
    assert word in inflater.broken
    assert (inflater.feed(b"anything"), inflater.finish()) == ([], False)


def test_as_many_codings_as_allowed_are_undone() -> None:
    """At the limit it works."""
    encoded = gzip.compress(gzip.compress(zlib.compress(BODY)))
    assert body_of("deflate, gzip, gzip", [encoded]) == (BODY, True, None)


@pytest.mark.clause("W7")
@pytest.mark.parametrize("size", [65535, 65536, 65537, 131072, 200_000])
@pytest.mark.parametrize("coding", ["gzip", "zlib", "raw", "br"])
def test_a_read_that_swells_comes_in_pieces(size: int, coding: str) -> None:
    """No piece is larger than 128 KiB, and the last one comes with the read that brought it."""
    encoding, encode = CODINGS[coding]
    inflater = Inflater(encoding)
    pieces = inflater.feed(zlib.compress(b"x" * size, wbits=-15) if coding == "raw" else encode([b"x" * size])[0])
    assert b"".join(pieces) == b"x" * size
    assert max(map(len, pieces)) < 131072
    assert inflater.finish()


@pytest.mark.clause("W7")
@every_coding
def test_a_large_body_in_one_read_comes_whole(encoding: str, encode: Callable[[list[bytes]], list[bytes]]) -> None:
    """A read of several pieces on either side is one body."""
    body = b"".join(hashlib.sha256(b"%d" % n).hexdigest().encode() for n in range(8000))
    encoded = b"".join(encode([body]))
    assert len(encoded) > 3 * 65536
    assert body_of(encoding, [encoded]) == (body, True, None)


@pytest.mark.clause("W7")
@pytest.mark.parametrize(("encoding", "encode"), [("gzip", gzip.compress), ("br", brotli.compress)])
def test_a_bomb_is_refused_at_its_limit(encoding: str, encode: Callable[[bytes], bytes]) -> None:
    """One read may bring limit - 1 and limit bytes; at limit + 1 it is over, before the rest is decoded."""
    for more in (-1, 0, 1):
        room = 1_000_000
        size = room + more
        encoded = encode(b"\0" * size)
        inflater = Inflater(encoding, max_out_per_feed=room - MAX_RATIO * len(encoded))
        if more < 1:
            assert sum(map(len, inflater.feed(encoded))) == size
        else:
            with pytest.raises(LimitExceeded) as caught:
                inflater.feed(encoded)
            assert (caught.value.what, caught.value.limit) == ("inflated read", room)


@pytest.mark.clause("W7")
def test_a_bomb_behind_a_second_coding_is_refused_too() -> None:
    """Each coding has the same room."""
    with pytest.raises(LimitExceeded):
        Inflater("gzip, br").feed(brotli.compress(gzip.compress(b"\0" * 50_000_000)))
