"""Drift as a report: what its tables and charts show of what was found."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from proxy.books.changes import Change, Day
from proxy.books.document import Table
from proxy.books.drift import Drift, Outlier
from proxy.books.drift_report import drift_document
from proxy.metering.fit import Fit

pytestmark = pytest.mark.clause("C3")

FIRST = date(2026, 3, 1)
LINE = Fit(400, True, 1.18, 12.0, 3.5, 0.005, "scale 1.18 + 12")


def days(*ratios: float) -> tuple[Day, ...]:
    return tuple(Day(FIRST + timedelta(days=at), 10, 1000, 1000, ratio) for at, ratio in enumerate(ratios))


def drift(
    model: str,
    side: str = "input",
    *,
    attempts: int = 20,
    fit: Fit = LINE,
    changes: tuple[Change, ...] = (),
    outliers: tuple[Outlier, ...] = (),
    of: tuple[Day, ...] = (),
) -> Drift:
    return Drift("千帆", model, side, "o200k_base prompt-1", attempts, fit, changes, outliers, of or days(1.18, 1.18))


def test_lines_changes_and_outliers_are_tables_and_heads() -> None:
    """Each with all that was found, money nowhere, and a bad tone if a vendor changed."""
    change = Change(FIRST + timedelta(days=1), 1.0, 1.07)
    far = Outlier("عجیب", FIRST, 1000, 3000, 51.3)
    document = drift_document([drift("نمونه", changes=(change,), outliers=(far,)), drift("m", "output")], (("a", "b"),))
    assert (document.name, document.facts) == ("drift", (("a", "b"),))
    assert [(one.name, one.value, one.tone) for one in document.headlines] == [
        ("changed", 1, "bad"),
        ("compared", 2, "plain"),
        ("outliers", 1, "plain"),
    ]
    lines, changes, outliers = document.tables
    counter = "o200k_base prompt-1"
    assert lines.rows == [
        ("千帆", "نمونه", "input", counter, 20, 1.18, 12.0, 3.5, 0.005, "scale 1.18 + 12"),
        ("千帆", "m", "output", counter, 20, 1.18, 12.0, 3.5, 0.005, "scale 1.18 + 12"),
    ]
    assert changes.rows == [("千帆", "نمونه", "input", date(2026, 3, 2), 1.0, 1.07, 0.07)]
    assert outliers.rows == [("千帆", "نمونه", "input", "عجیب", FIRST, 1000, 3000, 51.3)]
    _check_widths(document.tables)


def test_a_line_that_is_not_shown_has_no_figures() -> None:
    """A nought would be read as one."""
    document = drift_document([drift("m", fit=Fit(2))], ())
    assert document.tables[0].rows[0][5:] == (None, None, None, None, "not enough data")


def test_a_change_from_nothing_has_no_share() -> None:
    """It is listed all the same."""
    document = drift_document([drift("m", changes=(Change(FIRST, 0.0, 1.0),))], ())
    assert document.tables[1].rows == [("千帆", "m", "input", FIRST, 0.0, 1.0, None)]


def test_nothing_compared_is_a_report_too() -> None:
    """With empty tables, no chart and a good tone."""
    document = drift_document([], ())
    assert [one.value for one in document.headlines] == [0, 0, 0]
    assert document.headlines[0].tone == "good"
    assert [list(table.rows) for table in document.tables] == [[], [], []]
    assert document.charts == ()
    _check_widths(document.tables)


def test_charts_show_who_changed_and_then_the_busiest() -> None:
    """Six lines at most for each side; a day that one of them lacks is a gap."""
    quiet = [drift(f"m-{number}", attempts=100 - number) for number in range(8)]
    changed = drift("changed", attempts=1, changes=(Change(FIRST, 1.0, 1.1),), of=days(1.0, 1.1, 1.1))
    document = drift_document([*quiet, changed, drift("m-0", "output")], ())
    asked, made = document.charts
    assert asked.labels == ("2026-03-01", "2026-03-02", "2026-03-03")
    assert [one.title for one in asked.series] == [
        f"千帆 {name}" for name in ("changed", *map("m-{}".format, range(5)))
    ]
    assert [one.values for one in asked.series[:2]] == [(1.0, 1.1, 1.1), (1.18, 1.18, None)]
    assert (made.name, len(made.series), made.labels) == ("ratio_output", 1, ("2026-03-01", "2026-03-02"))


def _check_widths(tables: tuple[Table, ...]) -> None:
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)
