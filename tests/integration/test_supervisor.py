"""`serve --workers N`: one port, dead workers replaced, nothing left behind (contract C1)."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.clause("C1")

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 20.0


class Supervised:
    """A supervisor in a process of its own, and what it says on standard error."""

    def __init__(self, tmp_path: Path, *options: str) -> None:
        self.said = tmp_path / "stderr.log"
        with self.said.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.supervised", *options],
                stderr=stderr,
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(tmp_path)},
                start_new_session=True,
            )
        self.workers: set[int] = set()

    def line(self, pattern: str) -> str:
        """Waits for a line and gives its first group."""
        found: list[str] = []

        def look() -> bool:
            found[:] = re.findall(pattern, self.said.read_text())
            return bool(found)

        until(look, lambda: f"no line {pattern!r} in:\n{self.said.read_text()}")
        return found[0]

    @property
    def port(self) -> int:
        return int(self.line(r"listening on http://127\.0\.0\.1:(\d+)\n"))

    def worker(self) -> int:
        """Connects and gives the process id of the worker that answered."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            pid = int(connection.recv(64))
        self.workers.add(pid)
        return pid

    def all_workers(self, count: int) -> set[int]:
        seen: set[int] = set()

        def ask() -> bool:
            seen.add(self.worker())
            return len(seen) == count

        until(ask, lambda: f"only the workers {seen} answered")
        return seen

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def until(condition: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # an orphan that nobody waits for


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Supervised]]:
    running: list[Supervised] = []

    def started(*options: str) -> Supervised:
        running.append(Supervised(tmp_path, *options))
        return running[-1]

    yield started
    for supervised in running:
        if supervised.process.poll() is None:
            supervised.process.kill()
            supervised.process.wait(PATIENCE_S)
        for pid in supervised.workers:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_all_workers_answer_on_the_one_port_that_is_announced_once(start: Callable[..., Supervised]) -> None:
    """With port 0 the kernel's choice is shared by all workers; one line says it when all are ready."""
    supervised = start("--workers", "3")
    assert len(supervised.all_workers(3)) == 3
    assert supervised.process.pid not in supervised.workers
    assert supervised.said.read_text().count("listening on") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_workers_and_exits_0(start: Callable[..., Supervised], number: int) -> None:
    """SIGTERM and SIGINT alike: workers end, the port is free again, the metrics folder is gone."""
    supervised = start("--workers", "2")
    workers, port = supervised.all_workers(2), supervised.port
    folder = Path(supervised.line(r"metrics in (.+)\n"))
    assert folder.is_dir()
    assert supervised.stop(number) == 0
    assert not any(is_alive(pid) for pid in workers)
    assert not folder.exists()
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", port)) != 0


def test_a_killed_worker_is_replaced_on_the_same_port(start: Callable[..., Supervised]) -> None:
    """`kill -9` of a worker: the others go on answering, and another takes its place."""
    supervised = start("--workers", "2")
    first = supervised.all_workers(2)
    victim = min(first)
    os.kill(victim, signal.SIGKILL)
    supervised.line(rf"worker \d \(process {victim}\) was ended by SIGKILL; starting another")
    supervised.line(rf"buried {victim}\n")
    newcomer: set[int] = set()

    def answers() -> bool:
        newcomer.update({supervised.worker()} - first)
        return bool(newcomer)

    until(answers, lambda: "nobody took the place of the dead worker")
    assert victim not in newcomer
    assert supervised.stop() == 0


def test_workers_end_when_the_parent_is_killed(start: Callable[..., Supervised]) -> None:
    """`kill -9` of the parent leaves no worker behind."""
    supervised = start("--workers", "2")
    workers = supervised.all_workers(2)
    supervised.stop(signal.SIGKILL)
    until(lambda: not any(is_alive(pid) for pid in workers), lambda: "a worker outlived its parent")


def test_workers_that_do_not_stop_are_killed(
    start: Callable[..., Supervised],
) -> None:
    """After shutdown_s and a grace nobody waits any longer, and the exit code says that something was wrong."""
    supervised = start("--workers", "2", "--behave", "deaf", "--shutdown-s", "0.1", "--grace-s", "0.1")
    assert supervised.port
    assert supervised.stop() == 1
    assert supervised.said.read_text().count("was ended by SIGKILL while stopping") == 2


@pytest.mark.parametrize(
    ("behaviour", "code", "says"), [("refuses", 2, "the ledger is not there"), ("breaks", 1, "a bug")]
)
def test_a_worker_that_cannot_start_ends_it_all(
    start: Callable[..., Supervised], behaviour: str, code: int, says: str
) -> None:
    """What keeps the first workers from starting is told, and is the command's exit code; nothing is tried again."""
    supervised = start("--behave", behaviour)
    assert supervised.process.wait(PATIENCE_S) == code
    said = supervised.said.read_text()
    assert says in said
    assert "listening on" not in said
    assert "starting another" not in said
