"""What a client's request becomes at Cohere, held to the types of its SDK."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence

import pytest
from cohere.types.chat_message_v2 import (
    AssistantChatMessageV2,
    SystemChatMessageV2,
    ToolChatMessageV2,
    UserChatMessageV2,
)
from cohere.types.content import ImageUrlContent, TextContent
from cohere.types.json_response_format_v2 import JsonResponseFormatV2
from cohere.types.thinking import Thinking as CohereThinking
from cohere.types.tool_call_v2 import ToolCallV2
from cohere.types.tool_v2 import ToolV2
from cohere.v2.raw_client import RawV2Client
from pydantic import BaseModel

from proxy.canon.request import (
    Audio,
    Document,
    Image,
    Message,
    Native,
    NativeTool,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.cohere import VENDOR
from proxy.dialects.openai.parse import parse_chat
from proxy.dialects.payload import encode_json
from proxy.dialects.seals import ANTHROPIC

MODEL = "command-a-03-2025"
CLOCK = {"type": "function", "function": {"name": "clock"}}
PNG = "data:image/png;base64,iVBORw0KGgo="
_MESSAGES: Mapping[str, type[BaseModel]] = {
    "system": SystemChatMessageV2,
    "user": UserChatMessageV2,
    "assistant": AssistantChatMessageV2,
    "tool": ToolChatMessageV2,
}
_FIELDS = {*inspect.signature(RawV2Client.chat).parameters, "stream"} - {"self", "request_options"}


def sent(request: Request) -> tuple[dict[str, object], Losses]:
    """The body, having made sure that the SDK has each of its fields and takes each of its values."""
    losses = Losses()
    body = json.loads(encode_json(VENDOR.send(request, MODEL, losses, {})))
    assert set(body) <= _FIELDS
    assert body["model"] == MODEL
    for message in body["messages"]:
        _holds(_MESSAGES[message["role"]], message)
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            _holds(TextContent if part["type"] == "text" else ImageUrlContent, part)
        for call in message.get("tool_calls", ()):
            _holds(ToolCallV2, call)
    for tool in body.get("tools", ()):
        _holds(ToolV2, tool)
    if "thinking" in body:
        _holds(CohereThinking, body["thinking"])
    if "response_format" in body:
        told = dict(body["response_format"])
        assert told.pop("type") == "json_object"
        _holds(JsonResponseFormatV2, told)
    assert body.get("tool_choice") in (None, "REQUIRED", "NONE")
    return body, losses


def _holds(model: type[BaseModel], value: Mapping[str, object]) -> None:
    parsed = model.model_validate(value, strict=True)
    assert not parsed.model_extra, parsed.model_extra


def chat(*messages: Mapping[str, object], **fields: object) -> Request:
    request = parse_chat({"model": "alias", "messages": list(messages) or [user("سلام")], **fields})
    assert not isinstance(request, BadRequest)
    return request


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def canonical(*messages: Message, **fields: object) -> Request:
    return Request(client="chat", model="alias", messages=messages, **fields)  # type: ignore[arg-type]  # a test's fields


def said(body: Mapping[str, object], number: int = -1) -> dict[str, object]:
    messages = body["messages"]
    assert isinstance(messages, Sequence)
    message = messages[number]
    assert isinstance(message, dict)
    return message


# ---- messages --------------------------------------------------------------------------------------------------------


def test_a_conversation_with_tools() -> None:
    """Everybody keeps their place; what was thought before a call is its plan."""
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": '{"z":"تهران"}'}},
        {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": ""}},
    ]
    body, losses = sent(
        chat(
            {"role": "system", "content": "Kurz."},
            user("ساعت؟"),
            {"role": "assistant", "content": "یک لحظه", "reasoning_content": "سوچ", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "13:00"}]},
            {"role": "developer", "content": "Höflich."},
            user([{"type": "text", "text": "你"}, {"type": "text", "text": "好"}]),
            tools=[CLOCK],
        )
    )
    assert body["messages"] == [
        {"role": "system", "content": "Kurz."},
        {"role": "user", "content": "ساعت؟"},
        {
            "role": "assistant",
            "tool_plan": "سوچ",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": '{"z":"تهران"}'}},
                {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
            ],
            "content": "یک لحظه",
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
        {"role": "tool", "tool_call_id": "c2", "content": "13:00"},
        {"role": "system", "content": "Höflich."},
        {"role": "user", "content": "你\n好"},
    ]
    assert body["stream"] is False
    assert losses.all == ()


def test_pictures_keep_their_place_among_the_texts() -> None:
    """By address or as data; a file that is text is text."""
    body, losses = sent(
        canonical(
            Message(
                "user",
                (
                    Text("چیست؟"),
                    Image(url="https://example.org/a.png", detail="low"),
                    Image("image/png", "iVBORw0KGgo="),
                    Document(text="متن", name="a.txt"),
                    Text(""),
                    Audio("AA==", "mp3"),
                ),
            ),
            Message("tool", (Text("stray"),), at=1),
        )
    )
    assert said(body, 0)["content"] == [
        {"type": "text", "text": "چیست؟"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "text", "text": "a.txt\nمتن"},
    ]
    assert losses.all == ("messages[0].audio", "messages[1].text")


def test_what_has_no_place_is_a_loss_and_what_changes_nothing_a_hint() -> None:
    """By the place of the client's message."""
    body, losses = sent(
        canonical(
            Message("user", (Text("?", cache={"type": "e"}), Document("application/pdf", "AA==")), name="Ada", at=0),
            Message(
                "assistant", (Thinking("想", "S", format=ANTHROPIC), ToolCall("c", "clock", "{}", signature="G")), at=1
            ),
            Message(
                "tool", (ToolResult("c", (Text("kaputt"), Image(url="https://e.org/a.png")), is_error=True),), at=2
            ),
            Message("assistant", (Thinking("想"), Native("messages", "server_tool_use", {})), at=3),
            Message("user", (Text("?"),), at=4),
            tools=(NativeTool("messages", "web_search", {}),),
            user="u-1",
        )
    )
    assert losses.real == (
        *("messages[0].document", "messages[2].image", "messages[3].server_tool_use", "tools.web_search"),
    )
    assert set(losses.all) - set(losses.real) == {
        *("cache_control", "messages[0].name", "messages[1].thinking", "messages[1].thought_signature"),
        *("messages[2].is_error", "messages[3].thinking", "user"),
    }
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "user"]  # type: ignore[attr-defined]  # messages
    assert said(body, 2)["content"] == "Error: kaputt"


# ---- fields ----------------------------------------------------------------------------------------------------------


def test_fields_under_the_vendors_names() -> None:
    """And no loss in what asks for nothing."""
    body, losses = sent(
        chat(
            stream=True,
            max_completion_tokens=9,
            temperature=0.5,
            top_p=0.9,
            top_k=40,
            seed=7,
            stop=["\n", "END"],
            frequency_penalty=0.25,
            logprobs=True,
            n=1,
            presence_penalty=0,
            safety_mode="STRICT",
        )
    )
    del body["messages"]
    assert body == {
        "model": MODEL,
        "stream": True,
        "max_tokens": 9,
        "temperature": 0.5,
        "p": 0.9,
        "k": 40,
        "seed": 7,
        "stop_sequences": ["\n", "END"],
        "frequency_penalty": 0.25,
        "logprobs": True,
        "safety_mode": "STRICT",
    }
    assert losses.all == ()


@pytest.mark.parametrize(("told", "p", "hints"), [(1, 0.99, ("top_p",)), (0, 0.01, ("top_p",)), (0.99, 0.99, ())])
def test_the_ends_of_top_p_are_brought_into_its_range(told: float, p: float, hints: tuple[str, ...]) -> None:
    """1 is what many clients send for "all of it", and the vendor refuses it."""
    body, losses = sent(chat(top_p=told))
    assert body["p"] == p
    assert (losses.real, losses.all) == ((), hints)


def test_what_cohere_cannot_be_asked_is_a_loss() -> None:
    """By the client's own names."""
    fields: dict[str, object] = {"min_p": 0.1, "n": 2, "top_logprobs": 3, "logit_bias": {"1": 1}, "something": "x"}
    _, losses = sent(chat(**fields, tools=[CLOCK], parallel_tool_calls=False, metadata={"a": "b"}))
    assert set(losses.real) == set(fields)
    assert set(losses.all[len(losses.real) :]) == {"metadata", "parallel_tool_calls"}


@pytest.mark.parametrize(
    ("choice", "told", "names"),
    [
        (None, None, ["clock", "weather"]),
        ("auto", None, ["clock", "weather"]),
        ("none", "NONE", ["clock", "weather"]),
        ("required", "REQUIRED", ["clock", "weather"]),
        ({"type": "function", "function": {"name": "weather"}}, "REQUIRED", ["weather"]),
    ],
)
def test_tools_and_their_choice(choice: object, told: str | None, names: list[str]) -> None:
    """Who must call one tool is shown no other."""
    schema = {"type": "object", "properties": {"città": {"type": "string"}}}
    weather = {"type": "function", "function": {"name": "weather", "description": "آب و هوا", "parameters": schema}}
    body, losses = sent(chat(tools=[CLOCK, weather], tool_choice=choice))

    tools = body["tools"]
    assert isinstance(tools, list)
    assert [tool["function"]["name"] for tool in tools] == names
    assert tools[-1]["function"] == {"name": "weather", "description": "آب و هوا", "parameters": schema}
    assert body.get("tool_choice") == told
    assert losses.all == ()


def test_a_choice_without_its_tool_is_a_loss() -> None:
    """And one without any tools is none."""
    absent = {"type": "function", "function": {"name": "absent"}}
    assert sent(chat(tools=[CLOCK], tool_choice=absent))[1].real == ("tool_choice",)
    body, losses = sent(chat(tool_choice="auto"))
    assert "tool_choice" not in body
    assert losses.all == ()


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
            {"type": "json_object", "json_schema": {"type": "object"}},
        ),
    ],
)
def test_json_as_the_answer(wanted: object, told: object) -> None:
    """Any object, or one that holds to a schema."""
    assert sent(chat(response_format=wanted))[0].get("response_format") == told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, None),
        ({"reasoning_effort": "none"}, {"type": "disabled"}),
        ({"reasoning_effort": "low"}, {"type": "enabled", "token_budget": 4096}),
        ({"reasoning": {"max_tokens": 500}}, {"type": "enabled", "token_budget": 500}),
        ({"reasoning": {"enabled": True}}, {"type": "enabled"}),
    ],
)
def test_how_much_to_think(fields: Mapping[str, object], told: object) -> None:
    """By a budget; a word stands for one."""
    assert sent(chat(**fields))[0].get("thinking") == told


def test_the_path_is_one() -> None:
    """Streamed or not: the body says which."""
    assert VENDOR.path("any/model", True, {}) == VENDOR.path("any/model", False, {}) == "/chat"


def test_numbers_are_brought_within_what_cohere_takes() -> None:
    """Penalties from 0 to 1, five stop sequences, 500 for k: each told by the client's name."""
    body, losses = sent(chat(frequency_penalty=-1, presence_penalty=1.5, top_k=900, stop=list("abcdefg")))
    told = {name: body[name] for name in ("frequency_penalty", "presence_penalty", "k", "stop_sequences")}
    assert told == {"frequency_penalty": 0, "presence_penalty": 1, "k": 500, "stop_sequences": list("abcde")}
    assert set(losses.real) == {"frequency_penalty", "presence_penalty", "top_k", "stop"}
