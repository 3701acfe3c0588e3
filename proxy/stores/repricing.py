"""Attempts priced again with the prices of today (contract L2): adds rows, and overwrites none.

In: the ledger's URL, a price book, which attempts. Out: rows in `repricings`, one for each attempt whose newest price
is not the one of today, and sums of what changed. The figures are those that the row keeps: the vendor's usage in one
vocabulary and our own count. A second run adds nothing; a price that is taken back is added again. Attempts that wait
in the journals are left for the next run, and those that a writer's death ended have no figures to be priced. Memory
does not grow with the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from proxy.canon.usage import NormalUsage
from proxy.metering.prices import PriceBook
from proxy.metering.pricing import Counted, price
from proxy.stores.ledger_rows import BY_WRITER, COLUMNS, COST_COLUMNS, Values
from proxy.stores.ledger_sql import Database
from proxy.stores.schema import upgrade

_BATCH_ROWS = 500
_Key = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """Of one vendor, model and price version: attempts, and what they cost before (in nano-units of `currency_before`)
    and now (of `currency`) by the vendor's figures and by our count. `unpriced`: how many had no price before."""

    vendor: str
    model: str
    version: str
    currency: str
    currency_before: str
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
    sums: dict[_Key, list[int]] = defaultdict(lambda: [0] * 6)
    reader, writer = Database(url, read_only=True), Database(url)
    try:
        with reader.snapshot():
            wanted = _wanted(reader, since, until, vendor, model)
            while rows := list(islice(wanted, _BATCH_ROWS)):
                newest = _newest(reader, rows)
                made = [(row, _again(row, book, newest[row["attempt_id"]], now)) for row in rows]
                batch = [(row, again) for row, again in made if again is not None]
                for row, again in batch:
                    _add(sums, row, again, newest[row["attempt_id"]])
                if batch and not dry_run:
                    _write(writer, [again for _, again in batch])
    finally:
        reader.close()
        writer.close()
    return [Change(*key, *figures) for key, figures in sorted(sums.items())]


@dataclass(frozen=True, slots=True)
class _Priced:
    """What an attempt was priced with last: None where never."""

    version: str | None
    currency: str | None
    costs: tuple[int | None, ...]
    at: int = 0


def _newest(reader: Database, rows: list[dict[str, Any]]) -> dict[str, _Priced]:
    """By attempt."""
    found = {
        row["attempt_id"]: _Priced(row["price_version"], row["currency"], tuple(row[name] for name in COST_COLUMNS))
        for row in rows
    }
    for attempt_id, version, _, repriced_at, currency, *costs in reader.repricings_of(sorted(found)):
        found[attempt_id] = _Priced(version, currency, tuple(costs), repriced_at)
    return found


def _wanted(
    reader: Database, since: int | None, until: int | None, vendor: str | None, model: str | None
) -> Iterator[dict[str, Any]]:
    for values in reader.rows(since, until):
        row = _named(values)
        if row["closed_by"] != BY_WRITER:
            continue  # it runs, or its writer seems dead and may come back with the figures
        if vendor is not None and row["vendor"] != vendor:
            continue
        if model is not None and model not in (row["served_model"], row["model"]):
            continue
        yield row


def _named(values: Values) -> dict[str, Any]:
    return dict(zip(COLUMNS, values, strict=True))


def _again(row: dict[str, Any], book: PriceBook, newest: _Priced, now: int) -> tuple[Any, ...] | None:
    """The row of `repricings`, or None where the attempt has that price already, or there is none."""
    by = book.find(row["vendor"], (row["served_model"], row["model"]), row["started_at"])
    if by is None or by.version == newest.version:
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
    parts = (costs.input, costs.cache_read, costs.cache_write, costs.output, costs.own_input, costs.own_output)
    # a clock that was set back must not make the new price the older one
    return row["attempt_id"], by.version, costs.tier, max(now, newest.at + 1), by.currency, *parts


def _add(sums: dict[_Key, list[int]], row: dict[str, Any], made: tuple[Any, ...], old: _Priced) -> None:
    key = (row["vendor"], row["served_model"] or row["model"], made[1], made[4], old.currency or made[4])
    before = [cost or 0 for cost in old.costs]
    after = [cost or 0 for cost in made[5:]]
    figures = sums[key]
    figures[0] += 1
    figures[1] += old.version is None
    figures[2] += sum(before[:4])
    figures[3] += sum(after[:4])
    figures[4] += sum(before[4:])
    figures[5] += sum(after[4:])


def _write(writer: Database, rows: list[tuple[Any, ...]]) -> None:
    with writer.transaction():
        writer.add_repricings(rows)
