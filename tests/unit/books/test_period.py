"""Periods as a person writes them, and days of a zone as arithmetic."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.books.grouping import KEYS, cell_of, check_keys, offsets
from proxy.books.period import parse_period, parse_zone

pytestmark = pytest.mark.clause("C3")

ZONES = ("UTC", "America/Los_Angeles", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026", "2026-01-01", "2026-12-31"),
        ("2026-Q1", "2026-01-01", "2026-03-31"),
        ("2026-q3", "2026-07-01", "2026-09-30"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2026-10-05", "2026-10-05", "2026-10-05"),
        (" 2026-10-01 .. 2026-10-15 ", "2026-10-01", "2026-10-15"),
        ("2026-09..2026-Q4", "2026-09-01", "2026-12-31"),
    ],
)
def test_a_period_is_whole_days(text: str, first: str, last: str) -> None:
    """Both ends belong to it."""
    period = parse_period(text, "UTC")
    assert (str(period.first_day), str(period.last_day)) == (first, last)
    assert period.until - period.since == ((period.last_day - period.first_day).days + 1) * 86_400_000_000


@pytest.mark.parametrize("text", ["", "2026-13", "26-01", "2026-Q5", "2026-02-30", "today", "2026-10-05T12:00", "٢٠٢٦"])
def test_what_is_no_period_says_what_is(text: str) -> None:
    """With all forms that there are."""
    with pytest.raises(ValueError, match=r"write 2026, 2026-Q3"):
        parse_period(text, "UTC")


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    """Somebody has changed the two."""
    with pytest.raises(ValueError, match="ends before it begins"):
        parse_period("2026-10-05..2026-10-01", "UTC")


def test_a_day_on_which_clocks_change_has_23_or_25_hours() -> None:
    """Bounds are moments of the zone."""
    spring, autumn = parse_period("2026-03-08", "America/New_York"), parse_period("2026-11-01", "America/New_York")
    assert [(one.until - one.since) // 3_600_000_000 for one in (spring, autumn)] == [23, 25]


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "Europe"])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    """A name of the time zone database, and nothing else."""
    with pytest.raises(ValueError, match="is no time zone"):
        parse_zone(zone)


@given(st.sampled_from(ZONES), st.datetimes(datetime(2021, 1, 1), datetime(2040, 1, 1)))
def test_the_offsets_of_a_zone_are_the_zones(zone: str, moment: datetime) -> None:
    """At any second, as the time zone database has it."""
    aware = moment.replace(microsecond=0, tzinfo=UTC)
    micros = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    spans = offsets(zone)
    found = next((offset for until, offset in spans[:-1] if micros < until), spans[-1][1])
    assert timedelta(microseconds=found) == aware.astimezone(ZoneInfo(zone)).utcoffset()


def test_keys_are_checked() -> None:
    """Unknown, twice, or two spans of time."""
    check_keys(("tenant", "model", "week"))
    for keys, words in ((("planet",), "nothing to group by"), (("day", "day"), "twice"), (("day", "hour"), "one span")):
        with pytest.raises(ValueError, match=words):
            check_keys(keys)
    assert len(set(KEYS)) == len(KEYS)


def test_a_span_of_time_is_shown_as_people_write_it() -> None:
    """A day, its week and month, an hour, and nothing."""
    day = (date(2026, 12, 31) - date(1970, 1, 1)).days
    assert cell_of("day", day) == date(2026, 12, 31)
    assert [cell_of(name, day) for name in ("week", "month")] == ["2026-W53", "2026-12"]
    assert cell_of("hour", 24 * day + 7) == "2026-12-31 07:00"
    assert (cell_of("tenant", None), cell_of("tenant", "商店")) == (None, "商店")
