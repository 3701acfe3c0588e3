"""Rows taken out of the ledger for good: retention, and a tenant's wish to be forgotten (contract L3).

In: the ledger's URL and what is to go: attempts that started before a moment, of some tenants or of all. Out: how many
by tenant. Only attempts that have ended go, with their re-pricings; in batches, so that a proxy that writes beside is
never held up for long. What is gone from an SQLite file is overwritten there. It does not come back: what a journal
held of it has been drained, and a drained line is never read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, NullPool, and_, create_engine, delete, event, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from proxy.errors import LedgerUnavailable
from proxy.stores.ledger_sql import connect_raw, is_sqlite
from proxy.stores.schema import attempts, repricings, upgrade

#: One transaction: some milliseconds, in which SQLite lets nobody else write.
BATCH_ROWS = 500


@dataclass(frozen=True, slots=True)
class Wish:
    """Attempts that started before `before` (microseconds), of `tenants` (None: of all but those in `except_tenants`),
    of `vendor` if one is named."""

    before: int
    tenants: tuple[str, ...] | None = None
    except_tenants: tuple[str, ...] = ()
    vendor: str | None = None

    @property
    def condition(self) -> ColumnElement[bool]:
        columns = attempts.c
        conditions = [columns.started_at < self.before, columns.closed_by.is_not(None)]
        if self.tenants is not None:
            conditions.append(columns.tenant.in_(self.tenants))
        if self.except_tenants:
            conditions.append(columns.tenant.not_in(self.except_tenants))
        if self.vendor is not None:
            conditions.append(columns.vendor == self.vendor)
        return and_(*conditions)


def count(url: str, wishes: Sequence[Wish]) -> dict[str, int]:
    """How many attempts of each tenant would go. Raises `LedgerUnavailable`."""
    with _connected(url) as connection:
        rows = connection.execute(
            select(attempts.c.tenant, func.count()).where(_any(wishes)).group_by(attempts.c.tenant)
        ).all()
        return {tenant: number for tenant, number in sorted((row[0], row[1]) for row in rows)}


def prune(url: str, wishes: Sequence[Wish]) -> Iterator[int]:
    """Take them out; yields how many went, batch by batch. Raises `LedgerUnavailable`; what had gone is gone."""
    chosen = select(attempts.c.attempt_id).where(_any(wishes)).order_by(attempts.c.started_at).limit(BATCH_ROWS)
    while True:
        with _connected(url) as connection, connection.begin():
            ids = [row[0] for row in connection.execute(chosen)]
            if ids:
                connection.execute(delete(repricings).where(repricings.c.attempt_id.in_(ids)))
                connection.execute(delete(attempts).where(attempts.c.attempt_id.in_(ids)))
        if not ids:
            return
        yield len(ids)


def _any(wishes: Sequence[Wish]) -> ColumnElement[bool]:
    return or_(*(wish.condition for wish in wishes))


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    """A connection with the drivers' errors translated."""
    upgrade(url)
    dialect = "sqlite://" if is_sqlite(url) else "postgresql+psycopg://"
    engine = create_engine(dialect, creator=lambda: _connect(url), poolclass=NullPool)
    begin = "BEGIN IMMEDIATE" if is_sqlite(url) else "BEGIN"
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        reason = getattr(error, "orig", None) or error
        raise LedgerUnavailable(f"the ledger's database refused: {reason}") from error
    finally:
        engine.dispose()


def _connect(url: str) -> Any:
    raw = connect_raw(url)
    if is_sqlite(url):
        raw.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten, and not only unlinked
    return raw
