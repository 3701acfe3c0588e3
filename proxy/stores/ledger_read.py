"""Reading the ledger, database and journals together (contract C5, L4).

In: the ledger's URL and the journals' folder. Out: one row per attempt, ordered by start and then id, in bounded
memory. Read only, without any lock, whether the proxy runs or not; what was durable when the reading began is there. An
open row of a dead writer is told as `interrupted`, in the same words as the drain will write; a running one has no
ending yet.

What is not drained yet goes into a private temporary database by the same statements as it will go into the real one,
and the two are merged. The segments are opened before the database's snapshot is taken: what is drained and deleted
meanwhile is still readable, and no row falls between the two.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from proxy.errors import LedgerUnavailable
from proxy.stores.drain import read_batch
from proxy.stores.ledger_rows import (
    BY_WRITER,
    COLUMNS,
    Values,
    interrupted,
    to_c5,
    to_flat,
    to_micros,
    with_fragments,
    with_objects,
)
from proxy.stores.ledger_sql import Database, Lease, is_sqlite, sqlite_path
from proxy.stores.schema import HEAD, create_statements
from proxy.stores.segments import Segment, is_alive, list_locks, list_segments

_STARTED, _ID = COLUMNS.index("started_at"), COLUMNS.index("attempt_id")
_WRITER, _CLOSED_BY = COLUMNS.index("writer"), COLUMNS.index("closed_by")


def read_rows(
    url: str, journal_dir: Path, since: datetime | None = None, until: datetime | None = None
) -> Iterator[dict[str, object]]:
    """C5 objects with `since <= started_at < until`. Raises `LedgerUnavailable` if the database cannot be read."""
    return (with_objects(to_c5(values)) for values in _read(url, journal_dir, since, until))


def read_json(
    url: str, journal_dir: Path, since: datetime | None = None, until: datetime | None = None
) -> Iterator[bytes]:
    """The same as JSON without a line feed, the vendor's usage to the letter."""
    return (orjson.dumps(with_fragments(to_c5(values))) for values in _read(url, journal_dir, since, until))


def read_flat(
    url: str, journal_dir: Path, since: datetime | None = None, until: datetime | None = None
) -> Iterator[dict[str, object]]:
    """The same with the names of `FLAT_COLUMNS`, objects as JSON text."""
    return (to_flat(values) for values in _read(url, journal_dir, since, until))


def _read(url: str, folder: Path, since: datetime | None, until: datetime | None) -> Iterator[Values]:
    bounds = None if since is None else to_micros(since), None if until is None else to_micros(until)
    try:
        yield from _read_between(url, folder, bounds)
    except OSError as error:
        raise LedgerUnavailable(f"the ledger's journals cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The ledger at one moment: what is drained, what only the journals hold yet, and who was alive."""

    database: Database
    overlay: Database
    living: _Living

    def rows(self, since: int | None, until: int | None, tenant: str | None = None) -> Iterator[Values]:
        """Each attempt once, of one tenant if one is named, resolved, by start and id."""
        for values in _merged(self.database.rows(since, until, tenant), self.overlay.rows(since, until, tenant)):
            yield self.living.resolve(values)

    def unsettled(self, since: int | None, until: int | None) -> list[Values]:
        """Attempts whose row in the database is not the last word: undrained and running ones, resolved."""
        waiting = {str(values[_ID]): values for values in self.overlay.rows(since, until)}
        drained = {str(values[_ID]): values for values in self.database.running(since, until)}
        drained |= {str(values[_ID]): values for values in self.database.rows_of(sorted(waiting))}
        chosen = waiting | {
            attempt_id: values
            for attempt_id, values in drained.items()
            if values[_CLOSED_BY] == BY_WRITER or waiting.get(attempt_id, values)[_CLOSED_BY] != BY_WRITER
        }
        return [self.living.resolve(chosen[attempt_id]) for attempt_id in sorted(chosen)]


@contextmanager
def snapshot(url: str, folder: Path) -> Iterator[Snapshot]:
    """Open the ledger for reading as it is now. Raises `LedgerUnavailable` if it cannot be read."""
    try:
        with ExitStack() as stack:
            yield _snapshot(url, folder, stack)
    except OSError as error:
        raise LedgerUnavailable(f"the ledger's journals cannot be read: {error}") from error


@contextmanager
def private_ledger() -> Iterator[Database]:
    """An empty ledger that only we see."""
    with _private() as database:
        yield database


def _read_between(url: str, folder: Path, bounds: tuple[int | None, int | None]) -> Iterator[Values]:
    with ExitStack() as stack:
        yield from _snapshot(url, folder, stack).rows(*bounds)


def _snapshot(url: str, folder: Path, stack: ExitStack) -> Snapshot:
    locks = {writer: is_alive(folder, writer) for writer in list_locks(folder)}
    segments = _open_segments(folder, stack)
    for segment, _ in segments:
        locks.setdefault(segment.writer, is_alive(folder, segment.writer))  # began just now, or has lost its lock
    overlay = stack.enter_context(_private())
    database = _database(url)
    if database is None:
        database = stack.enter_context(_private())
    else:
        stack.callback(database.close)
    stack.enter_context(database.snapshot())
    living = _Living(locks, _last_writes(segments), database.leases())
    _overlay(overlay, segments, database.progress())
    return Snapshot(database, overlay, living)


def _open_segments(folder: Path, stack: ExitStack) -> list[tuple[Segment, int]]:
    found = []
    for segment in list_segments(folder):
        try:
            descriptor = os.open(segment.path, os.O_RDONLY)
        except FileNotFoundError:  # drained to its end since we looked: the snapshot to come has it
            continue
        stack.callback(os.close, descriptor)
        found.append((segment, descriptor))
    return found


def _last_writes(segments: list[tuple[Segment, int]]) -> dict[str, int]:
    last: dict[str, int] = {}
    for segment, descriptor in segments:
        moment = round(os.fstat(descriptor).st_mtime * 1_000_000)
        last[segment.writer] = max(moment, last.get(segment.writer, 0))
    return last


def _database(url: str) -> Database | None:
    """The real one, or None where none has been made yet."""
    if is_sqlite(url) and not Path(sqlite_path(url)).exists():
        return None
    database = Database(url, read_only=True)
    if not database.has_tables():
        database.close()
        return None
    revision = database.revision()
    if revision < HEAD:
        database.close()
        raise LedgerUnavailable(
            f"the ledger's schema is of an older version ({revision}, needed is {HEAD}): start `sluice serve` once, "
            "which brings it up to date, or read it with the program that wrote it"
        )
    return database


@contextmanager
def _private() -> Iterator[Database]:
    """An empty ledger that only we see: SQLite keeps it in memory while it is small, and in a nameless file beyond."""
    database = Database("sqlite:///")
    try:
        database.execute_script(create_statements())
        yield database
    finally:
        database.close()


def _overlay(overlay: Database, segments: list[tuple[Segment, int]], drained: dict[str, int]) -> None:
    """What the snapshot does not have yet."""
    for segment, descriptor in segments:
        offset = drained.get(segment.name, 0)
        while (batch := read_batch(descriptor, offset)).end > offset:
            with overlay.transaction():
                overlay.write(list(batch.opens.values()), list(batch.closes.values()))
            offset = batch.end


def _merged(drained: Iterator[Values], overlay: Iterator[Values]) -> Iterator[Values]:
    """Both in one order, an attempt that stands in both once: the real writer's close wins, then what is drained."""
    for _, same in groupby(heapq.merge(drained, overlay, key=_place), key=_place):
        candidates = list(same)
        yield next((values for values in candidates if values[_CLOSED_BY] == BY_WRITER), candidates[0])


def _place(values: Values) -> tuple[Any, Any]:
    return values[_STARTED], values[_ID]


@dataclass(frozen=True, slots=True)
class _Living:
    """Who was alive when the reading began: by the lock where there is one (`locks`; False is dead, None is no lock
    file), else by the lease. `last_writes` is when each writer's journal was last written to."""

    locks: Mapping[str, bool | None]
    last_writes: Mapping[str, int]
    leases: Mapping[str, Lease]

    def resolve(self, values: Values) -> Values:
        if values[_CLOSED_BY] is not None:
            return values
        ended_at = self._died_at(str(values[_WRITER]))
        return values if ended_at is None else interrupted(values, ended_at)

    def _died_at(self, writer: str) -> int | None:
        """When `writer` gave its last sign of life; None while it lives."""
        lock = self.locks.get(writer)
        if lock is True:
            return None
        if lock is False or writer in self.last_writes:
            return self.last_writes.get(writer, 0)
        lease = self.leases.get(writer)
        if lease is None:
            return 0
        return lease.seen_at if lease.expired else None
