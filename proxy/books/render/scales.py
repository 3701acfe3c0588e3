"""Axes: round numbers for values, and which of many labels are written (contract L4).

In: values and labels of a chart. Out: ticks, and labels with their places. Days are told by month and day, and over
more than a quarter by their months; other labels are thinned until they do not touch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, log10
from typing import Final

from rich.cells import cell_len

_TICKS: Final = 5
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"\d{4}(?:-W?\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d)?.*)?)?)?")
_QUARTER: Final = 92
_STEPS: Final = (1, 2, 5, 7, 10, 14, 28)
#: The mean width of a letter at the size of axes, in the chart's own units; a Chinese sign is two of them.
LETTER: Final = 6.2


def ticks(low: float, high: float, *, from_nought: bool = True) -> list[float]:
    """A handful of round numbers, evenly apart, from `low` or less to `high` or more. With `from_nought`, nought is
    among them, as bars need it; without, only where it is near enough to cost little room."""
    if from_nought or low <= 0 <= high or high - low > 0.4 * max(abs(low), abs(high)):
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return [0.0, 1.0]
    raw = (high - low) / _TICKS
    scale = 10.0 ** floor(log10(raw))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= raw)
    first, last = floor(low / step), -floor(-high / step)
    digits = 12 - floor(log10(step))
    return [round(place * step, digits) for place in range(first, last + 1)]


def short(value: float) -> str:
    """`1.5k`, `20M`: what fits at an axis."""
    for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.4g}{letter}"
    return f"{value:.4g}"


def are_times(labels: Sequence[str]) -> bool:
    """Are they days, weeks, months or hours, which run from left to right?"""
    return bool(labels) and all(_TIME.fullmatch(label) for label in labels)


def placed_labels(labels: Sequence[str], room: float) -> list[tuple[int, str]]:
    """Those that are written below an axis of this width, with their places."""
    if len(labels) > 1 and all(_DAY.fullmatch(label) for label in labels):
        if len(labels) > _QUARTER:
            firsts = [place for place in range(1, len(labels)) if labels[place][:7] != labels[place - 1][:7]]
            starts = [0, *firsts] if labels[0].endswith("-01") else firsts
            return _thinned([(place, labels[place][:7]) for place in starts], room)
        return _thinned([(place, label[5:]) for place, label in enumerate(labels)], room)
    return _thinned([(place, clipped(label, 16)) for place, label in enumerate(labels)], room)


def _thinned(labels: Sequence[tuple[int, str]], room: float) -> list[tuple[int, str]]:
    widest = max((text_width(text) for _, text in labels), default=0) + 12
    most = max(1, int(room // widest))
    least = -(-len(labels) // most)
    step = next((step for step in _STEPS if step >= least), least)
    return list(labels[::step])


def text_width(text: str) -> float:
    """About, in the chart's units."""
    return cell_len(text) * LETTER


def clipped(text: str, cells: int) -> str:
    """At most so wide, with an ellipsis for what is left out."""
    if cell_len(text) <= cells:
        return text
    kept = text[:cells]
    while cell_len(kept) > cells - 1:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"
