"""Sums by groups over a ledger, wherever it lies: in the database, in the journals, in an export (contract L4).

In: a place and statements over the table `attempts`, joined with `newest` or not. Out: their rows, as of one moment.
SQLite and PostgreSQL add up what they hold, and what their rows do not have yet is added here, exactly; an export is
added up by DuckDB, in bounded memory however much of it was priced again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Column, MetaData, Select, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

from proxy.books.source import LedgerPlace, LiveLedger, ParquetFolder, duck_connection, view_attempts
from proxy.stores.ledger_read import private_ledger, snapshot
from proxy.stores.ledger_rows import Values
from proxy.stores.ledger_sql import REPRICING_COLUMNS, Database, is_sqlite
from proxy.stores.schema import repricings
from proxy.stores.spool import columns_sql, quoted

if TYPE_CHECKING:
    import duckdb

#: The newest re-pricing of each attempt that has one.
NEWEST: Final = Table("newest", MetaData(), *(Column(column.name, column.type) for column in repricings.columns))

_NAMES = ", ".join(REPRICING_COLUMNS)
_RANKED = (
    f"SELECT {_NAMES}, row_number() OVER (PARTITION BY attempt_id "
    "ORDER BY repriced_at DESC, price_version DESC, price_tier DESC) AS place FROM repricings"
)
_NEWEST_SQL = f"SELECT {_NAMES} FROM ({_RANKED}) AS ranked WHERE place = 1"
#: A join of ten million ids with ten million would spill to the disk; of so many it stays in the processor's caches.
_JOINED_AT_ONCE = 500_000

Rows = list[tuple[Any, ...]]
Span = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Sums:
    """A statement that groups and adds up and does nothing else: its first `keys` columns are the groups, the others
    sums of integers."""

    statement: Select[Any]
    keys: int

    def sql(self, dialect: Dialect) -> str:
        return str(self.statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def add_up(place: LedgerPlace, asked: Sequence[Sums], *, latest: bool) -> list[Rows]:
    """The rows of each statement, in no order. `latest`: they join `NEWEST`. Raises `LedgerUnavailable`."""
    match place:
        case ParquetFolder(path):
            return _add_exported(path, asked, latest=latest)
        case LiveLedger():
            return _add_live(place, asked, latest=latest)


def _summed(plus: Rows, minus: Rows, keys: int) -> Rows:
    sums: dict[tuple[Any, ...], list[int]] = {}
    for sign, rows in ((1, plus), (-1, minus)):
        for row in rows:
            figures = [sign * int(figure or 0) for figure in row[keys:]]
            known = sums.get(row[:keys])
            sums[row[:keys]] = figures if known is None else [a + b for a, b in zip(known, figures, strict=True)]
    return [(*key, *figures) for key, figures in sums.items() if any(figures)]


# -- the live ledger --------------------------------------------------------------------------------------------------


def _add_live(place: LiveLedger, asked: Sequence[Sums], *, latest: bool) -> list[Rows]:
    """The database's sums, without those of rows that are not the last word, and with what is."""
    lead = f"WITH newest AS ({_NEWEST_SQL}) " if latest else ""
    dialect, lite = _dialect(place.url), sqlite.dialect()
    with snapshot(place.url, place.journal_dir) as ledger:
        rows = ledger.unsettled(None, None)
        settled = [ledger.database.select(lead + one.sql(dialect)) for one in asked]
        if not rows:
            return [_summed(found, [], one.keys) for found, one in zip(settled, asked, strict=True)]
        ids = [str(values[0]) for values in rows]
        prices = ledger.database.repricings_of(ids)
        with private_ledger() as old, private_ledger() as new:
            _fill(old, ledger.database.rows_of(ids), prices)
            _fill(new, rows, prices)
            return [
                _summed([*found, *new.select(lead + one.sql(lite))], old.select(lead + one.sql(lite)), one.keys)
                for found, one in zip(settled, asked, strict=True)
            ]


def _dialect(url: str) -> Dialect:
    # this style of parameters leaves percent signs alone: there are none to be filled in
    return sqlite.dialect() if is_sqlite(url) else postgresql.dialect(paramstyle="qmark")  # type: ignore[no-untyped-call]


def _fill(database: Database, rows: Sequence[Values], prices: Sequence[tuple[Any, ...]]) -> None:
    with database.transaction():
        database.write((), rows)
        database.add_repricings(prices)


# -- an export --------------------------------------------------------------------------------------------------------


def _add_exported(folder: Path, asked: Sequence[Sums], *, latest: bool) -> list[Rows]:
    """DuckDB speaks PostgreSQL's SQL, but for the division of integers."""
    texts = [one.sql(_dialect("postgresql:")) for one in asked]
    found: list[Rows] = [[] for _ in asked]
    with duck_connection() as (connection, _):
        connection.execute("SET integer_division = true")
        for since, until in _joined(connection, folder) if latest else [(None, None)]:
            view_attempts(connection, folder, since, until)
            for rows, text in zip(found, texts, strict=True):
                rows += connection.execute(text).fetchall()
    return [_summed(rows, [], one.keys) for rows, one in zip(found, asked, strict=True)]


def _joined(connection: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[Span]:
    """Spans of whole days that together are all of time; while one is worked on, `newest` is what it needs of it."""
    prices = folder / "repricings.parquet"
    if not prices.exists():
        connection.execute(f"CREATE TABLE newest ({columns_sql(repricings, REPRICING_COLUMNS)})")
        yield None, None
        return
    connection.execute(f"CREATE VIEW repricings AS FROM read_parquet('{quoted(prices)}')")
    told = {name for name, *_ in connection.execute("DESCRIBE repricings").fetchall()}
    if not {"day", "newest"} <= told:  # written by an older export: all at once, which may spill
        connection.execute(f"CREATE VIEW newest AS {_NEWEST_SQL}")
        yield None, None
        return
    # attempts are read past what is priced, not the other way round: a row of theirs is three times as wide
    connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
    for since, until in _spans(connection):
        bounds = [
            *([f"day >= CAST(make_timestamp({since}) AS DATE)"] if since is not None else []),
            *([f"day < CAST(make_timestamp({until}) AS DATE)"] if until is not None else []),
        ]
        where = " AND ".join(("newest", *bounds))
        connection.execute(f"CREATE OR REPLACE VIEW newest AS SELECT {_NAMES} FROM repricings WHERE {where}")
        yield since, until


def _spans(connection: duckdb.DuckDBPyConnection) -> list[Span]:
    counted = "SELECT epoch_us(day), count(*) FROM repricings WHERE newest GROUP BY day ORDER BY day"
    edges: list[int | None] = [None]
    held = 0
    for day, count in connection.execute(counted).fetchall():
        if held and held + count > _JOINED_AT_ONCE:
            edges.append(day)
            held = 0
        held += count
    return list(pairwise([*edges, None]))
