"""The days on which the level of a daily figure changed (contract C3, L4).

In: days in order, each with a ratio. Out: changes of level. Never: a change where days differ as they always do, where
a level creeps, or for the sake of one or two odd days: all by medians.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from statistics import median
from typing import Final

#: So many days at least must lie on each side of a change: a long weekend is none.
_DAYS: Final = 3
#: Days on each side that are looked at, and all there are: among all, a level that was left again (after two weeks or
#: more) is lost.
_REACHES: Final = (14, 28, 56)
#: A change is at least this share of the level, and so many times what days differ by anyway.
_LEAST_CHANGE: Final = 0.01
_NOISES: Final = 4.0
#: Few days can be alike by chance: the fewer, the more is asked.
_OF_FEW_DAYS: Final = 4.0
#: So many of the days must be nearer to their own side's level, of each side for itself too: three days of which two
#: are odd have an odd median.
_ON_THEIR_SIDE: Final = 0.9
_OF_EACH_SIDE: Final = 0.75
#: So much of the change must have come at once, from the days just before to those just after: a level that creeps is
#: as far from itself after a month. Of five days in a row at most two are a weekend.
_AT_ONCE: Final = 0.6
_JUST: Final = 5
#: A normal distribution's standard deviation in its median absolute deviations.
SIGMA: Final = 1.4826


@dataclass(frozen=True, slots=True)
class Day:
    """One day: attempts, the vendor's tokens and ours, and the vendor's for one of ours at the median."""

    day: date
    attempts: int
    reported: int
    counted: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Change:
    """From `day` on the ratio is `after`, till the next change or the end."""

    day: date
    before: float
    after: float


def changes_in(days: Sequence[Day]) -> list[Change]:
    """By halving: the clearest split first, then within its parts."""
    ratios = [day.ratio for day in days]
    noise = SIGMA * median(abs(one - other) for one, other in pairwise(ratios)) / 2**0.5 if len(days) > 1 else 0.0
    splits = sorted(_splits(ratios, 0, noise))
    edges = [0, *splits, len(days)]
    levels = [median(ratios[first:last]) for first, last in pairwise(edges) if last > first]
    return [
        Change(days[at].day, round(before, 4), round(after, 4))
        for at, before, after in zip(splits, levels, levels[1:], strict=False)
    ]


def _splits(ratios: Sequence[float], offset: int, noise: float) -> Iterator[int]:
    best, clearest = 0, 0.0
    for at in range(_DAYS, len(ratios) - _DAYS + 1):
        for reach in (*(days for days in _REACHES if days < len(ratios) - _DAYS), len(ratios)):
            clearness = _clearness(ratios[max(0, at - reach) : at], ratios[at : at + reach], noise)
            if clearness > clearest:
                best, clearest = at, clearness
    if best:
        yield offset + best
        yield from _splits(ratios[:best], offset, noise)
        yield from _splits(ratios[best:], offset + best, noise)


def _clearness(left: Sequence[float], right: Sequence[float], noise: float) -> float:
    """How clear a split is: by how much two levels are nearer to all days than one level; 0 where it is none. `noise`
    is what one day differs from the next by, over the whole series: a few days that are alike by chance do not lower
    it."""
    count = len(left) + len(right)
    before, after = median(left), median(right)
    distance = abs(after - before)
    if distance <= _LEAST_CHANGE * abs(before) or distance <= _NOISES * noise:
        return 0.0
    left_over = [*(abs(one - before) for one in left), *(abs(one - after) for one in right)]
    if distance <= _NOISES * max(noise, SIGMA * median(left_over)) * (1 + _OF_FEW_DAYS / count):
        return 0.0
    middle = (before + after) / 2
    of_left = sum((one - middle) * (before - middle) > 0 for one in left)
    of_right = sum((one - middle) * (after - middle) > 0 for one in right)
    if of_left < _OF_EACH_SIDE * len(left) or of_right < _OF_EACH_SIDE * len(right):
        return 0.0
    if of_left + of_right < _ON_THEIR_SIDE * count:
        return 0.0
    at_once = abs(median(right[:_JUST]) - median(left[-_JUST:]))
    if at_once < _AT_ONCE * distance:
        return 0.0
    level = median([*left, *right])
    return sum(abs(one - level) for one in (*left, *right)) - sum(left_over)
