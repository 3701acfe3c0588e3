"""Several workers on one port, and a parent that does nothing but keep them (contract C1).

In: settings, the function a worker runs, the socket that keeps the port, and what to do with a dead worker's process
id. Out: an exit code, once all workers have ended. Never: accept a connection, start a thread or an event loop (a
process that has one cannot fork safely).

    start ──all ready──▶ running ──SIGTERM, SIGINT──▶ stopping ──last worker ended──▶ exit 0
      └─one ends unready──▶ stopping ─▶ exit 1 or 2         └─shutdown_s + grace──▶ SIGKILL, exit 1

While running, a worker that ends is replaced: at once, or after a pause that doubles when it keeps dying young. Every
worker has a listening socket of its own (SO_REUSEPORT), made just before its fork and closed in the parent right after:
a copy left open would go on taking connections that nobody accepts. The parent's own socket is bound, so that the port
stays ours, and never listens. Workers hold the read end of a pipe that only the parent could write to: it ends when the
parent dies, however it dies.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from proxy.cli.listening import join
from proxy.cli.worker_process import CANNOT, FAILED, RunWorker, run_child
from proxy.config import Settings

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_STOP: Final = (signal.SIGTERM, signal.SIGINT)
#: What a worker has beyond `shutdown_s` to write its error events and flush the ledger. It should need a second or two;
#: killing it is for one that hangs.
GRACE_S: Final = 20.0
_YOUNG_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0


def _report(line: str) -> None:
    print(f"sluice: {line}", file=sys.stderr, flush=True)


@dataclass(slots=True)
class _Worker:
    index: int
    pid: int
    ready_fd: int
    started: float
    ready: bool = False


class Supervisor:
    def __init__(
        self,
        settings: Settings,
        run_worker: RunWorker,
        *,
        reserved: socket.socket,
        workers: int,
        metrics_dir: Path,
        on_death: Callable[[int], None],
        grace_s: float = GRACE_S,
        report: Callable[[str], None] = _report,
    ) -> None:
        self._settings, self._run_worker = settings, run_worker
        self._reserved, self._workers, self._metrics_dir = reserved, workers, metrics_dir
        self._on_death, self._grace_s, self._report = on_death, grace_s, report
        self._alive_read, self._alive_write = os.pipe()
        self._live: dict[int, _Worker] = {}
        self._due: dict[int, float] = {}  # worker index -> when to start it again
        self._pause: dict[int, float] = {}  # worker index -> its last pause, while it keeps dying young
        self._announced = False
        self._stopping_since: float | None = None
        self._killed = False
        self._code = 0

    def run(self, on_ready: Callable[[], None]) -> int:
        """Blocks until all has ended. Calls `on_ready` once, when every worker is ready for the first time."""
        with _Wakeups() as wakeups:
            for index in range(self._workers):
                self._start(index, wakeups)
            while self._live or self._due:
                self._wait(wakeups)
                if any(number in _STOP for number in wakeups.taken()):
                    self._stop()
                self._note_ready()
                self._reap()
                if not self._announced and self._all_ready():
                    self._announced = True
                    on_ready()
                self._start_due(wakeups)
                self._kill_overdue()
        return self._code

    def _start(self, index: int, wakeups: _Wakeups) -> None:
        sock = join(self._reserved)
        ready_read, ready_write = os.pipe()
        os.set_blocking(ready_read, False)
        # A signal between the fork and the child's own handlers would be taken by the parent's, and be lost.
        with _blocked_signals() as before:
            pid = os.fork()
            if pid == 0:
                run_child(
                    self._run_worker,
                    self._settings,
                    sock=sock,
                    worker=index,
                    ready_fd=ready_write,
                    parent_alive_fd=self._alive_read,
                    metrics_dir=self._metrics_dir,
                    let_go=lambda: self._let_go(wakeups, ready_read, before),
                )
        sock.close()
        os.close(ready_write)
        self._live[pid] = _Worker(index, pid, ready_read, time.monotonic())

    def _let_go(self, wakeups: _Wakeups, ready_read: int, mask: set[signal.Signals]) -> None:
        """In the child: closes everything that is the parent's, and hears signals again."""
        wakeups.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._reserved.close()
        for descriptor in (self._alive_write, ready_read, *(worker.ready_fd for worker in self._unready())):
            os.close(descriptor)

    def _wait(self, wakeups: _Wakeups) -> None:
        poll = select.poll()
        for descriptor in (wakeups.read_fd, *(worker.ready_fd for worker in self._unready())):
            poll.register(descriptor, select.POLLIN)
        moments = list(self._due.values())
        if self._stopping_since is not None and not self._killed:
            moments.append(self._kill_at(self._stopping_since))
        poll.poll(max(0.0, min(moments) - time.monotonic()) * 1000 if moments else None)

    def _unready(self) -> list[_Worker]:
        return [worker for worker in self._live.values() if not worker.ready]

    def _note_ready(self) -> None:
        for worker in self._unready():
            with contextlib.suppress(BlockingIOError):
                if os.read(worker.ready_fd, 1):  # b"" is its end: `_reap` will see why
                    worker.ready = True
                    os.close(worker.ready_fd)

    def _all_ready(self) -> bool:
        return len(self._live) == self._workers and not self._unready()

    def _reap(self) -> None:
        for pid in list(self._live):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                worker = self._live.pop(pid)
                if not worker.ready:
                    os.close(worker.ready_fd)
                self._on_death(pid)
                self._ended(worker, os.waitstatus_to_exitcode(status))

    def _ended(self, worker: _Worker, code: int) -> None:
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        who = f"worker {worker.index} (process {worker.pid}) {how}"
        if self._stopping_since is not None:
            if code and (worker.ready or code != -signal.SIGTERM):
                self._report(f"{who} while stopping")
                self._code = self._code or FAILED
        elif not worker.ready and not self._announced:
            # What stops one worker from starting stops the next one too.
            self._report(f"{who} before it was ready")
            self._code = CANNOT if code == CANNOT else FAILED
            self._stop()
        else:
            pause = self._pause_before(worker)
            self._report(f"{who}; starting another" + (f" in {pause:.1f} s" if pause else ""))
            self._due[worker.index] = time.monotonic() + pause

    def _pause_before(self, worker: _Worker) -> float:
        if time.monotonic() - worker.started >= _YOUNG_S:
            self._pause.pop(worker.index, None)
            return 0.0
        pause = min(self._pause.get(worker.index, _FIRST_PAUSE_S / 2) * 2, _LONGEST_PAUSE_S)
        self._pause[worker.index] = pause
        return pause

    def _start_due(self, wakeups: _Wakeups) -> None:
        now = time.monotonic()
        for index in [index for index, moment in self._due.items() if moment <= now]:
            try:
                self._start(index, wakeups)
                del self._due[index]
            except OSError as problem:  # no process or descriptor to be had just now
                self._report(f"worker {index} cannot be started: {problem.strerror}; trying again")
                self._due[index] = now + _LONGEST_PAUSE_S

    def _stop(self) -> None:
        """Asks all workers to stop; asked again, it passes that on, and they stop at once."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
        self._due.clear()
        self._signal_all(signal.SIGTERM)

    def _kill_at(self, stopping_since: float) -> float:
        return stopping_since + self._settings.shutdown_s + self._grace_s

    def _kill_overdue(self) -> None:
        since = self._stopping_since
        if since is not None and not self._killed and time.monotonic() >= self._kill_at(since):
            self._killed = True
            self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in self._live:  # children that were not waited for: their ids cannot belong to anyone else
            os.kill(pid, number)


class _Wakeups:
    """Signals as bytes in a pipe, so that one `poll` waits for them and for the workers alike."""

    def __enter__(self) -> _Wakeups:
        self.read_fd, self._write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._before = {number: signal.signal(number, _only_wake) for number in _SIGNALS}
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def taken(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(self.read_fd, 4096)
        return b""

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.close(self.read_fd)
        os.close(self._write_fd)


def _only_wake(number: int, frame: FrameType | None) -> None:
    """A handler must be there for Python to write the signal's byte into the pipe; that byte is all there is to do."""


@contextlib.contextmanager
def _blocked_signals() -> Iterator[set[signal.Signals]]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield {signal.Signals(number) for number in before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
