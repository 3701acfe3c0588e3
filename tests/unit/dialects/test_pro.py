"""MiniMax's chatcompletion_pro as chat completions: nothing is said twice, and nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proxy.dialects.pro import ProAnswer


def event(text: str, *, reply: str = "", finish: str | None = None, **more: object) -> dict[str, object]:
    message = {"sender_type": "BOT", "sender_name": "B", "text": text}
    choice: dict[str, object] = {"messages": [message]}
    if finish is not None:
        choice["finish_reason"] = finish
    return {"created": 1, "model": "abab", "reply": reply, "choices": [choice], **more}


def told(*events: Mapping[str, object]) -> list[object]:
    """The increments of one answer."""
    answer = ProAnswer()
    chats = [answer.as_chat(one) for one in events]
    return [chat["choices"][0]["delta"]["content"] for chat in chats if chat is not None]  # type: ignore[index]  # as it is made


@pytest.mark.clause("W4")
def test_the_last_event_says_nothing_again() -> None:
    assert told(event("سلام "), event("दुनिया"), event("سلام दुनिया", reply="سلام दुनिया", finish="stop")) == [
        "سلام ",
        "दुनिया",
        "",
    ]


@pytest.mark.clause("W4")
def test_where_nothing_was_streamed_the_last_event_is_the_answer() -> None:
    assert told(event("همه", reply="همه", finish="stop")) == ["همه"]


def test_what_the_last_event_adds_is_said() -> None:
    assert told(event("水到"), event("水到渠成", reply="水到渠成", finish="stop")) == ["水到", "渠成"]


def test_a_whole_text_in_other_words_is_not_said_after_the_first() -> None:
    """The vendor masks what looks private when it says all again."""
    assert told(event("a@b.test"), event("***", reply="***", finish="stop")) == ["a@b.test", ""]


def test_a_last_event_without_a_reply_may_be_one_more_increment() -> None:
    assert told(event("ab"), event("cd", finish="stop")) == ["ab", "cd"]
    assert told(event("ab"), event("ab", finish="stop")) == ["ab", ""]


def test_a_call_is_made_once() -> None:
    """With the arguments as they came, though the last event has it too."""
    call = {"name": "f", "arguments": "{}"}
    message = {"sender_type": "BOT", "text": "", "function_call": call}
    answer = ProAnswer()
    first = answer.as_chat({"reply": "", "choices": [{"messages": [message]}]})
    last = answer.as_chat({"reply": "", "choices": [{"finish_reason": "stop", "messages": [message]}]})

    assert first is not None and last is not None
    assert first["choices"] == [
        {
            "index": 0,
            "delta": {"content": "", "tool_calls": [{"index": 0, "function": call}]},
            "finish_reason": None,
        }
    ]
    assert last["choices"] == [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]


def test_what_a_plugin_said_is_not_the_answer() -> None:
    messages = [{"sender_type": "FUNCTION", "text": "result"}, {"sender_type": "BOT", "text": "so"}]
    assert told({"reply": "", "choices": [{"messages": messages}]}) == ["so"]


@pytest.mark.clause("W5")
@pytest.mark.parametrize("flag", ["input_sensitive", "output_sensitive"])
def test_flags_of_the_moderation_are_a_finish_only_where_nothing_was_said(flag: str) -> None:
    blocked = ProAnswer().as_chat({**event("", finish="stop"), flag: True})
    let_through = ProAnswer().as_chat({**event("ok", reply="ok", finish="stop"), flag: True})
    assert blocked is not None and blocked["choices"][0]["finish_reason"] == "content_filter"  # type: ignore[index]
    assert let_through is not None and let_through["choices"][0]["finish_reason"] == "stop"  # type: ignore[index]


@pytest.mark.parametrize(
    "value", [{}, {"reply": "a"}, {"choices": None}, {"choices": [{"delta": {}}]}, {"choices": [{"messages": "a"}]}]
)
def test_every_other_payload_is_left_alone(value: dict[str, object]) -> None:
    assert ProAnswer().as_chat(value) is None
