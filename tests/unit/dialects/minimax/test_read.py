"""Payloads of chatcompletion_pro in, canonical values out; and the same where the vendor's usual dialect is spoken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.minimax.read import MiniMaxProReader
from tests.support.any_json import payloads
from tests.support.pipelines import PLAIN, STREAM, run

NAMES = (
    *("id", "created", "model", "reply", "choices", "messages", "sender_type", "text", "function_call", "name"),
    *("arguments", "finish_reason", "usage", "base_resp", "status_code", "output_sensitive", "index"),
)


def event(text: str, reply: str = "", finish: str | None = None) -> dict[str, object]:
    message = {"sender_type": "BOT", "sender_name": "B", "text": text}
    choice = {"messages": [message], **({"finish_reason": finish} if finish else {})}
    return {"created": 7, "model": "abab", "reply": reply, "choices": [choice], "output_sensitive": False}


LAST = {"usage": {"total_tokens": 187}, "id": "mm", "base_resp": {"status_code": 0, "status_msg": ""}}


def read(reader: MiniMaxProReader, value: object) -> object:
    return reader.read(json.dumps(value).encode(), None)


@pytest.mark.clause("W4")
def test_an_answer_is_told_once() -> None:
    reader = MiniMaxProReader()
    assert read(reader, event("سلام")) == Chunk([Delta(0, {"content": "سلام"})], created=7, model="abab")
    assert read(reader, event("سلام", "سلام", "stop") | LAST) == Chunk(
        [Delta(0, {}, finish="stop")], id="mm", created=7, model="abab", usage={"total_tokens": 187}
    )


@pytest.mark.clause("W4")
def test_a_plain_answer_is_the_last_event_alone() -> None:
    told = MiniMaxProReader().read_body(json.dumps(event("همه", "همه", "max_output") | LAST).encode())
    assert isinstance(told, Chunk)
    assert told.deltas == [Delta(0, {"content": "همه"}, finish="max_output")]


def test_a_call_is_a_call() -> None:
    message = {"sender_type": "BOT", "text": "", "function_call": {"name": "f", "arguments": '{"a":1}'}}
    told = read(MiniMaxProReader(), {"choices": [{"messages": [message], "finish_reason": "stop"}]})
    assert isinstance(told, Chunk)
    assert told.deltas == [Delta(0, {}, [ToolFragment(0, None, "f", '{"a":1}')], finish="stop")]


@pytest.mark.clause("W6")
def test_errors_stand_in_base_resp() -> None:
    """Alone, or in an event that has text."""
    bad = {"base_resp": {"status_code": 1000, "status_msg": "unknown error"}}
    alone = read(MiniMaxProReader(), {"choices": None, **bad})
    assert isinstance(alone, ErrorSeen) and alone.chunk is None and not alone.is_vague
    both = read(MiniMaxProReader(), event("نیمه") | bad)
    assert isinstance(both, ErrorSeen) and both.chunk is not None
    assert both.chunk.deltas[0].texts == {"content": "نیمه"}


@pytest.mark.clause("L2")
def test_usage_is_a_total_alone() -> None:
    """Which says nothing about either side; it may come without choices."""
    assert MiniMaxProReader().usage({"total_tokens": 187}) == Usage()
    assert read(MiniMaxProReader(), {"usage": {"total_tokens": 1}}) == Chunk([], usage={"total_tokens": 1})


@pytest.mark.parametrize("value", [{}, {"model": "abab"}, None])
def test_what_says_nothing_is_a_sign_of_life(value: object) -> None:
    assert isinstance(read(MiniMaxProReader(), value), Heartbeat)


@pytest.mark.clause("W4", "W5")
@pytest.mark.parametrize("dialect", [None, "minimax_pro"])
def test_the_vendors_usual_dialect_understands_it_too(dialect: str | None) -> None:
    """An upstream without a `dialect:` may be asked for it by its address."""
    events = [event("من "), event("اینجا هستم."), event("من اینجا هستم.", "من اینجا هستم.", "stop") | LAST]
    reads = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]

    streamed = run(reads, STREAM, vendor="minimax", dialect=dialect)
    plain = run(reads, PLAIN, vendor="minimax", dialect=dialect)

    assert "".join(text_of(payload) for payload in streamed.payloads) == "من اینجا هستم."
    assert plain.body["choices"][0]["message"]["content"] == "من اینجا هستم."  # type: ignore[index]  # JSON
    assert streamed.is_done
    assert streamed.facts.finish_reason == plain.facts.finish_reason == "stop"
    assert streamed.facts.vendor_usage == {"total_tokens": 187}


def text_of(payload: dict[str, object]) -> str:
    choices = payload["choices"]
    assert isinstance(choices, list)
    return "".join(choice["delta"].get("content", "") for choice in choices)


@given(st.lists(payloads(NAMES), max_size=4))
def test_nothing_raises(values: list[object]) -> None:
    reader = MiniMaxProReader()
    for value in values:
        data = json.dumps(value).encode()
        for parsed in (reader.read(data, None), reader.read(data, "error"), reader.read_body(data)):
            if isinstance(parsed, Chunk) and parsed.usage is not None:
                reader.usage(parsed.usage)
