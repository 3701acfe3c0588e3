"""One body for a client that asked for one: the vendor's made right, or built from the pieces of a stream."""

from __future__ import annotations

import orjson
import pytest

from proxy.dialects.openai.body import completion_choice, patch_completion
from tests.support.strategies import encode


def patched(body: object, finishes: dict[int, str] | None = None) -> dict[str, object]:
    identity = {"id": "chatcmpl-ours", "object": "chat.completion", "created": 9, "model": "asked"}
    raw = body if isinstance(body, bytes) else encode(body)
    data = patch_completion(raw, identity, finishes or {}, {"total_tokens": 1}, lambda index, text: text, "5eed")
    value = orjson.loads(data)
    assert isinstance(value, dict)
    return value


def message_of(answer: dict[str, object]) -> dict[str, object]:
    choices = answer["choices"]
    assert isinstance(choices, list)
    message = choices[0]["message"]
    assert isinstance(message, dict)
    return message


def message(choice: object) -> dict[str, object]:
    return message_of(patched({"choices": [choice]}))


@pytest.mark.clause("W4")
def test_unknown_fields_stay_and_the_rest_is_made_right() -> None:
    """Identity, object, usage, index and finish are ours to say; citations and filter results the vendor's."""
    body = {
        "object": "chat.completion.chunk",
        "citations": ["https://example.org"],
        "choices": [
            {"message": {"content": "سلام"}, "finish_reason": "eos", "usage": {}, "content_filter_results": {}}
        ],
    }
    assert patched(body, {0: "length"}) == {
        "id": "chatcmpl-ours",
        "object": "chat.completion",
        "created": 9,
        "model": "asked",
        "citations": ["https://example.org"],
        "usage": {"total_tokens": 1},
        "choices": [
            {
                "finish_reason": "length",
                "content_filter_results": {},
                "index": 0,
                "message": {"content": "سلام", "role": "assistant"},
            }
        ],
    }


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"message": {"content": None}}, {"content": None, "role": "assistant"}),
        ({"message": {"content": "\ud83d"}}, {"content": "\ufffd", "role": "assistant"}),
        ({"message": {"role": "model"}}, {"content": None, "role": "assistant"}),
        ({"delta": {"content": "é"}}, {"content": "é", "role": "assistant"}),
        ({"delta": {"content": ""}, "message": {"content": "é"}}, {"content": "é", "role": "assistant"}),
        ({}, {"content": None, "role": "assistant"}),
        (
            {"message": {"content": [{"type": "thinking", "thinking": "想"}, {"type": "text", "text": "好"}]}},
            {"content": "好", "reasoning_content": "想", "role": "assistant"},
        ),
        ({"message": {"content": "", "tool_calls": []}}, {"content": "", "role": "assistant"}),
        ({"message": {"content": "", "tool_calls": "x"}}, {"content": "", "role": "assistant"}),
    ],
)
def test_messages_are_made_right(choice: dict[str, object], told: dict[str, object]) -> None:
    """Content is text or null, the role is the assistant's, an empty list of calls is none."""
    assert message(choice) == told


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            {"id": "a", "function": {"name": "天气", "arguments": "{}"}},
            {"id": "a", "function": {"name": "天气", "arguments": "{}"}, "type": "function"},
        ),
        ({"function": {"arguments": None}}, {"function": {"arguments": "{}"}, "id": "call_5eed0", "type": "function"}),
        (
            {"id": "", "function": {"arguments": " "}},
            {"id": "call_5eed0", "function": {"arguments": "{}"}, "type": "function"},
        ),
        (
            {"id": 7, "function": {"arguments": {"città": 1}}},
            {"id": "7", "function": {"arguments": '{"città":1}'}, "type": "function"},
        ),
        ({"id": [[]]}, {"id": "[[]]", "type": "function", "function": {"arguments": "{}"}}),
    ],
)
def test_calls_are_made_right(call: dict[str, object], told: dict[str, object]) -> None:
    """An id, a type, and arguments that parse."""
    assert message({"message": {"content": None, "tool_calls": [call, None]}}) == {
        "content": None,
        "tool_calls": [told],
        "role": "assistant",
    }


@pytest.mark.parametrize(
    "body", [[], 5, "x", None, {}, {"choices": None}, {"choices": {}}, {"choices": [None, 5, "x"]}]
)
def test_no_body_raises(body: object) -> None:
    """Whatever stood where choices should be."""
    assert patched(body)["choices"] == []


@pytest.mark.clause("W3", "W4")
@pytest.mark.parametrize("depth", [200, 1000])
def test_deep_bodies_do_not_raise(depth: int) -> None:
    """orjson reads 1,024 levels and writes 254: beyond that an unknown field becomes null somewhere inside."""
    deep = b"[" * depth + b"]" * depth
    body = b'{"choices":[{"message":{"content":"a","tool_calls":[{"id":%b}]}}],"deep":%b}' % (deep, deep)

    assert patched(body)["object"] == "chat.completion"
    assert message_of(patched(body))["content"] == "a"


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("texts", "calls", "told"),
    [
        ({"content": "سلام"}, [], {"role": "assistant", "content": "سلام"}),
        ({}, [], {"role": "assistant", "content": ""}),
        ({"reasoning": "想"}, [], {"role": "assistant", "content": "", "reasoning": "想"}),
        ({"refusal": "no"}, [], {"role": "assistant", "content": None, "refusal": "no"}),
        (
            {},
            [("a", "天气", "{}", {"extra_content": 1})],
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "天气", "arguments": "{}"}, "extra_content": 1}
                ],
            },
        ),
    ],
)
def test_a_choice_is_built_from_its_pieces(
    texts: dict[str, str], calls: list[tuple[str, str, str, dict[str, object]]], told: dict[str, object]
) -> None:
    """Content is null only where something else is said instead."""
    choice = completion_choice(2, texts, calls, "stop", None, {}, {"seed": 1})
    assert choice == {"seed": 1, "index": 2, "message": told, "logprobs": None, "finish_reason": "stop"}
