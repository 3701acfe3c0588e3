"""Requests for Hunyuan, held against the models of the vendor's own package."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from tencentcloud.hunyuan.v20230901.models import ChatCompletionsRequest  # type: ignore[import-untyped]  # it has none

from proxy.canon.request import Document, Image, Message, Request, Text
from proxy.dialects.base import Losses
from proxy.dialects.hunyuan import VENDOR
from proxy.dialects.hunyuan.send import send_hunyuan
from proxy.dialects.openai.parse import parse_chat

TOOLS = [
    {"type": "function", "function": {"name": "f", "description": "天気", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "g"}},
]


def sent(losses: Losses | None = None, **body: object) -> dict[str, Any]:
    """What is sent, after the vendor's models have read and written it without a loss."""
    asked = parse_chat({"model": "alias", "messages": [{"role": "user", "content": "سلام"}], **body})
    assert isinstance(asked, Request)
    made = send_hunyuan(asked, "hunyuan-turbos-latest", losses if losses is not None else Losses(), {})
    known = ChatCompletionsRequest()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns of fields that it does not know
        known._deserialize(json.loads(json.dumps(made)))
    assert known._serialize(allow_none=False) == made
    return made


def test_a_whole_conversation() -> None:
    losses = Losses()
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"city":"تهران"}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    made = sent(
        losses,
        messages=[
            {"role": "system", "content": "短く"},
            {"role": "developer", "content": "礼儀正しく"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": "ok", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "21°"},
            {"role": "tool", "tool_call_id": "c2", "content": "8:00"},
        ],
        stream=True,
        tools=TOOLS,
        temperature=0.5,
        top_p=0.9,
        seed=3,
        stop="。",
        reasoning_effort="none",
    )

    assert made == {
        "Model": "hunyuan-turbos-latest",
        "Messages": [
            {"Role": "system", "Content": "短く\n礼儀正しく"},
            {"Role": "user", "Content": "a\nb"},
            {
                "Role": "assistant",
                "Content": "ok",
                "ToolCalls": [
                    {
                        "Id": "c1",
                        "Type": "function",
                        "Function": {"Name": "f", "Arguments": '{"city":"تهران"}'},
                        "Index": 0,
                    },
                    {"Id": "c2", "Type": "function", "Function": {"Name": "g", "Arguments": "{}"}, "Index": 1},
                ],
            },
            {"Role": "tool", "Content": "21°", "ToolCallId": "c1"},
            {"Role": "tool", "Content": "8:00", "ToolCallId": "c2"},
        ],
        "Stream": True,
        **{"Temperature": 0.5, "TopP": 0.9, "Seed": 3, "Stop": ["。"]},
        "Tools": [
            {"Type": "function", "Function": {"Name": "f", "Parameters": '{"type":"object"}', "Description": "天気"}},
            {"Type": "function", "Function": {"Name": "g", "Parameters": '{"type":"object","properties":{}}'}},
        ],
        "EnableThinking": False,
    }
    assert losses.all == ()


def test_pictures_stand_among_contents() -> None:
    content = [
        {"type": "text", "text": "چه می‌بینی؟"},
        {"type": "image_url", "image_url": {"url": "https://p.test/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}},
    ]
    losses = Losses()
    assert sent(losses, messages=[{"role": "user", "content": content}])["Messages"] == [
        {
            "Role": "user",
            "Contents": [
                {"Type": "text", "Text": "چه می‌بینی؟"},
                {"Type": "image_url", "ImageUrl": {"Url": "https://p.test/a.png"}},
                {"Type": "image_url", "ImageUrl": {"Url": "data:image/jpeg;base64,AAAA"}},
            ],
        }
    ]
    assert (losses.real, losses.all) == ((), ("messages[0].image.detail",))


@pytest.mark.parametrize(
    ("choice", "told", "lost"),
    [
        ("auto", None, ()),
        ("none", "none", ()),
        ("required", None, ("tool_choice",)),
        ({"type": "function", "function": {"name": "g"}}, "custom", ()),
        ({"type": "function", "function": {"name": "absent"}}, None, ("tool_choice",)),
    ],
)
def test_which_tool(choice: object, told: str | None, lost: tuple[str, ...]) -> None:
    losses = Losses()
    made = sent(losses, tools=TOOLS, tool_choice=choice)
    assert made.get("ToolChoice") == told
    assert ("CustomTool" in made) is (told == "custom")
    assert losses.real == lost


@pytest.mark.parametrize(
    ("asked", "told", "reported"),
    [
        ({"reasoning_effort": "low"}, True, ("reasoning_effort",)),
        ({"enable_thinking": True}, True, ()),
        ({"enable_thinking": False}, False, ()),
    ],
)
def test_it_thinks_or_it_does_not(asked: dict[str, object], told: bool, reported: tuple[str, ...]) -> None:
    losses = Losses()
    assert sent(losses, **asked)["EnableThinking"] is told
    assert (losses.real, losses.all) == ((), reported)


def test_what_cannot_be_said_is_reported() -> None:
    """The length of the answer among it."""
    losses = Losses()
    sent(
        losses,
        max_tokens=5,
        top_k=1,
        n=2,
        user="u",
        tools=TOOLS,
        parallel_tool_calls=False,
        response_format={"type": "json_object"},
        messages=[
            {"role": "user", "name": "n", "content": [{"type": "input_audio", "input_audio": {"data": "AA"}}]},
            {"role": "assistant", "content": "ok", "reasoning_content": "想"},
        ],
    )
    assert losses.real == (*("messages[0].audio", "max_tokens", "top_k", "n", "response_format"),)
    hints = {"messages[0].name", "messages[1].thinking", "user", "parallel_tool_calls"}
    assert set(losses.all) - set(losses.real) == hints


def test_the_action_is_a_header_and_the_request_is_signed() -> None:
    assert VENDOR.headers == {"x-tc-action": "ChatCompletions", "x-tc-version": "2023-09-01"}
    assert (VENDOR.signing, VENDOR.path("m", True, {})) == ("tc3", "/")


def test_documents_of_text_are_text_beside_a_picture() -> None:
    losses = Losses()
    parts = (Image("image/png", "AAAA"), Document(text="本文"), Document("application/pdf", "JVBE"))
    asked = Request(client="messages", model="m", messages=(Message("user", parts, at=3),))

    made = send_hunyuan(asked, "m", losses, {})

    assert made["Messages"] == [
        {
            "Role": "user",
            "Contents": [
                {"Type": "image_url", "ImageUrl": {"Url": "data:image/png;base64,AAAA"}},
                {"Type": "text", "Text": "本文"},
            ],
        }
    ]
    assert losses.all == ("messages[3].document",)


def test_speakers_take_turns_and_the_user_is_the_first() -> None:
    """Words of the assistant before its calls are one message with them."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    losses = Losses()
    body = sent(
        losses,
        messages=[
            {"role": "assistant", "content": "我看看"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
    )
    made = body["Messages"]
    assert [message["Role"] for message in made] == ["user", "assistant", "tool"]
    assert (made[1]["Content"], len(made[1]["ToolCalls"])) == ("我看看", 1)
    assert losses.all == ("messages[0].role",)


def test_a_limit_that_must_be_said_is_a_hint() -> None:
    """Messages' clients cannot leave it out."""
    for client, real in (("messages", ()), ("chat", ("max_tokens",))):
        losses = Losses()
        asked = Request(client=client, model="m", messages=(Message("user", (Text("?"),)),), max_tokens=9)
        send_hunyuan(asked, "m", losses, {})
        assert (losses.real, losses.all) == (real, ("max_tokens",))
