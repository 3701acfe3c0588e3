"""One conversation, as each client dialect writes it, and as a canonical request.

System prompt, an image, reasoning, two parallel tool calls with their results, tools, sampling: everything that must
survive the way from any client to any vendor. Each value in it is unlike every other, so that a test can look for it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYSTEM: Final = "به فارسی و کوتاه پاسخ بده"
QUESTION: Final = "这张图片里是什么？天气如何？"
THOUGHT: Final = "मुझे दोनों उपकरण चाहिए"
SAID: Final = "Ich sehe nach 👩‍👧"
FOLLOW_UP: Final = "คำถามสุดท้าย"
CALLS: Final = (
    ("call_weather1", "get_weather", {"city": "東京", "days": 2}),
    ("call_clock2", "get_time", {"zone": "Asia/Tehran"}),
)
RESULTS: Final = (("call_weather1", "晴れ 21°C"), ("call_clock2", "۱۲:۳۰"))
SCHEMAS: Final = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Ciudad"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
    "get_time": {"type": "object", "properties": {"zone": {"type": "string"}}},
}
DESCRIPTIONS: Final = {"get_weather": "Погода в городе", "get_time": "現在時刻"}
MAX_TOKENS: Final = 1237
TEMPERATURE: Final = 0.375
STOP: Final = "⟂Ende"
IMAGE_URL: Final = f"data:image/png;base64,{PNG}"


def chat(model: str = "m") -> dict[str, Any]:
    calls = [
        {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for identity, name, arguments in CALLS
    ]
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": SYSTEM},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": QUESTION},
                    {"type": "image_url", "image_url": {"url": IMAGE_URL}},
                ],
            },
            {"role": "assistant", "content": SAID, "reasoning_content": THOUGHT, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": identity, "content": text} for identity, text in RESULTS),
            {"role": "user", "content": FOLLOW_UP},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": name, "description": DESCRIPTIONS[name], "parameters": schema},
            }
            for name, schema in SCHEMAS.items()
        ],
        "tool_choice": "auto",
        "max_tokens": MAX_TOKENS,
        "temperature": TEMPERATURE,
        "stop": [STOP],
    }


def messages(model: str = "m") -> dict[str, Any]:
    return {
        "model": model,
        "system": SYSTEM,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": QUESTION},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": THOUGHT, "signature": "c2VhbA=="},
                    {"type": "text", "text": SAID},
                    *(
                        {"type": "tool_use", "id": identity, "name": name, "input": arguments}
                        for identity, name, arguments in CALLS
                    ),
                ],
            },
            {
                "role": "user",
                "content": [
                    *({"type": "tool_result", "tool_use_id": identity, "content": text} for identity, text in RESULTS),
                    {"type": "text", "text": FOLLOW_UP},
                ],
            },
        ],
        "tools": [
            {"name": name, "description": DESCRIPTIONS[name], "input_schema": schema}
            for name, schema in SCHEMAS.items()
        ],
        "tool_choice": {"type": "auto"},
        "max_tokens": MAX_TOKENS,
        "temperature": TEMPERATURE,
        "stop_sequences": [STOP],
    }


def responses(model: str = "m") -> dict[str, Any]:
    """This API has no stop words."""
    return {
        "model": model,
        "instructions": SYSTEM,
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": QUESTION},
                    {"type": "input_image", "image_url": IMAGE_URL, "detail": "auto"},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": THOUGHT}]},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": SAID, "annotations": []}],
            },
            *(
                {"type": "function_call", "call_id": identity, "name": name, "arguments": json.dumps(arguments)}
                for identity, name, arguments in CALLS
            ),
            *({"type": "function_call_output", "call_id": identity, "output": text} for identity, text in RESULTS),
            {"role": "user", "content": [{"type": "input_text", "text": FOLLOW_UP}]},
        ],
        "tools": [
            {"type": "function", "name": name, "description": DESCRIPTIONS[name], "parameters": schema, "strict": False}
            for name, schema in SCHEMAS.items()
        ],
        "tool_choice": "auto",
        "max_output_tokens": MAX_TOKENS,
        "temperature": TEMPERATURE,
    }


CONVERSATIONS: Final = {"chat": chat, "messages": messages, "responses": responses}


def facts() -> dict[str, object]:
    """What must be found again in a vendor's request, by the name under which its loss is told."""
    return {
        "system": SYSTEM,
        "question": QUESTION,
        "image": PNG,
        "thinking": THOUGHT,
        "said": SAID,
        "call 1": CALLS[0][2],
        "call 2": CALLS[1][2],
        "tool 1": CALLS[0][1],
        "tool 2": CALLS[1][1],
        "result 1": RESULTS[0][1],
        "result 2": RESULTS[1][1],
        "schema 1": SCHEMAS["get_weather"],
        "schema 2": SCHEMAS["get_time"],
        "description 1": DESCRIPTIONS["get_weather"],
        "description 2": DESCRIPTIONS["get_time"],
        "follow-up": FOLLOW_UP,
        "max_tokens": MAX_TOKENS,
        "temperature": TEMPERATURE,
        "stop": STOP,
    }


def holds(value: object, fact: object) -> bool:
    """Does the JSON hold the fact: a text within a text, an object or a number as a value, or as JSON inside a text?"""
    return any(_is_it(one, fact) for one in _values(value))


def _values(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _values(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _values(one)


def _inside(text: str) -> object:
    """JSON, or a text in base64, that a text is."""
    try:
        return json.loads(text) if text[:1] in "{[" else base64.b64decode(text, validate=True).decode()
    except ValueError:
        return None


def _is_it(one: object, fact: object) -> bool:
    if isinstance(one, str) and (inner := _inside(one)) is not None:
        return holds(inner, fact) or (isinstance(fact, str) and fact in one)
    if isinstance(fact, str):
        return isinstance(one, str) and fact in one
    return type(one) is type(fact) and one == fact
