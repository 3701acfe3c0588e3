"""A vendor's usage object in one vocabulary, by its recipe (contract L2).

In: what the dialect's reader made of the object, the object itself, the recipe of the vendor's rule file, and how the
attempt ended. Out: a `NormalUsage`: for each figure whether it was reported, derived from the vendor's own figures, or
is absent. Never: our own count in place of a figure that the vendor did not say, or a figure of a stream that was cut
as if it were the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.canon.ending import Ending
from proxy.canon.usage import ABSENT, DERIVED, FIGURES, REPORTED, NormalUsage, Usage, UsageState

#: What vendors call the sum of everything.
_TOTALS = ("total_tokens", "totalTokenCount", "totalTokens", "TotalTokens")
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the vendor's rule file says of its usage. `never`: it sends none. `is_last`: one report counts, and where it
    stands nothing follows that could change it. `in_characters`: its figures are no tokens. `by_relay`: a relay made
    them up. `untrusted` are names of figures that are known to be wrong."""

    never: bool = False
    is_last: bool = False
    in_characters: bool = False
    by_relay: bool = False
    untrusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class End:
    """How the attempt ended: `finished` tells whether the model had said its finish, `spoke` whether anything of an
    answer came."""

    ending: Ending | None
    finished: bool
    spoke: bool


def normalise(told: Mapping[str, object] | None, usage: Usage, recipe: Recipe, end: End) -> NormalUsage:
    """`told` is the object as it came, `usage` what its reader says, placed by the vendor's ways."""
    if told is None:
        return NormalUsage(_without(recipe, end))
    if recipe.in_characters:
        return NormalUsage("characters")
    total = _total(told)
    figures = {name: _bounded(getattr(usage, name)) for name in FIGURES}
    derived = set(usage.derived)
    if usage.cache_added:
        derived.add("input")
    if usage.reasoning_added:
        derived.add("output")
    for one, other in (("output", "input"), ("input", "output")):
        known = figures[other]
        if figures[one] is None and known is not None and total is not None and total >= known:
            figures[one] = total - known
            derived.add(one)
    for name in recipe.untrusted:
        figures[name] = None
    state = _state(figures, total, usage, recipe, end)
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
    """No object came: nobody sends one, or it was still to come."""
    is_whole = end.ending is None or end.ending is Ending.COMPLETED
    return "absent" if recipe.never or is_whole or not end.spoke else "lost"


def _state(figures: Mapping[str, int | None], total: int | None, usage: Usage, recipe: Recipe, end: End) -> UsageState:
    if figures["input"] is None and figures["output"] is None:
        return "absent" if total is None else "total_only"
    is_cut = end.ending not in (None, Ending.COMPLETED) and not end.finished
    if not usage.is_final or figures["output"] is None or (is_cut and not recipe.is_last):
        return "partial"
    return "estimated" if recipe.by_relay else "final"


def _letter(name: str, figure: int | None, derived: set[str]) -> str:
    return ABSENT if figure is None else DERIVED if name in derived else REPORTED


def _total(told: Mapping[str, object]) -> int | None:
    for name in _TOTALS:
        value = told.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return _bounded(value)
    return None


def _bounded(value: int | None) -> int | None:
    """A number of tokens that a database can hold; anything else is none."""
    return value if value is not None and 0 <= value <= _MOST else None
