"""`kill -9` of a worker, of the parent and of everything, during many streams (contract L1, C1).

The short size is three kills of 24 streams at a time; the full one (SLUICE_DEEP=1) is twenty kills of 200. Every kill
falls into the same ledger, so each start finds the remains of all the deaths before it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest

from tests.support.answers import ROLE, STOP, VENDOR_USAGE, say
from tests.support.client import fetch
from tests.support.proxy import PATIENCE_S, Row, ServedProxy, chat, served_proxy
from tests.support.upstream import Play, ReplayUpstream, play_events

pytestmark = [pytest.mark.clause("L1", "C1"), pytest.mark.slow]

IS_DEEP: Final = os.environ.get("SLUICE_DEEP") == "1"
KILLS: Final = int(os.environ.get("SLUICE_KILLS", "20" if IS_DEEP else "3"))
LANES: Final = 200 if IS_DEEP else 24
#: About a second, so that the full size asks for some 2,000 events per second.
PACED: Final = play_events(
    ROLE, *map(say, ("سلام،", " 你好。", " नमस्ते।", " 👋🏽!", " 안녕.")), STOP, VENDOR_USAGE, delay=0.12
)
#: A few clients ask as fast as they can: hundreds of streams end each second, so that a kill falls between the steps of
#: an ending too, and not only into the middle of streams.
QUICK: Final = play_events(ROLE, say("سلام 你好 👋🏽"), STOP, VENDOR_USAGE)
QUICK_LANES: Final = 4
TWO_WORKERS: Final = ("--workers", "2")


class Victim(StrEnum):
    WORKER = "worker"
    PARENT = "parent"
    ALL = "all"


@dataclass(slots=True)
class Crowd:
    """Clients that ask again and again. `sent` are the ids of all requests, `done` those whose client read `[DONE]`."""

    sent: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    @asynccontextmanager
    async def at(self, proxy: ServedProxy, boot: int) -> AsyncIterator[None]:
        """Ask until the block ends; then what is open may go on to its end, whatever that is."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number in range(LANES):
                model = "quick" if number < QUICK_LANES else "paced"
                group.create_task(self._lane(proxy, f"{boot}-{number}", chat(model=model), over))
            yield
            over.set()

    async def _lane(self, proxy: ServedProxy, name: str, body: dict[str, object], over: asyncio.Event) -> None:
        serial = 0
        while not over.is_set():
            serial += 1
            request = f"{name}-{serial}"
            self.sent.add(request)
            try:
                reply = await fetch(proxy.port, body, headers={"x-request-id": request}, timeout_s=PATIENCE_S)
            except OSError:  # nobody listens any more, or the one who listened died while we asked
                self.refused.add(request)
                await asyncio.sleep(0.02)
                continue
            if reply.is_done:
                self.done.add(request)
            else:
                await asyncio.sleep(0.02)

    def check(self, rows: list[Row]) -> None:
        """No finished stream without its row, none twice, nothing left open, nothing made up."""
        asked = Counter(row["request_id"] for row in rows)
        endings = {row["request_id"]: row["ending"] for row in rows}
        assert set(asked.values()) <= {1}, "one request is counted twice"
        assert len({row["attempt_id"] for row in rows}) == len(rows)
        assert {endings.get(request) for request in self.done} == {"completed"}
        assert asked.keys() <= self.sent
        others = {endings[request] for request in asked.keys() - self.done}
        # Complete though nobody heard of it is allowed, the reverse never (L1).
        assert others <= {"interrupted", "completed", "client_gone"}, others


async def kill(victim: Victim, proxy: ServedProxy, chance: random.Random) -> None:
    match victim:
        case Victim.WORKER:
            workers = proxy.workers[-2:]
            os.kill(chance.choice(workers), signal.SIGKILL)
            await proxy.said(r"was ended by SIGKILL; starting another")
            await asyncio.sleep(0.3)
        case Victim.PARENT:
            proxy.signal(signal.SIGKILL)
        case Victim.ALL:
            await kill_all(proxy)


async def kill_all(proxy: ServedProxy) -> None:
    """As when the machine loses its power, but for the disk."""
    for pid in (proxy.process.pid, *filter(is_running, proxy.workers)):  # the parent first: it must not start others
        os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(proxy.process.wait)
    await all_dead(proxy)


async def all_dead(proxy: ServedProxy) -> None:
    """Workers without a parent let their streams finish and go; nobody waits for them, so their state is what tells."""
    await until(lambda: not any(map(is_running, proxy.workers)))


async def until(condition: Callable[[], bool]) -> None:
    """Of other processes one hears nothing but by asking."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def database_endings(folder: Path) -> Counter[str | None]:
    """What the database alone says, without the journals."""
    with closing(sqlite3.connect(f"file:{folder}/ledger.db?mode=ro", uri=True)) as database:
        return Counter(ending for (ending,) in database.execute("SELECT ending FROM attempts"))


@pytest.mark.timeout(60 + 30 * KILLS)
async def test_no_finished_stream_is_lost_and_none_counted_twice(tmp_path: Path) -> None:
    """A worker, the parent or all of them die at a random moment under load, again and again, over one ledger; after
    each death and at the end every stream whose client read `[DONE]` is one completed row."""
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    crowd = Crowd()
    rows: list[Row] = []
    async with ReplayUpstream(PACED) as paced, ReplayUpstream(QUICK) as quick:
        upstreams = {"paced": paced.base_url, "quick": quick.base_url}
        for boot in range(KILLS):
            victim = list(Victim)[boot % 3]
            async with served_proxy(tmp_path, upstreams, options=TWO_WORKERS) as proxy:
                async with crowd.at(proxy, boot):
                    await asyncio.sleep(chance.uniform(0.3, 2.0))
                    await kill(victim, proxy, chance)
                if victim is not Victim.WORKER:
                    await asyncio.to_thread(proxy.process.wait)
                    await all_dead(proxy)
                rows = await proxy.rows_now()
            crowd.check(rows)
            assert all(row["ending"] for row in rows), f"{victim} killed: still open (seed {seed})"
        async with served_proxy(tmp_path, upstreams) as last:
            await last.ask(chat(model="quick"))
            exported = (await last.export("--format", "jsonl")).splitlines()
    assert len(exported) == len(rows) + 1
    assert len(crowd.done) > KILLS * LANES // 2
    assert list((tmp_path / "ledger.db-journals").iterdir()) == []
    drained = database_endings(tmp_path)
    assert drained[None] == 0
    assert drained == Counter(row["ending"] for row in rows) + Counter(completed=1)


@asynccontextmanager
async def neighbours(folder: Path, upstream: ReplayUpstream) -> AsyncIterator[tuple[ServedProxy, ServedProxy]]:
    """An old and a new process over the same ledger, as in a rolling restart."""
    for name in ("old", "new"):
        (folder / name).mkdir()
    ledger = {"url": f"sqlite:///{folder}/ledger.db"}
    async with (
        served_proxy(folder / "old", upstream.base_url, ledger=ledger, options=TWO_WORKERS) as old,
        served_proxy(folder / "new", upstream.base_url, ledger=ledger) as new,
    ):
        yield old, new


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
async def test_a_new_process_leaves_the_streams_of_the_old_one_open_until_it_is_dead(
    tmp_path: Path, number: signal.Signals
) -> None:
    """While the old process lives its open rows stay open, however often the new one looks; when it is stopped it ends
    them itself, and when it is killed they become interrupted, each once."""
    streams = 40 if IS_DEEP else 12
    slow = Play([(0.0, b"data: %b\n\n" % ROLE), (0.0, b"data: %b\n\n" % say("سلام")), (4.0, END_OF_SLOW)])
    async with ReplayUpstream(slow) as upstream, neighbours(tmp_path, upstream) as (old, new):
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(fetch(old.port, chat(), timeout_s=PATIENCE_S)) for _ in range(streams)]
            await upstream.wait_hits(streams, 10)
            # When the old one's open rows are drained, the new one has looked for the dead too.
            await until(lambda: database_endings(tmp_path)[None] == streams)
            await asyncio.sleep(1.0)
            assert [row["ending"] for row in await new.rows_now()] == [None] * streams
            if number is signal.SIGTERM:
                old.signal()
                assert await old.exit_code() == 0
            else:
                await kill_all(old)
        ending = "completed" if number is signal.SIGTERM else "interrupted"
        assert [reply.result().is_done for reply in asked] == [number is signal.SIGTERM] * streams
        # Not at once: while the new one takes the journal of a dead worker over, its lock is held again.
        assert [row["ending"] for row in await new.rows(streams)] == [ending] * streams
        # And so says the database, once the new one has found the old one dead.
        await until(lambda: database_endings(tmp_path) == {ending: streams})
        writers = {path.name.split(".")[0] for path in (tmp_path / "ledger.db-journals").iterdir()}
        assert len(writers) == 1, "only the new process has files left"


END_OF_SLOW: Final = b"data: %b\n\ndata: [DONE]\n\n" % STOP


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
async def test_two_hundred_quick_requests_are_two_hundred_rows_after_a_restart(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The signal comes right behind the last answer, before anything had to be drained: each request has its row."""
    count = 200
    async with ReplayUpstream(QUICK) as upstream:
        async with served_proxy(tmp_path, upstream.base_url, options=TWO_WORKERS) as proxy:
            room = asyncio.Semaphore(20)

            async def ask(each: int) -> bool:
                async with room:
                    return (await proxy.ask(chat(stream=each % 4 != 0))).status == 200

            answered = await asyncio.gather(*map(ask, range(count)))
            if number is signal.SIGTERM:
                proxy.signal()
                assert await proxy.exit_code() == 0
            else:
                await kill_all(proxy)
        async with served_proxy(tmp_path, upstream.base_url) as restarted:
            exported = (await restarted.export()).splitlines()
            rows = await restarted.rows(count)
    assert all(answered)
    assert len(exported) == count
    assert Counter(row["ending"] for row in rows) == {"completed": count}
    assert database_endings(tmp_path) == {"completed": count}


async def test_sigterm_in_the_middle_of_two_hundred_requests_loses_none(tmp_path: Path) -> None:
    """What was accepted is finished, the rest is refused in words; each answer has its row, nothing else has one."""
    count = 200
    async with (
        ReplayUpstream(PACED) as upstream,
        served_proxy(tmp_path, upstream.base_url, options=TWO_WORKERS) as proxy,
    ):
        asked = [asyncio.create_task(ask_once(proxy, str(number))) for number in range(count)]
        await upstream.wait_hits(count // 4, 10)
        proxy.signal()
        replies = await asyncio.gather(*asked)
        assert await proxy.exit_code() == 0
        rows = await proxy.rows_now()
    done = {name for name, told in replies if told == "done"}
    assert {told for _, told in replies} <= {"done", "shutting_down", "refused"}
    assert {row["request_id"] for row in rows} == done
    assert Counter(row["ending"] for row in rows) == {"completed": len(done)}
    assert len(done) >= count // 4


async def ask_once(proxy: ServedProxy, name: str) -> tuple[str, str]:
    try:
        reply = await fetch(proxy.port, chat(), headers={"x-request-id": name}, timeout_s=PATIENCE_S)
    except OSError:
        return name, "refused"
    if not reply.status:
        return name, "refused"  # the connection waited to be accepted when the socket was closed
    if reply.status == 503:
        error = reply.json["error"]
        assert isinstance(error, dict)
        return name, str(error["code"])
    return name, "done" if reply.is_done else f"cut: {reply.body!r}"
