"""Where attempts are read from: the live ledger, or the partitions of an export (contract L4, C3).

In: a `LedgerPlace`. Out: a DuckDB connection with the relation `attempts`; sums by groups are in `summing`. Both read
everything that was durable when the reading began: the database and what only the journals hold yet, each attempt once,
those of dead writers as interrupted. Read only, in bounded memory; never downloads a DuckDB extension.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.errors import LedgerUnavailable
from proxy.stores.ledger_read import snapshot
from proxy.stores.ledger_rows import COLUMNS, Values, to_micros
from proxy.stores.schema import attempts
from proxy.stores.spool import columns_sql, quoted, read_sql, write_spool

if TYPE_CHECKING:
    import duckdb  # 40 MiB and a tenth of a second, which a proxy that is never asked for an export does not need

#: What one report may take; DuckDB spills to a temporary folder beyond it.
MEMORY_MB = 700
_THREADS = 2
_BATCH_ROWS = 50_000
_DAY_US = 86_400_000_000
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
    with duck_connection() as (connection, scratch):
        match place:
            case ParquetFolder(path):
                view_attempts(connection, path, since, until, vendor)
            case LiveLedger():
                _load(connection, place, scratch, since, until, vendor)
        yield connection


# -- DuckDB -----------------------------------------------------------------------------------------------------------


@contextmanager
def duck_connection() -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """An empty one, and a folder that is removed with it."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="sluice-") as scratch:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{MEMORY_MB}MB",
            "threads": _THREADS,
            "temp_directory": f"{scratch}/spill",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(config=settings) as connection:
            yield connection, Path(scratch)


def view_attempts(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    since: int | None,
    until: int | None,
    vendor: str | None = None,
) -> None:
    """The relation `attempts`: the partitions as they lie there. Days outside of the bounds are not opened."""
    files = sorted((folder / "attempts").glob("day=*/*.parquet"))
    if not files:
        raise LedgerUnavailable(
            f"{folder}: holds no exported attempts; write them with `sluice ledger export --format parquet --out DIR`"
        )
    conditions = [
        *([f"started_at >= {since}"] if since is not None else []),
        *([f"started_at < {until}"] if until is not None else []),
        *(["vendor = '{}'".format(vendor.replace("'", "''"))] if vendor is not None else []),
    ]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    wanted = [file for file in files if _overlaps(file.parent, since, until)] or files[:1]
    listed = ", ".join(f"'{quoted(file)}'" for file in wanted)
    connection.execute(
        f"CREATE OR REPLACE VIEW attempts AS SELECT {', '.join(COLUMNS)} FROM read_parquet([{listed}]) {where}"
    )


def _overlaps(partition: Path, since: int | None, until: int | None) -> bool:
    """Does the day in UTC that it is named after reach into the bounds?"""
    try:
        start = to_micros(datetime.fromisoformat(partition.name.removeprefix("day=")))
    except ValueError as error:
        raise LedgerUnavailable(f"{partition}: is named after no day") from error
    return (since is None or start + _DAY_US > since) and (until is None or start < until)


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
