"""Requests for Qianfan's first version, held against the fields that its own package knows."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.canon.request import Request
from proxy.dialects.baidu import VENDOR
from proxy.dialects.baidu.send import send_baidu
from proxy.dialects.base import Losses
from proxy.dialects.openai.parse import parse_chat

# Every optional and required key of a chat model in qianfan 0.4.12.3 (`QfLLMInfo`).
KEYS = {
    *("messages", "stream", "temperature", "top_p", "top_k", "penalty_score", "frequency_penalty", "presence_penalty"),
    *("functions", "tools", "tool_choice", "system", "user_id", "stop", "disable_search", "enable_citation"),
    *("enable_trace", "enable_system_memory", "system_memory_id", "max_output_tokens", "min_output_tokens"),
    *("response_format", "user_setting", "extra_parameters"),
}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "天気", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "get_time"}},
]


def sent(losses: Losses | None = None, **body: object) -> dict[str, Any]:
    asked = parse_chat({"model": "alias", "messages": [{"role": "user", "content": "سلام"}], **body})
    assert isinstance(asked, Request)
    made = send_baidu(asked, "ernie-4.0-8k", losses if losses is not None else Losses(), {})
    assert set(made) <= KEYS
    return made


def call(identity: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_whole_conversation() -> None:
    """Speakers alternate; two calls at once are told one after the other, with their results as objects."""
    losses = Losses()
    made = sent(
        losses,
        messages=[
            {"role": "system", "content": "短く"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "想",
                "tool_calls": [call("c1", "get_weather", '{"city":"تهران"}'), call("c2", "get_time", "")],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "21°"},
            {"role": "tool", "tool_call_id": "c2", "content": '{"time":"8:00"}'},
        ],
        stream=True,
        tools=TOOLS,
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        stop="。",
        user="u",
        repetition_penalty=1.2,
        response_format={"type": "json_object"},
    )

    assert made == {
        "messages": [
            {"role": "user", "content": "a\nb"},
            {
                "role": "assistant",
                "content": "",
                "function_call": {"name": "get_weather", "arguments": '{"city":"تهران"}', "thoughts": "想"},
            },
            {"role": "function", "name": "get_weather", "content": '{"result":"21°"}'},
            {"role": "assistant", "content": "", "function_call": {"name": "get_time", "arguments": "{}"}},
            {"role": "function", "name": "get_time", "content": '{"time":"8:00"}'},
        ],
        "system": "短く",
        "stream": True,
        **{"temperature": 0.5, "top_p": 0.9, "stop": ["。"], "max_output_tokens": 9, "user_id": "u"},
        "penalty_score": 1.2,
        "functions": [
            {"name": "get_weather", "description": "天気", "parameters": {"type": "object"}},
            {"name": "get_time", "description": "get_time", "parameters": {"type": "object", "properties": {}}},
        ],
        "response_format": "json_object",
    }
    assert losses.all == ()
    assert len(made["messages"]) % 2 == 1


@pytest.mark.parametrize(
    ("asked", "told", "lost"), [(0, 0.01, ("temperature",)), (1, 1, ()), (1.5, 1.0, ("temperature",))]
)
def test_temperature_goes_from_above_zero_to_one(asked: float, told: float, lost: tuple[str, ...]) -> None:
    """0 is brought in, which means the same; what is hotter than it can be is a loss."""
    losses = Losses()
    assert sent(losses, temperature=asked)["temperature"] == told
    assert losses.all == lost
    assert losses.real == (lost if asked > 1 else ())


@pytest.mark.parametrize(
    ("choice", "told", "lost"),
    [
        ("auto", {"functions"}, ()),
        ("none", set(), ()),
        ("required", {"functions"}, ("tool_choice",)),
        ({"type": "function", "function": {"name": "get_time"}}, {"functions", "tool_choice"}, ()),
    ],
)
def test_which_tool(choice: object, told: set[str], lost: tuple[str, ...]) -> None:
    losses = Losses()
    made = sent(losses, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    assert set(made) & {"functions", "tool_choice"} == told
    assert losses.real == lost


def test_what_cannot_be_said_is_reported() -> None:
    losses = Losses()
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    made = sent(
        losses,
        seed=1,
        n=2,
        reasoning_effort="low",
        response_format=schema,
        messages=[
            {"role": "user", "name": "n", "content": [{"type": "image_url", "image_url": {"url": "https://p.test/a"}}]},
            {"role": "assistant", "content": "ok", "reasoning_content": "想"},
            {"role": "system", "content": "c"},
        ],
    )
    assert made["messages"][-1] == {"role": "user", "content": "c"}
    assert losses.real == ("messages[0].image", "seed", "n", "response_format")
    hints = {"messages[0].name", "messages[1].thinking", "messages[2].role", "reasoning_effort"}
    assert set(losses.all) - set(losses.real) == hints


def test_the_model_is_in_the_path_and_the_token_in_the_query() -> None:
    assert VENDOR.path("completions_pro", True, {}) == "/chat/completions_pro"
    assert VENDOR.path("a/../b?c", True, {}) == "/chat/a%2F..%2Fb%3Fc"
    assert VENDOR.key_query == "access_token"
