"""However an answer is cut into reads, the client gets the same bytes (contract W2), and the fast path changes none.

Compared are the whole pipeline's bytes and the row's facts with the clock held still: in one read, read by read as
recorded, one byte at a time, at chosen edges, at random, and without the templates that let runs of events pass unread.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.canon.ending import Ending
from proxy.pipeline import Asked
from proxy.stores.recordings import Recording
from proxy.wire.hold import Boundary
from tests.support.cuts import cut, cuts_of, one_by_one
from tests.support.pipelines import STREAM, Transcript, play, recordings, run
from tests.support.shape import complaints_about
from tests.support.strategies import END, say, streams, uniform_streams

every_recording = pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.key)
asked = st.builds(Asked, stream=st.booleans(), usage=st.just(True), json=st.booleans())
boundaries = st.sampled_from(Boundary)
#: Small enough to be met by generated streams, so that a limit strikes at the same place too.
limits = st.sampled_from(({}, {}, {}, {"max_line_bytes": 400}, {"max_answer_bytes": 60}))


def outcome_of(transcript: Transcript) -> tuple[object, ...]:
    """All that must not depend on the cuts. (What stood behind the error in its own read may have been counted.)"""
    facts = transcript.facts
    return (
        transcript.client,
        transcript.head,
        facts.ending,
        facts.error_class,
        facts.error_code,
        facts.finish_reason,
        facts.vendor_usage,
        facts.events_in,
        facts.events_out,
        facts.all_received(),
        facts.all_delivered(),
        facts.heartbeats if transcript.closing.verdict is None else None,
    )


def by_event(whole: bytes) -> list[bytes]:
    """One read per event, as most vendors flush."""
    events = whole.split(b"\n\n")
    return [event + b"\n\n" for event in events[:-1]] + [events[-1]]


def tricky_edges(whole: bytes) -> list[int]:
    """Inside line ends, characters, escapes and marks: before and after each byte that begins or ends one."""
    return [
        at
        for at in range(1, len(whole))
        if whole[at] in b'\r\n\\"[{:\xef\xbb\xbf' or whole[at - 1] in b"\r\n\\" or whole[at] >= 0x80
    ]


def assert_cuts_do_not_matter(
    whole: bytes, others: Iterable[Sequence[bytes]], asked: Asked, **changes: object
) -> Transcript:
    """Against one read, the whole at once."""
    first = run([whole], asked, **changes)  # type: ignore[arg-type]  # settings of the pipeline
    for reads in others:
        assert outcome_of(run(reads, asked, **changes)) == outcome_of(first)  # type: ignore[arg-type]
        assert outcome_of(run(reads, asked, fast=False, **changes)) == outcome_of(first)  # type: ignore[arg-type]
    return first


@pytest.mark.clause("W2")
@every_recording
def test_recordings_give_the_same_bytes_however_they_are_cut(recording: Recording) -> None:
    """As recorded, whole, byte by byte, at every tricky place, and without the fast path."""
    size = len(recording.body)
    first = outcome_of(play(recording))

    for at in ([], range(1, size), tricky_edges(recording.body), range(7, size, 7)):
        assert outcome_of(play(recording, at=at)) == first
        assert outcome_of(play(recording, at=at, fast=False)) == first


@pytest.mark.clause("W2")
@every_recording
@given(data=st.data())
def test_recordings_give_the_same_bytes_at_random_cuts(recording: Recording, data: st.DataObject) -> None:
    """Any places, with two reads between the same two bytes among them."""
    at = data.draw(st.lists(st.integers(0, len(recording.body)), max_size=8))
    wanted = Asked(stream=data.draw(st.booleans()), usage=True)

    assert outcome_of(play(recording, wanted, at=at)) == outcome_of(play(recording, wanted))


@pytest.mark.clause("W2", "W4")
@given(whole=streams(), asked=asked, boundary=boundaries, limit=limits, data=st.data())
@example(
    # The end mark and an error behind it in one read: read in two, the error was never seen.
    whole=say("س") + END + b'error: {"error":{"message":"m"}}\n\n',
    asked=STREAM,
    boundary=Boundary.GRAPHEME,
    limit={},
    data=None,
)
def test_generated_streams_give_the_same_bytes_however_they_are_cut(
    whole: bytes, asked: Asked, boundary: Boundary, limit: dict[str, int], data: st.DataObject | None
) -> None:
    """Streams of tricky pieces: line ends of every kind, half characters, wrong types, several choices, torn events."""
    others = [by_event(whole), cut(whole, tricky_edges(whole)), one_by_one(whole)]
    if data is not None:
        others.append(data.draw(cuts_of(whole)))
    first = assert_cuts_do_not_matter(whole, others, asked, boundary=boundary, **limit)

    if asked.stream and first.head.status == 200:
        complete = first.closing.ending is Ending.COMPLETED
        assert complaints_about(first.client, complete=complete, usage=True) == []


@pytest.mark.clause("W2")
@given(whole=uniform_streams(), asked=st.just(STREAM), boundary=boundaries, limit=limits, data=st.data())
@example(  # an unknown field of the event before a run must not reach the finish that we infer
    whole=say("a") * 2 + say("b", citations=[1]) + say("c") * 40 + END,
    asked=STREAM,
    boundary=Boundary.GRAPHEME,
    limit={},
    data=None,
)
@example(  # false is 0 and 1e0 is 1 to a comparison, but not to a client
    whole=say("a") * 2 + say("b", index=False) + say("c", created=1.772e9),
    asked=STREAM,
    boundary=Boundary.GRAPHEME,
    limit={},
    data=None,
)
@example(  # a line beyond the limit in the middle of a run
    whole=say("a") * 30 + say("b" * 500) + say("c") * 30,
    asked=STREAM,
    boundary=Boundary.GRAPHEME,
    limit={"max_line_bytes": 400},
    data=None,
)
@example(  # MiniMax says its errors beside the text
    whole=say("a", base_resp={"status_code": 0}) * 2
    + say("b", base_resp={"status_code": 1027, "status_msg": "sensitive"}),
    asked=STREAM,
    boundary=Boundary.GRAPHEME,
    limit={},
    data=None,
)
def test_runs_that_pass_unread_are_the_bytes_that_reading_gives(
    whole: bytes, asked: Asked, boundary: Boundary, limit: dict[str, int], data: st.DataObject | None
) -> None:
    """Long rows of events of one shape, with escapes, quotes, other events and broken templates in their midst."""
    others = [by_event(whole), cut(whole, range(3000, len(whole), 3000)), cut(whole, range(400, len(whole), 400))]
    if data is not None:
        others.append(data.draw(cuts_of(whole)))
    assert_cuts_do_not_matter(whole, others, asked, boundary=boundary, **limit)


@pytest.mark.clause("W2")
@given(whole=streams(6), coding=st.sampled_from(["gzip", "deflate", "br"]), data=st.data())
def test_compressed_streams_give_the_same_bytes_however_they_are_cut(
    whole: bytes, coding: str, data: st.DataObject
) -> None:
    """The compressed bytes cut anywhere give what the plain bytes give, also when their end is missing."""
    packed = _packed(whole, coding)
    headers = {"content-type": "text/event-stream", "content-encoding": coding}
    first = run([packed], headers=headers)

    assert outcome_of(first) == outcome_of(run([whole]))
    for reads in (data.draw(cuts_of(packed)), one_by_one(packed)):
        assert outcome_of(run(reads, headers=headers)) == outcome_of(first)


def _packed(whole: bytes, coding: str) -> bytes:
    if coding == "br":
        packed = brotli.compress(whole)
        assert isinstance(packed, bytes)
        return packed
    packer = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
    return packer.compress(whole) + packer.flush()
