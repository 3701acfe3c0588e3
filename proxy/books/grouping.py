"""What a report may be grouped by, and days of a zone as arithmetic that every database can do.

In: names of keys and a period. Out: SQLAlchemy expressions over the table `attempts`. A day is a number of days since
1970 in the zone: the offset of the zone from UTC is constant between its transitions, and they are written into the
statement, so that SQLite, PostgreSQL and DuckDB come to the same day.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import BigInteger, ColumnElement, case, func, literal

from proxy.books.document import Cell
from proxy.stores.schema import attempts

_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Zones have changed their offset a few times a year; nobody's ledger is older than this or newer than that.
_FIRST_YEAR, _LAST_YEAR = 2020, 2045

#: By these an attempt may be grouped; the order in which a report lists them.
KEYS: Final = (
    *("tenant", "vendor", "model", "model_alias", "upstream", "credential", "endpoint", "ending", "usage_state"),
    *("hour", "day", "week", "month"),
)
_PLAIN = {
    name: attempts.c[name]
    for name in ("tenant", "vendor", "model_alias", "upstream", "credential", "endpoint", "ending", "usage_state")
}
_TIMES = ("hour", "day", "week", "month")


def check_keys(names: tuple[str, ...]) -> None:
    """Raises `ValueError` for what cannot be grouped by."""
    unknown = [name for name in names if name not in KEYS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is nothing to group by; there are {', '.join(KEYS)}")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{twice[0]!r} stands twice")
    times = [name for name in names if name in _TIMES]
    if len(times) > 1:
        raise ValueError(f"{times[0]!r} and {times[1]!r}: one span of time is enough")


def expression(name: str, zone: str, since: int | None = None, until: int | None = None) -> ColumnElement[Any]:
    """The key as SQL, right for `since <= started_at < until`. Weeks and months come as days: `cell_of` makes one of
    seven."""
    if name == "model":
        return func.coalesce(attempts.c.served_model, attempts.c.model)
    if name == "hour":
        return _floor(attempts.c.started_at + _offset(zone, since, until), _HOUR_US)
    if name in _TIMES:
        return _floor(attempts.c.started_at + _offset(zone, since, until), _DAY_US)
    return _PLAIN[name]


def _floor(value: ColumnElement[Any], unit: int) -> ColumnElement[Any]:
    return value // literal(unit, BigInteger)


def _offset(zone: str, since: int | None, until: int | None) -> ColumnElement[Any]:
    """The zone's offset at `started_at`, in microseconds. A year has three spans, all time has fifty, and each is a
    comparison for every row."""
    every = offsets(zone)
    begins = [None, *(end for end, _ in every[:-1])]
    spans = [
        span
        for begin, span in zip(begins, every, strict=True)
        if (span is every[-1] or since is None or span[0] > since) and (begin is None or until is None or begin < until)
    ] or every[-1:]  # bounds that nothing is between
    if len(spans) == 1:
        return literal(spans[0][1], BigInteger)
    started = attempts.c.started_at
    whens = [(started < literal(until, BigInteger), literal(offset, BigInteger)) for until, offset in spans[:-1]]
    return case(*whens, else_=literal(spans[-1][1], BigInteger))


@cache
def offsets(zone: str) -> tuple[tuple[int, int], ...]:
    """(until, offset) of each span with one offset, in microseconds, in order; the last one's `until` means nothing."""
    tz = ZoneInfo(zone)
    spans: list[tuple[int, int]] = []
    moment = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC)
    end = datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
    while moment < end:
        after = moment + timedelta(days=1)
        if _at(moment, tz) != _at(after, tz):
            spans.append((_micros(_transition(moment, after, tz)), _at(moment, tz)))
        moment = after
    return (*spans, (0, _at(end, tz)))


def _transition(low: datetime, high: datetime, tz: ZoneInfo) -> datetime:
    """The first second with the new offset."""
    old = _at(low, tz)
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        low, high = (middle, high) if _at(middle, tz) == old else (low, middle)
    return high


def _at(moment: datetime, tz: ZoneInfo) -> int:
    offset = moment.astimezone(tz).utcoffset() or timedelta(0)
    return offset // timedelta(microseconds=1)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def cell_of(name: str, value: Any) -> Cell:
    """What the reader of a report sees for a key: `2026-10-05`, `2026-W41`, `2026-10`, `2026-10-05 13:00`."""
    if value is None or name not in _TIMES:
        return None if value is None else str(value)
    if name == "hour":
        days, hour = divmod(int(value), 24)
        return f"{_day(days)} {hour:02d}:00"
    day = _day(int(value))
    if name == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02d}"
    return day if name == "day" else f"{day.year}-{day.month:02d}"


def _day(number: int) -> date:
    return date(1970, 1, 1) + timedelta(days=number)
