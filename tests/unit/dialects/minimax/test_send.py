"""Requests for chatcompletion_pro, held against the request types that public adapters have of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from proxy.canon.request import Request
from proxy.dialects.base import Losses
from proxy.dialects.minimax import VENDOR
from proxy.dialects.minimax.send import send_minimax_pro
from proxy.dialects.openai.parse import parse_chat


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Call(Strict):
    name: str
    arguments: str


class Speech(Strict):
    sender_type: str
    sender_name: str
    text: str
    function_call: Call | None = None


class Bot(Strict):
    bot_name: str
    content: str


class Constraints(Strict):
    sender_type: str
    sender_name: str


class Body(Strict):
    """The request types of langchain-community's and higress' adapters (there is no package of the vendor's)."""

    model: str
    messages: list[Speech]
    bot_setting: list[Bot]
    reply_constraints: Constraints
    mask_sensitive_info: bool
    stream: bool | None = None
    tokens_to_generate: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    functions: list[dict[str, object]] | None = None


TOOLS = [{"type": "function", "function": {"name": "f", "description": "天気"}}]


def sent(losses: Losses | None = None, **body: object) -> dict[str, Any]:
    asked = parse_chat({"model": "alias", "messages": [{"role": "user", "content": "سلام"}], **body})
    assert isinstance(asked, Request)
    made = send_minimax_pro(asked, "abab6.5s-chat", losses if losses is not None else Losses(), {})
    body_made = Body.model_validate(made)
    assert body_made.reply_constraints.sender_name in [bot.bot_name for bot in body_made.bot_setting]
    return made


def test_a_whole_conversation() -> None:
    """The system text is the bot's setting; calls at once are told one after the other."""
    losses = Losses()
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"city":"تهران"}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    made = sent(
        losses,
        messages=[
            {"role": "system", "content": "短く"},
            {"role": "user", "name": "小明", "content": "a"},
            {"role": "assistant", "content": "ok", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "21°"},
            {"role": "tool", "tool_call_id": "c2", "content": "8:00"},
        ],
        stream=True,
        tools=TOOLS,
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
    )

    bot = {"sender_type": "BOT", "sender_name": "Assistant"}
    assert made == {
        "model": "abab6.5s-chat",
        "bot_setting": [{"bot_name": "Assistant", "content": "短く"}],
        "messages": [
            {"sender_type": "USER", "sender_name": "小明", "text": "a"},
            {**bot, "text": "ok", "function_call": {"name": "f", "arguments": '{"city":"تهران"}'}},
            {"sender_type": "FUNCTION", "sender_name": "f", "text": "21°"},
            {**bot, "text": "", "function_call": {"name": "g", "arguments": "{}"}},
            {"sender_type": "FUNCTION", "sender_name": "g", "text": "8:00"},
        ],
        "reply_constraints": bot,
        "mask_sensitive_info": False,
        "stream": True,
        **{"tokens_to_generate": 9, "temperature": 0.5, "top_p": 0.9},
        "functions": [{"name": "f", "parameters": {"type": "object", "properties": {}}, "description": "天気"}],
    }
    assert losses.all == ()


def test_a_bot_must_have_a_setting() -> None:
    assert sent()["bot_setting"] == [{"bot_name": "Assistant", "content": "You are a helpful assistant."}]


@pytest.mark.parametrize(("asked", "told", "lost"), [(0, 0.01, ()), (1.5, 1.0, ("temperature",))])
def test_temperature_has_its_bounds(asked: float, told: float, lost: tuple[str, ...]) -> None:
    losses = Losses()
    assert sent(losses, temperature=asked)["temperature"] == told
    assert losses.real == lost
    assert losses.all == ("temperature",)


@pytest.mark.parametrize(
    ("choice", "tools", "lost"), [("auto", True, ()), ("none", False, ()), ("required", True, ("tool_choice",))]
)
def test_a_tool_cannot_be_forced(choice: str, tools: bool, lost: tuple[str, ...]) -> None:
    losses = Losses()
    made = sent(losses, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    assert ("functions" in made) is tools
    assert losses.real == lost


def test_what_cannot_be_said_is_reported() -> None:
    losses = Losses()
    sent(
        losses,
        stop="。",
        seed=1,
        user="u",
        reasoning_effort="low",
        response_format={"type": "json_object"},
        messages=[
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://p.test/a"}}]},
            {"role": "assistant", "name": "n", "content": "ok", "reasoning_content": "想"},
        ],
    )
    assert losses.real == ("messages[0].image", "stop", "seed", "response_format")
    hints = {"messages[1].name", "messages[1].thinking", "user", "reasoning_effort"}
    assert set(losses.all) - set(losses.real) == hints


def test_where_it_goes() -> None:
    assert VENDOR.path("m", True, {}) == "/text/chatcompletion_pro"
