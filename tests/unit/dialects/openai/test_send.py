"""Requests of other families as chat completions that every vendor of the family takes (contract Q1)."""

from __future__ import annotations

import pytest

from proxy.canon.request import (
    Document,
    Format,
    Image,
    Message,
    Native,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from proxy.dialects.base import Losses, Ways
from proxy.dialects.openai.send import send_chat
from proxy.dialects.seals import ANTHROPIC

LOOSE = {"type": "object", "properties": {"a": {"type": "string"}}}
PICTURE = Image("image/png", "AAAA")


def send(*messages: Message, ways: Ways | None = None, **fields: object) -> tuple[dict[str, object], Losses]:
    losses = Losses()
    made: dict[str, object] = {"client": "messages", "model": "m", "messages": messages, **fields}
    return send_chat(Request(**made), "m", losses, ways or {}), losses  # type: ignore[arg-type]  # a test's fields


def said(*messages: Message, ways: Ways | None = None) -> object:
    return send(*messages, ways=ways)[0]["messages"]


def test_nothing_stands_between_the_results_of_parallel_calls() -> None:
    """Pictures follow behind all of them; documents that are text are text."""
    body, losses = send(
        Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"))),
        Message("tool", (ToolResult("a", (Text("را"), PICTURE)), ToolResult("b", (Document(text="文", name="t"),)))),
        Message("user", (Text("و؟"),)),
    )

    assert losses.all == ()
    assert body["messages"] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ("a", "b")
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "را"},
        {"role": "tool", "tool_call_id": "b", "content": "t\n文"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What the tool call a gave:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
        {"role": "user", "content": "و؟"},
    ]


def test_pictures_of_the_last_results_are_shown_too() -> None:
    made = said(Message("tool", (ToolResult("a", (PICTURE,)),)), Message("tool", (ToolResult("b", (PICTURE,)),)))
    assert isinstance(made, list)
    assert [message["role"] for message in made] == ["tool", "tool", "user"]
    assert len(made[2]["content"]) == 4


def test_texts_alone_are_one_string_and_instructions_the_systems() -> None:
    """Several vendors refuse lists there, and few know developers."""
    cache = {"type": "ephemeral"}
    assert said(
        Message("system", (Text("a", cache), Text("b"))),
        Message("developer", (Text("c"),)),
        Message("user", (Text("d"), Text("e"))),
        Message("user", (Text("f"), PICTURE)),
    ) == [
        {"role": "system", "content": "a\nb"},
        {"role": "system", "content": "c"},
        {"role": "user", "content": "d\ne"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "f"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
    ]


def test_an_assistant_that_says_nothing_is_left_out() -> None:
    """A null content is refused, where there is no call."""
    user = Message("user", (Text("?"),))
    assert said(user, Message("assistant", ()), user) == [{"role": "user", "content": "?"}] * 2
    thought = Message("assistant", (Thinking("想"),))
    assert said(thought) == [{"role": "assistant", "content": "", "reasoning_content": "想"}]
    assert said(thought, ways={"reasoning": None}) == []


def test_seals_go_only_to_those_who_take_them() -> None:
    thought = Message("assistant", (Thinking("想", "seal", format=ANTHROPIC), Text("a")))
    body, losses = send(thought, ways={"reasoning": "reasoning", "reasoning_details": None})
    assert body["messages"] == [{"role": "assistant", "content": "a", "reasoning": "想"}]
    assert (losses.real, losses.all) == ((), ("messages[0].thinking",))


def test_ids_keep_to_the_familys_lengths() -> None:
    """Of a call, both times; of a user."""
    long = "toolu_" + "x" * 60
    body, losses = send(
        Message("assistant", (ToolCall(long, "f", "{}"),)), Message("tool", (ToolResult(long, ()),)), user="u" * 150
    )
    messages, user = body["messages"], body["user"]
    assert isinstance(messages, list) and isinstance(user, str)
    told = messages[0]["tool_calls"][0]["id"]
    assert (len(told), messages[1]["tool_call_id"], len(user)) == (40, told, 64)
    assert losses.all == ("user",)


@pytest.mark.parametrize(("client", "strict"), [("messages", None), ("responses", True)])
def test_strict_is_said_where_it_would_be_taken(client: str, strict: bool | None) -> None:
    """Anthropic's clients call schemas strict that OpenAI's strict mode refuses."""
    body, losses = send(tools=(Tool("f", "d", LOOSE, True),), format=Format(LOOSE, "n", True), client=client)
    told = {} if strict is None else {"strict": strict}
    function = {"name": "f", "description": "d", "parameters": LOOSE, **told}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "n", "schema": LOOSE, **told}}
    assert losses.all == (("tools.strict", "response_format.strict") if strict is None else ())


def test_what_has_no_place_among_results_is_told() -> None:
    _, losses = send(Message("tool", (ToolResult("a", ()), Native("responses", "input_image", {})), at=3))
    assert losses.real == ("messages[3].input_image",)
