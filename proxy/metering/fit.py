"""A straight line through few points of which some are wrong: a vendor's figures against our own count.

In: pairs (our count, the vendor's figure). Out: slope, offset and what is left over, by medians (Theil-Sen), so that
one prompt whose figure is odd moves nothing. Never: claims a relation that the points do not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final

#: Fewer different counts, or closer ones, show no slope.
MIN_COUNTS: Final = 3
MIN_SPREAD: Final = 12
#: A larger share of the figure left over, at the median, is no straight line.
MAX_LOOSENESS: Final = 0.25
#: What still counts as equal: tokenizers of one family differ by a few tokens in a hundred.
_SLOPE_SLACK: Final = 0.05
_OFFSET_SLACK: Final = 2.0
#: The points that are paired with each other at most; their pairs are some eighty thousand.
_MAX_POINTS: Final = 400


@dataclass(frozen=True, slots=True)
class Fit:
    """`figure = slope * count + offset`, both 0 where `is_shown` is False. `residual` is the median of what is left
    over, in tokens, and `looseness` the same as a share of the figure. `verdict` says it in words: `agrees`,
    `scale 1.31 + 7`, `no straight line`, `not enough data`."""

    points: int = 0
    is_shown: bool = False
    slope: float = 0.0
    offset: float = 0.0
    residual: float = 0.0
    looseness: float = 0.0
    verdict: str = "not enough data"


def fit_line(points: Sequence[tuple[float, float]]) -> Fit:
    """The line through `points`, which are (count, figure)."""
    few = points[:_MAX_POINTS]
    counts = {count for count, _ in few}
    if len(counts) < MIN_COUNTS or max(counts) - min(counts) < MIN_SPREAD:
        return Fit(len(points))
    slope = median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(few, 2) if a[0] != b[0])
    offset = median(figure - slope * count for count, figure in few)
    left = [(abs(figure - slope * count - offset), figure) for count, figure in few]
    residual = median(over for over, _ in left)
    looseness = median(over / max(figure, 1.0) for over, figure in left)
    told = (round(slope, 4), round(offset, 2), round(residual, 2), round(looseness, 4))
    return Fit(len(points), True, *told, _in_words(slope, offset, looseness))


def _in_words(slope: float, offset: float, looseness: float) -> str:
    if looseness > MAX_LOOSENESS:
        return "no straight line"
    if abs(slope - 1) <= _SLOPE_SLACK and abs(offset) <= _OFFSET_SLACK:
        return "agrees"
    return f"scale {slope:.2f} {'-' if offset <= -0.5 else '+'} {abs(offset):.0f}"
