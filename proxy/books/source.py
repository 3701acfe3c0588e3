"""Where attempts are read from: the live ledger, or the partitions of an export (contract L4, C3).

In: a `LedgerPlace`. Out: sums by groups, or a DuckDB connection with the relation `attempts`. Both read everything that
was durable when the reading began: the database and what only the journals hold yet, each attempt once, those of dead
writers as interrupted. Read only, in bounded memory; never downloads a DuckDB extension.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

from proxy.errors import LedgerUnavailable
from proxy.stores.ledger_read import private_ledger, snapshot
from proxy.stores.ledger_rows import COLUMNS, Values
from proxy.stores.ledger_sql import Database, is_sqlite
from proxy.stores.schema import attempts, repricings
from proxy.stores.spool import columns_sql, quoted, read_sql, write_spool

if TYPE_CHECKING:
    import duckdb  # 40 MiB and a tenth of a second, which a proxy that is never asked for an export does not need

#: What one report may take; DuckDB spills to a temporary folder beyond it.
MEMORY_MB = 700
_THREADS = 2
_BATCH_ROWS = 50_000
_VENDOR = COLUMNS.index("vendor")


@dataclass(frozen=True, slots=True)
class LiveLedger:
    """The ledger that a proxy writes, or wrote."""

    url: str
    journal_dir: Path


@dataclass(frozen=True, slots=True)
class ParquetFolder:
    """What `sluice ledger export --format parquet --out PATH` wrote."""

    path: Path


LedgerPlace = LiveLedger | ParquetFolder


@contextmanager
def duck_attempts(
    place: LedgerPlace, since: int | None, until: int | None, vendor: str | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the relation `attempts`: all of `COLUMNS`, of attempts with `since <= started_at < until`
    (microseconds). Raises `LedgerUnavailable`."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as scratch, _connection(Path(scratch)) as connection:
        match place:
            case ParquetFolder(path):
                _view(connection, path, since, until, vendor)
            case LiveLedger():
                _load(connection, place, Path(scratch), since, until, vendor)
        yield connection


def aggregate(place: LedgerPlace, statement: Select[Any], unsettled: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of a statement over the table `attempts` that groups and adds up, and does nothing else: its first
    columns are the keys, the others, named in `unsettled`, are sums of integers. On the live ledger the database does
    it; what its rows do not have yet is added exactly. Keys come in no order."""
    keys = len(statement.selected_columns) - len(unsettled)
    match place:
        case ParquetFolder(path):
            with tempfile.TemporaryDirectory(prefix="sluice-") as scratch, _connection(Path(scratch)) as connection:
                _view(connection, path, None, None, None)
                return _summed(_duck_rows(connection, statement), (), keys)
        case LiveLedger():
            return _aggregate_live(place, statement, keys)


def _aggregate_live(place: LiveLedger, statement: Select[Any], keys: int) -> list[tuple[Any, ...]]:
    """The database's sums, without those of rows that are not the last word, and with what is."""
    with snapshot(place.url, place.journal_dir) as ledger:
        dialect = _dialect(place.url)
        rows = ledger.unsettled(None, None)
        settled = ledger.database.select(_sql(statement, dialect))
        if not rows:
            return _summed(settled, (), keys)
        ids = [str(values[0]) for values in rows]
        prices = ledger.database.repricings_of(ids)
        with private_ledger() as old, private_ledger() as new:
            _fill(old, ledger.database.rows_of(ids), prices)
            _fill(new, rows, prices)
            lite = sqlite.dialect()
            added = new.select(_sql(statement, lite))
            return _summed([*settled, *added], old.select(_sql(statement, lite)), keys)


def _fill(database: Database, rows: Sequence[Values], prices: Sequence[tuple[Any, ...]]) -> None:
    with database.transaction():
        database.write((), rows)
        database.add_repricings(prices)


def _summed(plus: Sequence[tuple[Any, ...]], minus: Sequence[tuple[Any, ...]], keys: int) -> list[tuple[Any, ...]]:
    sums: dict[tuple[Any, ...], list[int]] = {}
    for sign, rows in ((1, plus), (-1, minus)):
        for row in rows:
            figures = [sign * int(figure or 0) for figure in row[keys:]]
            known = sums.get(row[:keys])
            sums[row[:keys]] = figures if known is None else [a + b for a, b in zip(known, figures, strict=True)]
    return [(*key, *figures) for key, figures in sums.items() if any(figures)]


# -- SQL --------------------------------------------------------------------------------------------------------------


def _dialect(url: str) -> Dialect:
    # this style of parameters leaves percent signs alone: there are none to be filled in
    return sqlite.dialect() if is_sqlite(url) else postgresql.dialect(paramstyle="qmark")  # type: ignore[no-untyped-call]


def _sql(statement: Select[Any], dialect: Dialect) -> str:
    return str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def _duck_rows(connection: duckdb.DuckDBPyConnection, statement: Select[Any]) -> list[tuple[Any, ...]]:
    """DuckDB speaks PostgreSQL's SQL, but for the division of integers."""
    connection.execute("SET integer_division = true")
    return connection.execute(_sql(statement, _dialect("postgresql:"))).fetchall()


# -- DuckDB -----------------------------------------------------------------------------------------------------------


@contextmanager
def _connection(scratch: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{MEMORY_MB}MB",
        "threads": _THREADS,
        "temp_directory": str(scratch / "spill"),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
    }
    with duckdb.connect(config=settings) as connection:
        yield connection


def _view(
    connection: duckdb.DuckDBPyConnection, folder: Path, since: int | None, until: int | None, vendor: str | None
) -> None:
    """The partitions as they lie there. Days outside of the bounds are not opened."""
    pattern = quoted(folder / "attempts" / "*" / "*.parquet")
    if not any((folder / "attempts").glob("*/*.parquet")):
        raise LedgerUnavailable(
            f"{folder}: holds no exported attempts; write them with `sluice ledger export --format parquet --out DIR`"
        )
    conditions = [
        *([f"started_at >= {since}", f"day >= {_day_of(since)}"] if since is not None else []),
        *([f"started_at < {until}", f"day <= {_day_of(until)}"] if until is not None else []),
        *(["vendor = '{}'".format(vendor.replace("'", "''"))] if vendor is not None else []),
    ]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    connection.execute(
        f"CREATE VIEW attempts AS SELECT {', '.join(COLUMNS)} FROM "
        f"read_parquet('{pattern}', hive_partitioning = true, hive_types = {{'day': DATE}}) {where}"
    )
    prices = folder / "repricings.parquet"
    if prices.exists():
        connection.execute(f"CREATE VIEW repricings AS SELECT * FROM read_parquet('{quoted(prices)}')")
    else:
        connection.execute(f"CREATE TABLE repricings ({columns_sql(repricings, repricings.columns.keys())})")


def _day_of(micros: int) -> str:
    return f"CAST(make_timestamp({micros}) AS DATE)"


def _load(
    connection: duckdb.DuckDBPyConnection,
    place: LiveLedger,
    scratch: Path,
    since: int | None,
    until: int | None,
    vendor: str | None,
) -> None:
    connection.execute(f"CREATE TABLE attempts ({columns_sql(attempts, COLUMNS)})")
    with snapshot(place.url, place.journal_dir) as ledger:
        rows = ledger.rows(since, until)
        wanted = rows if vendor is None else (values for values in rows if values[_VENDOR] == vendor)
        while batch := list(islice(wanted, _BATCH_ROWS)):
            insert_rows(connection, batch, scratch / "batch.csv")


def insert_rows(connection: duckdb.DuckDBPyConnection, rows: Sequence[Values], scratch: Path) -> None:
    """Into the table `attempts` of the connection; `scratch` is a file that may be written and is removed again."""
    write_spool(scratch, rows)
    connection.execute(f"INSERT INTO attempts SELECT * FROM {read_sql(scratch, attempts, COLUMNS)}")
    scratch.unlink()
