"""The ledger's SQL for the raw drivers: one connection to SQLite or PostgreSQL, and what is done on it (contract L1).

In: the ledger's URL and column tuples (`ledger_rows.COLUMNS`). Out: rows in the database, `LedgerUnavailable` for
whatever the driver raises. No ORM and no SQLAlchemy here: this runs for every attempt.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from proxy.errors import LedgerUnavailable
from proxy.stores.ledger_rows import BY_WRITER, COLUMNS, COST_COLUMNS, INFERRED, Values

CONNECT_S = 5
# After so long without an answer from the other host's kernel a connection is dead; Linux would try for 15 minutes.
_SILENCE_MS = 20_000
# How long SQLite waits for another process's transaction; each of ours is a few milliseconds.
_BUSY_S = 10.0
_FETCH_ROWS = 500
LEASE_S = 60

REPRICING_COLUMNS = ("attempt_id", "price_version", "price_tier", "repriced_at", "currency", *COST_COLUMNS)

_COLUMN_LIST = ", ".join(COLUMNS)
_OVERWRITE = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])
_SQLITE_NOW = "(CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))"
_POSTGRES_NOW = "(CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))"


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite:")


def sqlite_path(url: str) -> str:
    return url.removeprefix("sqlite:///")


def connect_raw(url: str, *, read_only: bool = False) -> Any:
    """A driver's own connection, each statement by itself until BEGIN. `Any`: two drivers, no common type. A power cut
    may not take back what was committed (journals are deleted afterwards): hence full sync, also where the server's
    default is weaker."""
    if is_sqlite(url):
        path = sqlite_path(url)
        place = f"file:{quote(path)}?mode={'ro' if read_only else 'rwc'}" if path else ""
        lite = sqlite3.connect(place, uri=bool(path), timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        if not read_only:
            _begin_wal(lite)
            lite.execute("PRAGMA synchronous=FULL")
        return lite
    import psycopg  # 0.15 s that an SQLite ledger does not need
    from psycopg.types.numeric import Int8BinaryDumper

    connection: Any = psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=CONNECT_S,
        application_name="sluice",
        keepalives_idle=10,
        tcp_user_timeout=_SILENCE_MS,
    )
    # as psycopg has it, each size of number is a type of its own, and each mix of types another prepared statement
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.execute("SET default_transaction_read_only = on" if read_only else "SET synchronous_commit = on")
    return connection


def _begin_wal(lite: sqlite3.Connection) -> None:
    """Several workers may meet over a new file, and SQLite does not wait its busy time for this: it says at once that
    the file is locked. Once it is in WAL mode, asking again changes nothing and never fails."""
    end = time.monotonic() + _BUSY_S
    while True:
        try:
            lite.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                lite.close()
                raise
            time.sleep(0.02)
        else:
            return


def _driver_error(url: str) -> type[Exception]:
    if is_sqlite(url):
        return sqlite3.Error
    import psycopg

    return psycopg.Error


@dataclass(frozen=True, slots=True)
class Lease:
    """What the database knows of a writer: microseconds by the database's clock."""

    seen_at: int
    expired: bool


class Database:
    """One connection. Not for two threads at once. Everything raises `LedgerUnavailable` when the database does."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url = url
        self._error = _driver_error(url)
        self._sqlite = is_sqlite(url)
        mark = "?" if self._sqlite else "%s"
        self._now = _SQLITE_NOW if self._sqlite else _POSTGRES_NOW
        self._mark = mark
        insert = f"INSERT INTO attempts ({_COLUMN_LIST}) VALUES ({', '.join([mark] * len(COLUMNS))})"
        self._insert_open = f"{insert} ON CONFLICT (attempt_id) DO NOTHING"
        # a close by the real writer wins over an open row and over an inferred end; the first close stays
        self._upsert_close = (
            f"{insert} ON CONFLICT (attempt_id) DO UPDATE SET {_OVERWRITE} "
            f"WHERE attempts.closed_by IS NULL OR attempts.closed_by <> '{BY_WRITER}'"
        )
        with self._translated():
            self._connection = connect_raw(url, read_only=read_only)

    def close(self) -> None:
        with self._translated():
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._translated():
            self._connection.execute("BEGIN IMMEDIATE" if self._sqlite else "BEGIN")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    # -- rows and progress, within a transaction ----------------------------------------------------------------------

    def write(self, opens: Sequence[Values], closes: Sequence[Values]) -> None:
        cursor = self._connection.cursor()
        if opens:
            cursor.executemany(self._insert_open, opens)
        if closes:
            cursor.executemany(self._upsert_close, closes)

    def add_repricings(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Within a transaction. One that is there already stays as it is."""
        marks = ", ".join([self._mark] * len(REPRICING_COLUMNS))
        self._connection.cursor().executemany(
            f"INSERT INTO repricings ({', '.join(REPRICING_COLUMNS)}) VALUES ({marks}) ON CONFLICT DO NOTHING", rows
        )

    def set_progress(self, segment: str, writer: str, drained: int) -> None:
        self._run(
            "INSERT INTO journal_progress (segment, writer, drained) VALUES (?, ?, ?) "
            "ON CONFLICT (segment) DO UPDATE SET drained = excluded.drained",
            (segment, writer, drained),
        )

    def interrupt(self, writer: str, ended_at: int) -> None:
        """End what a dead writer left open. Never before it has been proved dead."""
        self._run(
            "UPDATE attempts SET ending = 'interrupted', error_code = 'interrupted', "
            "error_class = 'model_unavailable', ended_at = CASE WHEN started_at > ? THEN started_at ELSE ? END, "
            "duration_us = CASE WHEN started_at > ? THEN 0 ELSE ? - started_at END, "
            f"closed_by = '{INFERRED}' WHERE writer = ? AND closed_by IS NULL",
            (ended_at, ended_at, ended_at, ended_at, writer),
        )

    def forget_writer(self, writer: str) -> None:
        self._run("DELETE FROM journal_progress WHERE writer = ?", (writer,))
        self._run("DELETE FROM writers WHERE writer = ?", (writer,))

    # -- alone or within a transaction --------------------------------------------------------------------------------

    def forget_segment(self, segment: str) -> None:
        with self._translated():
            self._run("DELETE FROM journal_progress WHERE segment = ?", (segment,))

    def progress(self) -> dict[str, int]:
        with self._translated():
            return dict(self._run("SELECT segment, drained FROM journal_progress", ()).fetchall())

    def renew(self, writer: str, instance: str, host: str) -> None:
        """Say that `writer` lives, for `LEASE_S` from now by the database's clock."""
        now = self._now
        with self._translated():
            self._run(
                "INSERT INTO writers (writer, instance, host, started_at, seen_at, lease_until) "
                f"VALUES (?, ?, ?, {now}, {now}, {now} + {LEASE_S * 1_000_000}) ON CONFLICT (writer) "
                "DO UPDATE SET seen_at = excluded.seen_at, lease_until = excluded.lease_until",
                (writer, instance, host),
            )

    def leases(self) -> dict[str, Lease]:
        with self._translated():
            rows = self._run(f"SELECT writer, seen_at, lease_until < {self._now} FROM writers", ()).fetchall()
            return {writer: Lease(seen_at, bool(expired)) for writer, seen_at, expired in rows}

    def writers_with_running(self) -> list[str]:
        with self._translated():
            rows = self._run("SELECT DISTINCT writer FROM attempts WHERE closed_by IS NULL", ()).fetchall()
            return [writer for (writer,) in rows]

    def has_tables(self) -> bool:
        catalog = "SELECT name FROM sqlite_master" if self._sqlite else "SELECT relname FROM pg_class"
        name = catalog.split()[1]
        with self._translated():
            visible = "" if self._sqlite else " AND pg_table_is_visible(oid)"
            return bool(self._run(f"{catalog} WHERE {name} = 'attempts'{visible}", ()).fetchall())

    def revision(self) -> str:
        """Of the schema."""
        with self._translated():
            return str(self._run("SELECT version_num FROM alembic_version", ()).fetchone()[0])

    # -- reading ------------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one state of the database, however long they take."""
        with self._translated():
            self._connection.execute("BEGIN" if self._sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield
            finally:
                self._roll_back()

    def rows(self, since: int | None, until: int | None, tenant: str | None = None) -> Iterator[Values]:
        """Rows with `since <= started_at < until`, of one tenant if one is named; by start and id, some at a time.
        PostgreSQL: in a snapshot only."""
        sql = (
            f"SELECT {_COLUMN_LIST} FROM attempts WHERE started_at >= ? AND started_at < ? "
            f"{'' if tenant is None else 'AND tenant = ? '}ORDER BY started_at, attempt_id"
        )
        bounds = (-(2**63) if since is None else since, 2**63 - 1 if until is None else until)
        return self._streamed("rows", sql, bounds if tenant is None else (*bounds, tenant))

    def repricings(self) -> Iterator[tuple[Any, ...]]:
        """All `REPRICING_COLUMNS` and the attempt's `started_at`; by the attempt's start and id, an attempt's newest
        last; some at a time. PostgreSQL: in a snapshot only."""
        names = ", ".join(f"repricings.{name}" for name in REPRICING_COLUMNS)
        order = "started_at, attempts.attempt_id, repriced_at, repricings.price_version, repricings.price_tier"
        sql = (
            f"SELECT {names}, attempts.started_at FROM attempts JOIN repricings "
            f"ON repricings.attempt_id = attempts.attempt_id ORDER BY {order}"
        )
        return self._streamed("repricings", sql, ())

    def _streamed(self, name: str, sql: str, parameters: tuple[object, ...]) -> Iterator[tuple[Any, ...]]:
        with self._translated():
            cursor = self._connection.cursor() if self._sqlite else self._connection.cursor(name=name)
            with closing(cursor):
                cursor.execute(self._marked(sql), parameters)
                while rows := cursor.fetchmany(_FETCH_ROWS):
                    yield from rows

    def running(self, since: int | None, until: int | None) -> list[Values]:
        """The rows that nobody has ended yet, as `rows` has them."""
        sql = (
            f"SELECT {_COLUMN_LIST} FROM attempts WHERE closed_by IS NULL AND started_at >= ? AND started_at < ? "
            "ORDER BY started_at, attempt_id"
        )
        bounds = (-(2**63) if since is None else since, 2**63 - 1 if until is None else until)
        with self._translated():
            return list(self._run(sql, bounds).fetchall())

    def rows_of(self, attempt_ids: Sequence[str]) -> list[Values]:
        """The rows of these attempts, as far as they are there."""
        found: list[Values] = []
        with self._translated():
            for start in range(0, len(attempt_ids), _FETCH_ROWS):
                some = tuple(attempt_ids[start : start + _FETCH_ROWS])
                marks = ", ".join("?" * len(some))
                found += self._run(
                    f"SELECT {_COLUMN_LIST} FROM attempts WHERE attempt_id IN ({marks})", some
                ).fetchall()
        return found

    def repricings_of(self, attempt_ids: Sequence[str]) -> list[tuple[Any, ...]]:
        """`REPRICING_COLUMNS` of these attempts, the newest last."""
        sql = f"SELECT {', '.join(REPRICING_COLUMNS)} FROM repricings WHERE attempt_id IN"
        order = "ORDER BY attempt_id, repriced_at, price_version, price_tier"
        found: list[tuple[Any, ...]] = []
        with self._translated():
            for start in range(0, len(attempt_ids), _FETCH_ROWS):
                some = tuple(attempt_ids[start : start + _FETCH_ROWS])
                found += self._run(f"{sql} ({', '.join('?' * len(some))}) {order}", some).fetchall()
        return found

    def select(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a whole statement, its values written in."""
        with self._translated():
            return list(self._connection.execute(sql).fetchall())

    def execute_script(self, statements: Sequence[str]) -> None:
        with self._translated():
            for statement in statements:
                self._connection.execute(statement)

    # -- the driver ---------------------------------------------------------------------------------------------------

    def _run(self, sql: str, parameters: tuple[object, ...]) -> Any:
        return self._connection.execute(self._marked(sql), parameters)

    def _marked(self, sql: str) -> str:
        return sql if self._sqlite else sql.replace("?", "%s")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise LedgerUnavailable(f"the ledger's database refused: {error}") from error

    def _roll_back(self) -> None:
        """A connection that is broken has nothing to roll back; whoever raised says so."""
        try:
            self._connection.execute("ROLLBACK")
        except self._error:
            return
