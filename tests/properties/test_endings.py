"""Reads, ticks, the client's leaving, keep-alives and every way to stop, in any order: one ending, told one way.

(contracts W5, W6, W8, L1) `[DONE]` comes out of `seal` alone, after a complete answer; a row that is not durable turns
the seal into an error; nothing that either side does raises.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.canon.ending import TIMEOUTS, Ending, Stop
from proxy.pipeline import Asked, Closing, Pipeline
from tests.support.cuts import cuts_of
from tests.support.pipelines import DONE, OUR_COUNT, begin
from tests.support.shape import complaints_about
from tests.support.strategies import END, ROLE, STOP, say, streams

asked = st.builds(Asked, stream=st.booleans(), usage=st.booleans(), json=st.booleans())
statuses = st.sampled_from((200, 200, 200, 200, 201, 204, 302, 401, 429, 500, 503))
#: What the shell may do between two reads.
acts = st.lists(
    st.sampled_from(("read", "read", "read", "read", "tick", "leave", "open early", "nothing")), max_size=30
)
stops = st.sampled_from(Stop)
#: A clean answer, or whatever else.
answers = st.one_of(st.just(ROLE + say("سلام") + say(" دنیا") + STOP + END), st.just(b""), streams(8))


def act_out(pipeline: Pipeline, acts: Sequence[str], reads: Sequence[bytes]) -> tuple[bytes, bool]:
    """What the client got before the closing, and whether it had left by then."""
    out: list[bytes] = []
    left = False
    waiting = iter(reads)
    for number, what in enumerate((*acts, *["read"] * len(reads))):
        now = number / 50
        data = b""
        match what:
            case "read" if not pipeline.over:
                data = pipeline.feed(next(waiting, b""), now)
            case "tick":
                data = pipeline.tick(now)
            case "leave" if not left:
                left = True
                pipeline.leave()
            case "open early" if pipeline.asked.stream:
                pipeline.open_early()
            case _:
                pass
        out.append(b"" if left else data)
    return b"".join(out), left


def expected_endings(stop: Stop, left: bool) -> set[Ending]:
    """What an attempt that stopped so may have been: what was seen before the stop decides first."""
    seen = {Ending.COMPLETED, Ending.VENDOR_ERROR, Ending.LIMIT}
    if left:
        return {Ending.CLIENT_GONE, *seen}
    match stop:
        case Stop.GONE:
            return {Ending.CLIENT_GONE, *seen}
        case Stop.SHUTDOWN | Stop.INTERNAL:
            return {Ending.INTERRUPTED, *seen}
        case _ if stop in TIMEOUTS:
            return {Ending.TIMEOUT, *seen}
        case _:
            return {Ending.STREAM_CUT, *seen}


@pytest.mark.clause("W5", "W6", "W8", "L1")
@given(whole=answers, asked=asked, status=statuses, acts=acts, stop=stops, is_durable=st.booleans(), data=st.data())
@example(ROLE + say("س"), Asked(stream=True), 200, ["read"], Stop.GONE, True, None)
@example(ROLE + say("س") + STOP, Asked(stream=True), 200, ["read", "leave"], Stop.EOF, True, None)
@example(ROLE + say("\n"), Asked(stream=True, json=True), 200, ["read", "leave"], Stop.EOF, True, None)
@example(b"", Asked(stream=True), 200, ["open early", "read"], Stop.FIRST_BYTE, False, None)
def test_every_attempt_ends_once_and_is_told_one_way(
    whole: bytes, asked: Asked, status: int, acts: list[str], stop: Stop, is_durable: bool, data: st.DataObject | None
) -> None:
    """One ending that fits the stop; `[DONE]` if and only if complete and durable; never an answer and an error."""
    pipeline = begin(asked, status=status)
    reads = data.draw(cuts_of(whole)) if data is not None else [whole]
    before, left = act_out(pipeline, acts, reads)
    closing = pipeline.finish(Stop.AFTER_FINISH if pipeline.over else stop, 9.0)

    assert pipeline.facts.ending is closing.ending
    assert closing.ending in expected_endings(Stop.AFTER_FINISH if pipeline.over else stop, left)
    with pytest.raises(AssertionError, match="ends once"):
        pipeline.finish(Stop.EOF, 10.0)
    assert pipeline.tick(11.0) == b"", "nothing is held after the end"
    assert DONE not in before + closing.tail
    if left and closing.ending is Ending.CLIENT_GONE:
        assert closing.tail == b""
    else:
        _assert_told(pipeline, closing, before, is_durable, left)


def _assert_told(pipeline: Pipeline, closing: Closing, before: bytes, is_durable: bool, left: bool) -> None:
    is_streaming = pipeline.streaming
    head, seal = (pipeline.client_head(), b"")
    if is_durable:
        seal = pipeline.seal(OUR_COUNT)
        head = pipeline.client_head()
    else:
        head, seal = pipeline.unrecorded()
        assert DONE not in seal
    client = before + closing.tail + seal
    complete = closing.ending is Ending.COMPLETED
    if closing.ending is Ending.CLIENT_GONE:
        assert seal == b"" or not is_durable
    elif not (is_streaming or (complete and pipeline.asked.stream and is_durable)):
        body = json.loads(client)
        assert ("error" in body) is not (complete and is_durable)
        assert (head.status == 200) is (complete and is_durable)
    elif not left and is_durable:
        assert head.status == 200
        assert complaints_about(client, complete=complete, usage=pipeline.asked.usage) == []
        assert client.endswith(DONE) is complete
    elif not left and complete:
        assert "error" in json.loads(client.removesuffix(b"\n\n").rpartition(b"data: ")[2])


@pytest.mark.clause("W5", "W6")
@pytest.mark.parametrize("stop", Stop)
@given(whole=streams(8))
def test_what_a_stop_means_depends_on_what_was_seen(stop: Stop, whole: bytes) -> None:
    """With the finish of every choice seen no way to stop is an error, unless the vendor itself spoke of one."""
    pipeline = begin()
    pipeline.feed(ROLE + say("سلام"), 0.0)
    pipeline.feed(STOP, 0.0)
    pipeline.feed(whole, 0.0)

    ending = pipeline.finish(stop, 1.0).ending
    if pipeline.finished and ending is not Ending.COMPLETED:
        assert ending in (Ending.VENDOR_ERROR, Ending.LIMIT)


@pytest.mark.clause("W6")
@given(whole=streams(8), asked=asked, at=st.integers(0, 8))
def test_a_broken_invariant_is_told_too(whole: bytes, asked: Asked, at: int) -> None:
    """At any moment the pipeline can say how a stream ends that cannot be trusted any more: never with `[DONE]`."""
    pipeline = begin(asked)
    out = pipeline.feed(whole, 0.0) if at else b""
    head, last = pipeline.broken()

    assert DONE not in last
    assert b'"code":"internal_error"' in last
    assert last.startswith(b"data: ") is (head.status == 200)
    assert not out or head.status == 200
