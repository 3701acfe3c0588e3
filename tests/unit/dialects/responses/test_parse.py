"""A Responses request in canonical form."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from proxy.canon.request import (
    Audio,
    Document,
    Format,
    Image,
    Message,
    Native,
    NativeTool,
    Reasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming
from proxy.dialects.responses import CLIENT
from proxy.dialects.responses.parse import parse_responses
from proxy.dialects.responses.request import parse_responses_request
from proxy.dialects.seals import ANTHROPIC, RESPONSES


def parsed(**body: object) -> Request:
    request = parse_responses({"model": "fast", "input": "سلام", **body})
    assert isinstance(request, Request)
    return request


def messages(*items: object) -> tuple[Message, ...]:
    return parsed(input=list(items)).messages


def test_a_string_is_what_the_user_says() -> None:
    assert parsed().messages == (Message("user", (Text("سلام"),)),)


def test_instructions_come_first() -> None:
    """They are the system's message, before all that stands in the input."""
    request = parsed(instructions="کوتاه", input=[{"role": "developer", "content": "简短"}])

    assert request.messages == (Message("system", (Text("کوتاه"),)), Message("developer", (Text("简短"),)))


def test_one_turn_of_the_model_is_one_message() -> None:
    """Reasoning, text and calls in a row belong together, and so do the results behind them."""
    made = messages(
        {"role": "user", "content": "هوا؟"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "باید پرسید"}]},
        {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "查一下"}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"شهر":"قم"}'},
        {"type": "function_call", "call_id": "c2", "name": "news", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "۲۵°"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "没有"}]},
        {"role": "user", "content": "ممنون"},
    )

    assert [(message.role, message.at) for message in made] == [("user", 0), ("assistant", 1), ("tool", 5), ("user", 7)]
    assert made[1].parts == (
        Thinking("باید پرسید", id="rs_1"),
        Text("查一下"),
        ToolCall("c1", "weather", '{"شهر":"قم"}'),
        ToolCall("c2", "news", "{}"),
    )
    assert made[2].parts == (
        ToolResult("c1", (Text("۲۵°"),), "weather"),
        ToolResult("c2", (Text("没有"),), "news"),
    )


@pytest.mark.parametrize(
    ("sealed", "thinking"),
    [
        ("gAAA==", Thinking("فکر", encrypted="gAAA==", id="rs_1", format=RESPONSES)),
        (f"{ANTHROPIC}#signature:ErUB", Thinking("فکر", "ErUB", id="rs_1", format=ANTHROPIC)),
        (f"{ANTHROPIC}#EqQB", Thinking("فکر", encrypted="EqQB", id="rs_1", format=ANTHROPIC)),
        ("signature:ErUB", Thinking("فکر", "ErUB", id="rs_1")),
    ],
)
def test_seals_are_read_as_whose_they_are(sealed: str, thinking: Thinking) -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "فکر"}], "encrypted_content": sealed}

    assert messages(item)[0].parts == (thinking,)


def test_parts_of_a_message() -> None:
    """Images, files and sounds; what lies at one vendor stays native."""
    stored = {"type": "input_image", "file_id": "file-1", "detail": "auto"}
    kept = {"type": "input_file", "file_id": "file-2"}
    made = messages(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "ببین", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "input_image", "image_url": "data:image/webp;base64,UklG", "detail": "low"},
                {"type": "input_image", "image_url": "https://example.org/آب.png"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
                stored,
                kept,
            ],
        }
    )

    assert made[0].parts == (
        Text("ببین", {"type": "ephemeral"}),
        Image("image/webp", "UklG", detail="low"),
        Image(url="https://example.org/آب.png"),
        Document("application/pdf", "JVBE", name="a.pdf"),
        Document(url="https://example.org/a.pdf"),
        Audio("UklG", "wav"),
        Native("responses", "input_image", stored),
        Native("responses", "input_file", kept),
    )


def test_lenient_where_the_vendor_is() -> None:
    """Instructions as a response says them back, parts that are bare strings, items by reference, odd arguments."""
    request = parsed(
        instructions=[{"role": "developer", "content": "کوتاه"}],
        input=[
            {"id": "msg_1"},
            {"role": "user", "content": ["سلام", {"type": "hologram"}, {"type": "input_text", "text": ""}]},
            {"type": "function_call", "id": "fc_1", "name": "f", "arguments": {"گ": 1}},
            {
                "type": "function_call_output",
                "call_id": "fc_1",
                "output": [{"type": "input_image", "file_id": "file-1"}],
            },
        ],
        text={"format": {"type": "grammar", "syntax": "lark"}},
    )

    assert [message.parts for message in request.messages] == [
        (Text("کوتاه"),),
        (Native("responses", "item_reference", {"id": "msg_1"}),),
        (Text("سلام"), Native("responses", "hologram", {"type": "hologram"})),
        (ToolCall("fc_1", "f", '{"گ":1}'),),
        (
            ToolResult("fc_1", (), "f"),
            Native("responses", "input_image", {"type": "input_image", "file_id": "file-1"}),
        ),
    ]
    assert request.extra == {"text.format": {"type": "grammar", "syntax": "lark"}}


def test_refusals_sent_back() -> None:
    made = messages({"role": "assistant", "content": [{"type": "refusal", "refusal": "نمی‌توانم"}]})

    assert made[0].parts == (Refusal("نمی‌توانم"),)


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "user"),
        ({"type": "web_search_call", "id": "ws_1", "status": "completed"}, "assistant"),
        ({"type": "computer_call_output", "call_id": "c", "output": {}}, "user"),
        ({"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}, "user"),
    ],
)
def test_items_that_no_other_family_knows(item: Mapping[str, object], role: str) -> None:
    assert messages(item) == (Message(role, (Native("responses", str(item["type"]), item),)),)  # type: ignore[arg-type]


def test_tools_are_flat() -> None:
    """Those that the vendor runs stay native; fields that only this grammar has are told apart."""
    search = {"type": "web_search", "search_context_size": "low"}
    request = parsed(
        tools=[
            {"type": "function", "name": "f", "description": "کار", "parameters": {"type": "object"}, "strict": True},
            {"type": "function", "name": "g", "parameters": None, "strict": None, "defer_loading": True},
            search,
        ],
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=False,
    )

    assert request.tools == (
        Tool("f", "کار", {"type": "object"}, True),
        Tool("g"),
        NativeTool("responses", "web_search", search),
    )
    assert request.tool_choice == ToolChoice("one", "f")
    assert request.parallel_tools is False
    assert request.extra == {"tools.defer_loading": True}


def test_what_is_asked_of_the_answer() -> None:
    schema = {"type": "object"}
    request = parsed(
        stream=True,
        max_output_tokens=100,
        temperature=0.5,
        top_p=0.9,
        top_logprobs=3,
        include=["message.output_text.logprobs", "reasoning.encrypted_content"],
        text={"format": {"type": "json_schema", "name": "پاسخ", "schema": schema, "strict": True}, "verbosity": "low"},
        reasoning={"effort": "high", "summary": "auto", "context": "all_turns"},
        user="u-1",
        previous_response_id="resp_0",
        store=True,
    )

    assert (request.stream, request.max_tokens, request.temperature, request.top_p) == (True, 100, 0.5, 0.9)
    assert (request.logprobs, request.top_logprobs, request.user) == (True, 3, "u-1")
    assert request.format == Format(schema, "پاسخ", True)
    assert request.reasoning == Reasoning("high", summary="auto")
    assert request.extra == {
        "verbosity": "low",
        "reasoning.context": "all_turns",
        "include": ["reasoning.encrypted_content"],
        "previous_response_id": "resp_0",
        "store": True,
    }


def test_what_is_usual_asks_for_nothing() -> None:
    """Defaults that SDKs write out are no fields that another vendor could miss."""
    request = parsed(
        background=False,
        truncation="disabled",
        tool_choice="auto",
        previous_response_id=None,
        text={"format": {"type": "text"}, "verbosity": "medium"},
        reasoning={"effort": None},
        top_logprobs=0,
        stream_options={"include_obfuscation": False},
    )

    assert (request.extra, request.format, request.reasoning, request.logprobs) == ({}, None, None, None)


def test_a_choice_among_tools_of_the_vendor_is_its_own() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}

    request = parsed(tool_choice=choice)

    assert request.tool_choice is None
    assert request.extra == {"tool_choice": choice}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": 7}, "input"),
        ({"input": ["hi"]}, "input[0]"),
        ({"input": [{"role": "nobody", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 7}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [7]}]}, "input[0].content[0]"),
        ({"instructions": 7}, "instructions"),
        ({"max_output_tokens": "many"}, "max_output_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"tools": {}}, "tools"),
        ({"tool_choice": 7}, "tool_choice"),
        ({"text": "json"}, "text"),
        ({"reasoning": "high"}, "reasoning"),
    ],
)
@pytest.mark.clause("Q1")
def test_mistakes_are_the_callers_and_have_a_place(body: Mapping[str, object], param: str) -> None:
    refused = parse_responses({"model": "fast", "input": "x", **body})

    assert isinstance(refused, BadRequest)
    assert (refused.code, refused.param) == ("invalid_type", param)


@pytest.mark.clause("Q1", "D2")
def test_a_vendor_of_the_family_gets_the_body_as_it_came() -> None:
    """Only the model's name changes; fields and numbers that nobody knows here pass."""
    body = '{"model": "fast", "input": "سلام", "seed": 123456789012345678901234567890, "neu": {"ü": 1}, "stream": true}'
    request = parse_responses_request(body.encode())

    assert isinstance(request, Incoming)
    assert (request.client, request.model, request.stream, request.usage) == (CLIENT.name, "fast", True, True)
    assert request.for_upstream("gpt-5").decode() == (
        '{"model":"gpt-5","input":"سلام","seed":123456789012345678901234567890,"neu":{"ü":1},"stream":true}'
    )


@pytest.mark.parametrize(("kind", "is_json"), [("json_schema", True), ("json_object", True), ("text", False)])
def test_json_is_asked_for_in_the_texts_format(kind: str, is_json: bool) -> None:
    request = parse_responses_request(json.dumps({"model": "m", "text": {"format": {"type": kind}}}).encode())

    assert isinstance(request, Incoming)
    assert request.json is is_json


def test_a_body_that_is_no_json_is_refused() -> None:
    refused = parse_responses_request(b"{")

    assert isinstance(refused, BadRequest)
    assert CLIENT.error_body({"code": refused.code}) == {"error": {"code": "invalid_json"}}


def test_outputs_stand_beside_their_calls() -> None:
    """This API takes them anywhere behind; no other does."""
    made = messages(
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"role": "user", "content": "صبر کن"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    )
    assert [message.role for message in made] == ["assistant", "tool", "user"]
