"""Requests for Ollama, held against the types of its own package."""

from __future__ import annotations

from typing import Any

import pytest
from ollama._types import ChatRequest, Message, Options

from proxy.canon.request import Image, Request, Text, Thinking, ToolResult
from proxy.canon.request import Message as Said
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.ollama import VENDOR
from proxy.dialects.ollama.send import send_ollama
from proxy.dialects.openai.parse import parse_chat
from proxy.dialects.seals import ANTHROPIC

PIXEL = "iVBORw0KGgo="
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "天気",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def sent(losses: Losses | None = None, **body: object) -> dict[str, Any]:
    """What is sent for a request of chat completions, after its types have looked at it."""
    asked = parse_chat({"model": "alias", "messages": [{"role": "user", "content": "سلام"}], **body})
    assert isinstance(asked, Request)
    made = send_ollama(asked, "qwen3:8b", losses if losses is not None else Losses(), {})
    request = ChatRequest.model_validate(made)
    for message in request.messages or ():
        assert isinstance(message, dict)
        pictures = [{"value": picture} for picture in message.get("images", ())]
        told = Message.model_validate({**message, "images": pictures}).model_dump()
        assert told["images"] == message.get("images", [])
    if isinstance(request.options, dict):
        Options.model_validate(request.options, strict=True)
    return made


def test_a_whole_conversation() -> None:
    """System text, a picture, two calls with an object each, their results by the tools' names."""
    losses = Losses()
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"تهران"}'}},
        {"id": "c2", "type": "function", "function": {"name": "get_time", "arguments": ""}},
    ]
    made = sent(
        losses,
        messages=[
            {"role": "developer", "content": "短く"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "چه می‌بینی؟"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                ],
            },
            {"role": "assistant", "content": "ok", "reasoning_content": "想", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "21°"},
            {"role": "tool", "tool_call_id": "c2", "content": "8:00"},
        ],
        stream=True,
        tools=[TOOL],
        max_completion_tokens=50,
        temperature=0.25,
        top_p=0.5,
        top_k=7,
        min_p=0.1,
        seed=3,
        stop="。",
        presence_penalty=0.5,
        logprobs=True,
        top_logprobs=2,
        repetition_penalty=1.2,
    )

    assert made == {
        "model": "qwen3:8b",
        "messages": [
            {"role": "system", "content": "短く"},
            {"role": "user", "content": "چه می‌بینی؟", "images": [PIXEL]},
            {
                "role": "assistant",
                "content": "ok",
                "thinking": "想",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "get_weather", "arguments": {"city": "تهران"}}},
                    {"id": "c2", "function": {"name": "get_time", "arguments": {}}},
                ],
            },
            {"role": "tool", "content": "21°", "tool_name": "get_weather", "tool_call_id": "c1"},
            {"role": "tool", "content": "8:00", "tool_name": "get_time", "tool_call_id": "c2"},
        ],
        "stream": True,
        "logprobs": True,
        "top_logprobs": 2,
        "options": {
            "num_predict": 50,
            "temperature": 0.25,
            "top_p": 0.5,
            "top_k": 7,
            "min_p": 0.1,
            "stop": ["。"],
            "seed": 3,
            "presence_penalty": 0.5,
            "repeat_penalty": 1.2,
        },
        "tools": [TOOL],
    }
    assert losses.all == ()


def test_a_plain_answer_is_asked_for_in_so_many_words() -> None:
    """Left out, `stream` means yes there."""
    assert sent()["stream"] is False


@pytest.mark.parametrize(
    ("asked", "format"),
    [
        ({"type": "json_object"}, "json"),
        ({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}, {"type": "object"}),
    ],
)
def test_json_as_the_answer(asked: object, format: object) -> None:
    assert sent(response_format=asked)["format"] == format


@pytest.mark.parametrize(
    ("model", "asked", "think", "reported"),
    [
        ("gpt-oss:20b", {"reasoning_effort": "none"}, False, ()),
        ("gpt-oss:20b", {"reasoning_effort": "low"}, "low", ()),
        ("gpt-oss:20b", {"reasoning_effort": "minimal"}, "low", ("reasoning_effort",)),
        ("gpt-oss:20b", {"reasoning_effort": "xhigh"}, "high", ("reasoning_effort",)),
        ("gpt-oss:20b", {"reasoning": {"max_tokens": 9000}}, "medium", ("reasoning_effort",)),
        ("qwen3:8b", {"enable_thinking": False}, False, ()),
        ("qwen3:8b", {"enable_thinking": True}, None, ()),
        ("llama3.2", {"reasoning_effort": "high"}, None, ("reasoning_effort",)),
        ("llama3.2", {"reasoning": {"max_tokens": 9000}}, None, ("reasoning_effort",)),
    ],
)
def test_how_much_to_think(model: str, asked: dict[str, object], think: object, reported: tuple[str, ...]) -> None:
    """Three words or no; a model that cannot think refuses to be told that it should, and others do so unasked."""
    losses = Losses()
    request = parse_chat({"model": "m", "messages": [{"role": "user", "content": "?"}], **asked})
    assert not isinstance(request, BadRequest)
    assert send_ollama(request, model, losses, {}).get("think") == think
    assert (losses.real, losses.all) == ((), reported)


@pytest.mark.parametrize(
    ("choice", "tools", "lost"),
    [
        ("auto", True, ()),
        ("none", False, ()),
        ("required", True, ("tool_choice",)),
        ({"type": "function", "function": {"name": "get_weather"}}, True, ("tool_choice",)),
    ],
)
def test_a_tool_cannot_be_forced(choice: object, tools: bool, lost: tuple[str, ...]) -> None:
    """But none is as good as no tools at all."""
    losses = Losses()
    assert ("tools" in sent(losses, tools=[TOOL], tool_choice=choice)) is tools
    assert losses.real == lost


def test_what_cannot_be_said_is_reported() -> None:
    losses = Losses()
    sent(
        losses,
        n=2,
        logit_bias={"5": 1},
        user="u",
        parallel_tool_calls=False,
        tools=[TOOL, {"type": "custom", "custom": {"name": "c"}}],
        messages=[
            {"role": "user", "name": "n", "content": [{"type": "image_url", "image_url": {"url": "https://p.test/a"}}]},
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]},
        ],
    )
    assert losses.real == (*("messages[0].image", "messages[1].audio", "n", "logit_bias", "tools.custom"),)
    assert losses.all == (*losses.real, "messages[0].name", "user", "parallel_tool_calls")


def test_the_clients_own_options_pass() -> None:
    """Under Ollama's own names: its window above all, which is small unless it is asked for."""
    own = {"options": {"num_ctx": 32768, "mirostat": 1}, "keep_alive": "5m", "temperature": 0.5}
    losses = Losses()
    made = sent(losses, **own)
    assert made["options"] == {"temperature": 0.5, "num_ctx": 32768, "mirostat": 1}
    assert (made["keep_alive"], losses.all) == ("5m", ())
    assert sent(losses, num_ctx=9)["options"] == {"num_ctx": 9}


def test_a_foreign_seal_is_left_out() -> None:
    """A conversation that began at another vendor goes on here without its sealed thoughts."""
    losses = Losses()
    thought = Thinking("想", "seal", format=ANTHROPIC)
    asked = Request(client="messages", model="m", messages=(Said("assistant", (thought, Text("ok")), at=4),))

    made = send_ollama(asked, "m", losses, {})

    assert made["messages"] == [{"role": "assistant", "content": "ok"}]
    assert (losses.real, losses.all) == ((), ("messages[4].thinking",))


def test_pictures_that_a_tool_gave_stand_beside_its_text() -> None:
    result = ToolResult("c", (Text("see"), Image("image/png", PIXEL, detail="low", cache={})), is_error=True)
    losses = Losses()
    asked = Request(client="messages", model="m", messages=(Said("tool", (result,), at=1),))

    made = send_ollama(asked, "m", losses, {"temperature": None})

    assert made["messages"] == [{"role": "tool", "content": "Error: see", "tool_call_id": "c", "images": [PIXEL]}]
    assert losses.all == ("messages[1].is_error", "cache_control", "messages[1].image.detail")


def test_where_it_goes() -> None:
    assert VENDOR.path("m", True, {}) == "/api/chat"
    assert VENDOR.accept == "application/x-ndjson"
    assert VENDOR.native is None


def test_a_result_without_an_id_is_known_by_its_name() -> None:
    result = ToolResult("", (Text("21°"),), "get_weather")
    asked = Request(client="chat", model="m", messages=(Said("tool", (result,)),))
    made = send_ollama(asked, "m", Losses(), {})
    assert made["messages"] == [{"role": "tool", "content": "21°", "tool_name": "get_weather"}]
