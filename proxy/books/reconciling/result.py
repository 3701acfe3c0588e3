"""What is asked of a reconciliation and what comes out of it: values (contract C3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from proxy.books.finding import Finding
from proxy.books.reconciling.by_request import Span
from proxy.books.reconciling.entries import Entry
from proxy.stores.ledger_rows import to_micros

#: How far around the period the attempts have to be there: a day's shift of zones, and the clocks.
MARGIN = timedelta(hours=36)
#: How far from midnight a request may have been booked on the other day.
DEFAULT_SKEW = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Question:
    """The period's days by the invoice's calendar, and the zone to take where the invoice does not say its own."""

    vendor: str
    first_day: date
    last_day: date
    zone: str
    skew: timedelta = DEFAULT_SKEW

    def span(self, zone: str) -> Span:
        tz = ZoneInfo(zone)
        since = datetime.combine(self.first_day, time(), tz)
        until = datetime.combine(self.last_day + timedelta(days=1), time(), tz)
        skew = self.skew // timedelta(microseconds=1)
        return Span(self.first_day, self.last_day, zone, to_micros(since), to_micros(until), skew)


@dataclass(frozen=True, slots=True)
class Side:
    """One side's sums: requests (None: not counted), tokens, money in nano-units."""

    requests: int | None
    tokens: int
    amount: int


@dataclass(frozen=True, slots=True)
class DayRow:
    """Both sides of a model on a day, and how much of what differs is not explained."""

    group: str
    day: date
    invoice: Side
    ledger: Side
    unexplained: int
    unexplained_tokens: int


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """`entries` are invoice minus ledger, a reason for each; `findings` the same put together. `zone` is the one that
    the days were compared in. Nothing unexplained: `unexplained` is 0 (nano-units, all signs counted), and so is
    `unexplained_tokens`."""

    question: Question
    zone: str
    currency: str | None
    invoice: Side
    ledger: Side
    counted: Side
    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]
    days: tuple[DayRow, ...]
    matched_requests: int
    invoice_lines: int
    lines_outside: int
    open_attempts: int
    other_currencies: tuple[tuple[str, int], ...]
    unexplained: int
    unexplained_tokens: int


def summed_sides(sides: Iterable[Side]) -> Side:
    every = list(sides)
    counted = [side.requests for side in every if side.requests is not None]
    return Side(
        sum(counted) if counted else None, sum(side.tokens for side in every), sum(side.amount for side in every)
    )
