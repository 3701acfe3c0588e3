"""How a vendor's tokens stand to ours, and the days on which that changed (contract C3, L4).

In: a DuckDB connection with the relation `attempts`. Out: for each vendor, model and side (input, output) a robust line
(slope, offset, what is left over), the days of a change, and the attempts that stand out. Only attempts whose vendor
reported final figures count; where it hides reasoning from us, its output is left out. Medians throughout, so that a
few odd attempts move nothing; samples are taken by a hash of the attempt's id, so that they are the same each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from statistics import median
from typing import Final

import duckdb

from proxy.books.document import Cell, Chart, ChartKind, Column, Document, Headline, Kind, Series, Table
from proxy.books.finding import Finding, Reason
from proxy.books.period import start_of
from proxy.metering.fit import Fit, fit_line

#: A share of a few tokens is no ratio: shorter texts say nothing.
_SHORTEST: Final = 40
#: So many days at least must lie on each side of a change, each with so many attempts.
_DAYS: Final = 3
_ATTEMPTS_A_DAY: Final = 5
#: A change is at least this share, and so many times what days differ by anyway.
_LEAST_CHANGE: Final = 0.01
_NOISES: Final = 6.0
_SIGMA: Final = 1.4826  # of a normal distribution, in its median absolute deviations
_SAMPLE: Final = 400
_FAR: Final = 12.0
_FARTHEST: Final = 20
_CHARTED: Final = 6


@dataclass(frozen=True, slots=True)
class Day:
    """One day: attempts, the vendor's tokens and ours, and the median of their ratio."""

    day: date
    attempts: int
    reported: int
    counted: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Change:
    """From `day` on the ratio is `after`, till the next change or the end."""

    day: date
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Outlier:
    """An attempt far from the line: `deviations` robust standard deviations."""

    attempt_id: str
    day: date
    counted: int
    reported: int
    deviations: float


@dataclass(frozen=True, slots=True)
class Drift:
    """`fit` is of the days since the last change."""

    vendor: str
    model: str
    side: str
    attempts: int
    fit: Fit
    changes: tuple[Change, ...]
    outliers: tuple[Outlier, ...]
    days: tuple[Day, ...]


_POINTS = """
CREATE OR REPLACE TEMP TABLE drift_points AS
WITH finals AS (
    SELECT vendor, coalesce(served_model, model) AS model, attempt_id,
        CAST(timezone('{zone}', timezone('UTC', make_timestamp(started_at))) AS DATE) AS day,
        usage_input, usage_output, counted_input, counted_output,
        coalesce(usage_reasoning, 0) = 0 OR counted_reasoning > 0 AS is_seen
    FROM attempts WHERE usage_state = 'final')
SELECT vendor, model, 'input' AS side, attempt_id, day, usage_input AS reported, counted_input AS counted
FROM finals WHERE counted_input >= {shortest} AND usage_input IS NOT NULL
UNION ALL
SELECT vendor, model, 'output', attempt_id, day, usage_output, counted_output
FROM finals WHERE counted_output >= {shortest} AND usage_output IS NOT NULL AND is_seen
"""
_DAILY = """
SELECT vendor, model, side, day, count(*), sum(reported), sum(counted), median(reported / CAST(counted AS DOUBLE))
FROM drift_points GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
_SAMPLED = """
SELECT counted, reported FROM drift_points WHERE vendor = ? AND model = ? AND side = ? AND day >= ?
ORDER BY md5(attempt_id), attempt_id LIMIT {sample}
"""
_OUTLIERS = """
SELECT attempt_id, day, counted, reported, abs(reported - (? * counted + ?)) / greatest(?, ? * counted) AS far
FROM drift_points WHERE vendor = ? AND model = ? AND side = ? AND day >= ? AND far > ?
ORDER BY far DESC, attempt_id LIMIT {farthest}
"""


def find_drift(connection: duckdb.DuckDBPyConnection, zone: str = "UTC") -> list[Drift]:
    """By vendor, model and side, in order. The connection gets a temporary table."""
    connection.execute(_POINTS.format(zone=zone.replace("'", ""), shortest=_SHORTEST))
    series: dict[tuple[str, str, str], list[Day]] = defaultdict(list)
    for vendor, model, side, day, attempts, reported, counted, ratio in connection.execute(_DAILY).fetchall():
        series[(vendor, model, side)].append(Day(day, attempts, int(reported), int(counted), ratio))
    return [_drift(connection, *key, tuple(days)) for key, days in series.items()]


def _drift(connection: duckdb.DuckDBPyConnection, vendor: str, model: str, side: str, days: tuple[Day, ...]) -> Drift:
    changes = tuple(changes_in([day for day in days if day.attempts >= _ATTEMPTS_A_DAY]))
    since = changes[-1].day if changes else days[0].day
    key = [vendor, model, side, since]
    points = connection.execute(_SAMPLED.format(sample=_SAMPLE), key).fetchall()
    fit = fit_line([(float(counted), float(reported)) for counted, reported in points])
    attempts = sum(day.attempts for day in days)
    return Drift(vendor, model, side, attempts, fit, changes, tuple(_outliers(connection, fit, key)), days)


def _outliers(connection: duckdb.DuckDBPyConnection, fit: Fit, key: list[object]) -> Iterator[Outlier]:
    if not fit.is_shown:
        return
    # what is left over grows with the length of the text
    scale, share = max(_SIGMA * fit.residual, 3.0), _SIGMA * fit.looseness
    found = connection.execute(
        _OUTLIERS.format(farthest=_FARTHEST), [fit.slope, fit.offset, scale, share, *key, _FAR]
    ).fetchall()
    for attempt_id, day, counted, reported, far in found:
        yield Outlier(attempt_id, day, counted, reported, round(far, 1))


def changes_in(days: Sequence[Day]) -> list[Change]:
    """The days on which the level of the ratio changed, by halving: the clearest split first, then within its parts."""
    splits = sorted(_splits(days, 0, len(days)))
    edges = [0, *splits, len(days)]
    levels = [median(day.ratio for day in days[a:b]) for a, b in pairwise(edges) if b > a]
    return [
        Change(days[at].day, round(before, 4), round(after, 4))
        for at, before, after in zip(splits, levels, levels[1:], strict=False)
    ]


def _splits(days: Sequence[Day], first: int, last: int) -> Iterator[int]:
    best, score = 0, 1.0
    for at in range(first + _DAYS, last - _DAYS + 1):
        found = _clearness([day.ratio for day in days[first:at]], [day.ratio for day in days[at:last]])
        if found > score:
            best, score = at, found
    if best:
        yield best
        yield from _splits(days, first, best)
        yield from _splits(days, best, last)


def _clearness(left: Sequence[float], right: Sequence[float]) -> float:
    """How many times the least change that would count: the distance of the medians, but only if the days next to the
    split are on their own side already (a split beside the right one separates nearly as well). 0: none."""
    before, after = median(left), median(right)
    distance = abs(after - before)
    noise = _SIGMA * median([*(abs(one - before) for one in left), *(abs(one - after) for one in right)])
    least = max(_LEAST_CHANGE * abs(before), _NOISES * noise)
    middle = (before + after) / 2
    on_their_side = sum((one - middle) * (before - middle) > 0 for one in left)
    on_their_side += sum((one - middle) * (after - middle) > 0 for one in right)
    share = on_their_side / (len(left) + len(right))
    return distance / least * share**8 if least and distance > least else 0.0


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
        reported = sum(one.reported for one in within)
        tokens += round(reported * (1 - change.before / change.after)) if change.after else 0
        last = max(last, within[-1].day)
        words.append(
            f"{drift.side}: {change.before:.4g} of its tokens for one of ours before, {change.after:.4g} since"
        )
    return Finding(Reason.COUNTED_DIFFERENTLY, model, day, last, 0, tokens, 0, None, "; ".join(words))


# -- the report -------------------------------------------------------------------------------------------------------


def drift_document(drifts: Sequence[Drift], facts: tuple[tuple[str, str], ...]) -> Document:
    """Lines, changes and outliers as tables, and the ratio by day of the models that changed, or of the busiest."""
    changed = sum(bool(one.changes) for one in drifts)
    headlines = (
        Headline("changed", "Changed on a day", changed, tone="bad" if changed else "good"),
        Headline("compared", "Compared (model and side)", len(drifts)),
        Headline("outliers", "Attempts that stand out", sum(len(one.outliers) for one in drifts)),
    )
    return Document(
        "drift",
        "Tokens of vendors against ours",
        facts,
        headlines,
        (_lines(drifts), _changes(drifts), _far(drifts)),
        tuple(_charts(drifts)),
        (
            "A slope of 1 means that the vendor counts as we do; the offset is what it adds to each prompt or answer.",
            "Attempts whose vendor hides its reasoning are left out of the output's figures.",
        ),
    )


_KEY = (Column("vendor", "Vendor"), Column("model", "Model"), Column("side", "Side"))


def _lines(drifts: Sequence[Drift]) -> Table:
    columns = (
        *_KEY,
        Column("attempts", "Attempts", Kind.INTEGER),
        Column("slope", "Slope", Kind.NUMBER),
        Column("offset", "Offset", Kind.NUMBER, about="tokens"),
        Column("residual", "Left over", Kind.NUMBER, about="the median, in tokens"),
        Column("looseness", "Left over", Kind.RATIO, about="the median, as a share"),
        Column("verdict", "In words"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in drifts:
        fit = one.fit
        figures: tuple[Cell, ...] = (None, None, None, None)
        if fit.is_shown:
            figures = (fit.slope, fit.offset, fit.residual, fit.looseness)
        rows.append((one.vendor, one.model, one.side, one.attempts, *figures, fit.verdict))
    return Table("lines", "How they stand to ours", columns, rows, about="Since the last change.")


def _changes(drifts: Sequence[Drift]) -> Table:
    columns = (
        *_KEY,
        Column("day", "Since", Kind.DAY),
        Column("before", "Before", Kind.NUMBER),
        Column("after", "After", Kind.NUMBER),
        Column("change", "Change", Kind.RATIO),
    )
    rows: list[tuple[Cell, ...]] = [
        (one.vendor, one.model, one.side, at.day, at.before, at.after, round(at.after / at.before - 1, 6))
        for one in drifts
        for at in one.changes
        if at.before
    ]
    return Table("changes", "Days on which that changed", columns, rows)


def _far(drifts: Sequence[Drift]) -> Table:
    columns = (
        *_KEY,
        Column("attempt_id", "Attempt"),
        Column("day", "Day", Kind.DAY),
        Column("counted", "Counted", Kind.INTEGER),
        Column("reported", "Vendor", Kind.INTEGER),
        Column("deviations", "Robust deviations", Kind.NUMBER),
    )
    rows: list[tuple[Cell, ...]] = [
        (one.vendor, one.model, one.side, far.attempt_id, far.day, far.counted, far.reported, far.deviations)
        for one in drifts
        for far in one.outliers
    ]
    return Table("outliers", "Attempts that stand out", columns, rows)


def _charts(drifts: Sequence[Drift]) -> Iterator[Chart]:
    ranked = sorted(drifts, key=lambda one: (not one.changes, -one.attempts, one.vendor, one.model, one.side))
    for side in ("input", "output"):
        shown = [one for one in ranked if one.side == side][:_CHARTED]
        if not shown:
            continue
        labels = sorted({day.day for one in shown for day in one.days})
        series = []
        for one in shown:
            ratios = {day.day: round(day.ratio, 4) for day in one.days}
            series.append(Series(f"{one.vendor} {one.model}", tuple(ratios.get(day) for day in labels)))
        yield Chart(
            f"ratio_{side}",
            f"Vendor's tokens for one of ours, {side}",
            ChartKind.LINE,
            tuple(map(str, labels)),
            tuple(series),
            "ratio",
        )
