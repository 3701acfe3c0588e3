"""What vendors of every family say, one event at a time, and as they should not: decided by a `Draw`.

In: a vendor dialect and decisions. Out: bytes of one frame in that family's framing. A payload is one that the family
really sends, in which a field or two may be missing, of another type, or somebody else's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fuzz.draw import Draw
from fuzz.payloads import ODD, TEXTS, payload_of
from tests.support.eventstream import event, exception, message

#: An event's name, if it has one, and its payload; `@` stands for a text to be drawn, `#` for a finish.
Said = tuple[str | None, Any]

_CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": "@"}}
_FLAT_ERRORS: Final[tuple[Said, ...]] = (
    (None, {"message": "too many requests"}),
    ("error", {"code": "Throttling", "message": "slow down", "request_id": "r"}),
    (None, {"error": "overloaded"}),
    ("error", "boom"),
)


def _typed(*payloads: dict[str, Any]) -> tuple[Said, ...]:
    return tuple((payload["type"], payload) for payload in payloads)


_ANTHROPIC: Final = _typed(
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c",
        "content": [], "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "f",
        "input": {}}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "QQ=="}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "server_tool_use", "id": "s", "name": "w",
        "input": {}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "@"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "@"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "@"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"cited_text": "@"}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "@"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "#", "stop_sequence": None}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
    {"type": "ping"},
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    {"type": "message", "content": [{"type": "text", "text": "@"}], "stop_reason": "#"},
)  # fmt: skip
_MESSAGE: Final = {"id": "msg_1", "type": "message", "role": "assistant", "content": [
    {"type": "output_text", "text": "@", "annotations": []}]}  # fmt: skip
_FUNCTION: Final = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "@"}
_RESPONSE: Final = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
    "output": [_MESSAGE, _FUNCTION], "usage": {"input_tokens": 3, "output_tokens": 4}, "error": None}  # fmt: skip
_RESPONSES: Final = _typed(
    {"type": "response.created", "response": {**_RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.in_progress", "response": {**_RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**_MESSAGE, "content": []}},
    {"type": "response.output_item.added", "output_index": 1, "item": {**_FUNCTION, "arguments": ""}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"id": "rs", "type": "reasoning", "summary": []}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "@"},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "@"},
    {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "item_id": "msg_1", "text": "@"},
    {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "@"},
    {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1, "part": {}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "@"},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": "@"},
    {"type": "response.function_call_arguments.done", "output_index": 1, "item_id": "fc_1", "arguments": "@"},
    {"type": "response.output_item.done", "output_index": 0, "item": _MESSAGE},
    {"type": "response.output_item.done", "output_index": 1, "item": _FUNCTION},
    {"type": "response.output_item.done", "output_index": 0, "item": {"id": "rs", "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "@"}], "encrypted_content": "QQ=="}},
    {"type": "response.web_search_call.searching", "output_index": 2, "item_id": "ws"},
    {"type": "response.completed", "response": _RESPONSE},
    {"type": "response.completed", "response": {**_RESPONSE, "output": []}},
    {"type": "response.incomplete", "response": {**_RESPONSE, "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"}}},
    {"type": "response.failed", "response": {**_RESPONSE, "status": "failed", "error": {"code": "server_error"}}},
    {"type": "error", "code": "server_error", "message": "boom", "param": None},
)  # fmt: skip
_CANDIDATE: Final = {"content": {"role": "model", "parts": [{"text": "@"}]}, "index": 0}
_TOKENS: Final = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
_GEMINI: Final[tuple[Said, ...]] = (
    (None, {"candidates": [_CANDIDATE], "modelVersion": "g", "responseId": "r"}),
    (None, {"candidates": [_CANDIDATE], "usageMetadata": _TOKENS}),
    (None, {"candidates": [{**_CANDIDATE, "finishReason": "#"}], "usageMetadata": _TOKENS}),
    (None, {"candidates": [{"content": {"parts": [{"text": "@", "thought": True}, {"text": "@"}]}}]}),
    (None, {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"q": "@"}}},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "QQ=="}]}}]}),
    (None, {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "QQ=="}]}, "finishReason": "#"}]}),
    (None, {"candidates": [{"content": {"parts": [{"executableCode": {"code": "1"}}]}}]}),
    (None, {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": _TOKENS}),
    (None, {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}),
    (None, [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}]),
)  # fmt: skip
_BEDROCK: Final[tuple[Said, ...]] = (
    ("messageStart", {"role": "assistant", "p": "ab"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "@"}, "p": "abc"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "@"}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "@"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "s"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": "QQ=="}}}),
    ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "@"}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("messageStop", {"stopReason": "#"}),
    ("metadata", {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, "metrics": {"latencyMs": 1}}),
    ("throttlingException", {"message": "Too many tokens"}),
    (None, {"internalServerException": {"message": "x"}}),
)


def _cohere(kind: str, message: object, **more: object) -> dict[str, Any]:
    return {"type": kind, "index": 0, "delta": {"message": message}, **more}


_COHERE: Final = (
    *_typed(
        _cohere("message-start", {"role": "assistant"}, id="c"),
        _cohere("content-start", {"content": {"type": "text", "text": ""}}),
        _cohere("content-delta", {"content": {"text": "@"}}),
        _cohere("content-delta", {"content": {"text": "@"}}),
        _cohere("content-delta", {"content": {"thinking": "@"}}),
        _cohere("content-end", {}),
        _cohere("tool-plan-delta", {"tool_plan": "@"}),
        _cohere("tool-call-start", {"tool_calls": _CALL}),
        _cohere("tool-call-delta", {"tool_calls": {"function": {"arguments": "@"}}}),
        _cohere("citation-start", {"citations": {"start": 0, "end": 1, "text": "@"}}),
        {"type": "message-end", "delta": {"finish_reason": "#", "usage": {"tokens": {"input_tokens": 3.0}}}},
        {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "boom"}},
    ),
    (None, {"id": "c", "message": {"role": "assistant", "content": [{"type": "text", "text": "@"}]},
        "finish_reason": "#"}),
    *_FLAT_ERRORS,
)  # fmt: skip
_OLLAMA: Final[tuple[Said, ...]] = (
    (None, {"model": "o", "message": {"role": "assistant", "content": "@"}, "done": False}),
    (None, {"model": "o", "message": {"role": "assistant", "content": "@"}, "done": False}),
    (None, {"model": "o", "message": {"role": "assistant", "content": "", "thinking": "@"}, "done": False}),
    (None, {"message": {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"q": "@"}}}]}}),
    (None, {"message": {"content": ""}, "done": True, "done_reason": "#", "prompt_eval_count": 3, "eval_count": 4}),
    *_FLAT_ERRORS,
)


def _qwen(finish: object, **told: object) -> dict[str, Any]:
    choices = [{"finish_reason": finish, "message": {"role": "assistant", **told}}]
    return {"output": {"choices": choices}, "usage": {"input_tokens": 3, "output_tokens": 4}, "request_id": "r"}


_DASHSCOPE: Final[tuple[Said, ...]] = (
    ("result", _qwen("null", content="@")),
    ("result", _qwen("null", content="@")),
    ("result", _qwen("null", content="", reasoning_content="@")),
    ("result", _qwen("null", content="", tool_calls=[{**_CALL, "index": 0}])),
    ("result", _qwen("#", content="@")),
    ("result", {"output": {"text": "@", "finish_reason": "#"}}),
    *_FLAT_ERRORS,
)
_BAIDU: Final[tuple[Said, ...]] = (
    (None, {"id": "b", "result": "@", "is_end": False, "sentence_id": 0, "need_clear_history": False}),
    (None, {"id": "b", "result": "@", "is_end": False}),
    (None, {"result": "@", "is_end": True, "finish_reason": "#", "usage": {"prompt_tokens": 3, "total_tokens": 7}}),
    (None, {"result": "", "is_end": True, "function_call": {"name": "f", "arguments": "@", "thoughts": "@"}}),
    (None, {"result": "@", "is_end": True, "need_clear_history": True, "ban_round": 0}),
    (None, {"error_code": 336100, "error_msg": "try again"}),
)


def _hunyuan(finish: str, **told: object) -> dict[str, Any]:
    choices = [{"Index": 0, "FinishReason": finish, "Delta": {"Role": "assistant", **told}}]
    return {"Choices": choices, "Id": "h", "Created": 1, "Usage": {"PromptTokens": 3, "CompletionTokens": 4}}


_HUNYUAN: Final[tuple[Said, ...]] = (
    (None, _hunyuan("", Content="@")),
    (None, _hunyuan("", Content="@", ReasoningContent="@")),
    (None, _hunyuan("", ToolCalls=[{"Index": 0, "Id": "t", "Function": {"Name": "f", "Arguments": "@"}}])),
    (None, _hunyuan("#", Content="")),
    (None, {**_hunyuan("", Content="@"), "ErrorMsg": {"Msg": "engine", "Code": 4000}}),
    (None, {"Response": {"Error": {"Code": "LimitExceeded", "Message": "x"}, "RequestId": "r"}}),
)


def _bot(**told: object) -> dict[str, Any]:
    return {"choices": [{"messages": [{"sender_type": "BOT", "text": "@"}], **told}], "model": "p", "created": 1}


_MINIMAX: Final[tuple[Said, ...]] = (
    (None, _bot()),
    (None, _bot()),
    (None, {**_bot(finish_reason="#"), "reply": "@", "usage": {"total_tokens": 9}, "base_resp": {"status_code": 0}}),
    (None, {"choices": [{"messages": [{"sender_type": "BOT", "function_call": {"name": "f", "arguments": "@"}}]}]}),
    (None, {"base_resp": {"status_code": 1027, "status_msg": "sensitive"}}),
)
_COMPLETIONS: Final[tuple[Said, ...]] = (
    (None, {"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": "@", "finish_reason": None}]}),
    (None, {"choices": [{"index": 0, "text": "@"}]}),
    (None, {"choices": [{"index": 0, "text": "", "finish_reason": "#"}]}),
    (None, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
    (None, {"error": {"message": "boom", "type": "server_error"}}),
)
_FAMILIES: Final[Mapping[str, tuple[Said, ...]]] = {
    "anthropic": _ANTHROPIC,
    "responses": _RESPONSES,
    "gemini": _GEMINI,
    "vertex": _GEMINI,
    "bedrock": _BEDROCK,
    "cohere": _COHERE,
    "ollama": _OLLAMA,
    "dashscope": _DASHSCOPE,
    "baidu": _BAIDU,
    "hunyuan": _HUNYUAN,
    "minimax_pro": _MINIMAX,
    "completions": _COMPLETIONS,
}
_WORDS: Final = (
    "stop", "STOP", "end_turn", "tool_use", "max_tokens", "MAX_TOKENS", "length", "SAFETY", "refusal", "sensitive",
    "normal", "COMPLETE", "ERROR", "null", "", "OTHER", "load", "something-new",
)  # fmt: skip
_PIECES: Final = ("", "{", '{"q":"', "سل", '"}', "{}", '{"q":1}', "\ud83d", "\ude00")


def frame_of(dialect: str, draw: Draw) -> bytes:
    """One frame that this family may send, most of the time in its own framing."""
    told = _FAMILIES.get(dialect)
    if told is None:
        return b"data: " + payload_of(draw) + b"\n\n"
    name, value = draw.pick(told)
    for _ in range(draw.pick((0, 0, 0, 0, 1, 1, 2))):
        value = _bent(value, draw)
    data = json.dumps(_spoken(value, draw), ensure_ascii=draw.flag()).encode("utf-8", "replace")
    match draw.below(12), dialect:
        case (0, _):
            return data + b"\n"
        case (1, _):
            return json.dumps(json.loads(data), indent=1).encode() + b"\n"
        case (2, _):
            return b"data: " + data + b"\n\n"
        case (_, "ollama"):
            return data + b"\n"
        case (3 | 4 | 5 | 6, "gemini" | "vertex"):
            return draw.pick((b"[", b",", b",\r\n")) + data + draw.pick((b"", b"", b"", b"]"))
        case (_, "bedrock"):
            return _binary(name, data, draw)
        case _:
            event_line = b"event: " + name.encode() + b"\n" if name is not None and draw.below(8) else b""
            return event_line + b"data: " + data + draw.pick((b"\n\n", b"\n\n", b"\r\n\r\n", b"\n"))


def _binary(name: str | None, data: bytes, draw: Draw) -> bytes:
    if name is None or draw.below(16) == 15:
        return message([(":message-type", 7, b"error"), (":error-code", 7, b"InternalFailure")], b"")
    whole = exception(name, data) if name.endswith("Exception") else event(name, data)
    if draw.below(24) < 23:
        return whole
    at = draw.below(len(whole))
    return whole[:at] + draw.take(1) + whole[at + 1 :]


def _spoken(value: Any, draw: Draw) -> Any:
    """The payload with its texts drawn."""
    match value:
        case "@":
            return draw.pick(TEXTS) if draw.below(3) else draw.pick(_PIECES)
        case "#":
            return draw.pick(_WORDS)
        case dict():
            return {name: _spoken(inner, draw) for name, inner in value.items()}
        case list():
            return [_spoken(inner, draw) for inner in value]
        case _:
            return value


def _bent(value: Any, draw: Draw) -> Any:
    """The payload with one field, somewhere inside, of another type, missing, or said by another name."""
    if not isinstance(value, dict | list) or not value or draw.below(5) == 4:
        return draw.pick(ODD)
    if isinstance(value, list):
        at = draw.below(len(value))
        return [*value[:at], _bent(value[at], draw), *value[at + 1 :]]
    name = draw.pick(tuple(value))
    match draw.below(8):
        case 0:
            return {key: inner for key, inner in value.items() if key != name}
        case 1:
            return {**value, draw.pick(("error", "type", "index", "id", "delta", "message", "code")): draw.pick(ODD)}
        case _:
            return {**value, name: _bent(value[name], draw)}
