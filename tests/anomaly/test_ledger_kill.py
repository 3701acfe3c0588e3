"""`kill -9` of a writing process at any moment (contract L1)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from proxy.stores.ledger_db import Ledger
from proxy.stores.ledger_read import read_rows

ROOT: Final = Path(__file__).resolve().parents[2]
KILLS: Final = int(os.environ.get("SLUICE_LEDGER_KILLS", "3"))
ATTEMPTS: Final = 50

#: Opens and closes attempts, eight at a time, and tells each step when it is done: `open ID`, `closed ID`.
WRITER: Final = """
import asyncio, sys
from pathlib import Path
from proxy.stores import drain
from proxy.stores.ledger_db import Ledger
from tests.support.rows import closed, opened
drain.INTERVAL_S = 0.02
url, folder, boot, count = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
async def main():
    ledger = Ledger.start(url, folder, "host", "0")
    ledger.journal._segment_bytes = 20_000
    async def attempts(lane):
        for number in range(lane, count, 8):
            row = opened(f"{boot}-{number}")
            ledger.open(row)
            print(f"open {row.attempt_id}\\n", end="", flush=True)
            await asyncio.sleep(0.002)
            await ledger.close(closed(row))
            print(f"closed {row.attempt_id}\\n", end="", flush=True)
    print("ready", flush=True)
    await asyncio.gather(*map(attempts, range(8)))
    await asyncio.sleep(60)
asyncio.run(main())
"""


def run_and_kill(url: str, folder: Path, boot: int, after_lines: int) -> tuple[set[str], set[str]]:
    """A writer that is killed when it has told so many steps; what it told as opened and as closed."""
    command = [sys.executable, "-c", WRITER, url, str(folder), str(boot), str(ATTEMPTS)]
    opened: set[str] = set()
    closed: set[str] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for told, line in enumerate(process.stdout):
            word, _, attempt_id = line.strip().partition(" ")
            if line.endswith("\n"):  # the last one may be cut
                {"open": opened, "closed": closed, "ready": set()}[word].add(attempt_id)
            if told == after_lines:
                process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    return opened, closed


@pytest.mark.clause("L1")
async def test_no_acknowledged_attempt_is_lost_and_none_counted_twice(tmp_path: Path) -> None:
    """A writer is killed at random moments, each time with others' remains around: what it said was closed is
    completed, what was open is interrupted, and the books are the same before and after the remains are drained."""
    url, folder = f"sqlite:///{tmp_path}/ledger.db", tmp_path / "journal"
    chance = random.Random(time.time_ns())
    opened: set[str] = set()
    closed: set[str] = set()
    for boot in range(KILLS):
        told = run_and_kill(url, folder, boot, chance.randint(1, ATTEMPTS * 2))
        opened, closed = opened | told[0], closed | told[1]
        check(url, folder, opened, closed)
    before = [row for row in read_rows(url, folder) if row["ending"] == "completed"]
    last = Ledger.start(url, folder, "host", "0")
    await last.stop()
    check(url, folder, opened, closed)
    assert [row for row in read_rows(url, folder) if row["ending"] == "completed"] == before
    assert os.listdir(folder) == []


def check(url: str, folder: Path, opened: set[str], closed: set[str]) -> None:
    rows = [(row["attempt_id"], row["ending"]) for row in read_rows(url, folder)]
    found = dict(rows)
    assert len(rows) == len(found), "an attempt is counted twice"
    assert {attempt_id: found.get(attempt_id, "missing") for attempt_id in closed} == dict.fromkeys(closed, "completed")
    assert {found.get(attempt_id, "missing") for attempt_id in opened - closed} <= {"completed", "interrupted"}
