"""TOON as our clients read it: new ids at their true positions (docs/toon.md; contract W4, W5 in this form).

In: deltas with `token_ids` in their order. Out: events, or one answer. The position of an event's first id is the
request's offset + stride x (prompt ids + ids before), whatever the upstream said of it; how many prompt ids have a
place is the upstream's to say (`x_prompt_ids`), for only it knows what it stripped.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import ContentOf
from proxy.dialects.identity import Identity
from proxy.dialects.parts import object_of_body
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json
from proxy.dialects.toon.outline import NOTHING, OWN, Outline
from proxy.wire.encode import DONE, event

#: The mask of what is generated.
_CAUSAL = {"type": "causal", "scope": "full", "fallback": "none"}


class ToonWriter(Identity):
    """`asked` is the body of a `ToonIncoming`: its `trace_id` stands in where the request has none."""

    speaks: frozenset[str] | None = frozenset()

    def __init__(self, fallback_id: str, created: int, model: str, asked: Mapping[str, object]) -> None:
        super().__init__(fallback_id, created, model)
        outline = asked["toon"]
        assert isinstance(outline, Outline), "made by `ToonIncoming`"
        self._asked = outline
        self._trace_id = outline.trace_id or as_text(asked.get("trace_id")) or fallback_id
        self._prompt_ids = outline.count
        self._said = 0
        self._told = False

    def adopt(self, chunk: Chunk) -> None:
        super().adopt(chunk)
        self._learn(chunk.extra)

    def _learn(self, extra: Mapping[str, object]) -> None:
        placed = as_count(extra.get("x_prompt_ids"))
        if placed is not None:
            self._prompt_ids = placed

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
        ids = _list(delta.get("token_ids"))
        if choice or (not ids and finish is None):
            return b""
        body = self._answer(ids, self._said)
        self._said += len(ids)
        if self._asked.logprobs is not None:
            body["logprobs"] = _list(delta.get("token_logprobs"))
        passed = NOTHING
        if not self._told:
            self._told = True
            passed = self._asked.passed
            body |= self._placed(chunk.extra if chunk is not None else {})
        if finish is not None:
            body |= {"finish_reason": finish, "stop_id": (choice_extra or {}).get("stop_id")}
        return event(_with(body, passed))

    def seal(self, usage: Usage, native: Mapping[str, object] | None, count: Count, *, wanted: bool) -> bytes:
        told = {**self._answer([], self._said), "usage": _usage(usage, count)}
        return event(encode_json(told)) + DONE

    def seal_events(self, *, wanted: bool) -> int:
        return 1

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
        self._learn(extra)
        choice = choices[0] if choices else {}
        message = as_mapping(choice.get("message"))
        ids = _list(message.get("token_ids"))
        shown = self._asked.logprobs is not None
        told = {
            **self._answer(ids, 0),
            "finish_reason": choice.get("finish_reason"),
            "stop_id": choice.get("stop_id"),
            "logprobs": _list(message.get("token_logprobs")) if shown else None,
            **self._placed(extra),
            "usage": _usage(usage, count),
        }
        return _with(told, self._asked.passed)

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
        return encode_json({**object_of_body(body), "usage": _usage(usage, count)})

    def _answer(self, ids: list[object], before: int) -> dict[str, object]:
        """TOON with these ids, `before` of the answer having been said."""
        asked = self._asked
        offset = asked.offset + asked.stride * (self._prompt_ids + before)
        return {
            "id": self.id,
            "created": self.created,
            "model": self.model,
            "tids": {"v": asked.version, "ids": ids},
            "mask": _CAUSAL,
            "pos": {"base": asked.base, "offset": offset, "stride": asked.stride},
            "meta": {"source": "model_output", "trace_id": self._trace_id},
        }

    def _placed(self, extra: Mapping[str, object]) -> dict[str, object]:
        """How many prompt ids have a place, and how many had to leave."""
        return {**{name: extra[name] for name in OWN if name in extra}, "x_prompt_ids": self._prompt_ids}


def _with(body: Mapping[str, object], passed: bytes) -> bytes:
    """One JSON object of both; none of their names is the same."""
    told = encode_json(body)
    return told if passed == NOTHING else told[:-1] + b"," + passed[1:]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _usage(usage: Usage, count: Count) -> dict[str, object]:
    """What the model was given and gave, as its upstream says; what that left out is our own count of ids."""
    asked, made = usage.filled(count)
    told: dict[str, object] = {"prompt_ids": asked, "completion_ids": made, "cached_ids": usage.cache_read or 0}
    return told if usage.is_whole else {**told, "estimated": True}
