"""Text completions as vendors send them: one payload in, one canonical value out.

A choice has `text` where a chat has a delta, in a stream and in a plain answer alike. Never raises.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.completions.logprobs import to_chat
from proxy.dialects.openai_usage import read_usage
from proxy.dialects.payload import as_count, as_mapping, as_text, is_empty
from proxy.dialects.reading import JsonReader

_ENVELOPE = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))
_CHOICE = frozenset(("index", "text", "delta", "message", "finish_reason", "logprobs"))
_NO_FINISH = ("", "null")


class CompletionsReader(JsonReader):
    has_done = True

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        choices = value.get("choices")
        usage = value.get("usage")
        said = isinstance(choices, list) and bool(choices)
        if value.get("error") or event == "error":
            return ErrorSeen(value, data, self._chunk(value, choices) if said else None)
        if said or (isinstance(usage, dict) and not is_empty(usage)):
            return self._chunk(value, choices)
        return self.foreign(value, data, event, _ENVELOPE)

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None, one_line=False)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return read_usage(vendor)

    def _chunk(self, value: dict[str, object], choices: object) -> Chunk:
        usage, created = value.get("usage"), as_count(value.get("created"))
        return Chunk(
            [self._choice(choice, place) for place, choice in enumerate(choices) if isinstance(choice, dict)]
            if isinstance(choices, list)
            else [],
            id=as_text(value.get("id")),
            created=created or 0,
            model=as_text(value.get("model")),
            usage=as_mapping(usage) or None,
            extra={k: v for k, v in value.items() if k not in _ENVELOPE} or NOTHING,
        )

    @staticmethod
    def _choice(choice: dict[str, object], place: int) -> Delta:
        index, text, finish = as_count(choice.get("index")), choice.get("text"), as_text(choice.get("finish_reason"))
        if not isinstance(text, str):  # a server that knows only chats
            text = (as_mapping(choice.get("delta")) or as_mapping(choice.get("message"))).get("content")
        return Delta(
            place if index is None else index,
            {"content": text} if isinstance(text, str) and text else {},
            finish=None if finish in _NO_FINISH else finish,
            logprobs=to_chat(choice.get("logprobs")),
            choice_extra={k: v for k, v in choice.items() if k not in _CHOICE} or NOTHING,
        )
