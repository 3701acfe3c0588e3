"""What no id joined, compared by model and day in the invoice's zone.

In: the tables `ours` and `theirs` without what was matched by id. Out: entries that add up to invoice minus ledger.
The zone is told by the figures where it is clearly another; requests near midnight are looked for before a day's
difference is explained by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

import duckdb

from proxy.books.finding import Reason
from proxy.books.reconciling.by_request import Span, unmatched_attempts
from proxy.books.reconciling.cells import Key, invoice_cells, ledger_cells, ledger_slots, other_lines
from proxy.books.reconciling.entries import Entry
from proxy.books.reconciling.expectation import Scale, charges_early, expected, scales
from proxy.books.reconciling.explaining import Cell, Prices, edge_entries, explain_money, explain_tokens
from proxy.books.reconciling.figures import Figures, InvoiceCell, LedgerCell
from proxy.books.reconciling.zones import better_zone


@dataclass(frozen=True, slots=True)
class DayComparison:
    """`zone` is the one that the days were compared in."""

    zone: str
    entries: list[Entry]
    ledger: Mapping[Key, LedgerCell]
    invoice: Mapping[Key, InvoiceCell]


def compare_days(connection: duckdb.DuckDBPyConnection, span: Span, *, matched_any: bool) -> DayComparison:
    """What no id joined."""
    theirs = invoice_cells(connection, span)
    others = [
        Entry(Reason.OTHER, group, day, amount=amount, detail="no tokens", places=tuple(places))
        for group, day, amount, places in other_lines(connection, span)
    ]
    if matched_any and not theirs:
        return DayComparison(span.zone, [*others, *unmatched_attempts(connection, span)], {}, {})
    slots = ledger_slots(connection)
    zone = better_zone(slots, theirs, span.zone, span.first_day, span.last_day) or span.zone
    ours = ledger_cells(slots, zone, span.first_day, span.last_day)
    cells = _cells(connection, zone, ours, theirs)
    moved = _edges(connection, span, zone, cells)
    entries = [*others]
    for key in sorted(cells):
        cell = cells[key]
        explained = explain_money(cell, explain_tokens(cell, moved.get(key, [])))
        if not explained or all(entry.reason in (Reason.ROUNDED, Reason.ESTIMATED) for entry in explained):
            explained = [Entry(Reason.MATCHED, cell.group, cell.day), *explained]
        entries += explained
    return DayComparison(zone, entries, ours, theirs)


def _cells(
    connection: duckdb.DuckDBPyConnection,
    zone: str,
    ours: Mapping[Key, LedgerCell],
    theirs: Mapping[Key, InvoiceCell],
) -> dict[Key, Cell]:
    early = charges_early(ours, theirs)
    by_model = scales(_counted(connection))
    totals = _prices_of(ours)
    again = _tried_again(connection, zone)
    says_money = any(cell.amounts for cell in theirs.values())
    says_tokens = {group for (group, _), cell in theirs.items() if cell.tokens}
    cells = {}
    for key in sorted(ours.keys() | theirs.keys()):
        group, day = key
        ledger, invoice = ours.get(key, LedgerCell()), theirs.get(key, InvoiceCell())
        if invoice.requests is None and any(cell.requests is not None for cell in theirs.values()):
            invoice.requests = 0  # counted elsewhere: a day that is not listed had none
        if not ledger.attempts and not invoice.lines:
            continue
        cells[key] = Cell(
            group,
            day,
            ledger,
            invoice,
            expected(ledger, by_model.get(group, Scale()), early=early),
            group in says_tokens or (bool(says_tokens) and not invoice.lines),
            says_money,
            _day_prices(ledger, totals.get(group)),
            again.get(key, ()),
        )
    return cells


def _counted(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int, int, int]]:
    rows = connection.execute(
        "SELECT grp, sum(input + cache_read + cache_write), sum(counted_input), sum(output), sum(counted_output) "
        "FROM ours WHERE state = 'sure' AND counted_input > 0 GROUP BY 1 ORDER BY 1"
    ).fetchall()
    return {row[0]: (int(row[1]), int(row[2]), int(row[3]), int(row[4])) for row in rows}


def _prices_of(ours: Mapping[Key, LedgerCell]) -> dict[str, Prices]:
    """What a token cost on the whole: for a day that had none of its kind."""
    totals: dict[str, Figures] = defaultdict(Figures)
    others: dict[str, Figures] = defaultdict(Figures)
    for (group, _), cell in sorted(ours.items()):
        totals[group] += cell.sure
        others[group] += cell.told_nothing + cell.early
    return {group: _first(_token_prices(total), _token_prices(others[group])) for group, total in totals.items()}


def _token_prices(total: Figures) -> Prices:
    one, two, three, four = (
        Fraction(cost, tokens) if tokens else None for cost, tokens in zip(total.cost, total.tokens, strict=True)
    )
    return one, two, three, four


def _day_prices(cell: LedgerCell, whole: Prices | None) -> Prices:
    today = _first(_token_prices(cell.sure), _token_prices(cell.told_nothing + cell.early))
    return today if whole is None else _first(today, whole)


def _first(prices: Prices, others: Prices) -> Prices:
    """The others where there is none: attempts without usage are priced by our count, at the same price."""
    one, two, three, four = (now if now is not None else then for now, then in zip(prices, others, strict=True))
    return one, two, three, four


def _tried_again(connection: duckdb.DuckDBPyConnection, zone: str) -> dict[Key, list[Figures]]:
    """Attempts of requests that were tried more than once, by the day of their start."""
    span = Span(date.min, date.max, zone, 0, 0, 0)
    rows = connection.execute(
        f"SELECT grp, {span.day_of('started_at')}, input, cache_read, cache_write, output FROM ours "
        "WHERE state = 'sure' AND attempt_id NOT IN (SELECT attempt_id FROM matched_ours) AND (attempt_no > 1 OR "
        "request_id IN (SELECT request_id FROM ours GROUP BY 1 HAVING count(*) > 1)) ORDER BY ALL"
    ).fetchall()
    found: dict[Key, list[Figures]] = defaultdict(list)
    for group, day, *tokens in rows:
        found[(group, day)].append(Figures(1, (int(tokens[0]), int(tokens[1]), int(tokens[2]), int(tokens[3]))))
    return found


# -- midnight ---------------------------------------------------------------------------------------------------------


def _edges(
    connection: duckdb.DuckDBPyConnection, span: Span, zone: str, cells: Mapping[Key, Cell]
) -> dict[Key, list[Entry]]:
    """Requests on the other side of midnight, for each day that has too few or too many."""
    near = _near_midnight(connection, zone, span.skew)
    moved: dict[Key, list[Entry]] = defaultdict(list)
    day = span.first_day - timedelta(days=1)
    groups = sorted({group for group, _ in cells})
    while day <= span.last_day:
        after = day + timedelta(days=1)
        for group in groups:
            one, other = cells.get((group, day)), cells.get((group, after))
            last = near.get((group, day, True), [])
            first = near.get((group, after, False), [])
            if (one is None and other is None) or not (last or first):
                continue
            if (group, day) in moved:  # its night before was odd already: its figures are not what they were
                continue
            for key, entry in zip(((group, day), (group, after)), edge_entries(one, other, last, first), strict=True):
                if entry is not None:
                    moved[key].append(entry)
        day = after
    return moved


def _near_midnight(
    connection: duckdb.DuckDBPyConnection, zone: str, skew: int
) -> dict[tuple[str, date, bool], list[Figures]]:
    """By model and day: the attempts that began within the skew of its end (True), the latest first, and of its
    beginning (False), the earliest first."""
    local = f"timezone('{zone}', timezone('UTC', make_timestamp(started_at)))"
    rows = connection.execute(
        f"SELECT grp, CAST({local} AS DATE) AS day, epoch_us({local} - CAST({local} AS DATE)) AS after, input, "
        "cache_read, cache_write, output FROM ours WHERE state = 'sure' "
        "AND attempt_id NOT IN (SELECT attempt_id FROM matched_ours) "
        "AND (after < ? OR after >= 86400000000 - ?) ORDER BY started_at, attempt_id",
        [skew, skew],
    ).fetchall()
    found: dict[tuple[str, date, bool], list[Figures]] = defaultdict(list)
    for group, day, after, *tokens in rows:
        attempt = Figures(1, (int(tokens[0]), int(tokens[1]), int(tokens[2]), int(tokens[3])))
        is_end = after >= skew
        if is_end:
            found[(group, day, True)].insert(0, attempt)
        else:
            found[(group, day, False)].append(attempt)
    return found
