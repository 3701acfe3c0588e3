"""What becomes of a request for one model: which ids it is given, where each stands, and what each sees (docs/toon.md).

In: a request that `parse_toon` let through, and the model's card. Out: a `Plan`, or the caller's mistake with a JSON
pointer. Positions are integers and stay so. What nobody sees is not given to the model at all: the others stand where
they stood, so the answer is the same, without a mask. Never: work by id where nothing is special about any.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from msgspec import UNSET

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import Segment, ToonRequest
from proxy.toon.card import Card
from proxy.toon.fitting import misfit
from proxy.toon.model.citations import BadPattern, citations
from proxy.toon.model.masks import Part, Sight, View

TextOf = Callable[[Sequence[int]], list[str]]

_PATTERN: Final = "/mask/custom_def/citation_pattern"


@dataclass(frozen=True, slots=True)
class Plan:
    """`ids` are what the model is given, `positions` where each stands for it. Generated id number g stands at
    `next_position + stride x g`, and in the answer at `first_offset + label_stride x g`. `truncated`: how many ids had
    to leave."""

    ids: list[int]
    positions: Sequence[int]
    sight: Sight
    next_position: int
    stride: int
    first_offset: int
    label_stride: int
    truncated: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """Of the request's ids those at `indices` go to the model; `places` is which place each has among `count`."""

    indices: Sequence[int]
    places: Sequence[int]
    count: int


def plan(request: ToonRequest, card: Card, text_of: TextOf) -> Plan | BadRequest:
    """`text_of` gives the text of each id alone; a pattern for citations is matched against it. A pattern that was not
    seen before costs as long as a process takes to start."""
    if (bad := misfit(request, card)) is not None:
        return bad
    visible = _visible(request, card)
    if not visible.indices:
        return BadRequest("invalid_value", "Nothing is left that anybody could see.", "/tids/ids")
    kept = _fitting(visible, request, card.context - request.max_tokens)
    all_ids = request.tids.ids
    ids = all_ids if len(kept.indices) == len(all_ids) else [all_ids[at] for at in kept.indices]
    try:
        sight = Sight(view_of(request, card, kept.indices, text_of))
    except BadPattern as pattern:
        return BadRequest("invalid_value", f"The pattern is not taken: {pattern}.", _PATTERN)
    return _placed(request, card, kept, ids, sight, truncated=len(visible.indices) - len(kept.indices))


def _visible(request: ToonRequest, card: Card) -> _Kept:
    """All ids but those that are stripped, and padding that nobody sees. Places stay, but for gaps that are closed."""
    ids = request.tids.ids
    indices: Sequence[int] = range(len(ids))
    places, count = indices, len(ids)
    if request.x_special_tokens == "strip" and not card.special.isdisjoint(ids):
        indices = [at for at, one in enumerate(ids) if one not in card.special]
        leaves_gaps = request.mask.fallback == "pad"
        places, count = (indices, count) if leaves_gaps else (range(len(indices)), len(indices))
    if request.mask.type == "padding" and card.pad in ids:
        seen = [(at, place) for at, place in zip(indices, places, strict=True) if ids[at] != card.pad]
        indices, places = [at for at, _ in seen], [place for _, place in seen]
    return _Kept(indices, places, count)


def _fitting(visible: _Kept, request: ToonRequest, room: int) -> _Kept:
    """Without the oldest ids that are too many and may leave."""
    surplus = len(visible.indices) - room
    if surplus <= 0 or request.mask.fallback != "truncate":
        return visible
    stays = {at for first, last in _system_ranges(request) for at in range(first, last)}
    leaving = {at for at, _ in zip(_others(visible.indices, stays), range(surplus), strict=False)}
    pairs = zip(visible.indices, visible.places, strict=True)
    kept = [(at, place) for at, place in pairs if at not in leaving]
    return _Kept([at for at, _ in kept], [place for _, place in kept], visible.count)


def _others(indices: Sequence[int], stays: set[int]) -> Iterator[int]:
    return (at for at in indices if at not in stays)


def _segments(request: ToonRequest) -> Sequence[Segment]:
    return () if request.x_segments is UNSET else request.x_segments


def _system_ranges(request: ToonRequest) -> Iterator[tuple[int, int]]:
    segments = _segments(request)
    edges = accumulate((segment.length for segment in segments), initial=0)
    for segment, edge in zip(segments, pairwise(edges), strict=True):
        if segment.meta.source == "system_prompt":
            yield edge


def view_of(request: ToonRequest, card: Card, indices: Sequence[int], text_of: TextOf) -> View:
    """What the mask says of those of the request's ids. Raises `BadPattern`."""
    mask, count = request.mask, len(indices)
    definition = mask.custom_def
    back: int | None = None
    cited: tuple[int, ...] = ()
    if definition is not UNSET and definition.window is not UNSET:
        back = definition.window
    if definition is not UNSET and definition.citation_pattern is not UNSET:
        cited = citations(definition.citation_pattern, text_of([request.tids.ids[at] for at in indices]))
    around = None
    if mask.scope == "dynamic":
        around = card.window if request.x_window is UNSET else request.x_window
    return View(
        count=count,
        most=count + request.max_tokens,
        looks_ahead=mask.type == "bidirectional",
        back=back,
        around=around,
        parts=() if mask.scope == "full" else _parts(request, indices),
        by_part=mask.scope == "partial",
        cited=cited,
    )


def _parts(request: ToonRequest, indices: Sequence[int]) -> tuple[Part, ...]:
    """The segments, shrunk by what left."""
    segments = _segments(request)
    edges = accumulate((segment.length for segment in segments), initial=0)
    stops = pairwise(bisect_left(indices, edge) for edge in edges)
    return tuple(
        Part(stop - start, segment.meta.source == "system_prompt")
        for segment, (start, stop) in zip(segments, stops, strict=True)
    )


def _placed(request: ToonRequest, card: Card, kept: _Kept, ids: list[int], sight: Sight, *, truncated: int) -> Plan:
    pos = request.pos
    first_offset = pos.offset + pos.stride * kept.count
    places, count = kept.places, kept.count
    if pos.base == "none":
        offset, stride = 0, 1
        if truncated:  # the request makes no claim: the model counts those that it is given
            places, count = range(len(ids)), len(ids)
    else:  # an offset changes no distance, and distances alone are seen with ALiBi
        offset, stride = (0 if card.base == "alibi" else pos.offset), pos.stride
    return Plan(
        ids=ids,
        positions=_positions(places, offset, stride),
        sight=sight,
        next_position=offset + stride * count,
        stride=stride,
        first_offset=first_offset,
        label_stride=pos.stride,
        truncated=truncated,
    )


def _positions(places: Sequence[int], offset: int, stride: int) -> Sequence[int]:
    if isinstance(places, range):
        return range(offset, offset + stride * len(places), stride)
    return [offset + stride * place for place in places]
