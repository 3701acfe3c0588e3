"""What the proxy must know of a TOON request once it has been checked: little, however long the request is.

In: a checked `ToonRequest`. Out: an `Outline`, whose long parts (the ids, what is passed through) are JSON text that
goes on as it is: no list of thousands is made of them again, in no process that has streams to serve.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct

from proxy.dialects.toon.format import Base, MaskType, Scope, ToonRequest

#: Names of the answer that nobody's unknown field may take.
OWN: Final = frozenset(("x_prompt_ids", "x_truncated"))
NOTHING: Final = b"{}"


class Outline(Struct, frozen=True):
    """`count` is the number of ids, and `ids` their JSON; `passed` a JSON object of what comes back with the answer.
    `strips`: special tokens are to be taken out. The rest is as in `ToonRequest`, None where it is left out."""

    version: str
    count: int
    ids: bytes
    mask_type: MaskType
    scope: Scope
    strips: bool
    base: Base
    offset: int
    stride: int
    max_tokens: int
    temperature: float
    top_p: float
    stop_ids: list[int]
    stream: bool
    model: str | None = None
    trace_id: str | None = None
    seed: int | None = None
    logprobs: int | None = None
    response_format: bytes | None = None
    passed: bytes = NOTHING


def outline(request: ToonRequest) -> Outline:
    mask, pos, meta = request.mask, request.pos, request.meta
    format = request.response_format
    return Outline(
        version=request.tids.v,
        count=len(request.tids.ids),
        ids=msgspec.json.encode(request.tids.ids),
        mask_type=mask.type,
        scope=mask.scope,
        strips=request.x_special_tokens == "strip",
        base=pos.base,
        offset=pos.offset,
        stride=pos.stride,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        stop_ids=request.stop_ids,
        stream=request.stream,
        model=None if request.model is UNSET else request.model,
        trace_id=None if meta.trace_id is UNSET else meta.trace_id,
        seed=None if request.seed is UNSET else request.seed,
        logprobs=None if request.logprobs is UNSET else request.logprobs,
        response_format=None if format is UNSET else msgspec.json.encode(format),
        passed=_passed(request),
    )


def _passed(request: ToonRequest) -> bytes:
    """The `x_…` fields of the request, segments included."""
    told = {name: value for name, value in request.passed.items() if name not in OWN}
    if request.x_segments is not UNSET:
        told.setdefault("x_segments", request.x_segments)
    return msgspec.json.encode(told) if told else NOTHING
