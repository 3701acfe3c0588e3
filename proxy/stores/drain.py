"""From the journals to the database, and who is dead (contract L1).

In: this process's own journal, and the journals of dead writers in the same folder. Out: rows, each exactly once,
however often bytes are drained: the offset reached is stored in the transaction of its rows, and writing a row again
changes nothing. Nothing here holds traffic up: while the database is away the journals grow, and the drain goes on
where it was.

A writer is dead when its lock is free: whoever takes the lock over drains what is left, ends its open attempts as
`interrupted` at its last sign of life, and clears the files away. A writer whose lock cannot be seen from here (another
host, the same PostgreSQL) is dead when its lease in the database has run out. After an outage of the database nobody
could renew: so a process that was cut off judges others only after it has renewed for one whole lease.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson
import structlog

from proxy.errors import LedgerUnavailable
from proxy.stores.journal import Journal
from proxy.stores.ledger_rows import Values, close_values, open_values
from proxy.stores.ledger_sql import LEASE_S, Database
from proxy.stores.schema import upgrade
from proxy.stores.segments import (
    CLOSE,
    FORMAT,
    HEADER,
    OPEN,
    Line,
    Segment,
    last_sign_of_life,
    list_locks,
    list_segments,
    lock_path,
    read_lines,
    segment_of,
    take_over,
)

log = structlog.get_logger(__name__)

INTERVAL_S = 0.5
RENEW_S = 10.0
ADOPT_S = 5.0
# A database that neither answers nor refuses is away too, long before the kernel or SQLite gives it up. Transactions of
# ours take milliseconds.
STUCK_S = 5.0
# One transaction: some 200 attempts, a few milliseconds.
BATCH_BYTES = 256 * 1024
# After so many lines the event loop's thread gets its turn at the GIL. It would otherwise wait for the interpreter's
# 5 ms; and a sleep of no time gives the GIL away and takes it back before the other thread has woken up.
_SLICE = 32
_TURN_S = 0.0002


class UnknownFormat(Exception):
    """A segment of a newer program: it stays where it is until such a program comes."""


@dataclass(slots=True)
class Batch:
    """The rows of some lines, those of one attempt merged; `end` is how far they reach. `dropped` counts torn lines."""

    end: int
    opens: dict[str, Values] = field(default_factory=dict)
    closes: dict[str, Values] = field(default_factory=dict)
    dropped: int = 0

    def add(self, line: Line) -> None:
        self.end = line.end
        if line.kind == OPEN:
            opened = orjson.loads(line.payload)
            if opened["attempt_id"] not in self.closes:
                self.opens[opened["attempt_id"]] = open_values(opened)
        elif line.kind == CLOSE:
            opened, closed = orjson.loads(line.payload)
            self.opens.pop(opened["attempt_id"], None)
            if opened["attempt_id"] not in self.closes:  # the first close stays
                self.closes[opened["attempt_id"]] = close_values(opened, closed)
        elif line.kind == HEADER:
            if orjson.loads(line.payload)["journal"] > FORMAT:
                raise UnknownFormat
        else:
            self.dropped += 1

    def slices(self) -> Iterator[tuple[list[Values], list[Values]]]:
        """The rows, some at a time."""
        opens, closes = list(self.opens.values()), list(self.closes.values())
        for start in range(0, max(len(opens), len(closes)), _SLICE):
            yield opens[start : start + _SLICE], closes[start : start + _SLICE]


def read_batch(descriptor: int, offset: int, limit: int = BATCH_BYTES) -> Batch:
    """The rows behind `offset`. An `end` that is `offset` says that there is nothing more for now."""
    batch = Batch(end=offset)
    for count, line in enumerate(read_lines(lambda size, place: os.pread(descriptor, size, place), offset, limit)):
        batch.add(line)
        if count % _SLICE == _SLICE - 1:
            time.sleep(_TURN_S)
    return batch


class Drain:
    """The drain of one process, for one thread. Without a journal of its own it only cares for the dead."""

    def __init__(self, url: str, journal: Journal, instance: str) -> None:
        self.rows = 0
        self.dropped = 0
        self.reachable = True
        self._away_since: float | None = None
        #: While a round runs: when the database last did what it was asked, by the monotonic and the unix clock.
        self._heard_at: tuple[float, float] | None = None
        self._url, self._instance = url, instance
        self._journal, self._folder = journal, journal.folder
        self._host = socket.gethostname()
        self._database: Database | None = None
        self._offsets: dict[str, int] = {}
        self._renew_at = self._adopt_at = 0.0
        self._renewing_since: float | None = None
        self._unknown: set[str] = set()

    @property
    def away_since(self) -> float | None:
        """Since when the database refuses, or lets us wait, in unix seconds; None while it is there. For any thread."""
        heard = self._heard_at
        if self._away_since is None and heard is not None and time.monotonic() - heard[0] > STUCK_S:
            return heard[1]
        return self._away_since

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(INTERVAL_S):
            try:
                self.cycle(time.monotonic())
            except Exception:  # a mistake of ours must not end all draining: journals would grow for good
                log.exception("drain round failed")

    def cycle(self, now: float) -> bool:
        """One round. False if the database was away: nothing is lost, the next round goes on."""
        self._heard()
        try:
            self._round(now)
        except (LedgerUnavailable, OSError) as error:
            if self.reachable:
                self._away_since = time.time()
                log.warning("ledger database away, journals grow", error=str(error))
            self.reachable = False
            self._renewing_since = None
            self._renew_at = self._adopt_at = 0.0
            self.close()
        else:
            if not self.reachable:
                log.info("ledger database back")
            self.reachable, self._away_since = True, None
        finally:
            self._heard_at = None
        self._journal.measure(self._undrained)
        return self.reachable

    def _heard(self) -> None:
        self._heard_at = time.monotonic(), time.time()

    def _undrained(self) -> int:
        """Bytes of this writer's segments that are not in the database."""
        writer, total = self._journal.writer, 0
        for segment in list_segments(self._folder):
            if segment.writer == writer:
                with contextlib.suppress(FileNotFoundError):  # drained and removed since
                    total += max(0, segment.path.stat().st_size - self._offsets.get(segment.name, 0))
        return total

    def finish(self) -> None:
        """The last round, after the journal's `finish`: drain all, end what is open, leave no file. If the database is
        away, the files stay for the next start."""
        if not self.cycle(time.monotonic()):
            return
        try:
            self._settle(self._journal.writer)
        except (LedgerUnavailable, OSError) as error:
            log.warning("ledger not settled at the end, the next start will", error=str(error))
        self.close()

    # -- one round ----------------------------------------------------------------------------------------------------

    def _round(self, now: float) -> None:
        if now >= self._renew_at:
            self._connected().renew(self._journal.writer, self._instance, self._host)
            self._renew_at = now + RENEW_S
            self._renewing_since = self._renewing_since if self._renewing_since is not None else now
        self._drain_own()
        if now >= self._adopt_at:
            self._adopt_at = now + ADOPT_S
            self._adopt_dead()
            self._interrupt_expired(now)

    def _drain_own(self) -> None:
        sealed = self._journal.sealed()
        for segment in self._own_segments(sealed):
            if segment.number < sealed:
                self._drain_segment(segment)
                self._remove(segment)
            elif segment.path.exists():
                self._drain_segment(segment)
            else:
                self._journal.renew(segment.number)

    def _own_segments(self, sealed: int) -> list[Segment]:
        """Those still there, and the one in use. The folder is read only when a segment was left."""
        writer = self._journal.writer
        current = segment_of(self._folder, writer, sealed)
        if sealed == 1 or (current.name in self._offsets and len(self._offsets) == 1):
            return [current] if self._journal.healthy else []
        older = [segment for segment in list_segments(self._folder) if segment.writer == writer]
        return [*(segment for segment in older if segment.number < sealed), current]

    def _drain_segment(self, segment: Segment) -> None:
        """Drain `segment` to its end. Its offset is right after each transaction."""
        try:
            descriptor = os.open(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            offset = self._offsets.setdefault(segment.name, 0)
            while (batch := read_batch(descriptor, offset)).end > offset:
                self._write(batch, segment)
                offset = self._offsets[segment.name] = batch.end
        finally:
            os.close(descriptor)

    def _write(self, batch: Batch, segment: Segment) -> None:
        database = self._connected()
        with database.transaction():
            for opens, closes in batch.slices():
                database.write(opens, closes)
                time.sleep(_TURN_S)
            database.set_progress(segment.name, segment.writer, batch.end)
        self._heard()
        self.rows += len(batch.closes)
        self.dropped += batch.dropped
        if batch.dropped:
            log.warning("torn journal lines dropped", segment=segment.name, lines=batch.dropped)

    def _remove(self, segment: Segment) -> None:
        """Its rows are in the database for good; a progress row left behind by a crash here does no harm."""
        segment.path.unlink(missing_ok=True)
        self._offsets.pop(segment.name, None)
        self._connected().forget_segment(segment.name)

    # -- the dead -----------------------------------------------------------------------------------------------------

    def _adopt_dead(self) -> None:
        writers = {segment.writer for segment in list_segments(self._folder)} | set(list_locks(self._folder))
        for writer in sorted(writers - {self._journal.writer}):
            lock = take_over(self._folder, writer)
            if lock is None:
                continue
            try:
                self._adopt(writer)
            finally:
                os.close(lock)

    def _adopt(self, writer: str) -> None:
        """With the lock of `writer` held."""
        segments = [segment for segment in list_segments(self._folder) if segment.writer == writer]
        drained = self._connected().progress()
        try:
            for segment in segments:
                self._offsets[segment.name] = drained.get(segment.name, 0)
                self._drain_segment(segment)
        except UnknownFormat:
            if writer not in self._unknown:
                log.error("journal of a newer program left alone", writer=writer)
            self._unknown.add(writer)
            return
        self._settle(writer)
        log.info("journal of a dead writer drained", writer=writer, segments=len(segments))

    def _settle(self, writer: str) -> None:
        """End the open attempts of a writer that writes no more, and clear its files away. In this order: after a
        crash anywhere in between, doing it all again comes to the same."""
        segments = [segment for segment in list_segments(self._folder) if segment.writer == writer]
        database = self._connected()
        with database.transaction():
            database.interrupt(writer, round(last_sign_of_life(segments) * 1_000_000))
            database.forget_writer(writer)
        for segment in segments:
            segment.path.unlink(missing_ok=True)
            self._offsets.pop(segment.name, None)
        lock_path(self._folder, writer).unlink(missing_ok=True)

    def _interrupt_expired(self, now: float) -> None:
        if self._renewing_since is None or now - self._renewing_since < LEASE_S:
            return
        database = self._connected()
        leases = database.leases()
        for writer in database.writers_with_running():
            lease = leases.get(writer)
            if lock_path(self._folder, writer).exists() or (lease is not None and not lease.expired):
                continue
            with database.transaction():
                database.interrupt(writer, 0 if lease is None else lease.seen_at)
            log.info("attempts of a writer with an expired lease interrupted", writer=writer)

    # -- the database -------------------------------------------------------------------------------------------------

    def _connected(self) -> Database:
        if self._database is None:
            upgrade(self._url)
            self._database = Database(self._url)
        return self._database

    def close(self) -> None:
        """Leave the database. A further round connects again."""
        if self._database is not None:
            with contextlib.suppress(LedgerUnavailable):  # it was broken, or nothing is under way
                self._database.close()
            self._database = None
