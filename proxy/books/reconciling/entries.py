"""What one step of a comparison came to, for one model on one day; and entries put together into findings.

Values and their merging, sans-I/O. An entry is invoice minus ledger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from proxy.books.finding import Finding, Reason
from proxy.books.reconciling.figures import Tokens, added

#: Entries of these go on over days; of the others each run of days is a matter of its own.
_EXPECTED = frozenset({Reason.MATCHED, Reason.ROUNDED, Reason.INTERRUPTED, Reason.ESTIMATED, Reason.OTHER})
_PLACES = 5
_NOTHING: Tokens = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """`amount` is in nano-units; `detail` is the same for entries that are one matter; `places` are lines or attempts
    that it rests on."""

    reason: Reason
    group: str
    day: date
    requests: int = 0
    tokens: Tokens = _NOTHING
    amount: int = 0
    detail: str = ""
    places: tuple[str, ...] = ()

    def plus(self, other: Entry) -> Entry:
        """Both as one, of the earlier day."""
        return Entry(
            self.reason,
            self.group,
            min(self.day, other.day),
            self.requests + other.requests,
            added(self.tokens, other.tokens),
            self.amount + other.amount,
            self.detail,
            (*self.places, *other.places)[:_PLACES],
        )


def merged(entries: Iterable[Entry], quiet_days: frozenset[tuple[str, date]], currency: str | None) -> list[Finding]:
    """Findings in a fixed order: what is expected once for each model, all else for each run of days. A day in
    `quiet_days` (of a group) has no traffic and does not break a run."""
    runs: list[tuple[list[Entry], date]] = []
    latest: dict[tuple[Reason, str, str], int] = {}
    for entry in sorted(entries, key=lambda one: (one.reason, one.group, one.detail, one.day)):
        key = (entry.reason, entry.group, entry.detail)
        at = latest.get(key)
        if at is not None and (entry.reason in _EXPECTED or _follows(runs[at][1], entry, quiet_days)):
            runs[at][0].append(entry)
            runs[at] = runs[at][0], entry.day
        else:
            latest[key] = len(runs)
            runs.append(([entry], entry.day))
    order = list(Reason)
    findings = [_finding(run, currency) for run, _ in runs]
    return sorted(findings, key=lambda one: (order.index(one.reason), one.model or "", one.first_day, one.detail))


def _follows(last: date, entry: Entry, quiet_days: frozenset[tuple[str, date]]) -> bool:
    day = last + timedelta(days=1)
    while day < entry.day and (entry.group, day) in quiet_days:
        day += timedelta(days=1)
    return entry.day <= day


def _finding(run: list[Entry], currency: str | None) -> Finding:
    total = run[0]
    for entry in run[1:]:
        total = total.plus(entry)
    days = [entry.day for entry in run]
    return Finding(
        reason=total.reason,
        model=total.group or None,
        first_day=min(days),
        last_day=max(days),
        requests=total.requests,
        tokens=sum(total.tokens),
        amount=total.amount,
        currency=currency,
        detail=total.detail,
        places=tuple(sorted(set(total.places)))[:_PLACES],
    )
