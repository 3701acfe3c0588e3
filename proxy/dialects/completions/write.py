"""Text completions as our clients read them (contract W1, W4, W5 in this API's form).

A stream is `text_completion` objects, each with one choice's `text`, then usage where it was asked for, then `[DONE]`.
Reasoning and tool calls have no place here: such a client did not ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import ContentOf
from proxy.dialects.completions.logprobs import to_completions
from proxy.dialects.identity import Identity
from proxy.dialects.openai_usage import client_usage
from proxy.dialects.parts import object_of_body, objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json
from proxy.wire.encode import DONE, event

# What of a model says in words for a person, in the order in which it stands in one text.
_SPOKEN = ("content", "refusal")


class CompletionsWriter(Identity):
    speaks: frozenset[str] | None = frozenset(_SPOKEN)

    def __init__(self, fallback_id: str, created: int, model: str) -> None:
        super().__init__(fallback_id, created, model)
        self._said: dict[int, int] = {}  # letters of each choice so far

    def event(
        self,
        chunk: Chunk | None,
        choice: int,
        delta: Mapping[str, object],
        *,
        finish: str | None = None,
        word: str | None = None,
        logprobs: object = None,
        choice_extra: Mapping[str, object] | None = None,
    ) -> bytes:
        text = "".join(as_text(delta.get(field)) for field in _SPOKEN)
        if not text and finish is None and logprobs is None:
            return b""
        start = self._said.get(choice, 0)
        self._said[choice] = start + len(text)
        body: dict[str, object] = {
            **(choice_extra or {}),
            "index": choice,
            "text": text,
            "logprobs": to_completions(logprobs, start),
            "finish_reason": finish,
        }
        extra = chunk.extra if chunk is not None else {}
        return event(encode_json({**self._envelope(), **extra, "choices": [body]}))

    def seal(self, usage: Usage, native: Mapping[str, object] | None, count: Count, *, wanted: bool) -> bytes:
        if not wanted:
            return DONE
        told = {**self._envelope(), "choices": [], "usage": client_usage(usage, native, count)}
        return event(encode_json(told)) + DONE

    def seal_events(self, *, wanted: bool) -> int:
        return int(wanted)

    def error_event(self, error: Mapping[str, object]) -> bytes:
        return event(encode_json({"error": error}))

    def body(
        self,
        choices: list[dict[str, object]],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        extra: Mapping[str, object],
    ) -> bytes:
        made = [
            {
                "index": choice["index"],
                "text": "".join(as_text(as_mapping(choice.get("message")).get(field)) for field in _SPOKEN),
                "logprobs": to_completions(choice.get("logprobs"), 0),
                "finish_reason": choice.get("finish_reason"),
            }
            for choice in choices
        ]
        told = client_usage(usage, native, count)
        return encode_json({**self._envelope(), **extra, "choices": made, "usage": told})

    def patch(
        self,
        body: bytes,
        finishes: Mapping[int, str],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        content_of: ContentOf,
        seed: str,
    ) -> bytes:
        answer = object_of_body(body)
        choices = []
        for place, choice in enumerate(objects(answer.get("choices"))):
            found = as_count(choice.get("index"))
            index = place if found is None else found
            said = choice.get("text")
            if not isinstance(said, str):  # a server that knows only chats
                said = (as_mapping(choice.get("message")) or as_mapping(choice.get("delta"))).get("content")
            made = {name: value for name, value in choice.items() if name not in ("message", "delta")}
            text, finish = content_of(index, as_text(said)), finishes.get(index, "stop")
            logprobs = to_completions(choice.get("logprobs"), 0)
            choices.append({**made, "index": index, "text": text, "logprobs": logprobs, "finish_reason": finish})
        told = client_usage(usage, native, count)
        return encode_json({**answer, **self._envelope(), "choices": choices, "usage": told})

    def _envelope(self) -> dict[str, object]:
        return {"id": self.id, "object": "text_completion", "created": self.created, "model": self.model}
