"""The Responses grammar of our clients: whole pipelines in, events held against the official SDK's types out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseReasoningItem

from proxy.canon.ending import Ending, Stop
from proxy.canon.request import Request, ToolCall
from proxy.canon.usage import Count, Usage
from proxy.dialects.responses.parse import parse_responses
from proxy.dialects.responses.write import ResponsesWriter
from proxy.dialects.seals import ANTHROPIC, RESPONSES
from proxy.stores.recordings import Recording
from proxy.wire.hold import Boundary
from tests.support.cuts import cut
from tests.support.pipelines import Transcript, play, recordings, run
from tests.unit.dialects.responses.told import (
    asked,
    chat,
    client_of,
    events_of,
    final,
    last,
    output_of,
    response,
    told,
    translated,
    vendor,
)

BEGIN = ["created", "in_progress"]
MESSAGE = ["output_item.added", "content_part.added", "output_text.delta"]
MESSAGE_END = ["output_text.done", "content_part.done", "output_item.done"]
REASONING = ["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"]
REASONING_END = ["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"]
CALL = ["output_item.added", "function_call_arguments.delta"]
CALL_END = ["function_call_arguments.done", "output_item.done"]


def call(index: int, arguments: str = "", name: str = "", identity: str = "") -> dict[str, object]:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    begin = {"id": identity, "type": "function"} if identity else {}
    return {"tool_calls": [{"index": index, **begin, "function": function}]}


def native(*events: tuple[str, Mapping[str, object]], stream: bool = True, **changes: object) -> Transcript:
    """From a vendor of the same family, without any tail being held."""
    how = {"vendor": "openai", "dialect": "responses", "boundary": Boundary.SCALAR, **changes}
    return run(vendor(*events), asked(stream=stream), **how)  # type: ignore[arg-type]  # as `run`


def whole_output(made: Transcript) -> list[Any]:
    """The items of a response, streamed or not."""
    if made.head.content_type.startswith("text/event-stream"):
        return output_of(made)
    output = made.body["output"]
    assert isinstance(output, list)
    return output


@pytest.mark.clause("W4", "W5", "D2")
def test_a_text_is_one_item_with_one_part() -> None:
    """The order of the real API, numbered, ended by response.completed with usage, and no [DONE]."""
    made = translated(
        chat({"role": "assistant", "content": ""}),
        chat({"content": "سلام "}),
        chat({"content": "你好 👋"}),
        chat({}, "stop", usage={"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}),
    )

    assert told(made) == [*BEGIN, *MESSAGE, "output_text.delta", *MESSAGE_END, "completed"]
    assert b"[DONE]" not in made.client
    assert made.facts.events_out == len(events_of(made))
    answer = last(made)
    assert (answer["id"], answer["created_at"], answer["model"]) == ("chatcmpl-1", 1_770_000_000, "m-1")
    assert answer["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 13,
    }
    assert final(made).output_text == "سلام 你好 👋"


def test_the_request_is_said_back() -> None:
    """As the real API does it: typed clients find every field, with what they asked for or what is usual."""
    body: dict[str, Any] = {
        "instructions": "کوتاه",
        "temperature": 0.2,
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "low"},
        "metadata": {"k": "v"},
        "store": True,
        "user": "u-1",
    }
    made = run([chat({"content": "ok"}, "stop"), b"data: [DONE]\n\n"], asked(**body))
    answer = last(made)

    assert {name: answer[name] for name in body} == {
        **body,
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": None,
                "parameters": {"type": "object"},
                "strict": None,
            },
            {"type": "web_search"},
        ],
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": None},
        "store": False,
    }
    assert (answer["top_p"], answer["parallel_tool_calls"], answer["truncation"]) == (1.0, True, "disabled")


@pytest.mark.clause("W4")
def test_reasoning_is_an_item_of_its_own() -> None:
    """Reasoning, then the text, then reasoning again: three items in their order. What is said under the other name,
    too, is not said twice."""
    made = translated(
        chat({"reasoning_content": "بگذار "}),
        chat({"reasoning_content": "ببینم"}),
        chat({"content": "آب"}),
        chat({"reasoning": "再想"}),
        chat({"reasoning_content": "再想"}),
        chat({}, "stop"),
    )

    assert told(made) == [
        *BEGIN,
        *REASONING,
        "reasoning_summary_text.delta",
        *REASONING_END,
        *MESSAGE,
        *MESSAGE_END,
        *REASONING,
        *REASONING_END,
        "completed",
    ]
    summaries = [item["summary"] for item in output_of(made) if item["type"] == "reasoning"]
    assert summaries == [
        [{"type": "summary_text", "text": "بگذار ببینم"}],
        [{"type": "summary_text", "text": "再想"}],
    ]


@pytest.mark.parametrize(
    ("detail", "sealed"),
    [
        ({"type": "reasoning.encrypted", "data": "gAAA", "format": RESPONSES}, "gAAA"),
        (
            {"type": "reasoning.text", "text": "فکر", "signature": "ErUB", "format": ANTHROPIC},
            f"{ANTHROPIC}#signature:ErUB",
        ),
        ({"type": "reasoning.encrypted", "data": "EqQB", "format": ANTHROPIC}, f"{ANTHROPIC}#EqQB"),
        ({"type": "reasoning.text", "signature": "ErUB"}, "signature:ErUB"),
    ],
)
def test_a_seal_stands_where_the_grammar_has_one(detail: Mapping[str, object], sealed: str) -> None:
    """Marked with its family where it is another's, so that it finds its way back."""
    made = translated(
        chat({"reasoning_content": "فکر"}),
        chat({"reasoning_details": [detail]}),
        chat({"content": "آب"}),
        chat({}, "stop"),
    )

    item = final(made).output[0]
    assert isinstance(item, ResponseReasoningItem)
    assert item.encrypted_content == sealed
    assert [part.text for part in item.summary] == ["فکر"]
    assert len(output_of(made)) == 2


def test_a_text_that_was_held_back_joins_the_item_of_its_seal() -> None:
    """The seal says how long its text is: what comes later and belongs to it is no new item."""
    detail = {"type": "reasoning.text", "text": "فکر کن", "signature": "ErUB", "format": ANTHROPIC}
    made = run(
        [
            chat({"reasoning_content": "فکر کن", "reasoning_details": [detail]}),
            chat({"content": "آب"}),
            chat({}, "stop"),
            b"data: [DONE]\n\n",
        ],
        asked(),
    )

    output = output_of(made)
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert output[0]["summary"] == [{"type": "summary_text", "text": "فکر کن"}]


def test_several_sealed_thoughts_at_once_are_several_items() -> None:
    """Each seal keeps its own text, in a stream and in a body, and a text without a seal is not lost."""
    thoughts = [("یک", "A"), ("بین", None), ("سه", "B")]
    details = [
        {"type": "reasoning.text", "text": text, "signature": seal, "format": ANTHROPIC}
        for text, seal in thoughts
        if seal is not None
    ]
    message = {"reasoning_content": "یکبینسه", "reasoning_details": details, "content": "آب"}
    for stream in (True, False):
        made = run([chat(message, "stop"), b"data: [DONE]\n\n"], asked(stream=stream))
        items = [item for item in whole_output(made) if item["type"] == "reasoning"]
        assert [(item["summary"][0]["text"], item.get("encrypted_content")) for item in items] == [
            (text, seal and f"{ANTHROPIC}#signature:{seal}") for text, seal in thoughts
        ]


@pytest.mark.clause("D2")
def test_a_vendors_stream_as_a_body_has_no_empty_items() -> None:
    """Vendors stream what was asked for plainly: what began its items in the stream begins none in the body."""
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    made = native(
        ("response.created", {"response": response()}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.reasoning_summary_part.added", {"output_index": 0, "item_id": "rs_1", "summary_index": 0}),
        ("response.reasoning_summary_text.delta", {"output_index": 0, "item_id": "rs_1", "delta": "فکر"}),
        ("response.output_item.done", {"output_index": 0, "item": {**item, "encrypted_content": "gAAA"}}),
        ("response.output_text.delta", {"output_index": 1, "item_id": "msg_1", "delta": "آب"}),
        ("response.completed", {"response": response("completed")}),
        stream=False,
    )

    thought, message = whole_output(made)
    assert (thought["id"], thought["encrypted_content"]) == ("rs_1", "gAAA")
    assert thought["summary"] == [{"type": "summary_text", "text": "فکر"}]
    assert message["type"] == "message"


def test_two_sealed_thoughts_are_two_items() -> None:
    """Also where the second one has no text at all."""
    first = {"type": "reasoning.text", "text": "یک", "signature": "A", "format": ANTHROPIC}
    second = {"type": "reasoning.encrypted", "data": "B", "format": ANTHROPIC}
    made = translated(
        chat({"reasoning_content": "یک"}),
        chat({"reasoning_details": [first]}),
        chat({"reasoning_details": [second]}),
        chat({"reasoning_content": "سه"}),
        chat({"content": "آب"}),
        chat({}, "stop"),
    )

    assert [(item["type"], item.get("encrypted_content"), item.get("summary")) for item in output_of(made)] == [
        ("reasoning", f"{ANTHROPIC}#signature:A", [{"type": "summary_text", "text": "یک"}]),
        ("reasoning", f"{ANTHROPIC}#B", []),
        ("reasoning", None, [{"type": "summary_text", "text": "سه"}]),
        ("message", None, None),
    ]


@pytest.mark.clause("W4")
def test_calls_in_parallel_follow_each_other() -> None:
    """Each is announced, told and ended before the next one begins."""
    made = translated(
        chat({"content": "می‌پرسم"}),
        chat(call(0, name="weather", identity="c1")),
        chat(call(0, '{"شهر":')),
        chat(call(0, '"قم"}')),
        chat(call(1, '{"城":"西安"}', "weather", "c2")),
        chat({}, "tool_calls"),
    )

    assert told(made) == [
        *BEGIN,
        *MESSAGE,
        *MESSAGE_END,
        *CALL,
        "function_call_arguments.delta",
        *CALL_END,
        *CALL,
        *CALL_END,
        "completed",
    ]
    calls = [item for item in final(made).output if isinstance(item, ResponseFunctionToolCall)]
    assert [(one.call_id, one.name, one.arguments) for one in calls] == [
        ("c1", "weather", '{"شهر":"قم"}'),
        ("c2", "weather", '{"城":"西安"}'),
    ]


def test_calls_that_interleave_wait_for_their_turn() -> None:
    """Fragments of three calls and a text between them: four items, none of them open beside another."""
    made = translated(
        chat(call(0, '{"a":', "f", "c1")),
        chat(call(1, '{"b":', "g", "c2")),
        chat({"content": "در این میان"}),
        chat(call(2, "{}", "h", "c3")),
        chat(call(1, "2}")),
        chat(call(0, "1}")),
        chat({}, "tool_calls"),
    )

    one_call, one_text = [*CALL, *CALL_END], [*MESSAGE, *MESSAGE_END]
    twice = [*CALL, "function_call_arguments.delta", *CALL_END]
    assert told(made) == [*BEGIN, *twice, *twice, *one_text, *one_call, "completed"]
    assert [(item["type"], item.get("arguments")) for item in output_of(made)] == [
        ("function_call", '{"a":1}'),
        ("function_call", '{"b":2}'),
        ("message", None),
        ("function_call", "{}"),
    ]
    open_item: object = None
    for event in events_of(made):
        match event["type"]:
            case "response.output_item.added":
                assert open_item is None
                open_item = event["output_index"]
            case "response.output_item.done":
                assert event["output_index"] == open_item
                open_item = None
            case _:
                assert event.get("output_index", open_item) == open_item


def test_a_call_without_arguments_has_an_empty_object() -> None:
    made = translated(
        chat(call(0, name="now", identity="c1")), chat(call(1, name="here", identity="c2")), chat({}, "tool_calls")
    )

    assert [(item["name"], item["arguments"]) for item in output_of(made)] == [("now", "{}"), ("here", "{}")]
    assert told(made) == [*BEGIN, *CALL, *CALL_END, *CALL, *CALL_END, "completed"]


def test_a_seal_over_a_call_stands_in_its_item() -> None:
    """Gemini's: clients that send items back as they came send it along."""
    sealed = {"google": {"thought_signature": "CpMB"}}
    begin = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    made = translated(chat({"tool_calls": [{**begin, "extra_content": sealed}]}), chat({}, "tool_calls"))

    item = output_of(made)[0]
    assert item["extra_content"] == sealed
    request = parse_responses({"model": "m", "input": [item]})
    assert isinstance(request, Request)
    assert request.messages[0].parts == (ToolCall("c1", "f", "{}", "CpMB"),)


def test_a_refusal_is_a_part() -> None:
    made = translated(chat({"content": "خب، "}), chat({"refusal": "نه"}), chat({"refusal": "، 不行"}), chat({}, "stop"))

    assert told(made)[2:-1] == [
        *MESSAGE,
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
    ]
    assert output_of(made)[0]["content"] == [
        {"type": "output_text", "annotations": [], "logprobs": [], "text": "خب، "},
        {"type": "refusal", "refusal": "نه، 不行"},
    ]


def test_citations_and_logprobs_of_chat_completions() -> None:
    """Citations are flat here; log probabilities have every field that typed clients read."""
    cited = {"url": "https://example.org/خزر", "title": "خزر", "start_index": 0, "end_index": 2}
    content = [{"token": "آب", "logprob": -0.5, "top_logprobs": [{"token": "آب", "logprob": -0.5}]}]
    event = {"index": 0, "delta": {"content": "آب"}, "finish_reason": None, "logprobs": {"content": content}}
    first = json.loads(chat({}).removeprefix(b"data: "))
    made = translated(
        f"data: {json.dumps({**first, 'choices': [event]})}\n\n".encode(),
        chat({"annotations": [{"type": "url_citation", "url_citation": cited}]}),
        chat({}, "stop"),
    )

    bytes_of = list("آب".encode())
    part = output_of(made)[0]["content"]
    assert isinstance(part, list)
    assert part[0]["annotations"] == [{"type": "url_citation", **cited}]
    assert part[0]["logprobs"] == [
        {
            "token": "آب",
            "logprob": -0.5,
            "bytes": bytes_of,
            "top_logprobs": [{"token": "آب", "logprob": -0.5, "bytes": bytes_of}],
        }
    ]


@pytest.mark.clause("W5", "D2")
@pytest.mark.parametrize(("word", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_was_not_ended_is_incomplete(word: str, reason: str) -> None:
    """The item that was open says so too."""
    made = translated(chat({"content": "ناتم"}), chat({}, word))

    assert told(made)[-1] == "incomplete"
    assert (last(made)["status"], last(made)["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert output_of(made)[0]["status"] == "incomplete"


@pytest.mark.clause("L2")
def test_usage_that_the_vendor_did_not_give_is_our_count() -> None:
    usage = last(translated(chat({"content": "آب"}), chat({}, "stop")))["usage"]

    assert isinstance(usage, dict)
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (7, 11, 18)
    assert usage["estimated"] is True


@pytest.mark.clause("W6", "D2")
def test_an_error_is_one_event_that_the_sdk_raises() -> None:
    """It says response.failed and holds the contract's whole error."""
    made = run([chat({"content": "ناتم"})], asked(), stop=Stop.CUT)

    assert told(made) == [*BEGIN, *MESSAGE, "output_text.delta", "failed"]
    event = events_of(made)[-1]
    error = event["error"]
    assert isinstance(error, dict)
    assert {"message", "type", "code", "param", "retryable", "retry_after", "upstream", "trace_id"} == error.keys()
    assert last(made)["status"] == "failed"
    assert last(made)["error"] == {"code": "server_error", "message": error["message"]}
    with (
        pytest.raises(openai.APIError) as raised,
        client_of(made).responses.create(model="m", input="x", stream=True) as stream,
    ):
        for _ in stream:
            pass
    assert raised.value.code == "stream_cut"
    assert raised.value.body == error


@pytest.mark.clause("W6")
def test_an_error_before_anything_was_said_is_an_http_answer() -> None:
    made = run(
        [b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'],
        asked(),
        vendor="openai",
        status=429,
        headers={"content-type": "application/json"},
    )

    assert made.head.status == 429
    with pytest.raises(openai.RateLimitError):
        client_of(made).responses.create(model="m", input="x")


@pytest.mark.parametrize("kind", ["rate_limited", "content_blocked", "model_unavailable"])
def test_an_error_that_is_the_first_event(kind: str) -> None:
    """A keep-alive may have sent the head: then the error stands alone, and still is a response that failed."""
    writer = ResponsesWriter("5eed", 1_770_000_000, "m", {})

    made = writer.error_event({"type": kind, "code": "x", "message": "خطا"})

    event = json.loads(made.split(b"\ndata: ")[1])
    assert (event["sequence_number"], event["response"]["id"], event["response"]["output"]) == (0, "resp_5eed", [])


def test_a_second_choice_has_no_place() -> None:
    writer = ResponsesWriter("5eed", 1_770_000_000, "m", {})

    assert writer.event(None, 1, {"content": "x"}, finish="stop") == b""


# ---- of vendors of the same family -------------------------------------------------------------------------------


@pytest.mark.clause("D2")
def test_names_of_items_are_the_vendors() -> None:
    """It wants them back: messages, reasoning (also without any text), and calls keep their ids and what else they
    have."""
    rs = {"type": "reasoning", "id": "rs_9", "summary": []}
    msg = {"type": "message", "id": "msg_9", "role": "assistant", "status": "in_progress", "phase": "final_answer"}
    fc = {"type": "function_call", "id": "fc_9", "call_id": "c9", "name": "f", "arguments": ""}
    part = {"type": "output_text", "text": "آب", "annotations": []}
    where = {"output_index": 1, "item_id": "msg_9", "content_index": 0}
    made = native(
        ("response.created", {"response": response(reasoning={"effort": "medium", "summary": None}, store=True)}),
        ("response.output_item.added", {"output_index": 0, "item": rs}),
        ("response.output_item.done", {"output_index": 0, "item": {**rs, "encrypted_content": "gAAA"}}),
        ("response.output_item.added", {"output_index": 1, "item": {**msg, "content": []}}),
        ("response.output_text.delta", {**where, "delta": "آب"}),
        ("response.output_item.done", {"output_index": 1, "item": {**msg, "status": "completed", "content": [part]}}),
        ("response.output_item.added", {"output_index": 2, "item": fc}),
        ("response.function_call_arguments.delta", {"output_index": 2, "item_id": "fc_9", "delta": "{}"}),
        ("response.output_item.done", {"output_index": 2, "item": {**fc, "arguments": "{}", "status": "completed"}}),
        ("response.completed", {"response": response("completed", completed_at=1_770_000_009.0)}),
    )

    answer = last(made)
    assert answer["output"] == [
        {"id": "rs_9", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {
            "id": "msg_9",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "آب"}],
        },
        {
            "id": "fc_9",
            "type": "function_call",
            "call_id": "c9",
            "name": "f",
            "arguments": "{}",
            "status": "completed",
        },
    ]
    assert (answer["store"], answer["reasoning"]) == (True, {"effort": "medium", "summary": None})
    assert answer["completed_at"] == 1_770_000_009.0
    assert final(made).id == "resp_v1"


def test_items_of_tools_that_the_vendor_runs_pass() -> None:
    """Renumbered, and in their place; also one that stands only in the last response."""
    item = {"type": "code_interpreter_call", "id": "ci_1", "container_id": "k", "code": "", "status": "in_progress"}
    whole = {**item, "code": "print('سلام')", "status": "completed", "outputs": []}
    where = {"output_index": 4, "item_id": "ci_1"}
    late = {"type": "image_generation_call", "id": "ig_1", "result": "iVBO", "status": "completed"}
    made = native(
        ("response.created", {"response": response()}),
        ("response.output_item.added", {"output_index": 4, "item": item}),
        ("response.code_interpreter_call.in_progress", where),
        ("response.code_interpreter_call_code.delta", {**where, "delta": "print('سلام')"}),
        ("response.code_interpreter_call_code.done", {**where, "code": "print('سلام')"}),
        ("response.code_interpreter_call.completed", where),
        ("response.output_item.done", {"output_index": 4, "item": whole}),
        ("response.output_text.delta", {"output_index": 5, "item_id": "msg_1", "content_index": 0, "delta": "सब"}),
        ("response.completed", {"response": response("completed", [whole, late])}),
    )

    assert told(made) == [
        *BEGIN,
        "output_item.added",
        "code_interpreter_call.in_progress",
        "code_interpreter_call_code.delta",
        "code_interpreter_call_code.done",
        "code_interpreter_call.completed",
        "output_item.done",
        *MESSAGE,
        *MESSAGE_END,
        "output_item.added",
        "output_item.done",
        "completed",
    ]
    assert [item["type"] for item in output_of(made)] == ["code_interpreter_call", "message", "image_generation_call"]
    assert {event["output_index"] for event in events_of(made)[2:8]} == {0}


def test_parts_of_a_summary_stay_parts() -> None:
    """And the reasoning itself stays what it is."""
    rs = {"type": "reasoning", "id": "rs_1", "summary": []}
    where = {"output_index": 0, "item_id": "rs_1"}
    made = native(
        ("response.created", {"response": response()}),
        ("response.output_item.added", {"output_index": 0, "item": rs}),
        ("response.content_part.added", {**where, "content_index": 0, "part": {"type": "reasoning_text", "text": ""}}),
        ("response.reasoning_text.delta", {**where, "content_index": 0, "delta": "考え"}),
        ("response.reasoning_summary_part.added", {**where, "summary_index": 0, "part": {}}),
        ("response.reasoning_summary_text.delta", {**where, "summary_index": 0, "delta": "یک"}),
        ("response.reasoning_summary_part.added", {**where, "summary_index": 1, "part": {}}),
        ("response.reasoning_summary_text.delta", {**where, "summary_index": 1, "delta": "दो"}),
        ("response.output_item.done", {"output_index": 0, "item": rs}),
        ("response.completed", {"response": response("completed", [rs])}),
    )

    assert output_of(made) == [
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "یک"}, {"type": "summary_text", "text": "दो"}],
            "content": [{"type": "reasoning_text", "text": "考え"}],
        }
    ]


def test_a_break_that_was_held_back_is_no_text() -> None:
    """With the last letters of every delta held, the break between two parts comes in pieces."""
    rs = {"type": "reasoning", "id": "rs_1", "summary": []}
    where = {"output_index": 0, "item_id": "rs_1"}
    events: list[tuple[str, Mapping[str, object]]] = [
        ("response.output_item.added", {"output_index": 0, "item": rs}),
        *(
            (f"response.reasoning_summary_{kind}", {**where, "summary_index": number, field: value})
            for number, text in enumerate(("یک", "दो"))
            for kind, field, value in (("part.added", "part", {}), ("text.delta", "delta", text))
        ),
        ("response.completed", {"response": response("completed")}),
    ]
    made = run(vendor(*events), asked(), vendor="openai", dialect="responses", boundary=Boundary.STRICT)

    assert output_of(made)[0]["summary"] == [
        {"type": "summary_text", "text": "یک"},
        {"type": "summary_text", "text": "दो"},
    ]


def test_an_item_that_says_nothing_is_told_all_the_same() -> None:
    """The vendor wants it back."""
    msg = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    made = native(
        ("response.output_item.added", {"output_index": 0, "item": msg}),
        ("response.output_item.done", {"output_index": 0, "item": {**msg, "status": "completed"}}),
        (
            "response.output_item.done",
            {"output_index": 7, "item": {"type": "function_call", "call_id": "c", "name": "f"}},
        ),
        ("response.completed", {"response": response("completed")}),
    )

    assert [(item["type"], item["id"]) for item in output_of(made)] == [
        ("message", "msg_1"),
        ("function_call", "fc_5eed1"),
    ]


_ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "reasoning", "function_call", "web_search_call"]),
        "id": st.sampled_from(["a", "b"]),
        "call_id": st.sampled_from(["a", "b"]),
        "name": st.sampled_from(["f", "g"]),
        "arguments": st.sampled_from(["{}", '{"a":', ""]),
        "encrypted_content": st.sampled_from(["x", ""]),
        "summary": st.just([{"type": "summary_text", "text": "فکر"}]),
        "content": st.just([{"type": "output_text", "text": "آب", "annotations": [{"type": "url_citation"}]}]),
    },
)
_EVENTS = st.tuples(
    st.sampled_from(
        [
            *("response.created", "response.output_item.added", "response.output_item.done"),
            *("response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta"),
            *("response.reasoning_summary_part.added", "response.reasoning_summary_text.delta"),
            *("response.output_text.annotation.added", "response.web_search_call.searching"),
        ]
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "output_index": st.integers(0, 2),
            "item_id": st.sampled_from(["a", "b"]),
            "item": _ITEMS,
            "delta": st.sampled_from(["آب", "{", "}", "👩\u200d"]),
            "summary_index": st.integers(0, 1),
            "kind": st.just("no field of ours"),
        },
    ),
)


@pytest.mark.clause("W4", "D2")
@given(events=st.lists(_EVENTS, max_size=9))
def test_items_never_interleave(events: list[tuple[str, dict[str, object]]]) -> None:
    """Whatever a vendor of this family sends, and in whatever order: items open and close one by one, numbered in the
    order in which they were announced, and the last response holds them all."""
    made = native(*events, ("response.completed", {"response": response("completed")}))
    told_events = [json.loads(block.split("\ndata: ")[1]) for block in made.client.decode().split("\n\n")[:-1]]

    open_items: list[object] = []
    done: list[object] = []
    for event in told_events:
        if event["type"] == "response.output_item.added":
            assert event["output_index"] == len(done) + len(open_items)
            open_items.append(event["output_index"])
        elif event["type"] == "response.output_item.done":
            open_items.remove(event["output_index"])
            done.append(event["item"])
    assert told_events[-1]["type"] == "response.completed"
    assert len(told_events[-1]["response"]["output"]) == len(done)


# ---- one body ----------------------------------------------------------------------------------------------------


def test_many_events_become_one_response() -> None:
    """For a client that wants one body: reasoning, seal, text, calls, in this order, and the SDK reads it."""
    detail = {"type": "reasoning.text", "text": "فکر", "signature": "ErUB", "format": ANTHROPIC}
    made = run(
        [
            chat({"reasoning_content": "فکر"}),
            chat({"reasoning_details": [detail]}),
            chat({"content": "می‌پرسم"}),
            chat(call(0, '{"شهر":"قم"}', "f", "c1")),
            chat({}, "tool_calls"),
            b"data: [DONE]\n\n",
        ],
        asked(stream=False),
    )

    answer = Response.model_validate_json(made.client)
    assert made.head.content_type == "application/json"
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call"]
    assert answer.output_text == "می‌پرسم"
    assert (answer.status, answer.object, answer.error) == ("completed", "response", None)


def test_thoughts_that_no_seal_tells_apart_are_one_item() -> None:
    writer = ResponsesWriter("5eed", 1_770_000_000, "m", {})
    message = {"reasoning": "یک و دو", "reasoning_details": [{"signature": "A"}], "content": "آب"}

    made = json.loads(writer.body([{"index": 0, "message": message}], Usage(1, 2), None, Count(), {}))

    assert [(item["type"], item.get("encrypted_content")) for item in made["output"]] == [
        ("reasoning", "signature:A"),
        ("message", None),
    ]


def test_a_vendors_own_body_passes_with_what_was_missing() -> None:
    """Unknown fields stay; fields that typed clients read and usage are put in."""
    part = {"type": "output_text", "text": "آب"}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    body = response("completed", [item], moderation_note="ok")
    made = run(
        [json.dumps(body).encode()],
        asked(stream=False),
        vendor="openai",
        dialect="responses",
        headers={"content-type": "application/json"},
    )

    answer = Response.model_validate_json(made.client)
    assert made.body["moderation_note"] == "ok"
    assert (answer.id, answer.output_text, answer.tool_choice) == ("resp_v1", "آب", "auto")
    assert answer.usage is not None
    assert answer.usage.total_tokens == 18


def test_a_fence_around_json_is_removed_from_the_vendors_body() -> None:
    """Where the client asked for JSON, and the text stands in several parts."""
    parts: list[object] = [
        {"type": "output_text", "text": text, "annotations": []} for text in ("```json\n", '{"آ":1}\n```')
    ]
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": parts}
    made = run(
        [json.dumps(response("completed", [item])).encode()],
        asked(stream=False, json=True),
        vendor="openai",
        dialect="responses",
        headers={"content-type": "application/json"},
    )

    assert Response.model_validate_json(made.client).output_text == '{"آ":1}'


def test_a_response_that_is_still_being_made_passes() -> None:
    """`background` at a vendor of this family: the answer is a promise, and no mistake."""
    made = run(
        [json.dumps(response("queued", usage=None)).encode()],
        asked(stream=False, background=True),
        vendor="openai",
        dialect="responses",
        headers={"content-type": "application/json"},
    )

    assert (made.body["status"], made.body["usage"]) == ("queued", None)


# ---- every recording ---------------------------------------------------------------------------------------------

every_recording = pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.key)


@pytest.mark.clause("W1", "W3", "W5", "W6", "D2")
@every_recording
def test_every_recording_is_a_valid_stream(recording: Recording) -> None:
    """Whatever the vendor's family: valid events, texts that add up, one end that says what happened."""
    made = play(recording, asked())
    if made.head.status != 200:
        return
    # What a vendor of this family says of its own tools passes as it came, also where the published type has more.
    events = [json.loads(block.split("\ndata: ")[1]) for block in made.client.decode().split("\n\n")[:-1]]
    if recording.dialect != "responses":
        assert events == events_of(made)
    completed = made.closing.ending is Ending.COMPLETED
    assert events[-1]["type"] in (("response.completed", "response.incomplete") if completed else ("response.failed",))
    assert made.facts.events_out == len(events)
    if completed and "text" in recording.expect:
        assert Response.model_validate(events[-1]["response"]).output_text == recording.expect["text"]


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    "recording", [one for one in recordings() if one.dialect == "responses"], ids=lambda recording: recording.key
)
def test_cuts_change_nothing(recording: Recording) -> None:
    """One byte at a time, or as it was recorded: the same bytes for the client."""
    whole = play(recording, asked())
    bytewise = play(recording, asked(), at=range(1, len(recording.body)))

    assert cut(recording.body, [])[0] == recording.body
    assert bytewise.client == whole.client
