"""Charts as inline SVG: lines, bars and stacked bars, made of numbers and nothing else (contract L4).

In: a `Chart`. Out: SVG that needs no script, no font and no network. Colours are told apart by people who see few of
them and, with the dashes and hatches that go along, in a grey print; every chart says in words what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10

from proxy.books.document import Chart, ChartKind, Series

_WIDTH, _HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 34
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_TICKS = 5
_LABELS = 9


def render_chart(chart: Chart, number: int) -> str:
    """`number` makes the ids of this chart its own on the page."""
    drawing = _Drawing(chart)
    title, about = escape(chart.title), escape(chart.about or _in_words(chart))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="t{number} d{number}">',
        f'<title id="t{number}">{title}</title><desc id="d{number}">{about}</desc>',
        *drawing.axes(),
        *(drawing.lines() if chart.kind is ChartKind.LINE else drawing.bars()),
        "</svg>",
    ]
    return "".join(parts)


def legend(chart: Chart) -> str:
    """The names of the series with their colours; nothing for a single one."""
    if len(chart.series) < 2:
        return ""
    items = "".join(
        f'<li><svg viewBox="0 0 24 10" aria-hidden="true"><line x1="1" x2="23" y1="5" y2="5" class="s{place % 6}" '
        f'stroke-dasharray="{_DASHES[place % len(_DASHES)]}"/></svg><span dir="auto">{escape(one.title)}</span></li>'
        for place, one in enumerate(chart.series)
    )
    return f'<ul class="legend">{items}</ul>'


def _in_words(chart: Chart) -> str:
    over = f"from {chart.labels[0]} to {chart.labels[-1]}" if chart.labels else "nothing"
    return f"{', '.join(one.title for one in chart.series)}, {over}"


class _Drawing:
    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        values = [value for one in chart.series for value in one.values if value is not None]
        if chart.kind is ChartKind.STACKED:
            values += _stacks(chart.series)
        self._ticks = ticks(min(values, default=0), max(values, default=0))
        self._low, self._high = self._ticks[0], self._ticks[-1]
        self._count = max(len(chart.labels), 1)

    def _x(self, place: float) -> float:
        """The middle of a label's share of the width."""
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 0.5) / self._count

    def _y(self, value: float) -> float:
        share = (value - self._low) / ((self._high - self._low) or 1)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share

    def axes(self) -> list[str]:
        parts = []
        for tick in self._ticks:
            y = self._y(tick)
            strong = " base" if tick == 0 else ""
            parts.append(f'<line class="grid{strong}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>')
        step = max(1, -(-self._count // _LABELS))
        for place in range(0, len(self._chart.labels), step):
            label = self._chart.labels[place]
            short_label = label if len(label) <= 18 else f"{label[:17]}…"
            parts.append(
                f'<text class="tick" x="{self._x(place):.1f}" y="{_HEIGHT - 12}" text-anchor="middle">'
                f"{escape(short_label)}</text>"
            )
        if self._chart.unit:
            parts.append(f'<text class="unit" x="4" y="{_TOP + 2}">{escape(self._chart.unit)}</text>')
        return parts

    def lines(self) -> list[str]:
        parts = []
        for number, one in enumerate(self._chart.series):
            for run in _runs(one.values):
                dash = _DASHES[number % len(_DASHES)]
                points = " ".join(f"{self._x(place):.1f},{self._y(value):.1f}" for place, value in run)
                parts.append(f'<polyline class="s{number % 6}" stroke-dasharray="{dash}" points="{points}"/>')
                if len(run) == 1:
                    place, value = run[0]
                    parts.append(
                        f'<circle class="f{number % 6}" cx="{self._x(place):.1f}" cy="{self._y(value):.1f}" r="3"/>'
                    )
        return parts

    def bars(self) -> list[str]:
        is_stacked = self._chart.kind is ChartKind.STACKED
        room = (_WIDTH - _LEFT - _RIGHT) / self._count * 0.72
        width = room if is_stacked else room / max(len(self._chart.series), 1)
        width = min(width, 64.0)
        parts = []
        for place in range(len(self._chart.labels)):
            above = below = 0.0
            for number, one in enumerate(self._chart.series):
                value = one.values[place]
                if value is None:
                    continue
                begin = (above if value >= 0 else below) if is_stacked else 0.0
                left = self._x(place) - (width if is_stacked else width * len(self._chart.series)) / 2
                left += 0 if is_stacked else width * number
                top, bottom = sorted((self._y(begin), self._y(begin + value)))
                height = max(bottom - top, 0.5)
                parts.append(
                    f'<rect class="f{number % 6}" x="{left:.1f}" y="{top:.1f}" width="{max(width - 1.5, 0.8):.1f}" '
                    f'height="{height:.1f}"><title>{escape(self._chart.labels[place])}, {escape(one.title)}: '
                    f"{value:,.6g}</title></rect>"
                )
                if value >= 0:
                    above += value if is_stacked else 0
                else:
                    below += value if is_stacked else 0
        return parts


def _stacks(series: Sequence[Series]) -> list[float]:
    totals: list[float] = []
    for values in zip(*(one.values for one in series), strict=True):
        said = [value for value in values if value is not None]
        totals += [sum(value for value in said if value > 0), sum(value for value in said if value < 0)]
    return totals


def _runs(values: Sequence[float | int | None]) -> list[list[tuple[int, float]]]:
    """Without the gaps."""
    runs: list[list[tuple[int, float]]] = []
    is_open = False
    for place, value in enumerate(values):
        if value is None:
            is_open = False
            continue
        if not is_open:
            runs.append([])
            is_open = True
        runs[-1].append((place, float(value)))
    return runs


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`, nought among them where it is near."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return [0.0, 1.0]
    raw = (high - low) / _TICKS
    scale = 10.0 ** floor(log10(raw))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= raw)
    first, last = floor(low / step), -floor(-high / step)
    return [round(place * step, 12) for place in range(first, last + 1)]


def short(value: float) -> str:
    """`1.5k`, `20M`: what fits at an axis."""
    for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.4g}{letter}"
    return f"{value:.4g}"
