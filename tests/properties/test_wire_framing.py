"""Framing, whatever the bytes and whatever the cuts: the same as a reader who has all of it before him."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.wire.frame import Frame
from proxy.wire.lines import LineBuffer
from proxy.wire.ndjson import NdjsonDecoder
from proxy.wire.sse import SseDecoder
from tests.support.cuts import cuts_of, fed, one_by_one, outcome

# Pieces of streams, and of what breaks readers of streams. Cuts fall into them as well as between them.
PIECES = [
    *(b"\r", b"\n", b"\r\n", b"\n\n", b"\r\n\r\n", b":", b" ", b"data", b"data:", b"data: ", b"event: ", b"id: 1"),
    *(b": ping", b":HTTP_STATUS/429", b"retry: 5", b"error: {}", b"{", b"}", b"x", b"data: x\n\n", b"data:y\n\n"),
    *(b"data: [DONE]\n\n", b"event: ping\n\n", b"data: z\r\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb", b"\xff", b"\x00"),
    *("سلام".encode(), "你".encode()[:2], "👩‍👧".encode(), "\u2028".encode(), b"\x85", rb"\ud83d", rb"\ude00"),
]
streams = st.lists(st.sampled_from(PIECES), max_size=24).map(b"".join)
# Mostly whole events in one way of writing, now and then something else: what the shortcut has to tell apart.
COMMON = [b"data: {}\n\n", b"data: x\n\n", "data: چای\n\n".encode()]
bursts = st.lists(st.sampled_from([*COMMON * 4, *PIECES]), max_size=24).map(b"".join)


def lines_by_the_book(data: bytes) -> list[bytes]:
    return re.split(rb"\r\n|\r|\n", data)


def frames_by_the_book(data: bytes) -> tuple[list[Frame], list[int], bytes]:
    """The standard's own order of steps over all lines at once: frames, counters, lines aside."""
    *lines, last = lines_by_the_book(data.removeprefix(b"\xef\xbb\xbf"))
    frames: list[Frame] = []
    values: list[bytes] = []
    comments: list[bytes] = []
    aside: list[bytes] = []
    name, open_, seen, empty, ignored = "", False, 0, 0, 0
    for line in [*lines, *([last] if last else []), None]:
        if line:
            field, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            seen += not field
            comments += [line] * (not field)
            values += [value] * (field == b"data")
            ignored += field in (b"id", b"retry")
            open_ |= field in (b"data", b"event", b"id", b"retry")
            aside += [line] * (field not in (b"", b"data", b"event", b"id", b"retry"))
            name = value.decode(errors="replace") if field == b"event" else name
        elif open_:
            if any(values):
                whole = line is not None
                frames.append(Frame(b"\n".join(values), name or None, tuple(comments[-8:]), len(values), whole))
                comments = []
            else:
                empty += 1
            name, values, open_ = "", [], False
    return frames, [seen, empty, ignored], b"\n".join(aside)


@pytest.mark.clause("W2")
@given(st.data())
def test_lines_are_those_of_a_reader_who_has_them_all(data: st.DataObject) -> None:
    """Any cuts give the lines of the whole, the last one at the end of input."""
    stream = data.draw(streams)
    buffer = LineBuffer(10_000)
    *lines, last = lines_by_the_book(stream)
    assert fed(buffer, data.draw(cuts_of(stream))) == lines
    assert buffer.pending == bool(last)
    assert buffer.finish() == (last or None)


@pytest.mark.clause("W2")
@given(st.data(), st.one_of(streams, bursts))
def test_frames_are_those_of_the_standard(data: st.DataObject, stream: bytes) -> None:
    """Any cuts give the frames, the counters and the lines aside of a plain reading of the standard."""
    sse = SseDecoder(10_000, 10_000)
    frames = outcome(sse, data.draw(cuts_of(stream)))
    assert (frames, [sse.comments, sse.empty_events, sse.fields_ignored], sse.aside) == frames_by_the_book(stream)


@pytest.mark.clause("W2")
@given(bursts)
@example(b"data: x\n\ndata: x\n\n\ndata: x\n\n")
@example(b"data:y\n\ndata: x\n\n")
@example(b"data: x\n\n: ping\n\n")
@example(b"data: x\rdata: x\n\n")
@example(b"data: x\n\ndata: \n\ndata: x\n\n")
def test_the_shortcut_gives_what_the_way_line_by_line_gives(stream: bytes) -> None:
    """All events of a read at one go are the same frames as one byte after the other, which has no shortcut."""
    assert fed(SseDecoder(10_000, 10_000), [stream]) == fed(SseDecoder(10_000, 10_000), one_by_one(stream))


@pytest.mark.clause("W2", "W7")
@given(st.data(), st.one_of(streams, bursts), st.integers(1, 24), st.integers(1, 24))
def test_limits_strike_at_the_same_place_whatever_the_cuts(
    data: st.DataObject, stream: bytes, line: int, event: int
) -> None:
    """Frames before the limit, the limit, and nothing after it: for all cuts alike."""
    whole = outcome(SseDecoder(line, event), [stream])
    assert outcome(SseDecoder(line, event), data.draw(cuts_of(stream))) == whole


@pytest.mark.clause("W2")
@given(st.data(), st.one_of(streams, bursts))
def test_whole_events_may_go_past_the_decoder_at_a_boundary(data: st.DataObject, stream: bytes) -> None:
    """Where `at_boundary` is true, taking whole events away from the decoder changes nothing for the rest."""
    sse, frames, event = SseDecoder(10_000, 10_000), list[object](), b"data: gone past\n\n"
    expected, other = list[object](), SseDecoder(10_000, 10_000)
    for read in data.draw(cuts_of(stream)):
        if sse.at_boundary:
            frames.append(Frame(b"gone past"))
            expected += other.feed(event)
        frames += sse.feed(read)
        expected += other.feed(read)
    assert [*frames, *sse.finish()] == [*expected, *other.finish()]
    assert (sse.aside, sse.comments, sse.empty_events) == (other.aside, other.comments, other.empty_events)


@pytest.mark.clause("W2", "W7")
@given(st.data(), streams, st.integers(1, 24))
def test_ndjson_frames_do_not_depend_on_the_cuts(data: st.DataObject, stream: bytes, limit: int) -> None:
    """Lines that are not blank, each a frame, up to the limit if there is one."""
    assert outcome(NdjsonDecoder(limit), data.draw(cuts_of(stream))) == outcome(NdjsonDecoder(limit), [stream])
    lines = [line for line in lines_by_the_book(stream.removeprefix(b"\xef\xbb\xbf")) if line.strip()]
    frames = outcome(NdjsonDecoder(10_000), [stream])
    assert [frame.data for frame in frames if isinstance(frame, Frame)] == lines
