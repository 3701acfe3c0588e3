"""Requests for DashScope, held against the parameters that its own package takes."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.canon.request import Document, Format, Image, Message, Reasoning, Request, Text, ToolCall, ToolResult
from proxy.dialects.base import Losses
from proxy.dialects.dashscope import VENDOR
from proxy.dialects.dashscope.send import send_dashscope
from proxy.dialects.openai.parse import parse_chat

# Generation.call and MultiModalConversation.call of dashscope 2.0.2, without what is no parameter of the API.
PARAMETERS = {
    *("temperature", "top_p", "top_k", "max_tokens", "seed", "stop", "repetition_penalty", "presence_penalty"),
    *("result_format", "incremental_output", "enable_search", "search_options", "tools", "tool_choice"),
    *("parallel_tool_calls", "enable_thinking", "thinking_budget", "n", "logprobs", "top_logprobs", "response_format"),
}
PICTURE = {"type": "image_url", "image_url": {"url": "https://p.test/a.png"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def sent(losses: Losses | None = None, model: str = "qwen-plus", **body: object) -> dict[str, Any]:
    asked = parse_chat({"model": "alias", "messages": [{"role": "user", "content": "سلام"}], **body})
    assert isinstance(asked, Request)
    made = send_dashscope(asked, model, losses if losses is not None else Losses(), {})
    assert made.keys() == {"model", "input", "parameters"}
    assert set(made["parameters"]) <= PARAMETERS  # type: ignore[call-overload]  # a dict, as it is made
    return made


def test_a_whole_conversation() -> None:
    losses = Losses()
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]
    made = sent(
        losses,
        messages=[
            {"role": "developer", "content": "短く"},
            {"role": "user", "content": "؟"},
            {"role": "assistant", "content": "ok", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "21°"},
        ],
        stream=True,
        tools=[TOOL],
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=True,
        max_tokens=9,
        temperature=0.5,
        top_p=0.5,
        top_k=3,
        seed=1,
        stop=["。"],
        presence_penalty=0.1,
        n=2,
        logprobs=True,
        top_logprobs=1,
        response_format={"type": "json_object"},
        repetition_penalty=1.1,
        enable_search=True,
    )

    assert made["input"] == {
        "messages": [
            {"role": "system", "content": "短く"},
            {"role": "user", "content": "؟"},
            {
                "role": "assistant",
                "content": "ok",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "content": "21°", "tool_call_id": "c1"},
        ]
    }
    assert made["parameters"] == {
        "result_format": "message",
        "incremental_output": True,
        **{"max_tokens": 9, "temperature": 0.5, "top_p": 0.5, "top_k": 3, "stop": ["。"], "seed": 1},
        **{"presence_penalty": 0.1, "n": 2, "logprobs": True, "top_logprobs": 1},
        **{"repetition_penalty": 1.1, "enable_search": True},
        "tools": [TOOL],
        "parallel_tool_calls": True,
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_object"},
    }
    assert losses.all == ()


def test_a_plain_answer_is_not_asked_for_in_increments() -> None:
    assert "incremental_output" not in sent()["parameters"]


@pytest.mark.parametrize(
    ("model", "content", "told", "task"),
    [
        ("qwen-plus", "a", "a", "text-generation"),
        ("qwen-vl-max", "a", [{"text": "a"}], "multimodal-generation"),
        ("qwen3-vl-plus", "a", [{"text": "a"}], "multimodal-generation"),
        (
            "qwen-plus",
            [{"type": "text", "text": "a"}, PICTURE, {"type": "text", "text": "b"}],
            [{"text": "a"}, {"image": "https://p.test/a.png"}, {"text": "b"}],
            "multimodal-generation",
        ),
    ],
)
def test_pictures_have_an_endpoint_of_their_own(model: str, content: object, told: object, task: str) -> None:
    """There each content is a list of parts, also where a model that sees is told a text alone."""
    made = sent(model=model, messages=[{"role": "user", "content": content}])
    assert made["input"]["messages"][0]["content"] == told
    assert VENDOR.path(model, True, made) == f"/services/aigc/{task}/generation"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"reasoning_effort": "none"}, {"enable_thinking": False}),
        ({"reasoning_effort": "low"}, {"enable_thinking": True, "thinking_budget": 4096}),
        ({"reasoning_effort": "high"}, {"enable_thinking": True}),
        ({"reasoning": {"max_tokens": 900}}, {"enable_thinking": True, "thinking_budget": 900}),
        ({"enable_thinking": True, "thinking_budget": 50}, {"enable_thinking": True, "thinking_budget": 50}),
        ({}, {}),
    ],
)
def test_how_much_to_think(asked: dict[str, object], told: dict[str, object]) -> None:
    parameters = sent(None, "qwen3-plus", **asked)["parameters"]
    assert {name: value for name, value in parameters.items() if "think" in name} == told


def test_a_schema_for_the_answer() -> None:
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True, "description": "d"}
    made = sent(response_format={"type": "json_schema", "json_schema": schema})
    assert made["parameters"]["response_format"] == {"type": "json_schema", "json_schema": schema}


@pytest.mark.parametrize(("choice", "lost"), [("auto", ()), ("none", ()), ("required", ("tool_choice",))])
def test_any_tool_cannot_be_forced(choice: str, lost: tuple[str, ...]) -> None:
    losses = Losses()
    made = sent(losses, tools=[TOOL], tool_choice=choice)["parameters"]
    assert made.get("tool_choice") == ("none" if choice == "none" else None)
    assert losses.real == lost


def test_what_cannot_be_said_is_reported() -> None:
    losses = Losses()
    sent(
        losses,
        min_p=0.1,
        frequency_penalty=1,
        logit_bias={"1": 1},
        user="u",
        verbosity="low",
        messages=[
            {"role": "assistant", "content": "ok", "reasoning_content": "想"},
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]},
        ],
    )
    assert losses.real == ("messages[1].audio", "min_p", "frequency_penalty", "logit_bias")
    assert losses.all == (*losses.real, "messages[0].thinking", "user", "verbosity")


def test_a_stream_is_asked_for_by_a_header() -> None:
    assert VENDOR.stream_headers == {"x-dashscope-sse": "enable"}


def test_parts_in_their_order_beside_a_picture() -> None:
    """Documents of text are text; details and cache markers change nothing; a picture that a tool gave is lost."""
    losses = Losses()
    cache = {"type": "ephemeral"}
    parts = (
        Text("a", cache),
        Image("image/png", "AAAA", detail="high", cache=cache),
        Document(text="本文"),
        Document("application/pdf", "JVBE"),
    )
    result = ToolResult("c1", (Text("ok"), Image("image/png", "AAAA")))
    call = ToolCall("c1", "f", "{}", signature="seal")
    messages = (Message("user", parts), Message("assistant", (call,), at=1), Message("tool", (result,), at=2))
    asked = Request(client="messages", model="m", messages=messages, format=Format({"type": "object"}))

    made = send_dashscope(asked, "qwen-vl-max", losses, {})

    assert made["input"]["messages"] == [  # type: ignore[index]  # a dict, as it is made
        {"role": "user", "content": [{"text": "a"}, {"image": "data:image/png;base64,AAAA"}, {"text": "本文"}]},
        {
            "role": "assistant",
            "content": [{"text": ""}],
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "content": [{"text": "ok"}], "tool_call_id": "c1"},
    ]
    assert made["parameters"]["response_format"] == {  # type: ignore[index]
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object"}},
    }
    assert losses.real == ("messages[0].document", "messages[2].image")
    assert set(losses.all) - set(losses.real) == {
        *("cache_control", "messages[0].image.detail", "messages[1].thought_signature"),
    }


def test_only_a_summary_of_thoughts_asks_for_nothing() -> None:
    asked = Request(client="responses", model="m", messages=(), reasoning=Reasoning(summary="auto"))
    assert send_dashscope(asked, "qwen-plus", Losses(), {})["parameters"] == {"result_format": "message"}
