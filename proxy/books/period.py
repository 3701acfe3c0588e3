"""A period as a person writes it, as days of a zone and as microseconds.

In: `2026`, `2026-10`, `2026-Q3`, `2026-10-05`, or two of them with `..` between (both inclusive), and a zone. Out: a
`Period`. Never: today's date.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from proxy.stores.ledger_rows import to_micros

_FORMS = "write 2026, 2026-Q3, 2026-10, 2026-10-05 or 2026-10-01..2026-10-15"
_YEAR = re.compile(r"(\d{4})", re.ASCII)
_QUARTER = re.compile(r"(\d{4})-[Qq]([1-4])", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days, `last_day` included, in the zone; `since` and `until` (exclusive) are in microseconds."""

    first_day: date
    last_day: date
    zone: str

    @property
    def since(self) -> int:
        return start_of(self.first_day, self.zone)

    @property
    def until(self) -> int:
        return start_of(self.last_day + timedelta(days=1), self.zone)

    @property
    def text(self) -> str:
        return f"{self.first_day} to {self.last_day}"


def start_of(day: date, zone: str) -> int:
    """The first moment of a day in a zone, in microseconds."""
    return to_micros(datetime.combine(day, time(), ZoneInfo(zone)))


def parse_period(text: str, zone: str) -> Period:
    """Raises `ValueError` that says what may be written."""
    first, separator, last = text.strip().partition("..")
    begins, ends = _span(first)
    if separator:
        ends = _span(last)[1]
    if ends < begins:
        raise ValueError(f"the period {text!r} ends before it begins")
    return Period(begins, ends, parse_zone(zone))


def parse_zone(zone: str) -> str:
    """An IANA name of a zone. Raises `ValueError`."""
    try:
        return ZoneInfo(zone).key
    except (ZoneInfoNotFoundError, ValueError, IsADirectoryError) as error:
        raise ValueError(f"{zone!r} is no time zone; write one such as UTC or America/Los_Angeles") from error


def _span(text: str) -> tuple[date, date]:
    text = text.strip()
    try:
        if (found := _YEAR.fullmatch(text)) is not None:
            return date(int(found[1]), 1, 1), date(int(found[1]), 12, 31)
        if (found := _QUARTER.fullmatch(text)) is not None:
            year, month = int(found[1]), 3 * int(found[2])
            return date(year, month - 2, 1), _end(year, month)
        if (found := _MONTH.fullmatch(text)) is not None:
            year, month = int(found[1]), int(found[2])
            return date(year, month, 1), _end(year, month)
        day = date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no period; {_FORMS}") from error
    return day, day


def _end(year: int, month: int) -> date:
    return date(year, month, calendar.monthrange(year, month)[1])
