"""Ollama's answers: one line of JSON in, one canonical value out.

A line says the next piece of `message.content` and `message.thinking`; tool calls come whole, with an object as their
arguments and mostly without an id; the last line (`done`) has the reason and the counts, which stand loose among its
fields. An error after the first output is a line too. Never raises; keeps no state but the number of the next call.
(contract W4, C5; facts of vendors, 32)
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json
from proxy.dialects.reading import JsonReader

_COUNTS = ("prompt_eval_count", "eval_count")
_LINE = frozenset(
    ("model", "created_at", "message", "done", "done_reason", "logprobs", "error", "response", "thinking", *_COUNTS)
)
_MESSAGE = frozenset(("role", "content", "thinking", "tool_calls"))
# A model was loaded or dropped, and nothing generated: no end of an answer.
_NO_END = ("load", "unload")


class OllamaReader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        is_piece = isinstance(value.get("message"), dict) or isinstance(value.get("done"), bool)
        if value.get("error") or not is_piece:
            chunk = self._chunk(value) if is_piece else None
            return ErrorSeen(value, data, chunk) if chunk is not None else self.foreign(value, data, event, _LINE)
        return self._chunk(value)

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return Usage(figure(vendor, "prompt_eval_count"), figure(vendor, "eval_count"))

    def _chunk(self, line: dict[str, object]) -> Chunk:
        usage = {name: line[name] for name in _COUNTS if line.get(name) is not None}
        return Chunk(
            [self._delta(line)],
            created=_unix_of(line.get("created_at")),
            model=as_text(line.get("model")),
            usage=usage or None,
            extra={name: value for name, value in line.items() if name not in _LINE} or NOTHING,
        )

    def _delta(self, line: dict[str, object]) -> Delta:
        message = as_mapping(line.get("message"))
        # `response` and a `thinking` of the line's own are what the older API, /api/generate, says.
        told = {
            "reasoning_content": message.get("thinking") or line.get("thinking"),
            "content": message.get("content") or line.get("response"),
        }
        delta = Delta(0, {field: text for field, text in told.items() if isinstance(text, str) and text})
        delta.role = as_text(message.get("role")) or None
        delta.tools = [self._call(call) for call in objects(message.get("tool_calls"))] or None
        delta.extra = {name: value for name, value in message.items() if name not in _MESSAGE} or NOTHING
        if logprobs := list(objects(line.get("logprobs"))):
            delta.logprobs = {"content": logprobs}
        if line.get("done") is True:
            word = as_text(line.get("done_reason")) or "stop"
            delta.finish = None if word in _NO_END else word
        return delta

    def _call(self, call: Mapping[str, object]) -> ToolFragment:
        """Every call is whole, so each has a place of its own: the vendor's `index` is 0 for all in some versions."""
        function = as_mapping(call.get("function"))
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else encode_json(arguments or {}).decode()
        self._calls += 1
        return ToolFragment(
            self._calls - 1, as_text(call.get("id")) or None, as_text(function.get("name")) or None, text
        )


def _unix_of(moment: object) -> int:
    """Unix seconds of an RFC 3339 time; 0 where there is none."""
    try:
        return as_count(int(datetime.fromisoformat(as_text(moment)).timestamp())) or 0
    except (ValueError, OverflowError, OSError):
        return 0
