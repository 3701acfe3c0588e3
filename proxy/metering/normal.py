"""A vendor's usage in one vocabulary, by its recipe (contract L2).

In: what the dialect's reader and the vendor's ways made of its object, what the recipe says of it, and how the attempt
ended. Out: a `NormalUsage`: for each figure whether it was reported, derived from the vendor's own figures, or is
absent, and whether all of it counts. Never: our own count in place of a figure that the vendor did not say, or a figure
of a stream that was cut as if it were the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.canon.usage import ABSENT, DERIVED, FIGURES, REPORTED, NormalUsage, Usage, UsageState

_MOST = 2**63 - 1  # what a database can hold


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the vendor's rule file says of its usage. `never`: it sends none. `in_characters`: its figures are no
    tokens. `by_relay`: a relay made them up. `untrusted` are those of `FIGURES` that are known to be wrong."""

    never: bool = False
    in_characters: bool = False
    by_relay: bool = False
    untrusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class End:
    """How the attempt ended, as far as its usage goes. `is_whole`: the answer is complete, and the vendor itself ended
    it, so that nothing was left to come. `is_settled`: the last report came with the finish or behind it, or with the
    error that ended the answer; what came after it changes nothing. `is_owed`: if no report came, one would have, had
    the attempt gone on: what the vendor did it may charge for, though it never said how much."""

    is_whole: bool
    is_settled: bool = False
    is_owed: bool = True


def normalise(usage: Usage | None, recipe: Recipe, end: End) -> NormalUsage:
    """`usage` is what the object says, placed by the vendor's ways; None: none came."""
    if usage is None:
        return NormalUsage(_without(recipe, end))
    if recipe.in_characters:
        return NormalUsage("characters")
    usage = usage.without(recipe.untrusted)
    total, figures, derived = _bounded(usage.total), _figures(usage), _derived(usage)
    for one, other in (("output", "input"), ("input", "output")):
        known = figures[other]
        if figures[one] is not None or one in recipe.untrusted or known is None or total is None or total < known:
            continue
        figures[one] = total - known
        derived.add(one)
    state = _state(figures, total, recipe, is_last=usage.is_final and (end.is_whole or end.is_settled))
    if state is None:
        return NormalUsage(_without(recipe, end))
    return NormalUsage(
        state,
        "".join(_letter(name, figures[name], derived) for name in FIGURES),
        figures["input"],
        figures["output"],
        figures["cache_read"],
        figures["cache_write"],
        figures["reasoning"],
        total,
        _bounded(usage.billed_input),
        _bounded(usage.billed_output),
    )


def _without(recipe: Recipe, end: End) -> UsageState:
    """No figure came: nobody sends one, or it was still to come."""
    return "lost" if end.is_owed and not (recipe.never or end.is_whole) else "absent"


def _figures(usage: Usage) -> dict[str, int | None]:
    return {name: _bounded(getattr(usage, name)) for name in FIGURES}


def _derived(usage: Usage) -> set[str]:
    """What the reader reckoned, and what parts were added to: the vendor wrote other figures."""
    added = {name for name, part in (("input", usage.cache_added), ("output", usage.reasoning_added)) if part}
    return added | usage.derived


def _state(figures: Mapping[str, int | None], total: int | None, recipe: Recipe, *, is_last: bool) -> UsageState | None:
    """None: the object has no figure."""
    asked, answered = figures["input"], figures["output"]
    if asked is None and answered is None and total is None:
        return None
    if not is_last or (asked is None) != (answered is None):
        return "partial"
    if recipe.by_relay:
        return "estimated"
    return "total_only" if asked is None else "final"


def _letter(name: str, figure: int | None, derived: set[str]) -> str:
    return ABSENT if figure is None else DERIVED if name in derived else REPORTED


def _bounded(value: int | None) -> int | None:
    """A number of tokens that a database can hold; anything else is none."""
    return value if value is not None and 0 <= value <= _MOST else None
