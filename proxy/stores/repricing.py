"""Attempts priced again with the prices of today (contract L2): adds rows, and overwrites none.

In: the ledger's URL, a price book, which attempts. Out: rows in `repricings`, one for each attempt and price version
that is not the one it has already, and sums of what changed. The figures are those that the row keeps: the vendor's
usage in one vocabulary and our own count. A second run adds nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proxy.canon.usage import NormalUsage
from proxy.metering.prices import PriceBook
from proxy.metering.pricing import Counted, price
from proxy.stores.ledger_rows import COLUMNS, COST_COLUMNS, Values
from proxy.stores.ledger_sql import Database
from proxy.stores.schema import upgrade

_BATCH_ROWS = 500
_COSTS = ", ".join(COST_COLUMNS)


@dataclass(frozen=True, slots=True)
class Change:
    """Of one vendor, model and price version: attempts, and what they cost before and now by the vendor's figures and
    by our count, in nano-units of `currency`. `unpriced`: how many had no price."""

    vendor: str
    model: str
    version: str
    currency: str
    attempts: int
    unpriced: int
    before: int
    after: int
    own_before: int
    own_after: int


def reprice(
    url: str,
    book: PriceBook,
    since: int | None,
    until: int | None,
    now: int,
    *,
    vendor: str | None = None,
    model: str | None = None,
    dry_run: bool = False,
) -> list[Change]:
    """`since`, `until` and `now` are in microseconds. Raises `LedgerUnavailable`."""
    upgrade(url)
    sums: dict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0] * 6)
    reader, writer = Database(url, read_only=True), Database(url)
    try:
        known = _known(reader)
        with reader.snapshot():
            batch: list[tuple[Any, ...]] = []
            for row in _wanted(reader, since, until, vendor, model):
                made = _again(row, book, known, now)
                if made is None:
                    continue
                batch.append(made)
                _add(sums, row, made)
                if len(batch) >= _BATCH_ROWS and not dry_run:
                    _write(writer, batch)
                    batch = []
            if batch and not dry_run:
                _write(writer, batch)
    finally:
        reader.close()
        writer.close()
    return [Change(*key, *figures) for key, figures in sorted(sums.items())]


def _known(reader: Database) -> set[tuple[str, str, str]]:
    return {
        (row[0], row[1], row[2])
        for row in reader.select("SELECT attempt_id, price_version, price_tier FROM repricings")
    }


def _wanted(
    reader: Database, since: int | None, until: int | None, vendor: str | None, model: str | None
) -> Iterator[dict[str, Any]]:
    for values in reader.rows(since, until):
        row = _named(values)
        if row["closed_by"] is None or row["ending"] is None:
            continue
        if vendor is not None and row["vendor"] != vendor:
            continue
        if model is not None and model not in (row["served_model"], row["model"]):
            continue
        yield row


def _named(values: Values) -> dict[str, Any]:
    return dict(zip(COLUMNS, values, strict=True))


def _again(row: dict[str, Any], book: PriceBook, known: set[tuple[str, str, str]], now: int) -> tuple[Any, ...] | None:
    """The row of `repricings`, or None where the attempt has that price already, or there is none."""
    by = book.find(row["vendor"], (row["served_model"], row["model"]), row["started_at"])
    if by is None or by.version == row["price_version"]:
        return None
    figures = ("input", "output", "cache_read", "cache_write", "reasoning", "total")
    usage = NormalUsage(
        state=row["usage_state"] or "absent",
        told=row["usage_told"] or "aaaaa",
        **{name: row[f"usage_{name}"] for name in figures},
        billed_input=row["billed_input"],
        billed_output=row["billed_output"],
    )
    counted = Counted(row["counted_input"], row["counted_output"], row["counted_reasoning"])
    costs = price(by, usage, counted, row["service_tier"])
    if (row["attempt_id"], by.version, costs.tier) in known:
        return None
    parts = (costs.input, costs.cache_read, costs.cache_write, costs.output, costs.own_input, costs.own_output)
    return row["attempt_id"], by.version, costs.tier, now, by.currency, *parts


def _add(sums: dict[tuple[str, str, str, str], list[int]], row: dict[str, Any], made: tuple[Any, ...]) -> None:
    key = (row["vendor"], row["served_model"] or row["model"], made[1], made[4])
    before = [row[name] or 0 for name in COST_COLUMNS]
    after = [cost or 0 for cost in made[5:]]
    figures = sums[key]
    figures[0] += 1
    figures[1] += row["price_version"] is None
    figures[2] += sum(before[:4])
    figures[3] += sum(after[:4])
    figures[4] += sum(before[4:])
    figures[5] += sum(after[4:])


def _write(writer: Database, rows: list[tuple[Any, ...]]) -> None:
    with writer.transaction():
        writer.add_repricings(rows)
