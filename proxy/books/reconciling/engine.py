"""A vendor's invoice against the ledger: from two tables to findings (contract C3).

In: a DuckDB connection with the relation `attempts` (the vendor's, of the period and a day and a half around it), an
invoice, the period. Out: a `Reconciliation`, whose entries add up to invoice minus ledger. First by request id where
lines have one that we know; what is left by model and day in the invoice's zone. The same figures give the same
findings: there is no clock and no chance in here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta

import duckdb

from proxy.books.finding import Finding, Reason
from proxy.books.invoice import Invoice
from proxy.books.reconciling.by_day import DayComparison, compare_days
from proxy.books.reconciling.by_request import Span, match_requests
from proxy.books.reconciling.cells import Key, fold_kinds, lines_outside
from proxy.books.reconciling.entries import Entry, merged
from proxy.books.reconciling.loading import Said, load_ours, load_theirs, name_groups
from proxy.books.reconciling.result import DayRow, Question, Reconciliation, Side, summed_sides


def reconcile(connection: duckdb.DuckDBPyConnection, invoice: Invoice, question: Question) -> Reconciliation:
    """Compare. `connection` gets temporary tables. Raises `ValueError` for an invoice in several currencies."""
    load_ours(connection)
    said = load_theirs(connection, invoice)
    name_groups(connection, said)
    fold_kinds(connection, said.kinds)
    foreign = _other_currencies(connection, said.currency)
    zone = invoice.time_zone or question.zone
    span = question.span(zone)
    matched = match_requests(connection, span)
    rest = compare_days(connection, span, matched_any=bool(matched))
    entries = [*matched, *rest.entries]
    if rest.zone != zone:
        span = question.span(rest.zone)
        entries.append(
            Entry(Reason.TIME_ZONE, "", question.first_day, detail=f"its days are those of {rest.zone}, not of {zone}")
        )
    return _concluded(connection, question, said, span, entries, rest, foreign, is_by_id=bool(matched))


def _other_currencies(connection: duckdb.DuckDBPyConnection, currency: str | None) -> tuple[tuple[str, int], ...]:
    """Attempts that are priced in another currency than the invoice's: their prices cannot be compared with it."""
    if currency is None:
        return ()
    rows = connection.execute(
        "SELECT currency, count(*) FROM ours WHERE currency <> ? GROUP BY 1 ORDER BY 1", [currency]
    ).fetchall()
    connection.execute("UPDATE ours SET priced = false WHERE currency <> ?", [currency])
    return tuple((row[0], row[1]) for row in rows)


def _concluded(
    connection: duckdb.DuckDBPyConnection,
    question: Question,
    said: Said,
    span: Span,
    entries: Sequence[Entry],
    rest: DayComparison,
    foreign: tuple[tuple[str, int], ...],
    *,
    is_by_id: bool,
) -> Reconciliation:
    theirs = _their_days(connection, span, is_by_id=is_by_id)
    ours = _our_days(connection, span, is_by_id=is_by_id)
    quiet = frozenset((group, day) for group, _ in theirs.keys() | ours.keys() for day in _all_days(span)) - frozenset(
        theirs.keys() | ours.keys()
    )
    open_left: dict[Key, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.reason is Reason.UNEXPLAINED:
            open_left[(entry.group, entry.day)].append(entry)
    none = Side(None, 0, 0)
    days = tuple(
        DayRow(
            *key,
            theirs.get(key, none),
            ours.get(key, none),
            sum(entry.amount for entry in open_left.get(key, ())),
            sum(sum(entry.tokens) for entry in open_left.get(key, ())),
        )
        for key in sorted(theirs.keys() | ours.keys())
    )
    unexplained = [entry for entry in entries if entry.reason is Reason.UNEXPLAINED]
    return Reconciliation(
        question=question,
        zone=rest.zone,
        currency=said.currency,
        invoice=summed_sides(theirs.values()),
        ledger=summed_sides(ours.values()),
        counted=_counted_side(connection, span),
        entries=tuple(entries),
        findings=tuple(_with_spans(merged(entries, quiet, said.currency), question)),
        days=days,
        matched_requests=_matched(connection, span),
        invoice_lines=said.lines,
        lines_outside=lines_outside(connection, span),
        open_attempts=_count(connection, "SELECT count(*) FROM ours WHERE ending IS NULL"),
        other_currencies=foreign,
        unexplained=sum(abs(entry.amount) for entry in unexplained),
        unexplained_tokens=sum(abs(figure) for entry in unexplained for figure in entry.tokens),
    )


def _with_spans(findings: Sequence[Finding], question: Question) -> list[Finding]:
    """A zone is a matter of the whole period."""
    return [
        Finding(one.reason, None, question.first_day, question.last_day, 0, 0, 0, one.currency, one.detail, one.places)
        if one.reason is Reason.TIME_ZONE
        else one
        for one in findings
    ]


def _all_days(span: Span) -> list[date]:
    return [span.first_day + timedelta(days=n) for n in range((span.last_day - span.first_day).days + 1)]


def _their_days(connection: duckdb.DuckDBPyConnection, span: Span, *, is_by_id: bool) -> dict[Key, Side]:
    rows = connection.execute(
        f"SELECT model, coalesce(day, {span.day_of('moment')}) AS on_day, sum(coalesce(tokens, 0)), "
        "sum(coalesce(amount, 0)), sum(requests) FROM theirs GROUP BY 1, 2 HAVING on_day BETWEEN ? AND ? ORDER BY 1, 2",
        span.bounds,
    ).fetchall()
    counted: dict[Key, int] = {}
    if is_by_id:
        charges = "SELECT model, charged_on, count(*) FROM charges WHERE NOT is_other GROUP BY 1, 2 ORDER BY 1, 2"
        counted = {(row[0], row[1]): row[2] for row in connection.execute(charges).fetchall()}
    return {
        (row[0], row[1]): Side(
            counted.get((row[0], row[1]), 0) if is_by_id else None if row[4] is None else int(row[4]),
            int(row[2]),
            int(row[3]),
        )
        for row in rows
    }


def _our_days(connection: duckdb.DuckDBPyConnection, span: Span, *, is_by_id: bool) -> dict[Key, Side]:
    """The sure attempts and those whose vendor tells nothing; joined ones on the day of their line."""
    day = span.day_of("started_at")
    joined = f"coalesce(pairs.charged_on, {day})" if is_by_id else day
    rows = connection.execute(
        f"SELECT ours.grp, {joined} AS on_day, count(*), "
        "sum(ours.input + ours.cache_read + ours.cache_write + ours.output), sum(ours.cost) "
        "FROM ours LEFT JOIN pairs USING (attempt_id) WHERE ours.state IN ('sure', 'told_nothing') GROUP BY 1, 2 "
        "HAVING on_day BETWEEN ? AND ? ORDER BY 1, 2",
        span.bounds,
    ).fetchall()
    return {(row[0], row[1]): Side(int(row[2]), int(row[3]), int(row[4])) for row in rows}


def _counted_side(connection: duckdb.DuckDBPyConnection, span: Span) -> Side:
    """All by our own count, those that ended early included."""
    row = connection.execute(
        "SELECT count(*), sum(counted_input + counted_output), "
        "sum(own_cost_input + own_cost_output) FROM ours "
        "WHERE state IN ('sure', 'early', 'told_nothing') AND started_at >= ? AND started_at < ?",
        [span.since, span.until],
    ).fetchone()
    assert row is not None, "an aggregate has a row"
    return Side(int(row[0]), int(row[1] or 0), int(row[2] or 0))


def _matched(connection: duckdb.DuckDBPyConnection, span: Span) -> int:
    return _count(connection, "SELECT count(*) FROM pairs WHERE charged_on BETWEEN ? AND ?", span.bounds)


def _count(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> int:
    row = connection.execute(sql, list(parameters)).fetchone()
    assert row is not None, "an aggregate has a row"
    return int(row[0])
