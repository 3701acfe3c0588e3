"""The chat-completions grammar of our clients: canonical values in, events or one JSON body out (contract W1, W4, E).

`ChatWriter` keeps what must be constant over a stream: `id`, `created` and `model` are the vendor's, from the first
chunk that has them before the commit point, else ours; an alias is never written. Every event is one line of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import ContentOf
from proxy.dialects.openai.body import patch_completion
from proxy.dialects.openai.usage import client_usage, usage_of
from proxy.dialects.payload import as_mapping, encode_json
from proxy.wire.encode import DONE, event

_EMPTY = Chunk([])


class ChatWriter:
    """Writes one answer. `fallback_id`, `created` (unix seconds) and `model` stand in where the vendor says nothing."""

    def __init__(self, fallback_id: str, created: int, model: str) -> None:
        self._fallback = (fallback_id, created, model)
        self.id, self.created, self.model = "", 0, ""

    def adopt(self, chunk: Chunk) -> None:
        """Take identity from a chunk that came before the commit point."""
        self.id = self.id or chunk.id
        self.created = self.created or chunk.created
        self.model = self.model or chunk.model

    def settle(self) -> None:
        """From here on identity is constant."""
        fallback_id, created, model = self._fallback
        self.id = self.id or fallback_id
        self.created = self.created or created
        self.model = self.model or model

    def is_mine(self, chunk: Chunk) -> bool:
        """Does the chunk carry the stream's identity, so that its bytes may pass?"""
        return chunk.id == self.id and chunk.model == self.model and chunk.created == self.created

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
        """One chat.completion.chunk with one choice; `chunk` gives the unknown fields of the payload. What only the
        vendor's own family could say (`native`) is left out, and with nothing else in it the event is none."""
        if "native" in delta:
            delta = {name: value for name, value in delta.items() if name != "native"}
            if not delta and finish is None and logprobs is None:
                return b""
        body: dict[str, object] = {"index": choice, "delta": delta}
        if choice_extra:
            body.update(choice_extra)
        if logprobs is not None:
            body["logprobs"] = logprobs
        body["finish_reason"] = finish
        return event(encode_json(self._envelope(chunk, [body])))

    def seal(self, usage: Usage, native: Mapping[str, object] | None, count: Count, *, wanted: bool) -> bytes:
        """The one chunk in which usage stands, if the client asked for it, and the end mark."""
        if not wanted:
            return DONE
        told = client_usage(native, count) if native is not None else usage_of(usage, count)
        return event(encode_json({**self._envelope(None, []), "usage": told})) + DONE

    def seal_events(self, *, wanted: bool) -> int:
        return int(wanted)

    def error_event(self, error: Mapping[str, object]) -> bytes:
        return event(encode_json({"error": error}))

    def _envelope(self, chunk: Chunk | None, choices: list[dict[str, object]]) -> dict[str, object]:
        extra = (chunk or _EMPTY).extra
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            **extra,
            "choices": choices,
        }

    def body(
        self,
        choices: list[dict[str, object]],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        extra: Mapping[str, object],
    ) -> bytes:
        """A whole chat.completion."""
        return encode_json(
            {
                "id": self.id,
                "object": "chat.completion",
                "created": self.created,
                "model": self.model,
                **extra,
                "choices": [_without_native(choice) for choice in choices],
                "usage": client_usage(native, count) if native is not None else usage_of(usage, count),
            }
        )

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
        told = client_usage(native, count) if native is not None else usage_of(usage, count)
        identity = {"id": self.id, "object": "chat.completion", "created": self.created, "model": self.model}
        return patch_completion(body, identity, finishes, told, content_of, seed)


def _without_native(choice: Mapping[str, object]) -> dict[str, object]:
    """A choice without what only other families' writers want to know."""
    made = {name: value for name, value in choice.items() if name != "native_finish"}
    message = as_mapping(choice.get("message"))
    if "native" in message:
        made["message"] = {name: value for name, value in message.items() if name != "native"}
    return made
