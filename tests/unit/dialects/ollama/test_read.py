"""Lines of Ollama in, canonical values out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, Malformed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.ollama.read import OllamaReader
from tests.support.any_json import payloads

NAMES = (
    *("model", "created_at", "message", "done", "done_reason", "logprobs", "error", "prompt_eval_count", "eval_count"),
    *("role", "content", "thinking", "tool_calls", "function", "name", "arguments", "id", "index", "status"),
)


def line(**fields: object) -> bytes:
    return json.dumps({"model": "qwen3", "created_at": "2026-11-30T08:00:00.123456789Z", **fields}).encode()


def read(data: bytes) -> object:
    return OllamaReader().read(data, None)


@pytest.mark.clause("W4")
def test_a_line_is_the_next_piece() -> None:
    """Text, thinking and identity; the time is unix seconds."""
    told = read(line(message={"role": "assistant", "content": "سلام", "thinking": "想"}, done=False))

    assert told == Chunk(
        [Delta(0, {"reasoning_content": "想", "content": "سلام"}, role="assistant")], created=1796025600, model="qwen3"
    )


@pytest.mark.clause("C5", "L2")
def test_the_counts_of_the_last_line_are_one_object() -> None:
    """Those two and nothing else, as the vendor wrote them."""
    counts = {"prompt_eval_count": 26, "eval_count": 11}
    told = read(line(message={"content": ""}, done=True, done_reason="stop", total_duration=5, **counts))

    assert isinstance(told, Chunk)
    assert told.usage == counts
    assert told.extra == {"total_duration": 5}
    assert [delta.finish for delta in told.deltas] == ["stop"]
    assert OllamaReader().usage(counts) == Usage(26, 11)


@pytest.mark.clause("L2")
def test_a_count_may_be_missing() -> None:
    """Of a prompt that was cached the server says nothing."""
    told = read(line(message={"content": ""}, done=True, eval_count=11))
    assert isinstance(told, Chunk) and told.usage == {"eval_count": 11}
    assert OllamaReader().usage({"eval_count": 11}) == Usage(None, 11)


@pytest.mark.clause("W4")
def test_calls_come_whole_and_have_a_place_each() -> None:
    """Without ids, all with the index 0 or none at all."""
    reader = OllamaReader()
    first = {"function": {"index": 0, "name": "f", "arguments": {"city": "तेहरान"}}}
    second = {"id": "call_x", "function": {"index": 0, "name": "f", "arguments": {}}}
    told = [
        reader.read(line(message={"content": "", "tool_calls": [call]}, done=False), None) for call in (first, second)
    ]

    assert [chunk.deltas[0].tools for chunk in told if isinstance(chunk, Chunk)] == [
        [ToolFragment(0, None, "f", '{"city":"तेहरान"}')],
        [ToolFragment(1, "call_x", "f", "{}")],
    ]


@pytest.mark.parametrize("reason", ["load", "unload"])
def test_a_model_that_was_loaded_has_ended_no_answer(reason: str) -> None:
    told = read(line(message={"content": ""}, done=True, done_reason=reason))
    assert isinstance(told, Chunk) and told.deltas[0].finish is None


def test_log_probabilities_and_unknown_fields_pass() -> None:
    logprob = {"token": "a", "logprob": -0.1}
    told = read(line(message={"content": "a", "mood": "ok"}, done=False, logprobs=[logprob], remote_model="r"))
    assert isinstance(told, Chunk)
    assert told.deltas[0].logprobs == {"content": [logprob]}
    assert told.deltas[0].extra == {"mood": "ok"}
    assert told.extra == {"remote_model": "r"}


@pytest.mark.clause("W6")
def test_an_error_is_a_line() -> None:
    """With what else it carried, if anything."""
    assert read(b'{"error":"unexpected EOF"}') == ErrorSeen({"error": "unexpected EOF"}, b'{"error":"unexpected EOF"}')
    both = read(line(message={"content": "نیمه"}, done=False, error="EOF"))
    assert isinstance(both, ErrorSeen) and both.chunk is not None
    assert both.chunk.deltas[0].texts == {"content": "نیمه"}


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b'{"status":"pulling"}', Heartbeat), (b"{}", Heartbeat), (b"null", Heartbeat), (b'{"message"', Malformed)],
)
def test_what_is_no_piece(data: bytes, kind: type) -> None:
    assert isinstance(read(data), kind)


@pytest.mark.parametrize("moment", [None, 5, "", "yesterday", "9999-12-31T23:59:59+99:00", "0001-01-01T00:00:00+05:00"])
def test_a_time_that_is_none_is_left_out(moment: object) -> None:
    told = read(line(message={"content": "a"}, done=False, created_at=moment))
    assert isinstance(told, Chunk) and told.created == 0


@given(payloads(NAMES))
def test_nothing_raises(value: object) -> None:
    data = json.dumps(value).encode()
    reader = OllamaReader()
    reader.read(data, None)
    parsed = reader.read_body(data)
    if isinstance(parsed, Chunk) and parsed.usage is not None:
        reader.usage(parsed.usage)


def test_the_older_api_has_its_text_elsewhere() -> None:
    """/api/generate, behind a base URL of somebody's own."""
    parsed = OllamaReader().read('{"response":"سلام","thinking":"先","done":false}'.encode(), None)
    assert isinstance(parsed, Chunk)
    assert parsed.deltas[0].texts == {"content": "سلام", "reasoning_content": "先"}
