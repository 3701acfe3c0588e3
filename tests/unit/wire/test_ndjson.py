"""What `wire.ndjson` makes of bytes: one frame per line that is not blank."""

from __future__ import annotations

import pytest

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame
from proxy.wire.ndjson import NdjsonDecoder
from tests.support.cuts import fed, outcome, three_ways


def frames_of(reads: list[bytes]) -> list[object]:
    return fed(NdjsonDecoder(1000), reads)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    ("data", "frames"),
    [
        ('{"response":"你好"}\n{"done":true}\n'.encode(), ['{"response":"你好"}'.encode(), b'{"done":true}']),
        (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
        (b'\n\r\n  \t\n{"a":1}\n\n', [b'{"a":1}']),
        (b'\xef\xbb\xbf{"a":1}\n', [b'{"a":1}']),
        (b"\n\n", []),
    ],
)
def test_each_line_that_is_not_blank_is_a_frame(data: bytes, frames: list[bytes]) -> None:
    """One frame per line, blank lines and a byte order mark dropped."""
    assert three_ways(frames_of, data, b'{"tail') == [Frame(frame) for frame in frames]


def test_blank_lines_are_counted() -> None:
    """Lines of nothing, or of spaces, are a heartbeat: counted, not returned."""
    decoder = NdjsonDecoder(1000)
    assert decoder.feed(b'\n{"a":1}\n \r\n') == [Frame(b'{"a":1}')]
    assert decoder.blank == 2


@pytest.mark.clause("W2")
def test_the_last_line_without_its_end_is_marked() -> None:
    """A server that ends without a line end may have been cut: the frame says so, and the caller decides."""
    assert outcome(NdjsonDecoder(1000), [b'{"a":1}\n{"done":', b"true}"]) == [
        Frame(b'{"a":1}'),
        Frame(b'{"done":true}', terminated=False),
    ]
    assert outcome(NdjsonDecoder(1000), [b'{"a":1}\n  ']) == [Frame(b'{"a":1}')]
    assert outcome(NdjsonDecoder(1000), [b"\xef\xbb"]) == [Frame(b"\xef\xbb", terminated=False)]


def test_at_boundary_says_when_whole_lines_may_go_past() -> None:
    """Not before the first byte (a byte order mark may come), not inside a line, not between CR and LF."""
    decoder = NdjsonDecoder(1000)
    seen = [decoder.at_boundary]
    for read in (b'{"a":1}', b"\r", b"\n", b'{"b"'):
        decoder.feed(read)
        seen.append(decoder.at_boundary)
    assert seen == [False, False, False, True, False]


LIMIT = 10


@pytest.mark.clause("W7")
@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT])
def test_a_line_up_to_the_limit_is_a_frame(length: int) -> None:
    """limit - 1 and limit bytes pass."""
    line = b"1" * length
    assert three_ways(lambda reads: outcome(NdjsonDecoder(LIMIT), reads), line + b"\n", b"") == [Frame(line)]


@pytest.mark.clause("W2", "W7")
def test_a_line_beyond_the_limit_is_refused_after_what_stood_before_it() -> None:
    """limit + 1 bytes are an error; the frames in front of them come first, whatever the cuts."""
    good, long = b"[1]\n", b"1" * (LIMIT + 1) + b"\n"
    got = three_ways(lambda reads: outcome(NdjsonDecoder(LIMIT), reads), good + long + good, b"")
    assert got == [Frame(b"[1]"), ("limit", "line", LIMIT)]


@pytest.mark.clause("W7")
def test_blank_lines_in_front_of_a_too_long_one_do_not_put_the_error_off() -> None:
    """With no frame to return the call that met the limit raises."""
    decoder = NdjsonDecoder(LIMIT)
    with pytest.raises(LimitExceeded):
        decoder.feed(b"\n\n" + b"1" * (LIMIT + 1))
    assert decoder.over is not None
    assert decoder.blank == 2


@pytest.mark.clause("W2")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_object_over_several_lines_is_one_frame(end: str) -> None:
    """A gateway's error in the middle of a stream: from a lone bracket to the one that closes it."""
    printed = ["{", '  "error": {', '    "message": "شلوغ"', "  }", "", "}"]
    told = end.join(['{"a":1}', *printed, '{"b":2}', ""]).encode()
    frames = ['{"a":1}', "\n".join(printed), '{"b":2}']
    assert three_ways(frames_of, told, b'{"tail') == [Frame(frame.encode()) for frame in frames]


@pytest.mark.clause("W2")
def test_an_object_over_several_lines_that_did_not_end_is_marked() -> None:
    assert outcome(NdjsonDecoder(1000), [b'{\n "a"', b":1\n"]) == [Frame(b'{\n "a":1', terminated=False)]
    assert outcome(NdjsonDecoder(1000), [b'{\n "a":1\n}']) == [Frame(b'{\n "a":1\n}', terminated=False)]


@pytest.mark.clause("W7")
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("size", [1, 7, 5000])
def test_an_object_over_several_lines_may_be_as_long_as_a_line(over: int, size: int) -> None:
    """limit-1, limit, limit+1, its line ends counted; what stood in front of it comes out."""
    printed = b"{\n" + b'"a":1,\n' * 100 + b" " * (296 + over) + b"\n}"
    data = b"{}\n" + printed + b"\n{}\n"
    reads = [data[start : start + size] for start in range(0, len(data), size)]
    told = outcome(NdjsonDecoder(1000), reads)
    assert told == [Frame(b"{}"), *([Frame(printed), Frame(b"{}")] if over <= 0 else [("limit", "line", 1000)])]
