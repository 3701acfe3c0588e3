"""Chat completions in canonical form and back: nothing that a client said may change on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import TypeAdapter

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
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.openai.parse import parse_chat
from proxy.dialects.openai.send import send_chat
from proxy.dialects.payload import as_mapping
from proxy.dialects.seals import ANTHROPIC
from tests.support.conversations import chat
from tests.support.requests import requests


def parse(body: object) -> Request:
    request = parse_chat(as_mapping(body))
    assert isinstance(request, Request), request
    return request


def of_user(*parts: object) -> Message:
    return parse({"model": "m", "messages": [{"role": "user", "content": list(parts)}]}).messages[0]


def of_assistant(**message: object) -> Message:
    return parse({"model": "m", "messages": [{"role": "assistant", **message}]}).messages[0]


@pytest.mark.clause("Q1", "D1")
def test_a_conversation_goes_there_and_back() -> None:
    """The body that a vendor of this family would get from the canonical form is the client's own."""
    losses = Losses()
    assert send_chat(parse(chat()), "m", losses, {}) == chat()
    assert losses.all == ()


@pytest.mark.clause("Q1", "D1")
@given(request=requests())
def test_any_request_goes_there_and_back(request: Request) -> None:
    """Generated conversations: the same canonical request comes back, but for where its messages stood."""
    losses = Losses()
    body = send_chat(request, "alias", losses, {})
    again = parse(body)
    assert losses.all == ()

    def said(one: Request) -> list[tuple[str, object]]:
        return [(message.role, part) for message in one.messages for part in joined(message)]

    def joined(message: Message) -> tuple[object, ...]:
        # Nothing but text is one text.
        parts = tuple(map(as_sent, message.parts))
        texts = [part.text for part in parts if isinstance(part, Text)]
        return (Text("\n".join(texts)),) if message.role == "user" and len(texts) == len(parts) else parts

    def as_sent(part: object) -> object:
        # A document that is text becomes text here; what a result is called is known from its call.
        if isinstance(part, Document) and part.text:
            return Text(part.text)
        return replace(part, parts=tuple(part.parts)) if isinstance(part, ToolResult) else part

    assert said(again) == said(request)
    same = {name: getattr(request, name) for name in ("tools", "max_tokens", "temperature", "stop", "seed", "format")}
    assert {name: getattr(again, name) for name in same} == same


@pytest.mark.clause("Q1")
@given(request=requests())
def test_what_is_sent_has_the_published_shape(request: Request) -> None:
    """The official SDK's own types take it (`top_k` and reasoning sent back are later habits of the family)."""
    body = send_chat(request, "gpt-x", Losses(), {"top_k": None, "reasoning": None})
    kind = CompletionCreateParamsStreaming if request.stream else CompletionCreateParamsNonStreaming
    TypeAdapter(kind).validate_python(body)


@pytest.mark.clause("Q1")
@pytest.mark.parametrize(
    ("part", "canonical"),
    [
        ({"type": "text", "text": "سلام"}, Text("سلام")),
        ({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}, Text("x", {"type": "ephemeral"})),
        ("字", Text("字")),
        ({"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}, Image(url="https://e.org/a.png")),
        ({"type": "image_url", "image_url": "https://e.org/a.png"}, Image(url="https://e.org/a.png")),
        (
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,AAAA", "detail": "low"}},
            Image("image/webp", "AAAA", detail="low"),
        ),
        ({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}, Audio("UklG", "wav")),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
            Document("application/pdf", "JVBE", name="a.pdf"),
        ),
        ({"type": "file", "file": {"file_id": "file-1"}}, Document(file_id="file-1")),
        ({"type": "video_url", "x": 1}, Native("chat", "video_url", {"type": "video_url", "x": 1})),
    ],
)  # fmt: skip
def test_a_part_is_read_as_what_it_is(part: object, canonical: object) -> None:
    """Of a later API, as a bare string, or unknown: nothing is thrown away."""
    assert of_user(part).parts == (canonical,)


@pytest.mark.clause("Q1")
@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ({"content": "a", "reasoning": "denk"}, (Thinking("denk"), Text("a"))),
        ({"content": None, "refusal": "خیر"}, (Refusal("خیر"),)),
        (
            {"thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "s"}]},
            (Thinking("t", "s", format=ANTHROPIC),),
        ),
        (
            {
                "reasoning_content": "思",
                "reasoning_details": [{"type": "reasoning.text", "text": "", "signature": "s", "format": ANTHROPIC}],
            },
            (Thinking("思", "s", format=ANTHROPIC),),
        ),
        (
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "id": "rs_1", "format": "f"}]},
            (Thinking("", None, "d", "rs_1", "f"),),
        ),
        ({"function_call": {"name": "f", "arguments": "{}"}}, (ToolCall("f", "f", "{}"),)),
        (
            {
                "tool_calls": [
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "f", "arguments": {"a": 1}},
                        "extra_content": {"google": {"thought_signature": "g"}},
                    }
                ]
            },
            (ToolCall("1", "f", '{"a":1}', "g"),),
        ),
    ],
)
def test_an_earlier_answer_is_read_with_its_reasoning_and_calls(message: dict[str, object], parts: object) -> None:
    """By any of the names that clients send them back under."""
    assert of_assistant(**message).parts == parts


@pytest.mark.clause("Q1")
def test_fields_are_read_by_all_their_names() -> None:
    """Reasoning of four vendors, limits of two, choices of tools, formats; zeros and ones that ask for nothing."""

    def fields(**more: object) -> Request:
        return parse({"model": "m", "messages": [{"role": "user", "content": "x"}], **more})

    assert fields(reasoning_effort="low").reasoning == Reasoning("low")
    assert fields(reasoning={"effort": "high", "max_tokens": 99}).reasoning == Reasoning("high", 99)
    assert fields(thinking={"type": "enabled", "budget_tokens": 2048}).reasoning == Reasoning(None, 2048, True)
    assert fields(enable_thinking=False).reasoning == Reasoning(None, None, False)
    assert (fields(max_tokens=5).max_tokens, fields(max_completion_tokens=6, max_tokens=5).max_tokens) == (5, 6)
    assert fields(tool_choice={"type": "function", "function": {"name": "f"}}).tool_choice == ToolChoice("one", "f")
    assert fields(response_format={"type": "json_object"}).format == Format()
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True}
    wanted = fields(response_format={"type": "json_schema", "json_schema": schema}).format
    assert wanted == Format({"type": "object"}, "n", True)
    quiet = fields(n=1, frequency_penalty=0, presence_penalty=0.0, logit_bias={}, logprobs=False)
    assert (quiet.n, quiet.frequency_penalty, quiet.presence_penalty, quiet.logit_bias) == (None, None, None, None)
    odd = fields(tools=[{"type": "web_search", "x": 1}], unknown={"a": 1}, nothing=None)
    assert odd.tools == (NativeTool("chat", "web_search", {"type": "web_search", "x": 1}),)
    assert odd.extra == {"unknown": {"a": 1}}


@pytest.mark.clause("Q1", "E")
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "قاضی"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [5]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": {}}, "tools"),
        ({"messages": [{"role": "user", "content": "x"}], "tool_choice": 7}, "tool_choice"),
        ({"messages": [{"role": "user", "content": "x"}], "temperature": "hot"}, "temperature"),
        ({"messages": [{"role": "user", "content": "x"}], "max_tokens": 1.5}, "max_tokens"),
        ({"messages": [{"role": "user", "content": "x"}], "stop": [1]}, "stop"),
        ({"messages": [{"role": "user", "content": "x"}], "seed": True}, "seed"),
    ],
)
def test_the_callers_mistakes_are_told_by_their_place(body: dict[str, object], param: str) -> None:
    """Only where a request must be understood to be translated; a vendor of the family would get it as it came."""
    refused = parse_chat({"model": "m", **body})
    assert isinstance(refused, BadRequest)
    assert (refused.code, refused.param, refused.status) == ("invalid_type", param, 400)


@pytest.mark.clause("D1")
def test_what_this_family_cannot_say_is_named() -> None:
    """Another vendor's own tools and parts, its files, its markers; a result that failed is told in words."""
    request = Request(
        client="messages",
        model="m",
        messages=(
            Message("user", (Document(file_id="f"), Native("messages", "search_result", {})), at=0),
            Message("assistant", (Text("x", {"type": "ephemeral"}), ToolCall("1", "f", "")), at=1),
            Message("tool", (ToolResult("1", (Text("杯"), Image("image/png", "AAAA")), "f", True),), at=2),
        ),
        tools=(NativeTool("messages", "web_search_20250305", {}),),
        user="u",
        extra={"metadata": {}, "mcp_servers": []},
    )
    losses = Losses()
    body = send_chat(request, "m", losses, {"user": None})
    assert losses.real == (
        "messages[0].document",
        "messages[0].search_result",
        "tools.web_search_20250305",
        "mcp_servers",
    )
    assert set(losses.all) - set(losses.real) == {"cache_control", "messages[2].is_error", "user", "metadata"}
    sent = body["messages"]
    assert isinstance(sent, list)
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert sent[2] == {"role": "tool", "tool_call_id": "1", "content": "Error: 杯"}
    assert sent[3]["role"] == "user" and sent[3]["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"


@pytest.mark.clause("D1")
def test_ids_of_calls_are_made_as_the_vendor_wants_them() -> None:
    """Mistral takes nine letters or digits: its own stay, others are made anew, the same for a call and its result."""
    calls = (ToolCall("toolu_01A", "f", "{}"), ToolCall("abcDEF123", "f", "{}"))
    results = (ToolResult("toolu_01A", (Text("一"),), "f"), ToolResult("abcDEF123", (Text("二"),), "f"))
    request = Request(
        client="messages",
        model="m",
        messages=(Message("user", (Text("q"),)), Message("assistant", calls), Message("tool", results)),
    )
    messages = send_chat(request, "m", Losses(), {"call_ids": "[A-Za-z0-9]{9}"})["messages"]
    assert isinstance(messages, list)
    made, kept = (call["id"] for call in messages[1]["tool_calls"])
    assert len(made) == 9 and made.isalnum() and kept == "abcDEF123"
    assert [message["tool_call_id"] for message in messages[2:]] == [made, kept]
