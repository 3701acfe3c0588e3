"""The ledger as Parquet, a folder a day, for warehouses and large reports (contract C3, L4).

    DIR/attempts/day=2026-10-05/attempts.parquet     by the UTC day of the start; rows by start and id
    DIR/repricings.parquet                           in the same order; an attempt's `newest` one last, with its `day`

Columns are the ledger's own (`ledger_rows.COLUMNS`: microseconds, nano-units), and `started` and `ended` as timestamps
for people. A day is written beside its place and put there in one step, so that a reader sees all of it or what was
there before; the same rows make the same file. In bounded memory: a day's rows go through a file of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import duckdb

from proxy.stores.ledger_read import Snapshot, snapshot
from proxy.stores.ledger_rows import COLUMNS, Values
from proxy.stores.ledger_sql import REPRICING_COLUMNS
from proxy.stores.schema import attempts, repricings
from proxy.stores.spool import quoted, read_sql, write_spool

_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_STARTED, _ENDING = COLUMNS.index("started_at"), COLUMNS.index("ending")


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: days and rows of each, and the days left out because an attempt of them still runs."""

    days: tuple[tuple[date, int], ...]
    still_open: tuple[date, ...]

    @property
    def rows(self) -> int:
        return sum(rows for _, rows in self.days)


def export_parquet(
    url: str, journal_dir: Path, out: Path, since: int | None, until: int, *, include_open: bool = False
) -> Exported:
    """Write whole days, from the one that `since` falls into (half of it would take the place of the whole) up to
    `until` (microseconds; the day that it falls into is left out). Raises `LedgerUnavailable` or `OSError`."""
    written: list[tuple[date, int]] = []
    left: list[date] = []
    first = None if since is None else since // _DAY_US * _DAY_US
    last = until // _DAY_US * _DAY_US
    out.mkdir(parents=True, exist_ok=True)
    with snapshot(url, journal_dir) as ledger:
        for day, rows in _days(ledger, first, last):
            spool = out / f".{day}.{os.getpid()}.csv"
            try:
                count, is_open = _spool(spool, rows)
                if is_open and not include_open:
                    left.append(day)
                else:
                    _write_day(spool, out / "attempts" / f"day={day}" / "attempts.parquet")
                    written.append((day, count))
            finally:
                spool.unlink(missing_ok=True)
        _write_repricings(ledger, out)
    return Exported(tuple(written), tuple(left))


def _days(ledger: Snapshot, since: int | None, until: int) -> Iterator[tuple[date, Iterator[Values]]]:
    """The rows of each day; each must be read to its end before the next is asked for."""
    rows = ledger.rows(since, until)
    waiting: list[Values] = []

    def of(number: int) -> Iterator[Values]:
        while waiting:
            yield waiting.pop()
        for values in rows:
            if _number(values) != number:
                waiting.append(values)
                return
            yield values

    for values in rows:
        waiting.append(values)
        while waiting:
            number = _number(waiting[0])
            yield _EPOCH + timedelta(days=number), of(number)


def _number(values: Values) -> int:
    started = values[_STARTED]
    assert isinstance(started, int), "microseconds"
    return started // _DAY_US


def _spool(path: Path, rows: Iterator[Values]) -> tuple[int, bool]:
    count, is_open = 0, False

    def seen() -> Iterator[Values]:
        nonlocal count, is_open
        for values in rows:
            count += 1
            is_open = is_open or values[_ENDING] is None
            yield values

    write_spool(path, seen())
    return count, is_open


def _write_day(spool: Path, target: Path) -> None:
    _copy(
        "SELECT *, make_timestamp(started_at) AS started, make_timestamp(ended_at) AS ended "
        f"FROM {read_sql(spool, attempts, COLUMNS)}",
        target,
    )


def _copy(select: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        # one thread: rows stay in their order, and the file is the same each time
        with duckdb.connect(config={"threads": 1, "memory_limit": "500MB"}) as connection:
            connection.execute(f"COPY ({select}) TO '{quoted(beside)}' (FORMAT parquet, COMPRESSION zstd)")
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _write_repricings(ledger: Snapshot, out: Path) -> None:
    """By the day of the attempt, so that whoever joins the two need not hold all of either."""
    target = out / "repricings.parquet"
    spool = out / f".repricings.{os.getpid()}.csv"
    try:
        write_spool(spool, _with_newest(ledger.database.repricings()))
        if spool.stat().st_size == 0 and not target.exists():
            return
        rows = read_sql(spool, repricings, REPRICING_COLUMNS, {"started_at": "BIGINT", "newest": "BOOLEAN"})
        day = "CAST(make_timestamp(started_at) AS DATE) AS day"
        _copy(f"SELECT {', '.join(REPRICING_COLUMNS)}, {day}, newest FROM {rows}", target)
    finally:
        spool.unlink(missing_ok=True)


def _with_newest(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Behind each whether it is the last of its attempt."""
    for row, after in pairwise(chain(rows, [None])):
        assert row is not None, "None is behind all of them"
        yield (*row, after is None or after[0] != row[0])


def today() -> int:
    """The beginning of today in UTC, in microseconds: days before it are over."""
    now = datetime.now(UTC)
    return (now.date() - _EPOCH).days * _DAY_US
