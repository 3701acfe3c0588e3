"""What `wire.lines` makes of bytes: lines end at CR, LF, CRLF and nowhere else, and have a limit."""

from __future__ import annotations

import pytest

from proxy.errors import LimitExceeded
from proxy.wire.lines import BomFilter, LineBuffer
from tests.support.cuts import fed, one_by_one, three_ways


def lines_of(reads: list[bytes]) -> list[object]:
    return fed(LineBuffer(1000), reads)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"one\r\ntwo\r\n", [b"one", b"two"]),
        (b"one\rtwo\r", [b"one", b"two"]),
        (b"one\r\n\r\ntwo\n\n", [b"one", b"", b"two", b""]),
        (b"one\r\r\n\n\rtwo\n", [b"one", b"", b"", b"", b"two"]),
        (b"\n", [b""]),
        (b"\r\n", [b""]),
        ("سلام\nدنیا\n".encode(), ["سلام".encode(), "دنیا".encode()]),
        (b"a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\n", [b"a\x0bb\x0cc\x1cd\x1de\x1ef\x85g"]),
        ("行\u2028段\u2029\u0085\n".encode(), ["行\u2028段\u2029\u0085".encode()]),
        (b"\x00\xff\xfe\n", [b"\x00\xff\xfe"]),
    ],
)
def test_lines_end_at_cr_lf_and_crlf_only(data: bytes, lines: list[bytes]) -> None:
    """Every kind of line end ends one line, and no other character does, however the bytes are cut."""
    assert three_ways(lines_of, data, b"tail") == lines


@pytest.mark.clause("W2")
def test_a_cr_ends_the_line_at_once_and_its_lf_may_come_later() -> None:
    """The line is there with its CR; the LF that opens the next read is no line of its own."""
    buffer = LineBuffer(1000)
    assert buffer.feed(b"one\r") == [b"one"]
    assert buffer.after_cr
    assert buffer.feed(b"") == []
    assert buffer.after_cr
    assert buffer.feed(b"\n") == []
    assert not buffer.after_cr
    assert buffer.feed(b"\n") == [b""]


def test_a_partial_line_is_pending_until_its_end_comes() -> None:
    """`pending` says whether a line has begun and not ended."""
    buffer = LineBuffer(1000)
    assert not buffer.pending
    assert buffer.feed(b"one\ntw") == [b"one"]
    assert buffer.pending
    assert buffer.feed(b"o\n") == [b"two"]
    assert not buffer.pending


def test_the_end_of_input_gives_the_unterminated_line() -> None:
    """A last line without its end comes from `finish`; after a line end there is none."""
    buffer = LineBuffer(1000)
    buffer.feed(b"one\ntwo")
    assert buffer.finish() == b"two"
    buffer = LineBuffer(1000)
    buffer.feed(b"one\r")
    assert buffer.finish() is None


LIMIT = 8


@pytest.mark.clause("W7")
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT])
def test_a_line_up_to_the_limit_is_a_line(length: int, end: bytes) -> None:
    """A line of limit - 1 and of limit bytes passes; its end does not count."""
    line = b"x" * length
    assert three_ways(lambda reads: fed(LineBuffer(LIMIT), reads), line + end, b"") == [line]


@pytest.mark.clause("W7")
@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n", b"\nshort\n"])
def test_a_line_beyond_the_limit_is_refused_with_and_without_its_end(end: bytes) -> None:
    """limit + 1 bytes are too many, also when the line end stands in the same read."""
    for reads in ([b"x" * (LIMIT + 1) + end], one_by_one(b"x" * (LIMIT + 1) + end)):
        buffer = LineBuffer(LIMIT)
        with pytest.raises(LimitExceeded) as caught:
            for read in reads:
                buffer.feed(read)
        assert (caught.value.what, caught.value.limit, caught.value.seen) == ("line", LIMIT, LIMIT + 1)


@pytest.mark.clause("W2", "W7")
@pytest.mark.parametrize("end", [b"", b"\nmore\n"])
def test_the_lines_in_front_of_a_too_long_one_are_returned_first(end: bytes) -> None:
    """The read that holds good lines and a too long one gives the good ones; then everything is refused."""
    buffer = LineBuffer(LIMIT)
    assert buffer.feed(b"one\ntwo\n" + b"x" * (LIMIT + 1) + end) == [b"one", b"two"]
    assert buffer.over is not None
    with pytest.raises(LimitExceeded):
        buffer.feed(b"three\n")
    with pytest.raises(LimitExceeded):
        buffer.finish()


@pytest.mark.clause("W7")
def test_many_short_lines_in_one_read_are_no_long_line() -> None:
    """A read much longer than the limit passes if none of its lines is."""
    assert LineBuffer(LIMIT).feed(b"12345678\n" * 1000) == [b"12345678"] * 1000


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    ("data", "rest"),
    [
        (b"\xef\xbb\xbfdata", b"data"),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata", b"\xef\xbb\xbfdata"),
        (b"data\xef\xbb\xbf", b"data\xef\xbb\xbf"),
        (b"\xef\xbbdata", b"\xef\xbbdata"),
        (b"\xef\xbb", b"\xef\xbb"),
        (b"\xef\xbb\xbf", b""),
        (b"", b""),
    ],
)
def test_one_byte_order_mark_at_the_start_is_dropped(data: bytes, rest: bytes) -> None:
    """One mark goes, also in three reads; a second one, a later one and half a one stay."""

    def run(reads: list[bytes]) -> bytes:
        bom = BomFilter()
        out = b""
        for read in reads:
            out += read if bom.settled else bom.feed(read)
        return out + bom.finish()

    assert three_ways(run, data, b"") == rest
