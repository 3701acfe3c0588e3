"""Charts: round axes, labels that do not touch, and drawings that say what they show."""

from __future__ import annotations

import math
from datetime import date, timedelta
from itertools import pairwise
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.books.document import Chart, ChartKind, Series
from proxy.books.render.charts import in_words, legend, render_chart
from proxy.books.render.scales import are_times, clipped, placed_labels, short, text_width, ticks
from tests.support.documents import HOSTILE, report

pytestmark = pytest.mark.clause("L4")

FINITE: Final = st.floats(-1e15, 1e15, allow_nan=False).filter(lambda value: value == 0 or abs(value) > 1e-12)


def days(first: str, count: int) -> tuple[str, ...]:
    return tuple(str(date.fromisoformat(first) + timedelta(days=number)) for number in range(count))


def drawn(chart: Chart) -> Element:
    return ElementTree.fromstring(render_chart(chart, 7))


def bars(chart: Chart) -> list[tuple[float, float, float, float]]:
    """x, y, width and height of each, without what hatches it."""
    found = drawn(chart).iterfind("g/rect[@class]")
    return [tuple(float(one.attrib[name]) for name in ("x", "y", "width", "height")) for one in found]  # type: ignore[misc]


@given(FINITE, FINITE, st.booleans())
def test_ticks_are_round_and_hold_all_values(one: float, other: float, from_nought: bool) -> None:
    """A handful, evenly apart; nought among them where bars stand on it."""
    low, high = sorted((one, other))
    found = ticks(low, high, from_nought=from_nought)
    step = found[1] - found[0]
    assert found[0] <= low + 1e-9 * step
    assert found[-1] >= high - 1e-9 * step
    assert 2 <= len(found) <= 9
    assert 0 in found or not from_nought
    for before, after in pairwise(found):
        assert math.isclose(after - before, step, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "from_nought", "expected"),
    [
        (0, 0, True, [0, 1]),
        (0, 7, True, [0, 2, 4, 6, 8]),
        (-5, 20, True, [-5, 0, 5, 10, 15, 20]),
        (0.94, 1.18, False, [0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2]),
        (5, 20, False, [0, 5, 10, 15, 20]),
        (3, 3, False, [0, 1, 2, 3]),
    ],
)
def test_lines_need_no_nought_where_it_would_flatten_them(
    low: float, high: float, from_nought: bool, expected: list[float]
) -> None:
    """A ratio around one is shown around one; what is near nought stands on it."""
    assert ticks(low, high, from_nought=from_nought) == expected


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1500, "1.5k"), (-2e7, "-20M"), (3.2e9, "3.2G"), (4e12, "4T"), (0.05, "0.05")]
)
def test_a_figure_at_an_axis_is_short(value: float, text: str) -> None:
    """With the letter of its power."""
    assert short(value) == text


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (days("2026-10-29", 4), ["10-29", "10-30", "10-31", "11-01"]),
        (days("2026-10-01", 31), ["10-01", "10-06", "10-11", "10-16", "10-21", "10-26", "10-31"]),
        (days("2026-01-01", 365), ["2026-01", "2026-03", "2026-05", "2026-07", "2026-09", "2026-11"]),
        (days("2026-01-15", 120), ["2026-02", "2026-03", "2026-04", "2026-05"]),
        (("2026-W41", "2026-W42"), ["2026-W41", "2026-W42"]),
        (("2026-10-05",), ["2026-10-05"]),
        ((), []),
    ],
)
def test_labels_of_an_axis_are_few_enough_to_be_read(labels: tuple[str, ...], expected: list[str]) -> None:
    """Days of a quarter by month and day, of more by months; the first always, where it begins one."""
    assert [text for _, text in placed_labels(labels, 460)] == expected


@given(st.lists(st.text(min_size=1, max_size=60), max_size=400), st.floats(60, 1000))
def test_labels_never_touch(labels: list[str], room: float) -> None:
    """Whatever they are, in whatever script."""
    placed = placed_labels(labels, room)
    widest = max((text_width(text) for _, text in placed), default=0)
    for (before, _), (after, _) in pairwise(placed):
        assert (after - before) * room / len(labels) >= widest


def test_times_are_told_from_names() -> None:
    """Days, weeks, months and hours; not a model that begins like a year."""
    for labels in (["2026-10-05"], ["2026-W41"], ["2026-10"], ["2026-10-05T14:00"], ["2026-10-05 14:00+02:00"]):
        assert are_times(labels)
    for labels in (["gpt-4o-2024-08-06"], ["2026-10-05", "商店"], ["20267"], []):
        assert not are_times(labels)


def test_a_text_is_clipped_by_what_it_takes() -> None:
    """A Chinese sign takes two cells."""
    assert (clipped("商店商店", 8), clipped("商店商店", 7), clipped("abc", 3), clipped("abcd", 3)) == (
        *("商店商店", "商店商…", "abc", "ab…"),
    )


@pytest.mark.parametrize("chart", report().charts, ids=lambda chart: chart.name)
def test_a_chart_is_well_formed_and_says_what_it_shows(chart: Chart) -> None:
    """As XML, with a title and a description that its ids name."""
    found = drawn(chart)
    title, about = found.find("title"), found.find("desc")
    assert title is not None and title.text == chart.title
    assert about is not None and about.text == in_words(chart)
    assert found.attrib["aria-labelledby"].split() == [title.attrib["id"], about.attrib["id"]]
    assert chart.series[0].title in in_words(chart)


def test_a_gap_is_a_gap() -> None:
    """A line of two runs is two lines, a single day is a dot, and no values are nothing."""
    values = (1.0, 2.0, None, 4.0, None, None, 7.0, 8.0)
    chart = Chart("c", "C", ChartKind.LINE, days("2026-10-01", 8), (Series("a", values), Series("b", (None,) * 8)))
    found = drawn(chart)
    assert [len(line.attrib["points"].split()) for line in found.iterfind("polyline")] == [2, 2]
    assert len(found.findall("circle")) == 1
    assert "b: none" in in_words(chart)


def test_series_are_told_apart_without_colour() -> None:
    """Lines by their dashes, bars by their hatches, in the drawing as in the legend."""
    series = tuple(Series(f"s{number}", (1.0, 2.0)) for number in range(6))
    lines = drawn(Chart("c", "C", ChartKind.LINE, ("2026-10", "2026-11"), series)).findall("polyline")
    looks = {(line.attrib["class"], line.attrib.get("stroke-dasharray")) for line in lines}
    assert len(looks) == 6
    assert len({dash for _, dash in looks}) == 4
    chart = Chart("c", "C", ChartKind.STACKED, ("a", "b"), series)
    svg, keys = render_chart(chart, 3), legend(chart, 3)
    for hatch in range(1, 6):
        assert f'<pattern id="h3-{hatch}"' in svg
        assert f"url(#h3-{hatch})" in keys
    assert legend(Chart("c", "C", ChartKind.BAR, ("a",), series[:1]), 0) == ""


def test_names_have_their_figures_at_the_bars() -> None:
    """Below each other; what is negative goes to the left, what is too small to be seen says so."""
    chart = Chart("c", "C", ChartKind.BAR, ("a", "b", "c"), (Series("s", (-3.5, 12.25, 1e-9)),), "USD")
    (left, right, small), found = bars(chart), drawn(chart)
    assert left[0] + left[2] == pytest.approx(right[0], abs=0.2)
    assert left[2] / right[2] == pytest.approx(3.5 / 12.25, rel=0.02)
    assert small[2] < 1
    assert left[1] < right[1] < small[1]
    texts = [text.text for text in found.iterfind("text")]
    assert texts == ["USD", "a", "-3.5", "b", "12.25", "c", "≈ 0"]


def test_stacked_bars_stand_on_each_other() -> None:
    """What is positive to one side, what is negative to the other, and the sum at the end."""
    chart = Chart("c", "C", ChartKind.STACKED, ("a",), tuple(Series(str(n), (n,)) for n in (5, 10, -2, None)))
    five, ten, minus = bars(chart)
    assert five[0] + five[2] == pytest.approx(ten[0], abs=0.2)
    assert minus[0] + minus[2] == pytest.approx(five[0], abs=0.2)
    assert ten[2] == pytest.approx(2 * five[2], abs=0.2)
    assert "13" in [text.text for text in drawn(chart).iterfind("text")]


def test_bars_over_times_run_from_left_to_right() -> None:
    """Beside each other for each day, upwards from nought; none is outside of the drawing."""
    labels = days("2026-10-01", 31)
    series = (Series("a", tuple(range(31))), Series("b", tuple(-day for day in range(31))))
    found = bars(Chart("c", "C", ChartKind.BAR, labels, series))
    assert len(found) == 62
    assert [one[0] for one in found] == sorted(one[0] for one in found)
    assert all(x >= 0 and x + width <= 520 and y >= 0 and y + height <= 236 for x, y, width, height in found)


@pytest.mark.parametrize("kind", ChartKind)
@pytest.mark.parametrize("name", [*HOSTILE, ""])
def test_names_of_clients_are_texts(kind: ChartKind, name: str) -> None:
    """Well-formed, whatever they are, and no element of its own."""
    chart = Chart("c", name, kind, (name, name), (Series(name, (1, None)), Series(name, (2, 3))), name, name)
    kinds = {element.tag for element in drawn(chart).iter()}
    assert kinds <= {
        "svg",
        "title",
        "desc",
        "text",
        "line",
        "polyline",
        "circle",
        "g",
        "rect",
        "defs",
        "pattern",
        "path",
    }
    assert "<script" not in legend(chart, 0)


@pytest.mark.parametrize("kind", ChartKind)
def test_a_chart_of_nothing_is_an_empty_frame(kind: ChartKind) -> None:
    """No labels, or no series."""
    for chart in (Chart("c", "C", kind, (), (Series("a", ()),)), Chart("c", "C", kind, ("a",), ())):
        assert drawn(chart).find("rect") is None
