"""A client left when the first choice had finished and the second had not begun: what was drained afterwards stood in
the row as delivered, and the row as completed (found by the fuzzer)."""

from __future__ import annotations

import pytest

from proxy.canon.ending import Ending, Stop
from tests.support.answers import ROLE, STOP, chunk, encode, events, say
from tests.support.pipelines import begin


def second(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 1, "delta": delta, "finish_reason": finish}
    return encode(
        {**{"id": "chatcmpl-v1", "object": "chat.completion.chunk", "created": 1_772_000_000}, "choices": [choice]}
    )


@pytest.mark.clause("W8", "L2")
def test_what_looked_finished_was_not() -> None:
    """The row says `client_gone`, with what had been told until then, and all that was received."""
    pipeline = begin()
    pipeline.feed(events([ROLE, say("سلام"), STOP]), 0.0)
    told = pipeline.facts.events_out
    pipeline.leave()
    pipeline.feed(
        events([second({"role": "assistant", "content": ""}), second({"content": "你好"}), second({}, "stop")]), 0.0
    )
    closing = pipeline.finish(Stop.EOF, 0.0)
    assert closing.ending is Ending.CLIENT_GONE
    assert closing.tail == b""
    assert pipeline.facts.events_out == told


@pytest.mark.clause("W8", "L2")
def test_a_finished_choice_that_goes_on_was_not_finished_either() -> None:
    """Whatever still comes of it, be it a field that we do not know, is not told, and so does not count as told."""
    pipeline = begin()
    pipeline.feed(events([ROLE, say("سلام"), STOP]), 0.0)
    told = pipeline.facts.events_out
    pipeline.leave()
    pipeline.feed(events([chunk({"function_call": {"name": "lookup", "arguments": "{}"}})]), 0.0)
    assert pipeline.finish(Stop.EOF, 0.0).ending is Ending.CLIENT_GONE
    assert pipeline.facts.events_out == told


@pytest.mark.clause("W8")
def test_usage_behind_the_finish_is_no_further_answer() -> None:
    """Only usage came after the client had left: the answer was complete, and so is the row."""
    pipeline = begin()
    pipeline.feed(events([ROLE, say("سلام"), STOP]), 0.0)
    pipeline.leave()
    pipeline.feed(
        events([chunk(usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}), b"[DONE]"]), 0.0
    )
    assert pipeline.finish(Stop.AFTER_FINISH, 0.0).ending is Ending.COMPLETED
