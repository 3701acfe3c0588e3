"""Payloads of DashScope in, canonical values out, in both of its modes."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.dashscope.read import DashScopeReader
from tests.support.any_json import payloads

INCREMENTS: Mapping[str, object] = {"parameters": {"incremental_output": True}}
WHOLE: Mapping[str, object] = {"parameters": {}}
NAMES = (
    *("output", "choices", "message", "content", "reasoning_content", "tool_calls", "function", "name", "arguments"),
    *("finish_reason", "text", "usage", "request_id", "code", "index", "id", "role", "logprobs"),
)


def payload(message: object, finish: object = "null", /, **more: object) -> bytes:
    choice = {"message": message, "finish_reason": finish}
    value = {"output": {"choices": [choice]}, "usage": {"input_tokens": 3}, "request_id": "r", **more}
    return json.dumps(value).encode()


def chunks(sent: Mapping[str, object], *payloads: bytes) -> list[Chunk]:
    reader = DashScopeReader(sent)
    told = [reader.read(data, "result") for data in payloads]
    assert all(isinstance(one, Chunk) for one in told), told
    return [one for one in told if isinstance(one, Chunk)]


def said(sent: Mapping[str, object], *texts: str, last: str = "stop") -> list[str]:
    """What of these contents, an event each, is told."""
    finishes = ["null"] * (len(texts) - 1) + [last]
    told = chunks(sent, *(payload({"content": text}, finish) for text, finish in zip(texts, finishes, strict=True)))
    return [chunk.deltas[0].texts.get("content", "") for chunk in told]


@pytest.mark.clause("W4")
def test_an_event_is_an_increment_and_the_string_null_no_finish() -> None:
    message = {"role": "assistant", "content": "سلام", "reasoning_content": "想"}
    assert chunks(INCREMENTS, payload(message)) == [
        Chunk(
            [Delta(0, {"reasoning_content": "想", "content": "سلام"}, role="assistant")],
            id="r",
            usage={"input_tokens": 3},
        )
    ]
    assert chunks(INCREMENTS, payload({"content": ""}, "length"))[0].deltas[0].finish == "length"


@pytest.mark.parametrize("sent", [{}, INCREMENTS], ids=["unknown", "asked"])
def test_increments_that_were_asked_for_are_told_as_they_come(sent: Mapping[str, object]) -> None:
    """Also where one begins like the text before it."""
    assert said(sent, "ha", "ha", "haha") == ["ha", "ha", "haha"]


@pytest.mark.clause("W4")
@pytest.mark.parametrize("sent", [WHOLE, {"model": "m"}, {"parameters": {"incremental_output": False}}])
def test_a_text_that_grows_is_told_once(sent: Mapping[str, object]) -> None:
    assert said(sent, "水", "水到", "水到", "水到渠成") == ["水", "到", "", "渠成"]


def test_a_text_that_does_not_go_on_is_told_whole() -> None:
    """It must not get lost; from there on it is what was said."""
    assert said(WHOLE, "abc", "xyz", "xyz!", "") == ["abc", "xyz", "!", ""]


@pytest.mark.clause("W3")
def test_half_a_letter_at_the_end_waits_for_the_next_event() -> None:
    """As the vendor's tokenizer shows it, or its JSON; the last event is final."""
    assert said(WHOLE, "न\ufffd", "नम", "नम\ud83d", "नम\U0001f600", "नम\U0001f600\ufffd") == [
        *("न", "म", "", "\U0001f600", "\ufffd"),
    ]


def test_reasoning_and_arguments_grow_each_by_themselves() -> None:
    """In the other mode every event repeats the calls; their place is their index."""
    events = [
        payload({"content": "", "reasoning_content": "想"}),
        payload({"content": "", "reasoning_content": "想想", "tool_calls": [call("f", '{"a":')]}),
        payload({"content": "a", "tool_calls": [call("f", '{"a":1}'), call("g", "{}")]}, "tool_calls"),
    ]
    told = [chunk.deltas[0] for chunk in chunks(WHOLE, *events)]

    assert [delta.texts for delta in told] == [{"reasoning_content": "想"}] * 2 + [{"content": "a"}]
    assert [delta.tools for delta in told] == [
        None,
        [ToolFragment(0, "c-f", "f", '{"a":')],
        [ToolFragment(0, "c-f", "f", "1}"), ToolFragment(1, "c-g", "g", "{}")],
    ]


def call(name: str, arguments: str) -> dict[str, object]:
    return {"id": f"c-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_pieces_of_a_call_pass_as_they_come() -> None:
    piece = {"index": 1, "id": "", "function": {"name": "", "arguments": '"x"}'}}
    assert chunks(INCREMENTS, payload({"tool_calls": [piece]}))[0].deltas[0].tools == [
        ToolFragment(1, None, None, '"x"}')
    ]


def test_an_older_model_says_one_bare_text() -> None:
    """With its finish beside it."""
    value = {"output": {"text": "你好", "finish_reason": "stop"}, "request_id": "r"}
    assert chunks({}, json.dumps(value).encode())[0].deltas == [Delta(0, {"content": "你好"}, finish="stop")]


def test_content_may_be_a_list_of_parts() -> None:
    assert said({}, "") == [""]
    told = chunks({}, payload({"content": [{"text": "یک"}, {"image": "u"}, {"text": "دو"}]}))
    assert told[0].deltas[0].texts == {"content": "یکدو"}


def test_choices_are_kept_apart() -> None:
    choices = [{"index": index, "message": {"content": f"{index}"}} for index in (1, 0)]
    value = {"output": {"choices": choices, "search_info": {"n": 1}}, "x": 2}
    told = chunks({}, json.dumps(value).encode())[0]
    assert [(delta.choice, delta.texts["content"]) for delta in told.deltas] == [(1, "1"), (0, "0")]
    assert told.extra == {"x": 2, "search_info": {"n": 1}}


@pytest.mark.clause("W6")
@pytest.mark.parametrize("event", ["error", None])
def test_a_flat_code_is_an_error(event: str | None) -> None:
    data = b'{"code":"Throttling","message":"Requests throttling triggered.","request_id":"r"}'
    told = DashScopeReader({}).read(data, event)
    assert isinstance(told, ErrorSeen) and not told.is_vague


def test_an_error_beside_an_output_keeps_what_was_said() -> None:
    told = DashScopeReader({}).read(payload({"content": "نیمه"}, code="InternalError", message="m"), "result")
    assert isinstance(told, ErrorSeen) and told.chunk is not None
    assert told.chunk.deltas[0].texts == {"content": "نیمه"}


def test_empty_fields_for_an_error_are_none() -> None:
    told = DashScopeReader({}).read_body(payload({"content": "a"}, "stop", code="", message="", status_code=200))
    assert isinstance(told, Chunk) and told.deltas[0].finish == "stop"


@pytest.mark.parametrize("data", [b"{}", b"null", b'{"request_id":"r"}'])
def test_what_says_nothing_is_a_sign_of_life(data: bytes) -> None:
    assert isinstance(DashScopeReader({}).read(data, None), Heartbeat)


@pytest.mark.clause("L2")
def test_usage_in_our_terms() -> None:
    """Input with the cache, output with the reasoning."""
    vendor = {
        "input_tokens": 30,
        "output_tokens": 20,
        "total_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 12},
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    assert DashScopeReader({}).usage(vendor) == Usage(30, 20, 8, None, 12)
    assert DashScopeReader({}).usage({"input_tokens": 1}) == Usage(1)


@given(st.sampled_from([WHOLE, INCREMENTS]), st.lists(payloads(NAMES), max_size=3))
def test_nothing_raises(sent: Mapping[str, object], values: list[object]) -> None:
    reader = DashScopeReader(sent)
    for value in values:
        data = json.dumps(value).encode()
        for event in ("result", "error", None):
            parsed = reader.read(data, event)
            if isinstance(parsed, Chunk) and parsed.usage is not None:
                reader.usage(parsed.usage)
        reader.read_body(data)


@given(st.lists(st.sampled_from(("न", "म", "", "🧵", " ", "می‌", "a")), max_size=12))
def test_both_modes_say_the_same(pieces: list[str]) -> None:
    """Increments, and the same text growing."""
    wholes = ["".join(pieces[: count + 1]) for count in range(len(pieces))]
    if pieces:
        assert "".join(said(WHOLE, *wholes)) == "".join(said(INCREMENTS, *pieces)) == "".join(pieces)


@pytest.mark.parametrize(("model", "is_whole"), [("qwen-mt-plus", True), ("qwen-mt-turbo", True), ("qwen-plus", False)])
def test_translators_repeat_all_they_said(model: str, is_whole: bool) -> None:
    """Whatever was asked of them."""
    sent = {"model": model, "parameters": {"incremental_output": True}}
    texts = ("I", "I didn", "I didn't") if is_whole else ("I", " didn", "'t")
    assert "".join(said(sent, *texts)) == "I didn't"


def test_success_is_no_error() -> None:
    told = b'{"code":"Success","message":"","output":{"text":"x","finish_reason":"stop"}}'
    assert isinstance(DashScopeReader({}).read(told, None), Chunk)
