"""What `wire.sse` makes of bytes: the WHATWG rules, and where we go beyond them."""

from __future__ import annotations

import pytest

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame
from proxy.wire.sse import MAX_COMMENT_BYTES, MAX_COMMENTS, SseDecoder
from tests.support.cuts import fed, one_by_one, outcome, three_ways


def decoder(line: int = 1000, event: int = 1000, aside: int = 1000) -> SseDecoder:
    return SseDecoder(line, event, aside)


def frames_of(reads: list[bytes]) -> list[object]:
    return fed(decoder(), reads)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    ("data", "frames"),
    [
        ("data: سلام\n\ndata: 你好\n\n".encode(), [Frame("سلام".encode()), Frame("你好".encode())]),
        (b"data:one\n\ndata:two\n\n", [Frame(b"one"), Frame(b"two")]),
        (b"data:one\n\ndata: two\n\n", [Frame(b"one"), Frame(b"two")]),
        (b"data: one\n\ndata:two\n\n", [Frame(b"one"), Frame(b"two")]),
        (b"data:  two spaces\n\n", [Frame(b" two spaces")]),
        (b"data: one\r\n\r\ndata: two\r\n\r\n", [Frame(b"one"), Frame(b"two")]),
        (b"data: one\r\rdata: two\r\r", [Frame(b"one"), Frame(b"two")]),
        (b"data: one\n\r\ndata: two\r\n\n", [Frame(b"one"), Frame(b"two")]),
        (b"\xef\xbb\xbfdata: one\n\n", [Frame(b"one")]),
        (b"\n\n\ndata: one\n\n\n\ndata: two\n\n", [Frame(b"one"), Frame(b"two")]),
        (b"data: {\ndata:  1\ndata: }\n\n", [Frame(b"{\n 1\n}", lines=3)]),
        (b"data\ndata: one\ndata\n\n", [Frame(b"\none\n", lines=3)]),
        ("data: a\u2028b\u2029c\u0085d\n\n".encode(), [Frame("a\u2028b\u2029c\u0085d".encode())]),
        (b"data: \xff\xfe\x00\n\n", [Frame(b"\xff\xfe\x00")]),
        (b"data: a: b\n\n", [Frame(b"a: b")]),
        (b"event: delta\ndata: one\n\ndata: two\n\n", [Frame(b"one", event="delta"), Frame(b"two")]),
        (b"data: one\nevent:  a\nevent:b\n\n", [Frame(b"one", event="b")]),
        ("event: رویداد\ndata: one\n\n".encode(), [Frame(b"one", event="رویداد")]),
        (b"event: \xff\ndata: one\n\n", [Frame(b"one", event="\ufffd")]),
        (b"event\ndata: one\n\n", [Frame(b"one")]),
        (b"id: 7\nretry: 10\ndata: one\n\n", [Frame(b"one")]),
    ],
)
def test_events_become_frames(data: bytes, frames: list[Frame]) -> None:
    """One frame per event that has data, by the rules of the standard, however the bytes are cut."""
    assert three_ways(frames_of, data, b"data: begun") == frames


@pytest.mark.clause("W2")
def test_a_read_may_end_one_event_hold_others_and_begin_one() -> None:
    """What an upstream in a hurry sends: reads cut in the middle of events, whole ones between the cuts."""
    sse = decoder()
    assert sse.feed(b"data: a") == []
    assert sse.feed(b"b\n\ndata: c\n\ndata: d\n\nevent: e\nda") == [Frame(b"ab"), Frame(b"c"), Frame(b"d")]
    assert sse.feed(b"ta: f\n") == []
    assert sse.feed(b"data: g\n\ndata: h\n") == [Frame(b"f\ng", event="e", lines=2)]
    assert sse.feed(b"\n") == [Frame(b"h")]


@pytest.mark.clause("W1")
@pytest.mark.parametrize(
    ("data", "empty", "ignored"),
    [
        (b"data:\n\n", 1, 0),
        (b"data: \n\ndata\n\n", 2, 0),
        (b"data:\ndata:\n\n", 1, 0),
        (b"event: ping\n\n", 1, 0),
        (b"id: 1\n\nretry: 3000\n\n", 2, 2),
        (b"\n\n\n\r\n", 0, 0),
        (b": comment\n\n", 0, 0),
        (b"unknown: field\n\n", 0, 0),
    ],
)
def test_events_without_data_are_counted_and_not_returned(data: bytes, empty: int, ignored: int) -> None:
    """An event without data dispatches nothing, nor does one whose data is empty; a blank line alone is no event."""
    for reads in ([data], one_by_one(data)):
        sse = decoder()
        assert fed(sse, reads) == []
        assert (sse.empty_events, sse.fields_ignored) == (empty, ignored)
        assert sse.feed(b"data: next\n\n")[0].event is None


def test_comments_are_counted_and_wait_for_the_next_frame() -> None:
    """A status written as a comment into an event comes with it; one in front of it too; alone none dispatches."""
    stream = b": ping\n\n:HTTP_STATUS/429\ndata: {}\n\ndata: a\n\n: bye\n\n"
    sse = decoder()
    expected = [Frame(b"{}", comments=(b": ping", b":HTTP_STATUS/429")), Frame(b"a")]
    assert three_ways(frames_of, stream, b": tail") == expected
    assert sse.feed(stream) == expected
    assert sse.comments == 3


def test_comments_go_to_the_first_of_many_events_in_one_read() -> None:
    """The way taken for many plain events attaches what waits in the same place."""
    assert three_ways(frames_of, b":c\n\ndata: a\n\ndata: b\n\n", b"") == [Frame(b"a", comments=(b":c",)), Frame(b"b")]
    sse = decoder()
    sse.feed(b":c\n\n")
    assert sse.feed(b"data: a\n\ndata: b\n\n") == [Frame(b"a", comments=(b":c",)), Frame(b"b")]


@pytest.mark.clause("W7")
def test_of_many_comments_the_last_ones_are_kept_shortened() -> None:
    """An upstream that only comments costs no memory; the comments nearest to the frame stay."""
    sse = decoder()
    sse.feed(b": old\n\n" * 50 + b":" + b"x" * 500 + b"\n\n")
    sse.feed(b": new\n" * (MAX_COMMENTS - 1))
    comments = sse.feed(b"data: a\n\n")[0].comments
    assert comments == (b":" + b"x" * (MAX_COMMENT_BYTES - 1),) + (b": new",) * (MAX_COMMENTS - 1)
    assert sse.comments == 50 + MAX_COMMENTS


@pytest.mark.parametrize(
    ("data", "aside"),
    [
        (b'error: {"code":429}\n\n', b'error: {"code":429}'),
        (b'{"error": {"code": 503}}\n', b'{"error": {"code": 503}}'),
        (b'{\n  "code": 503,\r\n  "data": null\n}\n', b'{\n  "code": 503,\n  "data": null\n}'),
        (b"<html>\r\n<title>502</title>\r\n\r\n</html>\r\n", b"<html>\n<title>502</title>\n</html>"),
        (b"meta: 1\n data: indented\nDATA: loud\ndatum: 2\n", b"meta: 1\n data: indented\nDATA: loud\ndatum: 2"),
        ("خطا: سهمیه\n".encode(), "خطا: سهمیه".encode()),
    ],
)
def test_lines_that_are_no_field_are_kept_aside(data: bytes, aside: bytes) -> None:
    """Errors that a server prints without `data:` are kept for classification, and disturb no event."""
    for reads in ([data], one_by_one(data)):
        sse = decoder()
        assert fed(sse, [b"data: a\n\n", *reads]) == [Frame(b"a")]
        assert sse.aside == aside
        assert sse.aside_dropped == 0
        assert sse.feed(b"\ndata: b\n\n") == [Frame(b"b")]


ASIDE = 16


@pytest.mark.clause("W7")
@pytest.mark.parametrize(
    ("lines", "aside", "dropped"),
    [
        ([b"x" * (ASIDE - 1)], b"x" * (ASIDE - 1), 0),
        ([b"x" * ASIDE], b"x" * ASIDE, 0),
        ([b"x" * (ASIDE + 1)], b"x" * ASIDE, 1),
        ([b"<html>", b"<body>", b"</body>"], b"<html>\n<body>\n</", 1),
        ([b"x" * (ASIDE - 1), b"y", b"z"], b"x" * (ASIDE - 1), 2),
    ],
)
def test_what_is_kept_aside_is_bounded(lines: list[bytes], aside: bytes, dropped: int) -> None:
    """Up to the limit lines are kept, the one that crosses it in part; the others are counted only."""
    sse = decoder(aside=ASIDE)
    sse.feed(b"".join(line + b"\n" for line in lines))
    assert (sse.aside, sse.aside_dropped) == (aside, dropped)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b"data: a\n\ndata: b", [Frame(b"a"), Frame(b"b", terminated=False)]),
        (b"data: a\n\ndata: b\n", [Frame(b"a"), Frame(b"b", terminated=False)]),
        (b"event: e\ndata: b\r", [Frame(b"b", event="e", terminated=False)]),
        (b":HTTP_STATUS/500\ndata: b", [Frame(b"b", comments=(b":HTTP_STATUS/500",), terminated=False)]),
        (b"data: a\ndata", [Frame(b"a\n", lines=2, terminated=False)]),
        (b"data: a\n\nevent: e", [Frame(b"a")]),
        (b"data: a\n\n: bye", [Frame(b"a")]),
        (b"\xef\xbb", []),
        (b"", []),
    ],
)
def test_the_end_of_input_gives_the_open_event(data: bytes, frames: list[Frame]) -> None:
    """An event without its blank line comes out marked, so that the caller can ask whether its data is whole."""
    assert three_ways(lambda reads: outcome(decoder(), reads), data, b"") == frames


def test_a_bare_error_without_a_line_end_is_kept_aside_at_the_end() -> None:
    """The unterminated last line is a line: a JSON body sent instead of a stream is there to be classified."""
    sse = decoder()
    assert outcome(sse, [b'{"error":', b'"quota"}']) == []
    assert sse.aside == b'{"error":"quota"}'


@pytest.mark.clause("W2")
def test_at_boundary_says_when_whole_events_may_go_past() -> None:
    """Only where the next byte begins a new event and nothing that is held belongs to it."""
    sse = decoder()
    assert not sse.at_boundary, "a byte order mark may come"
    steps = [
        (b"data: a\n\n", True),
        (b"data: b", False),
        (b"\n", False),
        (b"\n", True),
        (b"event: e\n", False),
        (b"\n", True),
        (b"id: 1\n\n", True),
        (b": waits for the next frame\n\n", False),
        (b"data: c\n\n", True),
        (b"data: d\r\n\r", False),
        (b"\n", True),
        (b"aside\n", True),
    ]
    seen = []
    for read, _ in steps:
        sse.feed(read)
        seen.append((read, sse.at_boundary))
    assert seen == steps


LIMIT = 20


def limited(reads: list[bytes]) -> list[object]:
    return outcome(SseDecoder(LIMIT, LIMIT), reads)


@pytest.mark.clause("W7")
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\n"])
@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT])
def test_a_line_up_to_the_limit_is_read(length: int, end: bytes) -> None:
    """limit - 1 and limit bytes of line pass."""
    value = b"x" * (length - len(b"data: "))
    assert three_ways(limited, b"data: " + value + end, b"") == [Frame(value, terminated=end != b"\n")]


@pytest.mark.clause("W2", "W7")
@pytest.mark.parametrize("end", [b"", b"\n\n", b"\r\n\r\ndata: c\n\n"])
def test_a_line_beyond_the_limit_ends_the_stream_after_the_frames_before_it(end: bytes) -> None:
    """The frames in front of the long line come out whatever the cuts; then the limit, and nothing more."""
    value = b"x" * (LIMIT + 1 - len(b"data: "))
    got = three_ways(limited, b"data: a\n\ndata: b\n\ndata: " + value + end, b"")
    assert got == [Frame(b"a"), Frame(b"b"), ("limit", "line", LIMIT)]


@pytest.mark.clause("W7")
@pytest.mark.parametrize("lines", [[9, 9], [9, 10]])
def test_an_event_up_to_the_limit_is_read(lines: list[int]) -> None:
    """The joined data of an event, line ends included, may have limit - 1 and limit bytes."""
    data = b"\n".join(b"x" * length for length in lines)
    stream = b"".join(b"data:" + b"x" * length + b"\n" for length in lines) + b"\n"
    assert three_ways(limited, stream, b"") == [Frame(data, lines=2)]


@pytest.mark.clause("W2", "W7")
def test_an_event_beyond_the_limit_ends_the_stream_after_the_frames_before_it() -> None:
    """limit + 1 bytes of data are too many, also when they come in short lines."""
    stream = b"data: a\n\n" + b"data:" + b"x" * 10 + b"\ndata:" + b"x" * 10 + b"\n\ndata: b\n\n"
    assert three_ways(limited, stream, b"") == [Frame(b"a"), ("limit", "event", LIMIT)]
    assert three_ways(limited, b"data\n" * (LIMIT + 3), b"") == [("limit", "event", LIMIT)]


@pytest.mark.clause("W7")
def test_after_a_limit_every_call_refuses() -> None:
    """`over` is known with the frames that came before; then `feed` and `finish` raise."""
    sse = SseDecoder(LIMIT, LIMIT)
    assert sse.feed(b"data: a\n\n" + b"x" * (LIMIT + 1)) == [Frame(b"a")]
    assert sse.over is not None
    assert (sse.over.what, sse.over.limit) == ("line", LIMIT)
    with pytest.raises(LimitExceeded):
        sse.feed(b"\n")
    with pytest.raises(LimitExceeded):
        sse.finish()
    assert not fed(SseDecoder(LIMIT, LIMIT), [b"\n" + b"x" * (LIMIT + 1)])


def test_a_limit_met_at_the_end_of_input_is_raised() -> None:
    """The unterminated last line may be the one that makes the event too long."""
    assert outcome(SseDecoder(LIMIT, 3), [b"data: ab\n", b"data: c"]) == [("limit", "event", 3)]
