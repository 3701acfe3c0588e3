"""Whenever the reads come, the joined text is the same (contracts W2, W3): time decides only where events end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.ending import Ending
from proxy.pipeline import Asked
from proxy.stores.recordings import Read, Recording
from proxy.wire.hold import Boundary
from tests.support.cuts import cuts_of
from tests.support.joined import joined
from tests.support.pipelines import STREAM, begin, play, recordings, run
from tests.support.shape import complaints_about
from tests.support.strategies import say, streams, texts

HOLD_S = 0.04
#: Around the deadline of a held tail, and far from it.
pauses = st.sampled_from((0.0, 0.001, HOLD_S / 2, HOLD_S - 1e-6, HOLD_S, HOLD_S + 1e-6, 0.1, 60.0))


@pytest.mark.clause("W2", "W3")
@given(
    whole=streams(),
    waits=st.lists(pauses, min_size=1, max_size=6),
    boundary=st.sampled_from(Boundary),
    json=st.booleans(),
    data=st.data(),
)
def test_time_moves_where_events_end_and_nothing_else(
    whole: bytes, waits: list[float], boundary: Boundary, json: bool, data: st.DataObject
) -> None:
    """Any cuts at any moments, each due tail let go: the texts and the ending of one read at one moment."""
    asked = Asked(stream=True, usage=True, json=json)
    reads = data.draw(cuts_of(whole))
    times = [sum(waits[at % len(waits)] for at in range(number)) for number in range(len(reads))]
    still = run([whole], asked, boundary=boundary)
    moving = run(reads, asked, boundary=boundary, times=times)

    assert moving.closing.ending is still.closing.ending
    assert moving.head == still.head
    if still.head.status == 200:
        assert joined(moving.payloads) == joined(still.payloads)
        complete = moving.closing.ending is Ending.COMPLETED
        assert complaints_about(moving.client, complete=complete, usage=True) == []


@pytest.mark.clause("W2", "W3")
@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.key)
@pytest.mark.parametrize("pause", [HOLD_S / 2, HOLD_S, 1.0])
def test_recordings_say_the_same_at_any_speed(recording: Recording, pause: float) -> None:
    """Each read late by the same pause."""
    still = play(recording, STREAM)
    late = replace(recording, reads=tuple(Read(pause * n, read.data) for n, read in enumerate(recording.reads)))
    moving = play(late, STREAM, as_recorded=True)

    assert moving.head == still.head
    if still.head.status == 200:
        assert joined(moving.payloads) == joined(still.payloads)


@pytest.mark.clause("W3")
@given(
    pieces=st.lists(texts, min_size=1, max_size=8),
    waits=st.lists(pauses, min_size=1, max_size=4),
    boundary=st.sampled_from(Boundary),
)
def test_no_tail_waits_longer_than_its_time(pieces: list[str], waits: list[float], boundary: Boundary) -> None:
    """A deadline is at most 40 ms away, never in the past after a read, and gone once it was ticked."""
    pipeline = begin(boundary=boundary)
    now = 0.0
    for number, piece in enumerate(pieces):
        now += waits[number % len(waits)]
        pipeline.feed(say(piece), now)
        due = pipeline.deadline
        assert due is None or now < due <= now + HOLD_S
        if due is not None and number % 2:
            pipeline.tick(due)
            assert pipeline.deadline is None
            now = due


@pytest.mark.clause("W3")
def test_a_tail_leaves_when_its_time_is_up_and_not_before() -> None:
    """A Persian letter waits for the ZWNJ that may follow it, for 40 ms; half an emoji waits for its other half."""
    pipeline = begin()
    pipeline.feed(say("می"), 1.0)
    assert pipeline.deadline == pytest.approx(1.04)
    assert pipeline.tick(1.039) == b""
    assert "ی".encode() in pipeline.tick(1.04)

    pipeline.feed(say("\ud83d"), 2.0)
    assert pipeline.tick(9.0) == b""
    assert "\U0001f600".encode() not in pipeline.feed(say("\ude00"), 9.0), "now it may still get a skin tone"
    assert "\U0001f600".encode() in pipeline.tick(9.04)
