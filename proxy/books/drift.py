"""How a vendor's tokens stand to ours, and the days on which that changed (contract C3, L4).

In: a DuckDB connection with the relation `attempts`. Out: for each vendor, model and side (input, output) a robust line
(slope, offset, what is left over), the days of a change, and the attempts that stand out. Only attempts whose vendor
reported final figures count; of their output what the vendor says was reasoning is left out, and ours of it too, for
what it hides cannot be counted. Medians throughout, so that a few odd attempts move nothing; samples are taken by a
hash of the attempt's id, so that they are the same each time. Never: one of our tokenizers against another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

import duckdb

from proxy.books.changes import SIGMA, Change, Day, changes_in
from proxy.books.finding import Finding, Reason
from proxy.books.grouping import offsets
from proxy.books.period import start_of
from proxy.metering.fit import MAX_LOOSENESS, Fit, fit_line

#: A share of a few tokens is no ratio: shorter texts say nothing.
_SHORTEST: Final = 40
#: A day with fewer attempts has no level.
_ATTEMPTS_A_DAY: Final = 5
#: So many attempts of a model and day make its level, and so many of its days a line (whose pairs are eighty thousand).
_SAMPLE: Final = 400
#: In robust standard deviations. Languages differ: at a few deviations there are always some.
_FAR: Final = 12.0
#: What is left over is rounded, and few tokens off are no news.
_LEAST_LEFT_OVER: Final = 3.0
#: So many of each line are told, the farthest first.
FARTHEST: Final = 20
_SIDES: Final = ("input", "output")
Key = tuple[str, str, str, str]  # vendor, model, side, our counter


@dataclass(frozen=True, slots=True)
class Outlier:
    """An attempt far from the line of its day: `deviations` robust standard deviations."""

    attempt_id: str
    day: date
    counted: int
    reported: int
    deviations: float


@dataclass(frozen=True, slots=True)
class Drift:
    """`fit` is of the days since the last change. The ratio of `days` and `changes` is without the offset, for texts
    that become longer are no change. `counter` is our own vocabulary and formula of prompts: with another of them
    begins another series."""

    vendor: str
    model: str
    side: str
    counter: str
    attempts: int
    fit: Fit
    changes: tuple[Change, ...]
    outliers: tuple[Outlier, ...]
    days: tuple[Day, ...]


# The last part of the tokenizer's name is the program that counts, by the same vocabulary.
_FINALS = """
CREATE OR REPLACE TEMP VIEW drift_finals AS
WITH finals AS (
    SELECT attempt_id, vendor, coalesce(served_model, model) AS model, {day} AS day,
        concat_ws(' ', regexp_replace(coalesce(tokenizer, '-'), '(/[^/]*)/[^/]*$', '\\1'), count_formula) AS counter,
        usage_input AS input_reported, counted_input AS input_counted,
        greatest(usage_output - coalesce(usage_reasoning, 0), 0) AS output_reported,
        counted_output - CASE WHEN usage_reasoning IS NULL THEN 0 ELSE counted_reasoning END AS output_counted
    FROM attempts WHERE usage_state = 'final')
SELECT attempt_id, vendor, model, counter, day, {sides}
FROM finals
"""
_SIDE = """
CASE WHEN {side}_counted >= {shortest} THEN {side}_reported END AS {side}_reported,
CASE WHEN {side}_counted >= {shortest} AND {side}_reported IS NOT NULL THEN {side}_counted END AS {side}_counted
"""
_DAYS = """
CREATE OR REPLACE TEMP TABLE drift_days AS
SELECT vendor, model, counter, day, count(*) AS attempts,
    count(input_counted) AS input_attempts, sum(input_reported) AS input_reported, sum(input_counted) AS input_counted,
    count(output_counted) AS output_attempts, sum(output_reported) AS output_reported,
    sum(output_counted) AS output_counted
FROM drift_finals GROUP BY vendor, model, counter, day
"""
_POINTS = """
CREATE OR REPLACE TEMP TABLE drift_points AS
WITH drawn AS (
    SELECT finals.*, md5_number_lower(attempt_id) AS draw
    FROM drift_finals AS finals JOIN drift_days AS days USING (vendor, model, counter, day)
    WHERE days.attempts <= {sample} OR md5_number_lower(attempt_id) % CAST(days.attempts AS UBIGINT) < {sample})
SELECT 'input' AS side, vendor, model, counter, day, attempt_id, draw, input_counted AS counted,
    input_reported AS reported
FROM drawn WHERE input_counted IS NOT NULL
UNION ALL
SELECT 'output', vendor, model, counter, day, attempt_id, draw, output_counted, output_reported
FROM drawn WHERE output_counted IS NOT NULL
"""
_SAMPLED = """
SELECT counted, reported FROM drift_points
WHERE vendor = ? AND model = ? AND side = ? AND counter = ? AND day >= ? AND day < ?
ORDER BY draw, attempt_id LIMIT {sample}
"""
_LEVELS = """
SELECT vendor, model, side, counter, day, any_value({side}_attempts), any_value(days.{side}_reported),
    any_value(days.{side}_counted), median((reported - offset_) / CAST(counted AS DOUBLE))
FROM drift_points JOIN drift_days AS days USING (vendor, model, counter, day)
    JOIN drift_offsets USING (vendor, model, side, counter)
WHERE side = '{side}' GROUP BY vendor, model, side, counter, day
"""
_OUTLIERS = """
SELECT vendor, model, side, counter, attempt_id, day, {side}_counted AS counted, {side}_reported AS reported,
    abs({side}_reported - line) / greatest(least_, share * line) AS far
FROM (SELECT *, slope * {side}_counted + offset_ AS line
    FROM drift_finals JOIN drift_lines USING (vendor, model, counter)
    WHERE side = '{side}' AND day >= first_day AND day < end_day)
WHERE far > {far}
QUALIFY row_number() OVER (PARTITION BY vendor, model, counter ORDER BY far DESC, attempt_id) <= {farthest}
ORDER BY far DESC, attempt_id
"""


def find_drift(connection: duckdb.DuckDBPyConnection, zone: str = "UTC") -> list[Drift]:
    """By vendor, model, side and counter, in order. The connection gets a few temporary tables."""
    sides = ",".join(_SIDE.format(side=side, shortest=_SHORTEST) for side in _SIDES)
    connection.execute(_FINALS.format(day=_day(zone), sides=sides))
    connection.execute(_DAYS)
    connection.execute(_POINTS.format(sample=_SAMPLE))
    series = _series(connection)
    fits: dict[Key, list[tuple[date, date, Fit]]] = {}
    changes: dict[Key, list[Change]] = {}
    for key, days in series.items():
        changes[key] = changes_in([day for day in days if day.attempts >= _ATTEMPTS_A_DAY])
        edges = [days[0].day, *(change.day for change in changes[key]), days[-1].day + timedelta(days=1)]
        fits[key] = [(first, end, _fit(connection, key, first, end)) for first, end in pairwise(edges)]
    outliers = _outliers(connection, fits)
    return [
        Drift(
            *key,
            sum(day.attempts for day in days),
            fits[key][-1][2],
            tuple(changes[key]),
            tuple(outliers[key]),
            tuple(days),
        )
        for key, days in series.items()
    ]


def _day(zone: str) -> str:
    """The day of `started_at` in the zone, as SQL."""
    spans = offsets(zone)
    whens = " ".join(f"WHEN started_at < {until} THEN {offset}" for until, offset in spans[:-1])
    offset = f"(CASE {whens} ELSE {spans[-1][1]} END)" if whens else str(spans[-1][1])
    return f"CAST(make_timestamp(started_at + {offset}) AS DATE)"


def _series(connection: duckdb.DuckDBPyConnection) -> dict[Key, list[Day]]:
    """What a vendor adds to each text is taken off first: with it, a day of longer texts would have another level."""
    keys = connection.execute("SELECT DISTINCT vendor, model, side, counter FROM drift_points ORDER BY ALL").fetchall()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE drift_offsets "
        "(vendor VARCHAR, model VARCHAR, side VARCHAR, counter VARCHAR, offset_ DOUBLE)"
    )
    for key in keys:
        fit = _fit(connection, key, date.min, date.max)
        offset = fit.offset if fit.looseness <= MAX_LOOSENESS else 0.0
        connection.execute("INSERT INTO drift_offsets VALUES (?, ?, ?, ?, ?)", [*key, offset])
    series: dict[Key, list[Day]] = defaultdict(list)
    rows = [row for side in _SIDES for row in connection.execute(_LEVELS.format(side=side)).fetchall()]
    for vendor, model, side, counter, day, attempts, reported, counted, ratio in sorted(rows):
        series[(vendor, model, side, counter)].append(Day(day, attempts, int(reported), int(counted), ratio))
    return series


def _fit(connection: duckdb.DuckDBPyConnection, key: Key, first: date, end: date) -> Fit:
    points = connection.execute(_SAMPLED.format(sample=_SAMPLE), [*key, first, end]).fetchall()
    return fit_line([(float(counted), float(reported)) for counted, reported in points])


def _outliers(
    connection: duckdb.DuckDBPyConnection, fits: dict[Key, list[tuple[date, date, Fit]]]
) -> dict[Key, list[Outlier]]:
    """Of all attempts, each against the line of its own days."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE drift_lines (vendor VARCHAR, model VARCHAR, side VARCHAR, counter VARCHAR, "
        "first_day DATE, end_day DATE, slope DOUBLE, offset_ DOUBLE, least_ DOUBLE, share DOUBLE)"
    )
    for key, lines in fits.items():
        for first, end, fit in lines:
            if fit.is_shown:
                # what is left over grows with the length of the text
                least, share = max(SIGMA * fit.residual, _LEAST_LEFT_OVER), SIGMA * fit.looseness
                figures = [first, end, fit.slope, fit.offset, least, share]
                connection.execute(f"INSERT INTO drift_lines VALUES ({', '.join('?' * 10)})", [*key, *figures])
    found: dict[Key, list[Outlier]] = defaultdict(list)
    for side in _SIDES:
        rows = connection.execute(_OUTLIERS.format(side=side, far=_FAR, farthest=FARTHEST)).fetchall()
        for vendor, model, _, counter, attempt_id, day, counted, reported, far in rows:
            found[(vendor, model, side, counter)].append(Outlier(attempt_id, day, counted, reported, round(far, 1)))
    return found


def counted_differently(drifts: Sequence[Drift], since: int, until: int, zone: str) -> list[Finding]:
    """Changes within the period (microseconds), one for each model and day, as findings that move no money between
    invoice and ledger: both have the vendor's figures."""
    found: dict[tuple[str, date], list[tuple[Drift, Change]]] = defaultdict(list)
    for drift in drifts:
        for change in drift.changes:
            if since <= start_of(change.day, zone) < until:
                found[(drift.model, change.day)].append((drift, change))
    return [_finding(model, day, both, until, zone) for (model, day), both in sorted(found.items())]


def _finding(model: str, day: date, both: Sequence[tuple[Drift, Change]], until: int, zone: str) -> Finding:
    """As far as it lies in the period."""
    tokens, last, words = 0, day, []
    for drift, change in both:
        later = [other.day for other in drift.changes if other.day > change.day]
        ends = later[0] if later else drift.days[-1].day + timedelta(days=1)
        within = [one for one in drift.days if change.day <= one.day < ends and start_of(one.day, zone) < until]
        tokens += round(sum(one.counted for one in within) * (change.after - change.before))
        last = max(last, within[-1].day)
        words.append(
            f"{drift.side}: {change.before:.4g} of its tokens for one of ours before, {change.after:.4g} since"
        )
    return Finding(Reason.COUNTED_DIFFERENTLY, model, day, last, 0, tokens, 0, None, "; ".join(words))
