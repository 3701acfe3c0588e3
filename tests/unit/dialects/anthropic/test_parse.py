"""A Messages body in canonical form (contract Q1, D1)."""

from __future__ import annotations

import json

import pytest

from proxy.canon.request import (
    Document,
    Format,
    Image,
    Message,
    Native,
    NativeTool,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.anthropic.parse import parse_messages
from proxy.dialects.anthropic.request import parse_messages_request
from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming

CACHE = {"type": "ephemeral"}


def parse(**fields: object) -> Request:
    request = parse_messages({"model": "m", "messages": [{"role": "user", "content": "سلام"}], **fields})
    assert isinstance(request, Request)
    return request


def parts(role: str, *blocks: object) -> tuple[Message, ...]:
    return parse(messages=[{"role": role, "content": list(blocks)}]).messages


def test_a_whole_request() -> None:
    """Every field that has a place."""
    request = parse(
        system=[{"type": "text", "text": "Sei knapp.", "cache_control": CACHE}],
        max_tokens=0,
        temperature=0.5,
        top_p=0.9,
        top_k=3,
        stop_sequences=["۔", "。"],
        stream=True,
        metadata={"user_id": "u-1"},
        tools=[{"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True}],
        tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 2048},
        output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}},
        service_tier="auto",
        container=None,
    )

    assert request == Request(
        client="messages",
        model="m",
        messages=(Message("system", (Text("Sei knapp.", CACHE),)), Message("user", (Text("سلام"),))),
        stream=True,
        tools=(Tool("f", "d", {"type": "object"}, True),),
        tool_choice=ToolChoice("one", "f"),
        parallel_tools=False,
        max_tokens=0,
        temperature=0.5,
        top_p=0.9,
        top_k=3,
        stop=("۔", "。"),
        format=Format({"type": "object"}, strict=True),
        reasoning=Reasoning(budget=2048, enabled=True),
        user="u-1",
        extra={"service_tier": "auto"},
    )


def test_parts_of_a_user() -> None:
    """Pictures and documents in all their forms; context before its document."""
    (message,) = parts(
        "user",
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}},
        {"type": "image", "source": {"type": "url", "url": "https://x/y"}, "cache_control": CACHE},
        {
            "type": "document",
            "title": "خبر",
            "context": "von gestern",
            "source": {"type": "text", "media_type": "text/plain", "data": "متن"},
        },
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "bb"}},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "内"}]}},
        {
            "type": "search_result",
            "source": "https://s",
            "title": "t",
            "content": [{"type": "text", "text": "gefunden"}],
        },
        {"type": "container_upload", "file_id": "f"},
        {"type": "text", "text": ""},
    )

    assert message.parts == (
        Image("image/png", "aa"),
        Image(url="https://x/y", cache=CACHE),
        Text("von gestern"),
        Document("text/plain", text="متن", name="خبر"),
        Document("application/pdf", "bb"),
        Document(file_id="file_1"),
        Document("text/plain", text="内"),
        Document("text/plain", text="https://s\ngefunden", name="t"),
        Native("messages", "container_upload", {"type": "container_upload", "file_id": "f"}),
    )


def test_results_come_before_the_words_beside_them_and_know_their_tool() -> None:
    """They are messages of their own, with text, pictures and whatever else as text."""
    request = parse(
        messages=[
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"x": "是"}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "گرم", "is_error": True},
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": [
                            {"type": "text", "text": "x", "cache_control": CACHE},
                            {"type": "tool_reference", "tool_name": "g"},
                        ],
                    },
                    {"type": "text", "text": "weiter"},
                ],
            },
        ]
    )

    assert request.messages == (
        Message("assistant", (ToolCall("a", "f", '{"x":"是"}'),), at=0),
        Message(
            "tool",
            (
                ToolResult("a", (Text("گرم"),), "f", is_error=True),
                ToolResult("b", (Text("x", CACHE), Text('{"type":"tool_reference","tool_name":"g"}'))),
            ),
            at=1,
        ),
        Message("user", (Text("weiter"),), at=1),
    )


def test_seals_get_their_families_back() -> None:
    """Its own, OpenAI's under a summary, Gemini's over a call or over nothing, and none at all."""
    (message,) = parts(
        "assistant",
        {"type": "thinking", "thinking": "思", "signature": "sig"},
        {"type": "redacted_thinking", "data": "zip"},
        {"type": "thinking", "thinking": "kurz", "signature": "openai-responses-v1#enc"},
        {"type": "thinking", "thinking": "frei", "signature": ""},
        {"type": "redacted_thinking", "data": "google-gemini-v1#alone"},
        {"type": "text", "text": "x"},
        {"type": "redacted_thinking", "data": "google-gemini-v1#gem"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    )

    assert message.parts == (
        Thinking("思", "sig", format="anthropic-claude-v1"),
        Thinking(encrypted="zip", format="anthropic-claude-v1"),
        Thinking("kurz", encrypted="enc", format="openai-responses-v1"),
        Thinking("frei"),
        Thinking(encrypted="alone", format="google-gemini-v1"),
        Text("x"),
        ToolCall("a", "f", "{}", "gem"),
    )


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"thinking": {"type": "disabled"}}, Reasoning(enabled=False)),
        ({"thinking": {"type": "between_tools"}}, Reasoning(enabled=False)),
        ({"thinking": {"type": "adaptive", "display": "summarized"}}, Reasoning(enabled=True, summary="auto")),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, Reasoning("max", enabled=True)),
        ({"output_config": {"effort": "low"}}, Reasoning("low")),
        ({}, None),
    ],
)
def test_how_much_to_think(fields: dict[str, object], reasoning: Reasoning | None) -> None:
    """Budgets, efforts and switches."""
    assert parse(**fields).reasoning == reasoning


def test_what_has_no_place_is_kept_by_name() -> None:
    """The vendor's own tools, unknown fields, citations that were asked for, and the newer part of output_config."""
    search = {"type": "web_search_20250305", "name": "web_search"}
    cited = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "x"},
        "citations": {"enabled": True},
    }
    request = parse(
        tools=[search],
        messages=[{"role": "user", "content": [cited]}],
        context_management={"edits": []},
        output_config={"task_budget": {"total": 5}},
    )

    assert request.tools == (NativeTool("messages", "web_search_20250305", search),)
    assert request.extra == {
        "context_management": {"edits": []},
        "citations": True,
        "output_config.task_budget": {"total": 5},
    }


def test_a_cache_marker_of_the_whole_request_is_one_of_its_last_block() -> None:
    """As the vendor reads it."""
    assert parse(cache_control=CACHE).messages[-1].parts == (Text("سلام", CACHE),)


@pytest.mark.clause("Q1")
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"system": 5}, "system"),
        ({"tools": {}}, "tools"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"max_tokens": "x"}, "max_tokens"),
        ({"stop_sequences": [1]}, "stop_sequences"),
        ({"thinking": "on"}, "thinking"),
        ({"metadata": []}, "metadata"),
    ],
)
def test_the_callers_mistakes_name_their_field(fields: dict[str, object], param: str) -> None:
    """As values, never as exceptions."""
    bad = parse_messages({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields})

    assert isinstance(bad, BadRequest)
    assert bad.param == param


@pytest.mark.clause("Q1", "D1")
def test_a_request_of_the_same_family_goes_on_as_it_came() -> None:
    """Every field and number; only the model's name is the vendor's."""
    data = (
        '{"model":"claude","messages":[{"role":"user","content":"你好"}],"temperature":0.30000000000000004441,"new":{}}'
    )
    request = parse_messages_request(data.encode())

    assert isinstance(request, Incoming)
    assert (request.client, request.model, request.stream, request.usage, request.json) == (
        "messages",
        "claude",
        False,
        True,
        False,
    )
    assert request.for_upstream("claude-x").decode() == data.replace('"claude"', '"claude-x"')


def test_json_that_was_asked_for_is_known() -> None:
    """In the present form and in the older one."""
    for name, value in (
        ("output_config", {"format": {"type": "json_schema"}}),
        ("output_format", {"type": "json_schema"}),
    ):
        request = parse_messages_request(json.dumps({"model": "m", "messages": [], name: value}).encode())
        assert isinstance(request, Incoming)
        assert request.json


def test_bytes_that_are_no_request() -> None:
    """The checks that every dialect has."""
    for data in (b"", b"[]", b'{"messages":[]}', b'{"model":"m","stream":1}', b'{"model":"m","base_url":"x"}'):
        assert isinstance(parse_messages_request(data), BadRequest)


def test_documents_of_blocks_and_system_messages_within() -> None:
    """Text inside a document stands for it; a picture inside is this family's own matter."""
    picture = {"type": "document", "source": {"type": "content", "content": [{"type": "image"}]}}
    request = parse(
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "document", "source": {"type": "content", "content": "متن"}},
                    {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
                    picture,
                ],
            },
            {"role": "system", "content": "ab jetzt knapp"},
        ],
        cache_control=CACHE,
    )

    assert request.messages == (
        Message(
            "user",
            (
                Document("text/plain", text="متن"),
                Document("application/pdf", url="https://x/y.pdf"),
                Native("messages", "document", picture),
            ),
        ),
        Message("system", (Text("ab jetzt knapp", CACHE),), at=1),
    )


def test_a_marker_for_what_cannot_carry_it_is_left() -> None:
    """It only hints at a cache."""
    image = {"type": "image", "source": {"type": "url", "url": "https://x/y"}}
    request = parse(messages=[{"role": "user", "content": [image]}], cache_control=CACHE)

    assert request.messages[-1].parts == (Image(url="https://x/y"),)
