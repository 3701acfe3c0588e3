"""The chat-completions grammar of our clients: canonical values in, events or one JSON body out (contract W1, W4, E).

`ChatWriter` keeps what must be constant over a stream: `id`, `created` and `model` are the vendor's, from the first
chunk that has them before the commit point, else ours; an alias is never written. Every event is one line of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count
from proxy.canon.verdict import Verdict
from proxy.dialects.payload import as_count, as_mapping, encode_json
from proxy.wire.encode import event

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

    def usage_event(self, usage: Mapping[str, object]) -> bytes:
        """The one chunk in which usage stands."""
        return event(encode_json({**self._envelope(None, []), "usage": usage}))

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

    def completion(
        self, choices: list[dict[str, object]], usage: Mapping[str, object], extra: Mapping[str, object]
    ) -> bytes:
        """A whole chat.completion."""
        return encode_json(
            {
                "id": self.id,
                "object": "chat.completion",
                "created": self.created,
                "model": self.model,
                **extra,
                "choices": choices,
                "usage": usage,
            }
        )


def client_usage(vendor: Mapping[str, object], count: Count) -> dict[str, object]:
    """The vendor's usage in OpenAI's terms: the same object, with completion including reasoning. Where a vendor keeps
    reasoning outside of completion (xAI), its own total tells: prompt + completion + reasoning = total. A figure that
    the vendor left out, or that is no count, is ours, and then `estimated` says so."""
    prompt = _figure(vendor, "prompt_tokens", "input_tokens")
    completion = _figure(vendor, "completion_tokens", "output_tokens")
    total = _figure(vendor, "total_tokens")
    reasoning = as_count(as_mapping(vendor.get("completion_tokens_details")).get("reasoning_tokens"))
    if prompt is not None and completion is not None and reasoning and total == prompt + completion + reasoning:
        completion += reasoning
    usage = dict(vendor)
    if prompt is None or completion is None:
        usage["estimated"] = True
        total = None
    usage["prompt_tokens"] = count.input if prompt is None else prompt
    usage["completion_tokens"] = count.output if completion is None else completion
    ours = (count.input if prompt is None else prompt) + (count.output if completion is None else completion)
    usage["total_tokens"] = ours if total is None else total
    return usage


def _figure(vendor: Mapping[str, object], *names: str) -> int | None:
    """A number of tokens under the first of these names that has one, also where it is written as text."""
    for name in names:
        value = vendor.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
            value = int(value)
        if (figure := as_count(value)) is not None:
            return figure
    return None


def estimated_usage(count: Count) -> dict[str, object]:
    """Our own count, for a client whose vendor gave no usage (contract W4)."""
    return {
        "prompt_tokens": count.input,
        "completion_tokens": count.output,
        "total_tokens": count.input + count.output,
        "estimated": True,
    }


def error_body(verdict: Verdict, *, trace_id: str, upstream: str | None, param: str | None = None) -> dict[str, object]:
    """The error body of the contract; `upstream` is the configured name, None if no attempt was made."""
    told: dict[str, object] | None = None
    if upstream is not None:
        told = {
            "name": upstream,
            "status": verdict.vendor_status,
            "code": verdict.vendor_code,
            "message": verdict.vendor_message,
        }
    return {
        "error": {
            "message": verdict.message,
            "type": verdict.error_class.value,
            "code": verdict.code,
            "param": param,
            "retryable": verdict.retryable,
            # Whole seconds, as in the header: typed clients read an integer here, and 20.0 is none to them.
            "retry_after": None if verdict.retry_after_s is None else ceil(verdict.retry_after_s),
            "upstream": told,
            "trace_id": trace_id,
        }
    }
