"""The ledger's database goes away under a running proxy and comes back (contract L1, C1).

Answers go on, `/readyz` says so, a full journal refuses new work; when the database is back each request has its row,
once. The outages are real: a wire that is cut, at any byte or for good, or falls silent; backends that are terminated;
a database that lets nobody in; an SQLite file that another process has locked. The short size has each of them twice;
the full one (SLUICE_DEEP=1) is a hundred of them over one ledger.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from proxy.stores import drain, ledger_db, ledger_sql
from proxy.stores.journal import Journal
from proxy.stores.ledger_sql import Database
from proxy.stores.playback import Connection, Hit
from tests.support.answers import ROLE, STOP, VENDOR_USAGE, say
from tests.support.databases import Wire, allow_connections, own_database, terminate, url_of
from tests.support.needs import needs
from tests.support.proxy import PATIENCE_S, Proxy, chat, running_proxy, served_proxy
from tests.support.upstream import Play, ReplayUpstream, play_events

pytestmark = [pytest.mark.clause("L1", "C1"), pytest.mark.slow]

IS_DEEP: Final = os.environ.get("SLUICE_DEEP") == "1"
ROUNDS: Final = int(os.environ.get("SLUICE_OUTAGES", "100" if IS_DEEP else "10"))
LOCKINGS: Final = 20 if IS_DEEP else 1
LANES: Final = 3
QUICK: Final = play_events(ROLE, say("سلام 你好 👋🏽 नमस्ते"), STOP, VENDOR_USAGE)
PAGE: Final = (Path(__file__).resolve().parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
AWAY: Final = "the ledger's database is away since"
FULL: Final = "the ledger's journal is full"


class Outage(StrEnum):
    CUT = "the wire is cut"
    TORN = "the wire is cut in the middle of a statement"
    TERMINATED = "the server ends our connections, again and again, while rows are drained"
    CLOSED = "the database lets nobody in"
    SILENT = "nothing is refused and nothing answered"


@pytest.fixture(autouse=True)
def brisk_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the proxy runs in this process, a round of the drain comes sooner, so that a test waits less."""
    monkeypatch.setattr(drain, "INTERVAL_S", 0.1)


@dataclass(slots=True)
class Crowd:
    """Clients that ask again and again; `done` are the ids of the requests whose client read `[DONE]`."""

    proxy: Proxy
    name: str = "r"
    done: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Until the block ends. Every answer must be a whole one."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for lane in range(LANES):
                group.create_task(self._lane(lane, over))
            try:
                yield
            finally:
                over.set()

    async def _lane(self, lane: int, over: asyncio.Event) -> None:
        while not over.is_set():
            await self.ask(f"{self.name}-{lane}-{len(self.done)}")
            await asyncio.sleep(0.005)  # clients think now and then; the drain has the same processor

    async def ask(self, request: str) -> None:
        reply = await self.proxy.ask(chat(), headers={"x-request-id": request})
        assert reply.is_done, reply.body
        self.done.append(request)

    async def answered(self, more: int) -> None:
        """Until so many more were answered."""
        wanted = len(self.done) + more
        await until(lambda: len(self.done) >= wanted)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # counted by other tasks and threads that tell nobody
            await asyncio.sleep(0.01)


async def readyz(proxy: Proxy, status: int, line: str) -> list[str]:
    """What `/readyz` says, once it has this status and a line that begins so."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            reply = await proxy.get("/readyz")
            lines = reply.body.decode().splitlines()
            if reply.status == status and any(each.startswith(line) for each in lines):
                return lines
            await asyncio.sleep(0.01)


async def is_well(proxy: Proxy) -> None:
    """The database is there, and nothing is wrong."""
    async with asyncio.timeout(PATIENCE_S):
        while await readyz(proxy, 200, "ready") != ["ready"]:  # noqa: ASYNC110  # nobody tells of it but `/readyz`
            await asyncio.sleep(0.01)


def stored(url: str) -> list[tuple[str, str | None]]:
    """Request and ending of every row of the database alone, without the journals."""
    database = Database(url, read_only=True)
    try:
        return [(request, ending) for request, ending in database.select("SELECT request_id, ending FROM attempts")]
    finally:
        database.close()


async def all_stored(url: str, done: list[str]) -> None:
    """Each request is one completed row, and nothing else is there."""
    wanted = Counter((request, "completed") for request in done)
    assert set(wanted.values()) == {1}
    async with asyncio.timeout(PATIENCE_S):
        while Counter(rows := await asyncio.to_thread(stored, url)) != wanted:
            told = Counter(request for request, _ in rows)
            assert set(told.values()) <= {1}, "a request is counted twice"
            await asyncio.sleep(0.05)  # the drain is a thread that tells nobody


async def strike(outage: Outage, wire: Wire, name: str, chance: random.Random) -> None:
    match outage:
        case Outage.CUT:
            await wire.cut()
        case Outage.TORN:
            wire.cut_after(chance.randrange(20_000))
        case Outage.TERMINATED:
            ended = 0
            async with asyncio.timeout(PATIENCE_S):
                while ended < 4:
                    ended += await asyncio.to_thread(terminate, name)
                    await asyncio.sleep(chance.uniform(0, 0.05))
        case Outage.CLOSED:
            await asyncio.to_thread(allow_connections, name, allowed=False)
            await asyncio.to_thread(terminate, name)
        case Outage.SILENT:
            wire.hush()


async def end(outage: Outage, wire: Wire, name: str) -> None:
    if outage is Outage.CLOSED:
        await asyncio.to_thread(allow_connections, name, allowed=True)
    await wire.mend()


@needs("postgresql")
@pytest.mark.timeout(60 + 10 * ROUNDS)
async def test_answers_go_on_through_every_outage_and_each_has_its_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other over one ledger: `/readyz` stays 200 and says that the database is away, `/metrics` too, and
    when it is back every request is one completed row."""
    monkeypatch.setattr(drain, "STUCK_S", 0.3)
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    with own_database() as name:
        async with Wire() as wire, ReplayUpstream(QUICK) as upstream:
            ledger = {"url": url_of(name, wire.port)}
            async with running_proxy(tmp_path, upstream.base_url, ledger=ledger) as proxy:
                crowd = Crowd(proxy)
                for number in range(ROUNDS):
                    outage = list(Outage)[number % len(Outage)]
                    print(f"round {number}: {outage} (seed {seed})")
                    await is_well(proxy)
                    async with crowd.asking():
                        await crowd.answered(5)
                        await strike(outage, wire, name, chance)
                        if outage is not Outage.TERMINATED:  # that one is over before it can be told
                            lines = await readyz(proxy, 200, AWAY)
                            assert lines[0] == "ready"
                            await proxy.wait_metric("sluice_ledger_away", 1)
                        await crowd.answered(10)
                        await end(outage, wire, name)
                        await is_well(proxy)
                    await proxy.wait_metric("sluice_ledger_away", 0)
                    await all_stored(url_of(name), crowd.done)
                await proxy.wait_metric("sluice_ledger_waiting_bytes", 0)
            await all_stored(url_of(name), crowd.done)
    assert len(crowd.done) >= ROUNDS * 15
    assert list((tmp_path / "ledger-journals").iterdir()) == []


class GatedUpstream(ReplayUpstream):
    """Answers when `gate` is open."""

    def __init__(self, play: Play) -> None:
        super().__init__(play)
        self.gate = asyncio.Event()

    async def answer(self, connection: Connection, hit: Hit) -> bool:
        self._arrived.set()
        await self.gate.wait()
        return await super().answer(connection, hit)


@needs("postgresql")
async def test_a_full_journal_refuses_new_requests_until_the_database_is_back(tmp_path: Path) -> None:
    """Rather 503 than work unbilled: `/readyz` is 503 then, what runs may end, and nothing of it is lost."""
    with own_database() as name:
        async with Wire() as wire, ReplayUpstream(QUICK) as upstream, GatedUpstream(QUICK) as slow:
            ledger = {"url": url_of(name, wire.port), "journal_bytes": 1 << 16}
            urls = {"quick": upstream.base_url, "slow": slow.base_url}
            async with running_proxy(tmp_path, urls, ledger=ledger) as proxy:
                crowd = Crowd(proxy)
                await crowd.ask("before")
                await is_well(proxy)
                await wire.cut()
                await readyz(proxy, 200, AWAY)
                running = asyncio.create_task(proxy.ask(chat(model="slow"), headers={"x-request-id": "running"}))
                await slow.wait_hits(1, PATIENCE_S)
                refused = None
                for number in range(200):
                    reply = await proxy.ask(chat(), headers={"x-request-id": f"during-{number}"})
                    if reply.status == 503:
                        refused = reply
                        break
                    assert reply.is_done
                    crowd.done.append(f"during-{number}")
                assert refused is not None, "the journal never became full"
                error = refused.json["error"]
                assert isinstance(error, dict)
                assert error["code"] == "ledger_unavailable"
                lines = await readyz(proxy, 503, FULL)
                assert lines[0] == "not ready"
                assert any(line.startswith(AWAY) for line in lines)
                assert len(crowd.done) > 10
                slow.gate.set()
                assert (await running).is_done
                crowd.done.append("running")
                await wire.mend()
                await is_well(proxy)
                await crowd.ask("after")
                await all_stored(url_of(name), crowd.done)


@needs("postgresql")
async def test_killed_and_started_again_while_the_database_is_away(tmp_path: Path) -> None:
    """The next process serves without the database, and brings the rows of the dead one there when it is back."""
    with own_database() as name:
        async with Wire() as wire, ReplayUpstream(QUICK) as upstream:
            ledger = {"url": url_of(name, wire.port)}
            done: list[str] = []
            async with served_proxy(tmp_path, upstream.base_url, ledger=ledger) as proxy:
                first = Crowd(proxy, "first", done)
                await is_well(proxy)
                await wire.cut()
                async with first.asking():
                    await readyz(proxy, 200, AWAY)
                    await first.answered(10)
                os.killpg(proxy.process.pid, signal.SIGKILL)
                await asyncio.to_thread(proxy.process.wait)
            async with served_proxy(tmp_path, upstream.base_url, ledger=ledger) as proxy:
                second = Crowd(proxy, "second", done)
                await readyz(proxy, 200, AWAY)
                async with second.asking():
                    await second.answered(10)
                await wire.mend()
                await is_well(proxy)
                await all_stored(url_of(name), done)
            assert list((tmp_path / "ledger-journals").iterdir()) == []


_LOCKER: Final = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """The SQLite file, by a process of its own."""
    words = [sys.executable, "-c", _LOCKER, str(file)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        try:
            yield
        finally:
            process.stdin.close()


async def test_an_sqlite_file_that_another_process_locks_is_away_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup or a spreadsheet holds it: answers go on, `/readyz` says so, and the rows follow."""
    monkeypatch.setattr(ledger_sql, "_BUSY_S", 0.1)
    url = f"sqlite:///{tmp_path}/ledger.db"
    async with ReplayUpstream(QUICK) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        crowd = Crowd(proxy)
        for _ in range(LOCKINGS):
            async with crowd.asking():
                await crowd.answered(5)
                holder = locked(tmp_path / "ledger.db")
                await asyncio.to_thread(holder.__enter__)
                try:
                    lines = await readyz(proxy, 200, AWAY)
                    assert lines[0] == "ready"
                    await crowd.answered(10)
                finally:
                    await asyncio.to_thread(holder.__exit__, None, None, None)
                await is_well(proxy)
            await all_stored(url, crowd.done)


async def test_a_database_that_does_not_answer_is_said_to_be_away_before_it_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drain may wait for long; `/readyz` does not wait with it."""
    monkeypatch.setattr(drain, "STUCK_S", 0.2)
    monkeypatch.setattr(ledger_sql, "_BUSY_S", PATIENCE_S)
    async with ReplayUpstream(QUICK) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        crowd = Crowd(proxy)
        holder = locked(tmp_path / "ledger.db")
        await asyncio.to_thread(holder.__enter__)
        try:
            await crowd.ask("during")
            await readyz(proxy, 200, AWAY)
        finally:
            await asyncio.to_thread(holder.__exit__, None, None, None)
        await is_well(proxy)
        await all_stored(f"sqlite:///{tmp_path}/ledger.db", crowd.done)


async def test_a_backup_as_the_page_takes_it_has_every_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Journals first, database second, under traffic, by the commands of docs/ledger.md: what was done by then is
    there, restored into another folder, and drained by the next start."""
    # small ones are drained and removed between the two copies
    monkeypatch.setattr(drain, "INTERVAL_S", 1.0)
    monkeypatch.setattr(ledger_db, "Journal", partial(Journal, segment_bytes=8192))
    journals, database = re.findall(r"^\$ (.*)$", PAGE.split("\n## Backup\n")[1], re.MULTILINE)
    running, restored = tmp_path / "running", tmp_path / "restored"
    running.mkdir()
    restored.mkdir()
    async with ReplayUpstream(QUICK) as upstream:
        async with running_proxy(running, upstream.base_url) as proxy:
            crowd = Crowd(proxy)
            async with crowd.asking():
                await crowd.answered(20)
                before = set(crowd.done)
                await asyncio.to_thread(subprocess.run, journals, shell=True, cwd=running)
                async with asyncio.timeout(PATIENCE_S):
                    while (await proxy.metrics())["sluice_ledger_drained_rows"] <= len(before):  # noqa: ASYNC110
                        await asyncio.sleep(0.02)  # rows go on into the database, which the metric alone tells
                await asyncio.to_thread(subprocess.run, database, shell=True, cwd=running, check=True)
        (running / "backup.db").rename(restored / "ledger.db")
        (running / "backup-journals").rename(restored / "ledger.db-journals")
        async with running_proxy(restored, upstream.base_url) as proxy:
            await crowd_is_there(proxy, before, set(crowd.done))
    endings = Counter(stored(f"sqlite:///{restored}/ledger.db"))
    assert set(endings.values()) == {1}
    assert {(request, "completed") for request in before} <= endings.keys()


async def crowd_is_there(proxy: Proxy, before: set[str], asked: set[str]) -> None:
    """All that was done before, nothing that was not asked, and nothing left open."""
    rows = await proxy.rows_now()
    told = Counter(row["request_id"] for row in rows)
    assert set(told.values()) == {1}
    assert before <= told.keys() <= asked
    assert {row["ending"] for row in rows} <= {"completed", "interrupted"}
