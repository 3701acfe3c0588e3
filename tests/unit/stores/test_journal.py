"""One worker's journal: what is on the disk when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.errors import LedgerUnavailable
from proxy.stores import journal as journal_module
from proxy.stores.drain import read_batch
from proxy.stores.journal import Journal
from proxy.stores.ledger_rows import COLUMNS
from proxy.stores.segments import RealFiles, list_segments
from tests.support.rows import closed, opened


class Disk(RealFiles):
    """A disk that can be full, read-only or slow."""

    def __init__(self) -> None:
        self.full = self.dead = False
        self.room: int | None = None
        self.syncs = 0

    def create(self, path: Path) -> int:
        if self.dead:
            raise OSError(30, "Read-only file system")
        return super().create(path)

    def write(self, descriptor: int, blob: bytes) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        if self.room is not None and len(blob) > self.room:
            self.full = True
            return super().write(descriptor, blob[: self.room])
        return super().write(descriptor, blob)

    def sync(self, descriptor: int) -> None:
        if self.dead:
            raise OSError(5, "Input/output error")
        self.syncs += 1
        super().sync(descriptor)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def journal(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    monkeypatch.setattr(journal_module, "RETRY_S", 0.01)
    journal = Journal(tmp_path, "w", disk)
    yield journal
    journal.finish()
    journal.release()


def on_disk(folder: Path) -> tuple[set[str], set[str]]:
    """The attempts that are open and closed by what any reader would find now."""
    opens: set[str] = set()
    closes: set[str] = set()
    for segment in list_segments(folder):
        with segment.path.open("rb") as file:
            batch = read_batch(file.fileno(), 0, 1 << 30)
        opens |= batch.opens.keys()
        closes |= batch.closes.keys()
    return opens - closes, closes


async def healthy(journal: Journal) -> None:
    await until(lambda: journal.healthy)


async def until(comes: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not comes():  # noqa: ASYNC110  # another thread is waited for, which knows no asyncio
            await asyncio.sleep(0.01)


@pytest.mark.clause("L1")
async def test_an_open_row_is_in_the_file_at_once_and_a_close_when_it_resolves(
    journal: Journal, tmp_path: Path
) -> None:
    """Opened is readable by others on return; closed is readable and synced when the waiting is over."""
    row = opened("a1")
    journal.open(row)
    assert on_disk(tmp_path) == ({"a1"}, set())
    assert row.writer == "w"
    await journal.close(closed(row))
    assert on_disk(tmp_path) == (set(), {"a1"})


async def test_closes_that_come_together_share_a_sync(journal: Journal, disk: Disk) -> None:
    """A hundred closes at once need a few syncs, not a hundred."""
    rows = [opened() for _ in range(100)]
    for row in rows:
        journal.open(row)
    before = disk.syncs
    await asyncio.gather(*[journal.close(closed(row)) for row in rows])
    assert disk.syncs - before < 10


async def test_one_who_stops_waiting_takes_nothing_from_the_others(journal: Journal, tmp_path: Path) -> None:
    """A cancelled close is written all the same, and its neighbours resolve."""
    first, second = opened("a1"), opened("a2")
    journal.open(first)
    journal.open(second)
    waiting = journal.close(closed(first))
    other = journal.close(closed(second))
    waiting.cancel()
    await other
    assert on_disk(tmp_path) == (set(), {"a1", "a2"})


async def test_an_attempt_that_is_not_open_cannot_be_closed(journal: Journal) -> None:
    """Closing twice, or what was never opened, is a mistake of the program and is told as one."""
    row = opened()
    with pytest.raises(LookupError, match="is not open"):
        await journal.close(closed(row))
    journal.open(row)
    await journal.close(closed(row))
    with pytest.raises(LookupError, match="is not open"):
        await journal.close(closed(row))


@pytest.mark.clause("L1")
async def test_a_close_carries_the_whole_row(journal: Journal, tmp_path: Path) -> None:
    """The close alone makes the row: the segment with the open may be lost."""
    row = opened("a1", tenant="فروشگاه")
    journal.open(row)
    await journal.close(closed(row, served_model="模型"))
    [segment] = list_segments(tmp_path)
    with segment.path.open("rb") as file:
        [values] = read_batch(file.fileno(), 0).closes.values()
    known = dict(zip(COLUMNS, values, strict=True))
    assert (known["tenant"], known["served_model"], known["writer"]) == ("فروشگاه", "模型", "w")


@pytest.mark.clause("L1")
async def test_a_full_disk_refuses_opens_and_closes_until_it_has_room_again(
    journal: Journal, disk: Disk, tmp_path: Path
) -> None:
    """While nothing can be written nobody is told that it was; afterwards all goes on, and what was closed meanwhile
    is written too."""
    first, second, third = opened("a1"), opened("a2"), opened("a3")
    journal.open(first)
    disk.full = True
    with pytest.raises(LedgerUnavailable):
        journal.open(second)
    with pytest.raises(LedgerUnavailable):
        await journal.close(closed(first))
    assert not journal.healthy
    disk.full = False
    await healthy(journal)
    journal.open(third)
    await journal.close(closed(third))
    assert on_disk(tmp_path) == (set(), {"a1", "a3"})


@pytest.mark.clause("L1")
@pytest.mark.parametrize("room", [0, 1, 8, 40])
async def test_a_line_cut_short_by_a_full_disk_spoils_no_other(
    journal: Journal, disk: Disk, tmp_path: Path, room: int
) -> None:
    """After half a line nothing more goes into that segment: what is acknowledged later can be read."""
    first, second = opened("a1"), opened("a2")
    journal.open(first)
    disk.room = room
    with pytest.raises(LedgerUnavailable):
        journal.open(second)
    disk.full, disk.room = False, None
    await healthy(journal)
    await journal.close(closed(first))
    assert on_disk(tmp_path) == (set(), {"a1"})


@pytest.mark.clause("L1")
async def test_after_a_failed_sync_nothing_is_acknowledged_from_that_segment(
    journal: Journal, disk: Disk, tmp_path: Path
) -> None:
    """The next good sync is of another file, which holds again what was not acknowledged."""
    row = opened("a1")
    journal.open(row)
    [first] = list_segments(tmp_path)
    disk.dead = True
    with pytest.raises(LedgerUnavailable):
        await journal.close(closed(row))
    disk.dead = False
    await healthy(journal)
    first.path.unlink()
    await until(lambda: on_disk(tmp_path) == (set(), {"a1"}))


async def test_a_full_segment_is_followed_by_the_next(tmp_path: Path) -> None:
    """Segments are numbered, and each has no more than its size and one group."""
    journal = Journal(tmp_path, "w", segment_bytes=4000)
    for _ in range(20):
        row = opened()
        journal.open(row)
        await journal.close(closed(row))
    assert journal.sealed() == len(list_segments(tmp_path)) > 3
    assert max(segment.path.stat().st_size for segment in list_segments(tmp_path)) < 8000
    assert len(on_disk(tmp_path)[1]) == 20
    journal.finish()
    journal.release()


async def test_what_is_kept_for_a_disk_to_come_back_is_bounded(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more closes than the limit, the oldest are given up and counted."""
    monkeypatch.setattr(journal_module, "RETRY_S", 0.01)
    journal = Journal(tmp_path, "w", disk, backlog_lines=3)
    rows = [opened(f"a{number}") for number in range(5)]
    for row in rows:
        journal.open(row)
    disk.dead = True
    for row in rows:
        with pytest.raises(LedgerUnavailable):
            await journal.close(closed(row))
    disk.dead = False
    # a0 was written before the sync failed: it may be on the disk or not, and nobody was told that it is
    await until(lambda: on_disk(tmp_path) == ({"a1"}, {"a0", "a2", "a3", "a4"}))
    assert journal.dropped == 2
    journal.finish()
    journal.release()


@pytest.mark.clause("L1")
async def test_close_now_is_durable_on_return_and_a_stopped_journal_refuses(tmp_path: Path) -> None:
    """For the last moments of a process: no loop is needed, and nothing is promised after the end."""
    journal = Journal(tmp_path, "w")
    first, second = opened("a1"), opened("a2")
    journal.open(first)
    journal.open(second)
    await asyncio.to_thread(journal.close_now, closed(first))
    assert on_disk(tmp_path) == ({"a2"}, {"a1"})
    journal.finish()
    with pytest.raises(LedgerUnavailable):
        await journal.close(closed(second))
    with pytest.raises(LedgerUnavailable):
        journal.open(opened())
    journal.release()


def test_a_folder_that_cannot_be_written_is_told_at_start(tmp_path: Path) -> None:
    """No journal, no start: the message names the folder."""
    (tmp_path / "file").touch()
    with pytest.raises(LedgerUnavailable, match="cannot begin a journal"):
        Journal(tmp_path / "file", "w")
