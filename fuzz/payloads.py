"""JSON as vendors send it, and as they should not: what stands in one event, decided by a `Draw`.

In: decisions. Out: bytes of one payload, mostly a chat.completion.chunk with one field too odd.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fuzz.draw import Draw

TEXTS: Final = (
    "", " ", "a", "Hello", "سلام", "حالِ", "م", "\u064f", "\u200c", "你好", "안", "ᄒ", "ᅡ", "न", "म", "\u094d",
    "स्", "e", "\u0301", "👩", "\u200d", "👧", "🏽", "🇮", "🇷", "\ud83d", "\ude00", "\U0001f600", "\ufffd", "\u2028",
    "\x00", "```", "```json\n", "{", '{"a":1}', "\n```", "<think>", "\r\n\r\n", "data: x", "[DONE]", "a" * 300,
    "خ" * 200,
)  # fmt: skip
_FINISHES: Final[tuple[object, ...]] = (
    None, None, "stop", "length", "tool_calls", "content_filter", "function_call", "", "eos", "sensitive", "abort",
    "error", "network_error", "insufficient_system_resource", 7, {}, "end_turn",
)  # fmt: skip
ODD: Final[tuple[object, ...]] = (
    None, True, False, 0, -1, 1, 2**53, 2**70, 1.5, 1e308, "", "x", "0", [], {}, [[]], [None], {"": None},
    [{"type": "text"}], [{"type": "text", "text": "hi"}], {"code": 429}, {"error": {}}, "\ud83d",
)  # fmt: skip


def chunk_bytes(delta: object, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1_772_000_000, "model": "m-1"}
    return _dump({**head, "choices": [choice], **more}, half_as_is=False)


def quoted(text: str) -> bytes:
    """The inside of a JSON string; half surrogates escaped, as vendors write them."""
    return _dump(text, half_as_is=False)[1:-1]


def _dump(value: object, *, half_as_is: bool) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not half_as_is:
        text = "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text.encode("utf-8", "surrogatepass")


def payload_of(draw: Draw) -> bytes:
    value = _value(draw)
    text = _dump(value, half_as_is=draw.below(16) == 15)
    match draw.below(16):
        case 13:
            return text[: draw.below(len(text) + 1)]
        case 14:
            return text + b" \t"
        case 15:
            return json.dumps(value, indent=1).encode().replace(b"\n", b"\ndata: ")
        case _:
            return text


def _value(draw: Draw) -> object:
    match draw.below(12):
        case 0:
            return _odd(draw)
        case 1:
            return {"error": _error(draw), **({"choices": [_choice(draw)]} if draw.flag() else {})}
        case 2:
            return {**_head(draw), "choices": [], "usage": _usage(draw)}
        case 3:
            return draw.pick(({"type": "ping"}, {"code": 1301, "msg": "x"}, {"message": "no", "status_code": 500}, {}))
        case 4:
            return {**_head(draw), "choices": _odd(draw)}
        case _:
            return _answer_chunk(draw)


def _answer_chunk(draw: Draw) -> object:
    choices = [_choice(draw) for _ in range(draw.pick((1, 1, 1, 1, 2, 3)))]
    value = {**_head(draw), "choices": choices}
    if draw.below(8) == 7:
        value["usage"] = _usage(draw)
    if draw.below(8) == 7:
        value[draw.pick(("system_fingerprint", "x_groq", "citations", "error", "object", "usage", "id"))] = _odd(draw)
    return value


def _head(draw: Draw) -> dict[str, object]:
    head: dict[str, object] = {"id": "c-1", "object": "chat.completion.chunk", "created": 1_772_000_000, "model": "m-1"}
    if draw.below(6) == 5:
        head[draw.pick(("id", "created", "model", "object"))] = _odd(draw)
    if draw.below(6) == 5:
        del head[draw.pick(("id", "created", "model", "object"))]
    return head


def _choice(draw: Draw) -> object:
    if draw.below(16) == 15:
        return _odd(draw)
    choice: dict[str, object] = {
        "index": draw.pick((0, 0, 0, 0, 0, 1, 2)) if draw.below(8) < 7 else _odd(draw),
        draw.pick(("delta", "delta", "delta", "delta", "message")): _delta(draw),
        "finish_reason": draw.pick(_FINISHES) if draw.below(3) == 2 else None,
    }
    if draw.below(8) == 7:
        choice[draw.pick(("logprobs", "content_filter_results", "matched_stop", "usage", "index"))] = draw.pick(
            (_odd(draw), {"content": [{"token": "a", "logprob": -0.5}]})
        )
    return choice


def _delta(draw: Draw) -> object:
    delta: dict[str, object] = {}
    for _ in range(draw.pick((1, 1, 1, 2, 3, 0))):
        match draw.below(10):
            case 0:
                delta["role"] = draw.pick(("assistant", "assistant", "", "user", None, 1))
            case 1:
                delta["reasoning_content"] = draw.pick(TEXTS)
            case 2:
                delta[draw.pick(("reasoning", "refusal"))] = draw.pick(TEXTS)
            case 3:
                delta["tool_calls"] = [_fragment(draw) for _ in range(draw.pick((1, 1, 2, 0)))]
            case 4:
                delta[draw.pick(("content", "tool_calls", "annotations", "audio", "function_call"))] = _odd(draw)
            case _:
                delta["content"] = draw.pick(TEXTS)
    return delta if draw.below(16) < 15 else _odd(draw)


def _fragment(draw: Draw) -> object:
    call: dict[str, Any] = {"index": draw.pick((0, 0, 0, 1, 2)), "function": {"arguments": _arguments(draw)}}
    match draw.below(8):
        case 0:
            call.pop("index")
        case 1:
            call["index"] = _odd(draw)
        case 2:
            call["function"] = _odd(draw)
        case 3:
            return _odd(draw)
        case 4:
            del call["function"]
            call["custom"] = {"name": draw.pick(("grep", "", None)), "input": draw.pick(TEXTS)}
            call["type"] = draw.pick(("custom", "function", None))
        case _:
            pass
    if draw.flag():
        call["id"] = draw.pick(("call_1", "call_2", "", None, 5))
        call.setdefault("type", "function")
        if isinstance(call.get("function"), dict):
            call["function"]["name"] = draw.pick(("lookup", "look", "up", "", None, "جستجو"))
    return call


def _arguments(draw: Draw) -> object:
    return draw.pick(
        ("", "{", '{"q":"', "سل", "ام", '"}', "{}", '{"q":1}', "\ud83d", "\ude00", "👩\u200d", None, {"q": 1}, [], " ")
    )


def _error(draw: Draw) -> object:
    known: tuple[object, ...] = (
        "overloaded",
        {"message": "slow down", "type": "rate_limit_error", "code": 429},
        {"message": "bad key", "code": "invalid_api_key"},
        {"message": "filtered", "code": "content_filter", "param": None},
        {"code": 1301, "message": "不安全或敏感内容"},
        {"message": {"detail": ["x"]}},
    )
    return draw.pick(known) if draw.below(4) < 3 else _odd(draw)


def _usage(draw: Draw) -> object:
    usage: dict[str, object] = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    if draw.below(3) == 2:
        name = draw.pick(("prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"))
        usage[name] = _odd(draw)
    return usage if draw.below(8) < 7 else _odd(draw)


def _odd(draw: Draw) -> Any:
    return draw.pick(ODD)
