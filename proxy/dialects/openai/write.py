"""The chat-completions grammar of our clients: canonical values in, events or one JSON body out (contract W1, W4, E).

`ChatWriter` keeps what must be constant over a stream: `id`, `created` and `model` are the vendor's, from the first
chunk that has them before the commit point, else ours; an alias is never written. Every event is one line of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import ContentOf
from proxy.dialects.identity import Identity
from proxy.dialects.openai.body import patch_completion
from proxy.dialects.openai_usage import client_usage
from proxy.dialects.payload import encode_json
from proxy.wire.encode import DONE, event

_EMPTY = Chunk([])


class ChatWriter(Identity):
    """Writes one answer."""

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
        """One chat.completion.chunk with one choice; `chunk` gives the unknown fields of the payload."""
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
        told = client_usage(usage, native, count)
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
                "choices": [{k: v for k, v in choice.items() if k != "native_finish"} for choice in choices],
                "usage": client_usage(usage, native, count),
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
        told = client_usage(usage, native, count)
        identity = {"id": self.id, "object": "chat.completion", "created": self.created, "model": self.model}
        return patch_completion(body, identity, finishes, told, content_of, seed)
