"""TOON as our own engine sends it: one payload in, one canonical value out. Never raises (docs/toon.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.payload import as_count, as_mapping, as_text
from proxy.dialects.reading import JsonReader

_POINTER = re.compile(r"/[a-z0-9_/-]{1,200}")
_KNOWN = frozenset(("id", "created", "model", "tids", "mask", "pos", "meta", "finish_reason", "stop_id", "logprobs"))
#: What stands for an answer that is no ids, in the words that rules/toon.yaml knows.
_NO_IDS = {"error": {"message": "`tids.ids` is no list of ids", "type": "sluice", "code": "engine_failed"}}
#: What the engine says of the request, for the answer's first event.
_TOLD = ("x_prompt_ids", "x_truncated")


def are_ids(ids: object) -> bool:
    """What has a hole that nobody sees, where one of them is none, is no list of ids at all."""
    return isinstance(ids, list) and all(type(one) is int and one >= 0 for one in ids)


def ids_delta(ids: object, logprobs: object, finish: object, stop_id: object, *, choice: int = 0) -> Delta:
    """A delta of ids alone, which are ids."""
    extra: dict[str, object] = {}
    if ids and isinstance(ids, list):
        extra["token_ids"] = ids
        if isinstance(logprobs, list) and logprobs:
            extra["token_logprobs"] = logprobs
    stopped = as_count(stop_id)
    return Delta(
        choice,
        {},
        finish=as_text(finish) or None,
        extra=extra or NOTHING,
        choice_extra={"stop_id": stopped} if stopped is not None else NOTHING,
    )


def pointer_of(error: object) -> str | None:
    """Which field of the request our engine's error names: what it alone finds has its place as well."""
    pointer = as_text(as_mapping(as_mapping(error).get("error")).get("param"))
    return pointer if _POINTER.fullmatch(pointer) else None


class ToonReader(JsonReader):
    has_done = True

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        tids = value.get("tids")
        if value.get("error") or event == "error":
            return ErrorSeen(value, data)
        if not isinstance(tids, dict):
            return self.foreign(value, data, event, _KNOWN)
        if not are_ids(tids.get("ids")):
            return ErrorSeen(_NO_IDS, data)
        delta = ids_delta(tids.get("ids"), value.get("logprobs"), value.get("finish_reason"), value.get("stop_id"))
        says = bool(delta.extra or delta.finish)
        return Chunk(
            [delta] if says else [],
            id=as_text(value.get("id")),
            created=as_count(value.get("created")) or 0,
            model=as_text(value.get("model")),
            usage=as_mapping(value.get("usage")) or None,
            extra={name: value[name] for name in _TOLD if name in value} or NOTHING,
        )

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None, one_line=False)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return Usage(
            figure(vendor, "prompt_ids"), figure(vendor, "completion_ids"), cache_read=figure(vendor, "cached_ids")
        )
