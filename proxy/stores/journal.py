"""One worker's journal: rows in, a durable line each out (contract L1).

`open` appends a line at once, unsynced: it survives `kill -9`. `close` hands its line to one thread, which writes and
syncs all that have come meanwhile in one go: it survives a power cut, and many attempts share one fdatasync.

When the disk fails, whoever waits gets `LedgerUnavailable`, and the segment is never touched again: after a failed
fsync the kernel may have thrown the pages away and the next fsync would lie. A new segment is begun and everything not
yet acknowledged is written there again, now or when the disk is back. Nothing here reads, and nothing here decides
what a row means.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

import structlog

from proxy.errors import JournalFull, LedgerUnavailable
from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.stores.ledger_rows import encode_close, encode_open
from proxy.stores.segments import (
    CLOSE,
    OPEN,
    Files,
    RealFiles,
    Segment,
    encode_header,
    encode_line,
    hold_lock,
    segment_of,
)

log = structlog.get_logger(__name__)

SEGMENT_BYTES = 8 * 1024 * 1024
# While the disk refuses, closes are kept in memory for when it is back. At some 1 kB each this is a minute of a very
# busy worker; what goes over is lost to the ledger's detail only: its attempt is reported `interrupted`.
BACKLOG_LINES = 50_000
RETRY_S = 0.25
# While the database is away the rows wait here. A row is some 2 kB: this is half a million attempts of one worker. What
# runs when the journal is full may still end: ends are never refused, and there are as many as open attempts.
JOURNAL_BYTES = 1 << 30
# One sync costs some 60 us of CPU and a few wake-ups, however many share it. A quiet worker syncs a close at once; on a
# busy one syncs keep this distance, so that a dozen closes share one.
SYNC_GAP_S = 0.002


@dataclass(slots=True)
class _Pending:
    """A close on its way to the disk; `future` is None where nobody waits."""

    attempt_id: str
    line: bytes
    future: asyncio.Future[None] | None


class Journal:
    """Append only, one per process, made after the fork. `open` and `close` belong to the event loop's thread."""

    def __init__(
        self,
        folder: Path,
        writer: str,
        files: Files | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        backlog_lines: int = BACKLOG_LINES,
        limit_bytes: int = JOURNAL_BYTES,
    ) -> None:
        self.folder, self.writer = folder, writer
        self.dropped = 0
        self.failures = 0
        self.limit_bytes = limit_bytes
        # What waited for the database when it was last measured, and how much had been written by then.
        self._measured = self._written = self._written_then = 0
        self._files = files or RealFiles()
        self._segment_bytes, self._backlog_lines = segment_bytes, backlog_lines
        self._opens: dict[str, bytes] = {}
        self._queue: SimpleQueue[_Pending | None] = SimpleQueue()
        self._backlog: deque[_Pending] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        # `_write_lock` guards the descriptor: a line is written, or the segment changed, by one thread at a time.
        # `_commit_lock` makes groups one after another; it is never taken on the event loop while the thread runs.
        self._write_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._descriptor = -1
        self._retired: list[int] = []
        self._number = self._tried = 0
        self._size = 0
        self._finished = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock_descriptor = hold_lock(folder, writer)
            self._begin_segment()
        except OSError as error:
            raise LedgerUnavailable(f"{folder}: cannot begin a journal: {error}") from error
        self._thread = threading.Thread(target=self._run, name=f"journal {writer}", daemon=True)
        self._thread.start()

    @property
    def healthy(self) -> bool:
        return self._descriptor >= 0

    @property
    def waiting_bytes(self) -> int:
        """What is not in the database yet: as it was last measured, and all written since."""
        return self._measured + self._written - self._written_then

    @property
    def is_full(self) -> bool:
        """No further attempt may be opened."""
        return self.waiting_bytes >= self.limit_bytes

    def measure(self, undrained: Callable[[], int]) -> None:
        """Take stock: `undrained` adds up what of the segments is not in the database."""
        written = self._written
        self._measured, self._written_then = undrained(), written

    def open(self, row: AttemptOpen) -> None:
        if self.is_full:
            raise JournalFull(
                f"the ledger's journal is full: {self.waiting_bytes} bytes wait for the database, and "
                f"ledger.journal_bytes allows {self.limit_bytes}"
            )
        row.writer = self.writer
        payload = encode_open(row)
        line = encode_line(OPEN, payload)
        with self._write_lock:
            if self._descriptor < 0:
                raise LedgerUnavailable("the ledger's disk refuses to write")
            try:
                self._write(line)
            except OSError as error:
                self._abandon(error)
                raise LedgerUnavailable(f"the ledger's journal cannot be written: {error}") from error
        self._opens[row.attempt_id] = payload

    def close(self, row: AttemptClose) -> asyncio.Future[None]:
        if self._finished:
            raise LedgerUnavailable("the ledger has been stopped")
        loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.put(_Pending(row.attempt_id, self._close_line(row), future))
        return future

    def close_now(self, row: AttemptClose) -> None:
        pending = _Pending(row.attempt_id, self._close_line(row), None)
        if error := self._commit([pending]):
            raise LedgerUnavailable(f"the ledger's journal cannot be synced: {error}") from error

    def sealed(self) -> int:
        """Segments with a number below this get no more lines."""
        with self._write_lock:
            return self._number if self._descriptor >= 0 else self._number + 1

    def renew(self, number: int) -> None:
        """Leave segment `number` if it is still written to: somebody has removed its file."""
        with self._write_lock:
            if self._descriptor >= 0 and self._number == number:
                self._abandon(FileNotFoundError(f"{segment_of(self.folder, self.writer, number).name} was removed"))

    def finish(self) -> None:
        """Write all that is queued and stop the thread. Blocks; the lock is still held."""
        self._finished = True
        self._queue.put(None)
        self._thread.join()
        with self._commit_lock, self._write_lock:
            self._retire()
            self._close_retired()
        if self._backlog:
            log.error("closes were never written", writer=self.writer, attempts=len(self._backlog))

    def release(self) -> None:
        """Give the lock up: from now on the writer counts as dead."""
        os.close(self._lock_descriptor)

    def _close_line(self, row: AttemptClose) -> bytes:
        opened = self._opens.get(row.attempt_id)
        if opened is None:
            raise LookupError(f"attempt {row.attempt_id} is not open in this journal")
        return encode_line(CLOSE, b"[%b,%b]" % (opened, encode_close(row)))

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        synced_at = 0.0
        while True:
            group, last = self._next_group(synced_at)
            if group or not self.healthy:
                error = self._commit(group)
                self._resolve(group, error)
                synced_at = time.monotonic()
            if last:
                return

    def _next_group(self, synced_at: float) -> tuple[list[_Pending], bool]:
        """All that waits, at least one; or nothing after a while when the disk should be tried again."""
        group: list[_Pending] = []
        try:
            item = self._queue.get(timeout=None if self.healthy else RETRY_S)
            if (pause := synced_at + SYNC_GAP_S - time.monotonic()) > 0 and item is not None:
                time.sleep(pause)
            while item is not None:
                group.append(item)
                item = self._queue.get_nowait()
        except Empty:
            return group, False
        return group, True

    def _resolve(self, group: list[_Pending], error: OSError | None) -> None:
        """Tell the waiting, in one wake-up of the loop for the whole group."""
        waiting = [pending for pending in group if pending.future is not None]
        if waiting and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(_settle, waiting, error)

    def _commit(self, group: list[_Pending]) -> OSError | None:
        """Make the group and the backlog durable. A second try goes to a new segment. None is success."""
        with self._commit_lock:
            batch = [*self._backlog, *group] if self._backlog else group
            error = self._try_write(batch) and self._try_write(batch)
            if error is None:
                self._backlog.clear()
                for pending in batch:
                    self._opens.pop(pending.attempt_id, None)
            else:
                self._keep(group)
            return error

    def _keep(self, group: list[_Pending]) -> None:
        self._backlog.extend(pending for pending in group if pending.line)
        while len(self._backlog) > self._backlog_lines:
            self._opens.pop(self._backlog.popleft().attempt_id, None)
            self.dropped += 1

    def _try_write(self, batch: list[_Pending]) -> OSError | None:
        blob = b"".join([pending.line for pending in batch])
        try:
            self._prepare_segment()
            with self._write_lock:
                descriptor = self._descriptor
                self._write(blob)
            self._files.sync(descriptor)
        except OSError as error:
            with self._write_lock:
                self._abandon(error)
            return error
        with self._write_lock:
            # given up by `open` or `renew` while we synced: say nothing about it, write it all again
            return None if self._descriptor == descriptor else OSError("the segment was given up meanwhile")

    def _prepare_segment(self) -> None:
        self._close_retired()
        if self._descriptor < 0:
            self._begin_segment()
        elif self._size >= self._segment_bytes:
            # one that cannot be followed (no descriptor free?) just grows on
            with contextlib.suppress(OSError):
                self._begin_segment()

    # -- the segment --------------------------------------------------------------------------------------------------

    def _write(self, blob: bytes) -> None:
        """With `_write_lock` held. Raises `OSError`. A short write is a full disk: the line is torn already."""
        if self._descriptor < 0:
            raise OSError("the segment was given up meanwhile")
        written = self._files.write(self._descriptor, blob)
        self._size += written
        self._written += written
        if written != len(blob):
            raise OSError(f"only {written} of {len(blob)} bytes were written")

    def _begin_segment(self) -> None:
        """Raises `OSError`; the segment in use stays as it is then. The file and its name are durable on return."""
        self._tried += 1  # a number is never tried twice: the file of a failed try may still be there
        descriptor = self._create(segment_of(self.folder, self.writer, self._tried))
        with self._write_lock:
            self._retire()
            self._descriptor, self._number, self._size = descriptor, self._tried, 0

    def _create(self, segment: Segment) -> int:
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = self._files.create(segment.path)
        try:
            header = encode_header(self.writer, segment.number)
            if self._files.write(descriptor, header) != len(header):
                raise OSError("the disk is full")
            self._files.sync(descriptor)
            self._files.sync_folder(self.folder)
        except OSError:
            with contextlib.suppress(OSError):
                self._files.close(descriptor)
            with contextlib.suppress(OSError):
                segment.path.unlink()
            raise
        return descriptor

    def _abandon(self, error: OSError) -> None:
        """With `_write_lock` held: never touch this segment again."""
        self.failures += 1
        if self._descriptor >= 0:
            log.error("journal segment given up", writer=self.writer, number=self._number, error=str(error))
            self._retire()
            self._queue.put(_Pending("", b"", None))  # wakes the thread, which begins a new segment

    def _retire(self) -> None:
        """With `_write_lock` held. The descriptor is closed later, by the thread that may just be syncing it: a number
        closed under its hands could already be another file's."""
        if self._descriptor >= 0:
            self._retired.append(self._descriptor)
            self._descriptor = -1

    def _close_retired(self) -> None:
        """With `_commit_lock` held."""
        while self._retired:
            with contextlib.suppress(OSError):  # what it held is synced, or written again elsewhere
                self._files.close(self._retired.pop())


def _settle(waiting: list[_Pending], error: OSError | None) -> None:
    for pending in waiting:
        future = pending.future
        if future is None or future.done():  # whoever waited has been cancelled
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(LedgerUnavailable(f"the ledger's journal cannot be synced: {error}"))
