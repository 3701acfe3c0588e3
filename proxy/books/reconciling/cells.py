"""Both sides summed by model and day: what an invoice without request ids is compared by.

In: the tables `ours` and `theirs` without what was matched by id. Out: `LedgerSlots` (sums by half hours, so that days
can be cut in any zone) and `InvoiceCell`s. An invoice that does not tell a kind of input from the rest has it in
`input`, and then so have we.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb

from proxy.books.invoice import PartKind
from proxy.books.reconciling.by_request import Span
from proxy.books.reconciling.figures import Figures, InvoiceCell, LedgerCell

#: Every zone in use is a whole number of these from UTC, but for three small ones a quarter hour off.
SLOT_US = 1_800_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACES = 3

#: Of a model on a day.
Key = tuple[str, date]

_LEDGER = f"""
SELECT grp, started_at // {SLOT_US} AS slot, state, count(*),
    sum(input), sum(cache_read), sum(cache_write), sum(output),
    sum(cost_input), sum(cost_cache_read), sum(cost_cache_write), sum(cost_output),
    sum(own_cost_input), sum(own_cost_output), count(*) FILTER (NOT priced)
FROM ours WHERE attempt_id NOT IN (SELECT attempt_id FROM matched_ours)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class Slot:
    """Attempts of one model that began in one half hour, all of one state."""

    group: str
    slot: int
    state: str
    figures: Figures
    uncosted: int


def fold_kinds(connection: duckdb.DuckDBPyConnection, kinds: frozenset[str]) -> None:
    """What the invoice has no kind of its own for is input to it."""
    if PartKind.INPUT not in kinds:
        return  # it tells no tokens by kind
    for kind in (PartKind.CACHE_READ, PartKind.CACHE_WRITE):
        if kind not in kinds:
            connection.execute(
                f"UPDATE ours SET input = input + {kind}, {kind} = 0, cost_input = cost_input + cost_{kind}, "
                f"cost_{kind} = 0"
            )


def ledger_slots(connection: duckdb.DuckDBPyConnection) -> list[Slot]:
    found = []
    for row in connection.execute(_LEDGER).fetchall():
        group, slot, state, requests = row[0], row[1], row[2], row[3]
        tokens = (int(row[4]), int(row[5]), int(row[6]), int(row[7]))
        cost = (int(row[8]), int(row[9]), int(row[10]), int(row[11]))
        if state != "sure":
            cost = (int(row[12]), 0, 0, int(row[13]))
        found.append(Slot(group, slot, state, Figures(requests, tokens, cost), int(row[14])))
    return found


class Days:
    """The day of a half hour in a zone, remembered."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self._known: dict[int, date] = {}

    def of(self, slot: int) -> date:
        day = self._known.get(slot)
        if day is None:
            moment = _EPOCH + timedelta(microseconds=slot * SLOT_US)
            day = self._known[slot] = moment.astimezone(self._zone).date()
        return day


def ledger_cells(slots: list[Slot], zone: str, first_day: date, last_day: date) -> dict[Key, LedgerCell]:
    """The slots as days of `zone`, those of the period."""
    days = Days(zone)
    cells: dict[Key, LedgerCell] = defaultdict(LedgerCell)
    for slot in slots:
        day = days.of(slot.slot)
        if not first_day <= day <= last_day:
            continue
        cell = cells[(slot.group, day)]
        match slot.state:
            case "sure":
                cell.sure += slot.figures
                cell.uncosted += slot.uncosted
            case "early":
                cell.early += slot.figures
            case "told_nothing":
                cell.told_nothing += slot.figures
            case "unseen":
                cell.unseen += slot.figures
            case _:
                cell.failed += slot.figures.requests
    return dict(cells)


def invoice_cells(connection: duckdb.DuckDBPyConnection, span: Span) -> dict[Key, InvoiceCell]:
    """Lines of the period that were not matched by id. Fees that are no tokens are not here: see `other_lines`."""
    rows = connection.execute(
        f"SELECT model, coalesce(day, {span.day_of('moment')}) AS on_day, kind, sum(tokens), sum(amount), "
        "sum(coalesce(rounding, 0)), sum(requests), count(DISTINCT line), list(place ORDER BY line)[1:3] FROM theirs "
        "WHERE line NOT IN (SELECT line FROM matched_lines) AND kind <> 'other' GROUP BY 1, 2, 3 "
        "HAVING on_day BETWEEN ? AND ? ORDER BY 1, 2, 3",
        span.bounds,
    ).fetchall()
    cells: dict[Key, InvoiceCell] = defaultdict(InvoiceCell)
    for group, day, kind, tokens, amount, rounding, requests, lines, places in rows:
        cell = cells[(group, day)]
        part = PartKind(kind)
        if tokens is not None:
            cell.tokens[part] = cell.tokens.get(part, 0) + int(tokens)
        if amount is not None:
            cell.amounts[part] = cell.amounts.get(part, 0) + int(amount)
        if requests is not None:
            cell.requests = (cell.requests or 0) + int(requests)
        cell.rounding += int(rounding)
        cell.lines += int(lines)
        cell.places += places[: _PLACES - len(cell.places)]
    return dict(cells)


def other_lines(connection: duckdb.DuckDBPyConnection, span: Span) -> list[tuple[str, date, int, list[str]]]:
    """What is no tokens: model, day, amount, places."""
    rows = connection.execute(
        f"SELECT model, coalesce(day, {span.day_of('moment')}) AS on_day, sum(coalesce(amount, 0)), "
        "list(place ORDER BY line)[1:3] FROM theirs WHERE line NOT IN (SELECT line FROM matched_lines) "
        "AND kind = 'other' GROUP BY 1, 2 HAVING on_day BETWEEN ? AND ? ORDER BY 1, 2",
        span.bounds,
    ).fetchall()
    return [(row[0], row[1], int(row[2]), list(row[3])) for row in rows]


def lines_outside(connection: duckdb.DuckDBPyConnection, span: Span) -> int:
    """Lines of other days than the period's."""
    row = connection.execute(
        f"SELECT count(DISTINCT line) FROM theirs WHERE coalesce(day, {span.day_of('moment')}) NOT BETWEEN ? AND ?",
        span.bounds,
    ).fetchone()
    assert row is not None, "an aggregate has a row"
    return int(row[0])


def totals_by_group(cells: Mapping[Key, LedgerCell]) -> dict[str, Figures]:
    """The sure attempts of each model over all days."""
    totals: dict[str, Figures] = defaultdict(Figures)
    for (group, _), cell in cells.items():
        totals[group] += cell.sure
    return dict(totals)
