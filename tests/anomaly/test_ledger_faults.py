"""The Nth system call of a journal fails, for every N (contract L1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.errors import LedgerUnavailable
from proxy.stores import journal as journal_module
from proxy.stores.journal import Journal
from proxy.stores.ledger_read import read_rows
from proxy.stores.segments import RealFiles, list_segments
from tests.support.rows import closed, opened

ROUNDS = 6


class FailingDisk(RealFiles):
    """Counts its calls and fails one, or all from one on; a write that fails has written a part. What was never synced
    is gone after `power_cut`."""

    def __init__(self, fails: Callable[[int], bool]) -> None:
        self.calls = 0
        self.failed = 0
        self._fails = fails
        self._paths: dict[int, Path] = {}
        self._synced: dict[Path, int] = {}
        self._broken: set[Path] = set()

    def create(self, path: Path) -> int:
        self._step()
        descriptor = super().create(path)
        self._paths[descriptor] = path
        self._synced[path] = 0
        return descriptor

    def write(self, descriptor: int, blob: bytes) -> int:
        try:
            self._step()
        except OSError:
            super().write(descriptor, blob[: len(blob) // 2])
            raise
        return super().write(descriptor, blob)

    def sync(self, descriptor: int) -> None:
        path = self._paths[descriptor]
        size = path.stat().st_size
        try:
            self._step()
        except OSError:
            self._broken.add(path)  # its pages are thrown away: a later sync of them succeeds and means nothing
            raise
        super().sync(descriptor)
        if path not in self._broken:
            self._synced[path] = size

    def sync_folder(self, folder: Path) -> None:
        self._step()
        super().sync_folder(folder)

    def power_cut(self) -> None:
        for path, size in self._synced.items():
            if path.exists():
                path.write_bytes(path.read_bytes()[:size])

    def _step(self) -> None:
        self.calls += 1
        if self._fails(self.calls):
            self.failed += 1
            raise OSError(5, "Input/output error")


async def traffic(folder: Path, disk: FailingDisk) -> set[str]:
    """Opens and closes attempts; the attempts that were acknowledged as closed."""
    acknowledged: set[str] = set()
    try:
        journal = Journal(folder, "w1", disk, segment_bytes=2500)
    except LedgerUnavailable:
        return acknowledged

    async def attempt(number: int) -> None:
        row = opened(f"a{number}")
        try:
            journal.open(row)
            await journal.close(closed(row))
        except LedgerUnavailable:
            return
        acknowledged.add(row.attempt_id)

    for number in range(0, ROUNDS * 2, 2):
        await asyncio.gather(attempt(number), attempt(number + 1))
        if not journal.healthy:
            await asyncio.sleep(0.01)
    journal.finish()
    journal.release()
    return acknowledged


async def calls_of_a_quiet_run(folder: Path) -> int:
    disk = FailingDisk(lambda call: False)
    assert len(await traffic(folder, disk)) == ROUNDS * 2
    return disk.calls


@pytest.mark.clause("L1")
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
async def test_whichever_call_fails_what_was_acknowledged_survives_a_power_cut(
    tmp_path: Path, lasting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No close is acknowledged that is not on the disk, whatever write, sync or create fails, once or for good; a
    single failure costs no acknowledgement of a close but those under way."""
    monkeypatch.setattr(journal_module, "RETRY_S", 0.002)
    monkeypatch.setattr(journal_module, "SYNC_GAP_S", 0.0)
    total = await calls_of_a_quiet_run(tmp_path / "quiet")
    for failing in range(1, total + 1):
        folder = tmp_path / f"{failing}"
        disk = FailingDisk(lambda call, n=failing: call >= n if lasting else call == n)  # type: ignore[misc]
        acknowledged = await traffic(folder, disk)
        disk.power_cut()
        rows = {
            row["attempt_id"] for row in read_rows(f"sqlite:///{folder}/no.db", folder) if row["ending"] == "completed"
        }
        assert acknowledged <= rows, f"call {failing} of {total}"
        if not lasting and failing > 4:  # the first four begin the journal
            assert len(acknowledged) >= ROUNDS * 2 - 4, f"call {failing} of {total}"


@pytest.mark.clause("L1")
async def test_a_disk_that_fails_every_other_call_loses_nothing_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often segments are given up, each acknowledged close is in one that was synced."""
    monkeypatch.setattr(journal_module, "RETRY_S", 0.002)
    for period in (2, 3, 5, 7):
        disk = FailingDisk(lambda call, n=period: call > 4 and call % n == 0)  # type: ignore[misc]
        folder = tmp_path / f"{period}"
        acknowledged = await traffic(folder, disk)
        disk.power_cut()
        found = list(read_rows(f"sqlite:///{folder}/no.db", folder))
        assert acknowledged <= {row["attempt_id"] for row in found if row["ending"] == "completed"}
        assert len(found) == len({row["attempt_id"] for row in found})
        assert disk.failed > 1
        assert list_segments(folder)
