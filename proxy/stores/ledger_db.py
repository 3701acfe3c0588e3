"""The ledger of one worker: a journal that makes rows durable and a thread that drains it (contract L1).

In: opened and closed attempts. Out: rows in the database, half a second later. Built inside the worker, after the fork:
it holds a lock, two threads and a connection, none of which survive one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path

import structlog

from proxy.errors import LedgerUnavailable
from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.stores.drain import Drain
from proxy.stores.journal import JOURNAL_BYTES, Journal
from proxy.stores.ledger_sql import is_sqlite
from proxy.stores.schema import upgrade
from proxy.stores.segments import Files, writer_id

log = structlog.get_logger(__name__)

# The last drain at the end of a worker. What is left then is drained by whoever runs next.
STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class LedgerState:
    """How the ledger is. `writable`: the disk takes rows; `full`: no further attempt may begin; `away_since` is when
    the database was last seen, in unix seconds, None while it is there; bytes wait for it, of `limit_bytes`."""

    writable: bool
    full: bool
    away_since: float | None
    waiting_bytes: int
    limit_bytes: int

    @property
    def takes_work(self) -> bool:
        return self.writable and not self.full


class Ledger:
    """`metering.ledger.LedgerStore` on disk."""

    def __init__(self, journal: Journal, drain: Drain) -> None:
        self.journal, self.drain = journal, drain
        self._stop = threading.Event()
        self._thread = threading.Thread(target=drain.run, args=(self._stop,), name="ledger drain", daemon=True)
        self._thread.start()

    @classmethod
    def start(
        cls,
        url: str,
        journal_dir: Path,
        instance: str,
        worker: str,
        files: Files | None = None,
        journal_bytes: int = JOURNAL_BYTES,
    ) -> Ledger:
        """Begin to write. Raises `LedgerUnavailable` if the disk refuses, or SQLite the schema. PostgreSQL may be away:
        then the journal waits for it."""
        if is_sqlite(url):
            upgrade(url)
        journal = Journal(journal_dir, writer_id(instance, worker), files, limit_bytes=journal_bytes)
        return cls(journal, Drain(url, journal, instance))

    @property
    def writer(self) -> str:
        return self.journal.writer

    @property
    def healthy(self) -> bool:
        return self.journal.healthy

    @property
    def state(self) -> LedgerState:
        journal = self.journal
        return LedgerState(
            journal.healthy, journal.is_full, self.drain.away_since, journal.waiting_bytes, journal.limit_bytes
        )

    def open(self, row: AttemptOpen) -> None:
        self.journal.open(row)

    def close(self, row: AttemptClose) -> asyncio.Future[None]:
        return self.journal.close(row)

    def close_now(self, row: AttemptClose) -> None:
        self.journal.close_now(row)

    async def stop(self) -> None:
        """Flush, drain, end what is open as `interrupted`, give the lock up. Bounded by `STOP_S` and one fsync."""
        await asyncio.get_running_loop().run_in_executor(None, self.stop_now)

    def stop_now(self) -> None:
        """`stop` for where no loop runs. Blocks."""
        self.journal.finish()
        self._stop.set()
        last = threading.Thread(target=self._last_round, name="ledger last drain", daemon=True)
        last.start()
        last.join(STOP_S)
        if last.is_alive():
            log.warning("the last drain takes too long; the next start goes on with it", writer=self.writer)
        self.journal.release()

    def _last_round(self) -> None:
        self._thread.join()
        with contextlib.suppress(LedgerUnavailable):
            self.drain.finish()
