"""Lines that name a request, joined to the attempts that they are for.

In: the tables `ours` and `theirs`. Out: entries, and the tables `matched_ours` and `matched_lines` of what need not be
looked at again. One request charged twice is told by its id; a line without an attempt and an attempt without a line
each by itself. Set-based: only differences leave the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb

from proxy.books.finding import Reason
from proxy.books.reconciling.entries import Entry

#: A day by a zone, of microseconds. DuckDB's own zone setting plays no part.
DAY_OF = "CAST(timezone('{zone}', timezone('UTC', make_timestamp({micros}))) AS DATE)"

_CHARGES = """
CREATE OR REPLACE TEMP TABLE charges AS
WITH numbered AS (
    SELECT *, row_number() OVER (PARTITION BY request_id, kind ORDER BY line) AS copy,
        coalesce(day, {day}) AS charged_on
    FROM theirs WHERE request_id IS NOT NULL)
SELECT request_id, copy, min(line) AS line, min(place) AS place, min(model) AS model, min(charged_on) AS charged_on,
    coalesce(sum(tokens) FILTER (kind = 'input'), 0) AS input,
    coalesce(sum(tokens) FILTER (kind = 'cache_read'), 0) AS cache_read,
    coalesce(sum(tokens) FILTER (kind = 'cache_write'), 0) AS cache_write,
    coalesce(sum(tokens) FILTER (kind = 'output'), 0) AS output,
    count(tokens) > 0 AS says_tokens, sum(amount) AS amount, coalesce(sum(rounding), 0) AS rounding,
    bool_and(kind = 'other') AS is_other
FROM numbered GROUP BY request_id, copy
"""
# An attempt is found by its response's id or by its request's; the first of several (an id of a relay may repeat).
_PAIRS = """
CREATE OR REPLACE TEMP TABLE pairs AS
WITH ids AS (
    SELECT vendor_response_id AS id, attempt_id FROM ours WHERE vendor_response_id IS NOT NULL
    UNION SELECT vendor_request_id, attempt_id FROM ours WHERE vendor_request_id IS NOT NULL),
found AS (
    SELECT charges.request_id, min(ids.attempt_id) AS attempt_id
    FROM charges JOIN ids ON ids.id = charges.request_id WHERE charges.copy = 1 GROUP BY charges.request_id)
SELECT charges.*, ours.state, ours.grp, ours.attempt_id, ours.priced,
    ours.input AS our_input, ours.cache_read AS our_cache_read, ours.cache_write AS our_cache_write,
    ours.output AS our_output,
    ours.cost
FROM charges JOIN found USING (request_id) JOIN ours USING (attempt_id) WHERE charges.copy = 1
"""
# A half nano for each part that we rounded ourselves, and the last digit of what the vendor wrote.
_JUDGED = """
CREATE OR REPLACE TEMP TABLE judged AS
SELECT *,
    CASE WHEN state IN ('early', 'unseen', 'failed') THEN 'interrupted'
         WHEN state = 'told_nothing' THEN 'estimated'
         WHEN NOT says_tokens OR (input = our_input AND cache_read = our_cache_read AND cache_write = our_cache_write
                                  AND output = our_output) THEN
             CASE WHEN amount IS NULL THEN 'matched'
                  WHEN NOT priced THEN 'unpriced'
                  WHEN amount = cost THEN 'matched'
                  WHEN abs(amount - cost) <= rounding + 4 THEN 'rounded'
                  ELSE 'priced_differently' END
         WHEN input + cache_read + cache_write = our_input + our_cache_read + our_cache_write
              AND output = our_output THEN 'cached'
         ELSE 'unexplained' END AS judgement
FROM pairs WHERE charged_on BETWEEN ? AND ?
"""


@dataclass(frozen=True, slots=True)
class Span:
    """The period by the invoice's calendar, and the zone that it is cut in. `since` and `until` are microseconds;
    `skew` is how far the vendor's clock may be from ours, in microseconds."""

    first_day: date
    last_day: date
    zone: str
    since: int
    until: int
    skew: int

    def day_of(self, micros: str) -> str:
        return DAY_OF.format(zone=self.zone.replace("'", ""), micros=micros)

    @property
    def bounds(self) -> list[date]:
        return [self.first_day, self.last_day]


def match_requests(connection: duckdb.DuckDBPyConnection, span: Span) -> list[Entry]:
    """Join by id. Without a single pair nothing is said: the ids mean nothing here, and days are compared instead."""
    connection.execute(_CHARGES.format(day=span.day_of("moment")))
    connection.execute(_PAIRS)
    connection.execute(_JUDGED, span.bounds)
    connection.execute("CREATE OR REPLACE TEMP TABLE matched_ours AS SELECT attempt_id FROM pairs")
    if _one(connection, "SELECT count(*) FROM pairs") == 0:
        connection.execute("CREATE OR REPLACE TEMP TABLE matched_lines (line BIGINT)")
        return []
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE matched_lines AS SELECT line FROM theirs WHERE request_id IS NOT NULL"
    )
    return [*_judged(connection), *_copies(connection, span), *_without_attempt(connection, span)]


def _judged(connection: duckdb.DuckDBPyConnection) -> list[Entry]:
    rows = connection.execute(
        "SELECT judgement, grp, charged_on, count(*), sum(input), sum(cache_read), sum(cache_write), sum(output), "
        "sum(our_input), sum(our_cache_read), sum(our_cache_write), sum(our_output), bool_or(says_tokens), "
        "sum(coalesce(amount, 0)), sum(cost), list(place ORDER BY line)[1:3] "
        "FROM judged GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    return [_entry(*row) for row in rows]


def _entry(judgement: str, group: str, day: date, count: int, *figures: Any) -> Entry:
    theirs, ours, says_tokens = figures[0:4], figures[4:8], figures[8]
    amount, cost, places = figures[9:12]
    diff = tuple(int(a - b) for a, b in zip(theirs, ours, strict=True)) if says_tokens else (0, 0, 0, 0)
    whole = (int(theirs[0]), int(theirs[1]), int(theirs[2]), int(theirs[3]))
    tokens = (diff[0], diff[1], diff[2], diff[3])
    match judgement:
        case "interrupted":
            return Entry(
                Reason.INTERRUPTED, group, day, count, whole, int(amount), "ended early, and charged", tuple(places)
            )
        case "estimated":
            return Entry(Reason.ESTIMATED, group, day, 0, tokens, int(amount - cost), "the answers tell no usage", ())
        case "matched":
            return Entry(Reason.MATCHED, group, day)
        case "rounded":
            return Entry(Reason.ROUNDED, group, day, 0, tokens, int(amount - cost), "digits that were not written")
        case "priced_differently":
            detail = f"charged {ratio_word(int(amount), int(cost))} of the price here"
            return Entry(Reason.PRICED_DIFFERENTLY, group, day, 0, tokens, int(amount - cost), detail, tuple(places))
        case "cached":
            detail = "another part of the input was read from or written to the cache"
            return Entry(Reason.CACHED, group, day, 0, tokens, int(amount - cost), detail, tuple(places))
        case "unpriced":
            detail = "no price here: see `sluice check-prices`"
            return Entry(Reason.UNEXPLAINED, group, day, 0, tokens, int(amount - cost), detail, tuple(places))
        case _:
            detail = "other tokens than the answer itself reported"
            return Entry(Reason.UNEXPLAINED, group, day, 0, tokens, int(amount - cost), detail, tuple(places))


def ratio_word(amount: int, cost: int) -> str:
    """`120.00 %`: what was charged as a share of our price."""
    if not cost:
        return "more than nothing"
    hundredths = (20_000 * amount + cost) // (2 * cost)
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def _copies(connection: duckdb.DuckDBPyConnection, span: Span) -> list[Entry]:
    """An id that is charged again."""
    rows = connection.execute(
        "SELECT coalesce(pairs.grp, charges.model), charges.charged_on, count(*), sum(charges.input), "
        "sum(charges.cache_read), sum(charges.cache_write), sum(charges.output), sum(coalesce(charges.amount, 0)), "
        "list(charges.place ORDER BY charges.line)[1:3] FROM charges LEFT JOIN pairs USING (request_id) "
        "WHERE charges.copy > 1 AND charges.charged_on BETWEEN ? AND ? GROUP BY 1, 2 ORDER BY 1, 2",
        span.bounds,
    ).fetchall()
    return [
        Entry(Reason.RETRIED, row[0], row[1], row[2], _four(row[3:7]), int(row[7]), "charged once more", tuple(row[8]))
        for row in rows
    ]


def _without_attempt(connection: duckdb.DuckDBPyConnection, span: Span) -> list[Entry]:
    rows = connection.execute(
        "SELECT model, charged_on, count(*), sum(input), sum(cache_read), sum(cache_write), sum(output), "
        "sum(coalesce(amount, 0)), list(place ORDER BY line)[1:3], is_other FROM charges "
        "WHERE copy = 1 AND charged_on BETWEEN ? AND ? AND request_id NOT IN (SELECT request_id FROM pairs) "
        "GROUP BY model, charged_on, is_other ORDER BY ALL",
        span.bounds,
    ).fetchall()
    return [
        Entry(
            Reason.OTHER if row[9] else Reason.MISSING_HERE,
            row[0],
            row[1],
            0 if row[9] else row[2],
            _four(row[3:7]),
            int(row[7]),
            "no tokens" if row[9] else "no attempt here has its id",
            tuple(row[8]),
        )
        for row in rows
    ]


def unmatched_attempts(connection: duckdb.DuckDBPyConnection, span: Span) -> list[Entry]:
    """Attempts that no line is for, where every line names its request. One that ended early may well cost nothing."""
    day = span.day_of("started_at")
    rows = connection.execute(
        f"SELECT grp, {day} AS day, started_at >= ? AS is_late, count(*), sum(input), sum(cache_read), "
        "sum(cache_write), sum(output), sum(cost), list(attempt_id ORDER BY attempt_id)[1:3] FROM ours "
        "WHERE state IN ('sure', 'told_nothing') AND attempt_id NOT IN (SELECT attempt_id FROM matched_ours) "
        "AND started_at >= ? AND started_at < ? GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        [span.until - span.skew, span.since, span.until],
    ).fetchall()
    found = []
    for group, on, is_late, count, *rest in rows:
        tokens = _four([-figure for figure in rest[0:4]])
        reason = Reason.DAY_EDGE if is_late else Reason.MISSING_THERE
        detail = "at the end of the period: on the next invoice?" if is_late else "no line has its id"
        found.append(Entry(reason, group, on, -count, tokens, -int(rest[4]), detail, tuple(rest[5])))
    return found


def _four(figures: Any) -> tuple[int, int, int, int]:
    one, two, three, four = (int(figure or 0) for figure in figures)
    return one, two, three, four


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    row = connection.execute(sql).fetchone()
    assert row is not None, "an aggregate has a row"
    return int(row[0])
