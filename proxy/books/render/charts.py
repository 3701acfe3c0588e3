"""Charts as inline SVG: lines, bars and stacked bars, made of numbers and nothing else (contract L4).

In: a `Chart`. Out: SVG that needs no script, no font and no network. Times run from left to right, names stand below
each other with their figures at the bars. Series are told apart by people who see few colours, and in a grey print, by
dashes and hatches too. Every chart says in words what it shows; its figures stand beside it (`html`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from proxy.books.document import Chart, ChartKind, Series
from proxy.books.render.cells import visible
from proxy.books.render.scales import are_times, clipped, placed_labels, short, text_width, ticks

_WIDTH: Final = 520
_HEIGHT: Final = 236
_TOP, _BOTTOM, _RIGHT = 26, 26, 10
_COLOURS: Final = 6
_DASHES: Final = ("", "7 4", "2 3.5", "10 4 2 4")
#: Below each other, so many units for a bar, and between two names.
_BAR, _BETWEEN = 15, 9
_NAME_CELLS: Final = 28
#: What hatches a bar: nothing for the first series, then something else for each. Drawn in the colour of the paper.
_HATCHES: Final = (
    "",
    '<path d="M-1 1L1 -1M0 6L6 0M5 7L7 5"/>',
    '<path d="M0 3H6"/>',
    '<circle cx="3" cy="3" r="1.1"/>',
    '<path d="M3 0V6"/>',
    '<path d="M0 3H6M3 0V6"/>',
)


def render_chart(chart: Chart, number: int) -> str:
    """`number` makes the ids of this chart its own on the page."""
    drawing: _Lines | _Columns | _Rows
    if chart.kind is ChartKind.LINE:
        drawing = _Lines(chart, number)
    elif are_times(chart.labels):
        drawing = _Columns(chart, number)
    else:
        drawing = _Rows(chart, number)
    title, about = escape(visible(chart.title)), escape(visible(in_words(chart)))
    return "".join(
        [
            f'<svg viewBox="0 0 {_WIDTH} {drawing.height:g}" role="img" aria-labelledby="t{number} d{number}">',
            f'<title id="t{number}">{title}</title><desc id="d{number}">{about}</desc>',
            *drawing.parts(),
            "</svg>",
        ]
    )


def legend(chart: Chart, number: int) -> str:
    """The names of the series with their colours; nothing for a single one."""
    if len(chart.series) < 2:
        return ""
    items = "".join(
        f'<li><svg viewBox="0 0 24 12" aria-hidden="true">{_key(chart.kind, place, number)}</svg>'
        f'<span dir="auto">{escape(visible(one.title))}</span></li>'
        for place, one in enumerate(chart.series)
    )
    return f'<ul class="legend">{items}</ul>'


def in_words(chart: Chart) -> str:
    """What a reader who does not see it should know."""
    said = [chart.about] if chart.about else []
    if chart.labels:
        said.append(f"From {chart.labels[0]} to {chart.labels[-1]}" if len(chart.labels) > 1 else chart.labels[0])
    for one in chart.series:
        values = [value for value in one.values if value is not None]
        unit = f" {chart.unit}" if chart.unit else ""
        said.append(f"{one.title}: {min(values):,.6g} to {max(values):,.6g}{unit}" if values else f"{one.title}: none")
    return "; ".join(said)


def _key(kind: ChartKind, place: int, number: int) -> str:
    colour = place % _COLOURS
    if kind is ChartKind.LINE:
        return f'<line x1="1" x2="23" y1="6" y2="6" class="s{colour}"{_dash(place)}/>'
    return _bar(6, 1, 12, 10, place, number)


def _dash(place: int) -> str:
    dash = _DASHES[place % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _bar(x: float, y: float, width: float, height: float, place: int, number: int, words: str = "") -> str:
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.6):.1f}" height="{max(height, 0.6):.1f}"'
    title = f"<title>{escape(words)}</title>" if words else ""
    hatch = place % len(_HATCHES)
    over = f'<rect {shape} fill="url(#h{number}-{hatch})"/>' if hatch else ""
    return f'<g>{title}<rect class="f{place % _COLOURS}" {shape}/>{over}</g>'


class _Drawing:
    """What the three have in common: the values' ticks and how the chart is told in words."""

    height: float = _HEIGHT

    def __init__(self, chart: Chart, number: int) -> None:
        self._chart, self._number = chart, number
        values: list[float] = [value for one in chart.series for value in one.values if value is not None]
        if chart.kind is ChartKind.STACKED:
            values += _stacks(chart.series)
        from_nought = chart.kind is not ChartKind.LINE
        self._ticks = ticks(min(values, default=0), max(values, default=0), from_nought=from_nought)
        self._low, self._high = self._ticks[0], self._ticks[-1]

    def _share(self, value: float) -> float:
        return (value - self._low) / (self._high - self._low)

    def _hatches(self) -> Iterator[str]:
        used = range(1, min(len(self._chart.series), len(_HATCHES)))
        if used:
            yield "<defs>"
            for hatch in used:
                yield (
                    f'<pattern id="h{self._number}-{hatch}" class="hatch" width="6" height="6" '
                    f'patternUnits="userSpaceOnUse">{_HATCHES[hatch]}</pattern>'
                )
            yield "</defs>"

    def _words(self, label: str, one: Series, value: float) -> str:
        unit = f" {self._chart.unit}" if self._chart.unit else ""
        return visible(f"{label}, {one.title}: {value:,.6g}{unit}")

    def _pieces(self, place: int) -> Iterator[tuple[int, Series, float, float, float]]:
        """Of one label: number and series, where its bar begins and ends, and its value."""
        ends = [0.0, 0.0]
        for order, one in enumerate(self._chart.series):
            value = one.values[place]
            if value is None:
                continue
            if self._chart.kind is not ChartKind.STACKED:
                yield order, one, 0.0, value, value
                continue
            side = 0 if value >= 0 else 1
            yield order, one, ends[side], ends[side] + value, value
            ends[side] += value


class _Upright(_Drawing):
    """Values upwards, labels from left to right."""

    def __init__(self, chart: Chart, number: int) -> None:
        super().__init__(chart, number)
        self._left = max(text_width(short(tick)) for tick in self._ticks) + 12
        self._count = max(len(chart.labels), 1)

    def _x(self, place: float) -> float:
        """The middle of a label's share of the width."""
        return self._left + (_WIDTH - _RIGHT - self._left) * (place + 0.5) / self._count

    def _y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * self._share(value)

    def _axes(self) -> Iterator[str]:
        if self._chart.unit:
            yield f'<text class="unit" x="0" y="11">{escape(visible(self._chart.unit))}</text>'
        for tick in self._ticks:
            y = self._y(tick)
            strong = " base" if tick == 0 else ""
            yield f'<line class="grid{strong}" x1="{self._left:.1f}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="tick end" x="{self._left - 7:.1f}" y="{y + 3.8:.1f}">{short(tick)}</text>'
        for place, label in placed_labels(self._chart.labels, _WIDTH - _RIGHT - self._left):
            half = text_width(label) / 2
            x = min(max(self._x(place), half), _WIDTH - half)
            yield f'<text class="tick mid" x="{x:.1f}" y="{_HEIGHT - 7}">{escape(visible(label))}</text>'


class _Lines(_Upright):
    def parts(self) -> Iterator[str]:
        yield from self._axes()
        for order, one in enumerate(self._chart.series):
            colour = order % _COLOURS
            for run in _runs(one.values):
                if len(run) == 1:
                    ((place, value),) = run
                    yield f'<circle class="f{colour}" cx="{self._x(place):.1f}" cy="{self._y(value):.1f}" r="2.6"/>'
                    continue
                points = " ".join(f"{self._x(place):.1f},{self._y(value):.1f}" for place, value in run)
                yield f'<polyline class="s{colour}"{_dash(order)} points="{points}"/>'


class _Columns(_Upright):
    def parts(self) -> Iterator[str]:
        yield from self._hatches()
        yield from self._axes()
        beside = 1 if self._chart.kind is ChartKind.STACKED else max(len(self._chart.series), 1)
        width = min((_WIDTH - _RIGHT - self._left) / self._count * 0.74 / beside, 44.0)
        for place, label in enumerate(self._chart.labels):
            for order, one, begin, end, value in self._pieces(place):
                x = self._x(place) - width * beside / 2 + (0 if beside == 1 else width * order)
                top, bottom = sorted((self._y(begin), self._y(end)))
                words = self._words(label, one, value)
                yield _bar(x, top, width - min(1.0, width / 5), bottom - top, order, self._number, words)


class _Rows(_Drawing):
    """Names below each other, their bars to the right, and at each end its figure."""

    def __init__(self, chart: Chart, number: int) -> None:
        super().__init__(chart, number)
        self._beside = 1 if chart.kind is ChartKind.STACKED else max(len(chart.series), 1)
        self._step = self._beside * _BAR + _BETWEEN
        self.height = _TOP - 6 + max(len(chart.labels), 1) * self._step
        names = [clipped(visible(label), _NAME_CELLS) for label in chart.labels]
        self._names = names
        room = 52.0
        self._left = max((text_width(name) for name in names), default=0) + 14 + (room if self._low < 0 else 0)
        self._end = _WIDTH - room

    def _x(self, value: float) -> float:
        return self._left + (self._end - self._left) * self._share(value)

    def parts(self) -> Iterator[str]:
        yield from self._hatches()
        if self._chart.unit:
            yield f'<text class="unit" x="0" y="11">{escape(visible(self._chart.unit))}</text>'
        top = _TOP - 6
        base = self._x(0)
        for place, name in enumerate(self._names):
            y = top + place * self._step + _BETWEEN / 2
            middle = y + self._beside * _BAR / 2 + 3.8
            full = visible(self._chart.labels[place])
            hint = f"<title>{escape(full)}</title>" if full != name else ""
            yield f'<text class="name" x="0" y="{middle:.1f}">{hint}{escape(name)}</text>'
            yield from self._row(place, y)
        yield f'<line class="grid base" x1="{base:.1f}" x2="{base:.1f}" y1="{top}" y2="{self.height:g}"/>'

    def _row(self, place: int, y: float) -> Iterator[str]:
        is_stacked = self._chart.kind is ChartKind.STACKED
        low = high = total = 0.0
        for order, one, begin, end, value in self._pieces(place):
            left, right = sorted((self._x(begin), self._x(end)))
            down = 0 if is_stacked else order * _BAR
            words = self._words(self._chart.labels[place], one, value)
            yield _bar(left, y + down + 1, right - left, _BAR - 2, order, self._number, words)
            low, high, total = min(low, end), max(high, end), total + value
            if not is_stacked:
                yield self._figure(end, value, y + down)
        if is_stacked and any(one.values[place] is not None for one in self._chart.series):
            yield self._figure(high if total >= 0 else low, total, y)

    def _figure(self, end: float, value: float, y: float) -> str:
        is_left = value < 0
        x = self._x(end) + (-5 if is_left else 5)
        side = " end" if is_left else ""
        return f'<text class="tick{side}" x="{x:.1f}" y="{y + _BAR / 2 + 3.8:.1f}">{self._said(value)}</text>'

    def _said(self, value: float) -> str:
        """What is too small to be seen is told to be that, not with powers of ten."""
        is_seen = abs(value) >= 1e-4 * max(abs(self._low), abs(self._high))
        return short(value) if is_seen or not value else "≈ 0"


def _stacks(series: Sequence[Series]) -> list[float]:
    sums: list[float] = []
    for values in zip(*(one.values for one in series), strict=True):
        said = [value for value in values if value is not None]
        sums += [sum(value for value in said if value > 0), sum(value for value in said if value < 0)]
    return sums


def _runs(values: Sequence[float | int | None]) -> list[list[tuple[int, float]]]:
    """Without the gaps."""
    runs: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is not None:
            runs[-1].append((place, float(value)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
