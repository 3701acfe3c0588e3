"""Does a TOON request fit the model that is to serve it? What the format alone does not tell (docs/toon.md).

In: a request that `parse_toon` let through, and a model's card. Out: None, or the caller's mistake with a JSON pointer.
Costs a few hundredths of a millisecond for 8192 ids: nothing is done per id unless something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import Segment, ToonRequest

if TYPE_CHECKING:
    from proxy.toon.card import Card

#: Beyond it single precision cannot tell a position from its neighbour.
MAX_ROPE_POSITION: Final = 2**24
#: The custom masks that there are, and the field of `custom_def` that each one needs.
CUSTOM_MASKS: Final = {"legal_citation": "citation_pattern", "sliding_window": "window"}


def misfit(request: ToonRequest, card: Card) -> BadRequest | None:
    """The first thing that is wrong, in the order of the fields."""
    return next((bad for check in _CHECKS for bad in check(request, card)), None)


def _ids(request: ToonRequest, card: Card) -> Iterator[BadRequest]:
    ids = request.tids.ids
    if max(ids) >= card.vocab:
        at = next(at for at, one in enumerate(ids) if one >= card.vocab)
        message = f"The id {ids[at]} is beyond this model's vocabulary of {card.vocab}."
        yield BadRequest("invalid_value", message, f"/tids/ids/{at}")
    if request.x_special_tokens == "refuse" and not card.special.isdisjoint(ids):
        at = next(at for at, one in enumerate(ids) if one in card.special)
        message = f"The id {ids[at]} is a special token, and `x_special_tokens` says to refuse those."
        yield BadRequest("special_token", message, f"/tids/ids/{at}")
    if request.x_special_tokens == "strip" and card.special.issuperset(ids):
        yield BadRequest("invalid_value", "Nothing is left once the special tokens are stripped.", "/tids/ids")


def _stop_ids(request: ToonRequest, card: Card) -> Iterator[BadRequest]:
    for at, one in enumerate(request.stop_ids):
        if one >= card.vocab:
            message = f"The id {one} is beyond this model's vocabulary of {card.vocab}."
            yield BadRequest("invalid_value", message, f"/stop_ids/{at}")


def _mask(request: ToonRequest, card: Card) -> Iterator[BadRequest]:
    mask, ids = request.mask, request.tids.ids
    if mask.type == "padding":
        if card.pad is None:
            yield BadRequest("invalid_value", "This model's tokenizer has no padding.", "/mask/type")
        elif ids.count(card.pad) == len(ids):
            yield BadRequest("invalid_value", "All ids are padding: there is nothing to see.", "/tids/ids")
    if mask.custom_def is not UNSET:
        yield from _custom(request)
    if request.x_window is not UNSET and request.x_window > card.window:
        yield BadRequest("invalid_value", f"`x_window` is at most this model's window, {card.window}.", "/x_window")


def _custom(request: ToonRequest) -> Iterator[BadRequest]:
    definition = request.mask.custom_def
    assert definition is not UNSET, "asked only where there is one"
    field = CUSTOM_MASKS.get(definition.name)
    if field is None:
        message = f"No mask `{definition.name}` is registered; there are {', '.join(CUSTOM_MASKS)}."
        yield BadRequest("unknown_mask", message, "/mask/custom_def/name")
        return
    for name in CUSTOM_MASKS.values():
        is_said = getattr(definition, name) is not UNSET
        if is_said != (name == field):
            what = f"The mask `{definition.name}` {'needs' if name == field else 'does not take'} `{name}`."
            yield BadRequest("missing_field" if name == field else "invalid_value", what, f"/mask/custom_def/{name}")


def _length(request: ToonRequest, card: Card) -> Iterator[BadRequest]:
    """What must stay has to fit, with the longest answer."""
    if request.mask.fallback == "truncate":
        kept = max(1, sum(s.length for s in _segments(request) if s.meta.source == "system_prompt"))
        what = "The ids that may not leave"
    else:
        kept, what = len(request.tids.ids), "The ids"
    if kept + request.max_tokens > card.context:
        room = f"{card.context} of this model's context"
        message = f"{what} are {kept}, and with max_tokens {request.max_tokens} they do not fit the {room}."
        yield BadRequest("context_length_exceeded", message, "/tids/ids", 413)


def _segments(request: ToonRequest) -> Sequence[Segment]:
    return () if request.x_segments is UNSET else request.x_segments


def _positions(request: ToonRequest, card: Card) -> Iterator[BadRequest]:
    pos = request.pos
    if pos.base == "none":
        return
    if pos.base != card.base:
        message = f"This model's positions are `{card.base}`; send that, or `none` to leave them to it."
        yield BadRequest("unsupported_positions", message, "/pos/base")
    last = pos.offset + pos.stride * (len(request.tids.ids) + request.max_tokens - 1)
    limit = MAX_ROPE_POSITION if card.base == "rope" else card.context
    if card.base != "alibi" and last >= limit:
        message = f"The last position, generated ids included, would be {last}; this model's end below {limit}."
        yield BadRequest("unsupported_positions", message, "/pos/offset")


_CHECKS: Final[Sequence[Callable[[ToonRequest, Card], Iterator[BadRequest]]]] = (
    _ids,
    _mask,
    _length,
    _positions,
    _stop_ids,
)
