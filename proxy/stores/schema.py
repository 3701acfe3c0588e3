"""The ledger's tables and bringing a database up to date (contract L1, L2, C5).

In: the ledger's URL (`sqlite:////absolute/path` or `postgresql://...`). Out: a database whose schema is the newest.

Times are integer microseconds since 1970 in UTC, durations integer microseconds: exact, comparable and the same on both
databases. `closed_by` says who ended a row: null while it runs, `writer`, or `inferred` where its writer was found
dead. Later revisions may only add: an older process must be able to write beside a newer one.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    MetaData,
    NullPool,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from proxy.errors import LedgerUnavailable
from proxy.stores.ledger_rows import COST_COLUMNS, USAGE_COLUMNS
from proxy.stores.ledger_sql import connect_raw, is_sqlite

# The newest file under migrations/versions; a test holds the two together.
HEAD = "0002"
# Any number that nobody else takes an advisory lock on: "sluice" in ASCII.
_MIGRATION_LOCK = 0x736C75696365
_upgrading = threading.Lock()  # Alembic keeps its context in module globals

metadata = MetaData()

attempts = Table(
    "attempts",
    metadata,
    # ordered by code point everywhere, as Python does: exports are merged by it
    Column("attempt_id", Text().with_variant(Text(collation="C"), "postgresql"), primary_key=True),
    Column("request_id", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("attempt_no", BigInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("streamed", Boolean, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("upstream", Text, nullable=False),
    Column("vendor", Text, nullable=False),
    Column("credential", Text),
    Column("model_alias", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("writer", Text, nullable=False),
    Column("ended_at", BigInteger),
    Column("ending", Text),
    Column("duration_us", BigInteger),
    Column("ttft_us", BigInteger),
    Column("served_model", Text),
    Column("service_tier", Text),
    Column("vendor_request_id", Text),
    Column("vendor_response_id", Text),
    Column("upstream_status", BigInteger),
    Column("rule_id", Text),
    Column("error_class", Text),
    Column("error_code", Text),
    Column("finish_reason", Text),
    Column("finish_inferred", Boolean, nullable=False),
    Column("vendor_usage", Text),
    Column("counted_input", BigInteger, nullable=False),
    Column("counted_output", BigInteger, nullable=False),
    Column("delivered_output", BigInteger, nullable=False),
    Column("tokenizer", Text),
    Column("bytes_in", BigInteger, nullable=False),
    Column("bytes_out", BigInteger, nullable=False),
    Column("events_in", BigInteger, nullable=False),
    Column("events_out", BigInteger, nullable=False),
    Column("notes", Text),
    Column("closed_by", Text),
    # from revision 0002 on; money in nano-units of `currency`
    Column("request_bytes", BigInteger, nullable=False, server_default="0"),
    Column("max_output", BigInteger),
    Column("price_version", Text),
    Column("currency", Text),
    Column("cost_bound", BigInteger),
    Column("counted_reasoning", BigInteger, nullable=False, server_default="0"),
    Column("count_formula", Text),
    Column("usage_state", Text),
    Column("usage_told", Text),
    *(Column(name, BigInteger) for name in USAGE_COLUMNS),
    Column("price_tier", Text),
    *(Column(name, BigInteger) for name in COST_COLUMNS),
)
Index("attempts_by_start", attempts.c.started_at, attempts.c.attempt_id)
_RUNNING = attempts.c.closed_by.is_(None)
Index("attempts_running", attempts.c.writer, sqlite_where=_RUNNING, postgresql_where=_RUNNING)

# What an attempt costs at another price than the one it was first priced with. Only ever added to.
repricings = Table(
    "repricings",
    metadata,
    Column("attempt_id", Text().with_variant(Text(collation="C"), "postgresql"), primary_key=True),
    Column("price_version", Text, primary_key=True),
    Column("price_tier", Text, primary_key=True),
    Column("repriced_at", BigInteger, primary_key=True),  # a price that was taken back may come again
    Column("currency", Text, nullable=False),
    *(Column(name, BigInteger) for name in COST_COLUMNS),
)

# How far each journal segment is in the database; written in the transaction of its rows.
journal_progress = Table(
    "journal_progress",
    metadata,
    Column("segment", Text, primary_key=True),
    Column("writer", Text, nullable=False),
    Column("drained", BigInteger, nullable=False),
)

# Who writes, and until when it may be taken for alive by those who cannot see its lock. Times by the database's clock.
writers = Table(
    "writers",
    metadata,
    Column("writer", Text, primary_key=True),
    Column("instance", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("lease_until", BigInteger, nullable=False),
)


def upgrade(url: str) -> None:
    """Bring the database to `HEAD`, making it if it is empty. Any number of processes may call this at once; one does
    the work. A database that is newer already is left alone. Raises `LedgerUnavailable`."""
    engine = create_engine(
        "sqlite://" if is_sqlite(url) else "postgresql+psycopg://", creator=lambda: connect_raw(url), poolclass=NullPool
    )
    # the raw connection leaves transactions to us; SQLite's takes the write lock before it looks
    begin = "BEGIN IMMEDIATE" if is_sqlite(url) else "BEGIN"
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    try:
        with _upgrading, engine.begin() as connection:
            if not is_sqlite(url):
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            revision = current_revision(connection)
            if revision is None or revision < HEAD:
                _run_migrations(connection)
    except SQLAlchemyError as error:
        reason = getattr(error, "orig", None) or error  # what SQLAlchemy says around it takes several lines
        raise LedgerUnavailable(f"the ledger's database cannot be brought up to date: {reason}") from error
    finally:
        engine.dispose()


def current_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def _run_migrations(connection: Connection) -> None:
    from alembic import command  # 0.2 s that only a first start needs
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def create_statements() -> list[str]:
    """The newest schema as SQLite statements, for a private database that no migration ever sees."""
    dialect = sqlite.dialect()
    tables = [str(CreateTable(table).compile(dialect=dialect)) for table in metadata.sorted_tables]
    indexes = [str(CreateIndex(index).compile(dialect=dialect)) for index in attempts.indexes]
    return [*tables, *sorted(indexes)]
