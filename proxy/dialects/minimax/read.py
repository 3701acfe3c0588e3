"""Answers of MiniMax's chatcompletion_pro: one payload in, one canonical value out.

What an event adds is known to `dialects.pro`. Errors are told in `base_resp`, under 200, also in the last event; usage
is a total alone. Never raises. (contract W4; facts of vendors, 20)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json
from proxy.dialects.pro import ProAnswer
from proxy.dialects.reading import JsonReader
from proxy.dialects.signs import bad_base_response

_ENVELOPE = frozenset(("id", "object", "created", "model", "reply", "choices", "usage", "base_resp"))
_CHOICE = frozenset(("index", "delta", "finish_reason"))


class MiniMaxProReader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._answer = ProAnswer()

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        told = self._answer.as_chat(value)
        if told is None and isinstance(value.get("usage"), dict) and value["usage"]:
            told = {**value, "choices": []}
        if told is None:
            return self.foreign(value, data, event, _ENVELOPE)
        chunk = _chunk(told)
        return ErrorSeen(value, data, chunk) if event == "error" or bad_base_response(value) else chunk

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        """The older API says a sum and no more."""
        return Usage(
            figure(vendor, "prompt_tokens"), figure(vendor, "completion_tokens"), total=figure(vendor, "total_tokens")
        )


def _chunk(told: Mapping[str, object]) -> Chunk:
    usage = told.get("usage")
    return Chunk(
        [_delta(choice) for choice in objects(told.get("choices"))],
        id=as_text(told.get("id")),
        created=figure(told, "created") or 0,
        model=as_text(told.get("model")),
        usage=usage if isinstance(usage, dict) and usage else None,
        extra={name: more for name, more in told.items() if name not in _ENVELOPE and more} or NOTHING,
    )


def _delta(choice: Mapping[str, object]) -> Delta:
    delta = as_mapping(choice.get("delta"))
    text = as_text(delta.get("content"))
    return Delta(
        as_count(choice.get("index")) or 0,
        {"content": text} if text else {},
        [_call(call) for call in objects(delta.get("tool_calls"))] or None,
        finish=as_text(choice.get("finish_reason")) or None,
        choice_extra={name: more for name, more in choice.items() if name not in _CHOICE} or NOTHING,
    )


def _call(call: Mapping[str, object]) -> ToolFragment:
    function = as_mapping(call.get("function"))
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else encode_json(arguments or {}).decode()
    return ToolFragment(as_count(call.get("index")), None, as_text(function.get("name")) or None, text)
