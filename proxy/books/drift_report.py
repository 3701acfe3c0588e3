"""Drift as a report: lines, changes, attempts that stand out, and the ratio by day (contract C3, L4).

In: what `find_drift` found. Out: a `Document`. Computes nothing but shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from proxy.books.changes import Change
from proxy.books.document import Cell, Chart, ChartKind, Column, Document, Headline, Kind, Series, Table
from proxy.books.drift import FARTHEST, Drift

#: So many lines in a chart can still be told apart.
_CHARTED: Final = 6


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
            "Reasoning that the vendor tells apart is left out of the output, on both sides: it may hide some of it.",
            f"Of each line, the {FARTHEST} attempts that stand out most are listed.",
        ),
    )


_KEY = (Column("vendor", "Vendor"), Column("model", "Model"), Column("side", "Side"))


def _lines(drifts: Sequence[Drift]) -> Table:
    columns = (
        *_KEY,
        Column("counter", "Our count by"),
        Column("attempts", "Attempts", Kind.INTEGER),
        Column("slope", "Slope", Kind.NUMBER),
        Column("offset", "Offset", Kind.NUMBER, about="tokens"),
        Column("residual", "Left over, tokens", Kind.NUMBER, about="the median, in tokens"),
        Column("looseness", "Left over, share", Kind.RATIO, about="the median, as a share"),
        Column("verdict", "In words"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in drifts:
        fit = one.fit
        figures: tuple[Cell, ...] = (None, None, None, None)
        if fit.is_shown:
            figures = (fit.slope, fit.offset, fit.residual, fit.looseness)
        rows.append((one.vendor, one.model, one.side, one.counter, one.attempts, *figures, fit.verdict))
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
        (one.vendor, one.model, one.side, at.day, at.before, at.after, _share(at))
        for one in drifts
        for at in one.changes
    ]
    return Table("changes", "Days on which that changed", columns, rows)


def _share(change: Change) -> float | None:
    return round(change.after / change.before - 1, 6) if change.before else None


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
