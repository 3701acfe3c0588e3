"""The disk of the journals is full for a while, under traffic (contracts L1, W5, C1).

The calls that fail are those that fail on a full disk: a write that brings a part of its bytes or none, the sync where
the file system finds room only then, the making of a file. Meanwhile `/readyz` says so and nothing is sealed that is
not recorded; when there is room again everything that was done has its row, once.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from proxy.stores import drain
from proxy.stores import journal as journal_module
from proxy.stores.segments import RealFiles
from tests.anomaly.test_ledger_outage import QUICK, Crowd, GatedUpstream, is_well, readyz, stored, until
from tests.support.client import BodyEnd, Reply
from tests.support.proxy import PATIENCE_S, Proxy, chat, running_proxy
from tests.support.upstream import ReplayUpstream

pytestmark = [pytest.mark.clause("L1", "W5", "C1")]

REFUSES: Final = "the ledger's disk refuses rows"
#: Which calls find no room, and how much of a write still has some.
KINDS: Final = {
    "nothing fits": (frozenset(("create", "write", "sync")), 0),
    "a part of a line fits": (frozenset(("write",)), 100),
    "found out at the sync": (frozenset(("sync",)), 0),
    "the sync, and no new file": (frozenset(("create", "sync")), 0),
}


class FullDisk(RealFiles):
    """A disk that is `full` from one moment to another."""

    def __init__(self, refused: frozenset[str], room: int) -> None:
        self.full = False
        self.refusals = 0
        self._refused, self._room = refused, room

    def create(self, path: Path) -> int:
        self._ask("create")
        return super().create(path)

    def write(self, descriptor: int, blob: bytes) -> int:
        if self.full and "write" in self._refused and self._room:
            self.refusals += 1
            return super().write(descriptor, blob[: self._room])
        self._ask("write")
        return super().write(descriptor, blob)

    def sync(self, descriptor: int) -> None:
        self._ask("sync")
        super().sync(descriptor)

    def _ask(self, call: str) -> None:
        if self.full and call in self._refused:
            self.refusals += 1
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(params=KINDS.values(), ids=list(KINDS))
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    """Of every journal that this process makes."""
    disk = FullDisk(*request.param)
    monkeypatch.setattr(journal_module, "RealFiles", lambda: disk)
    monkeypatch.setattr(journal_module, "RETRY_S", 0.02)
    monkeypatch.setattr(drain, "INTERVAL_S", 0.05)
    return disk


async def ask(proxy: Proxy, request: str, model: str) -> Reply:
    return await proxy.ask(chat(model=model), headers={"x-request-id": request})


async def refused(proxy: Proxy, crowd: Crowd) -> None:
    """Requests come until one is told that the ledger takes none; what is sealed before is recorded."""
    for number in range(50):
        reply = await ask(proxy, f"during-{number}", "quick")
        if reply.status == 503:
            assert b'"ledger_unavailable"' in reply.body
            return
        if reply.is_done:
            crowd.done.append(f"during-{number}")
    raise AssertionError("new work was taken on a full disk")


async def test_a_full_disk_seals_nothing_unrecorded_and_loses_nothing(disk: FullDisk, tmp_path: Path) -> None:
    """A stream that ends meanwhile gets an error, no `[DONE]`; one that ends later is sealed; new ones are refused."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    async with ReplayUpstream(QUICK) as quick, GatedUpstream(QUICK) as slow, GatedUpstream(QUICK) as slower:
        urls = {"quick": quick.base_url, "slow": slow.base_url, "slower": slower.base_url}
        async with running_proxy(tmp_path, urls) as proxy:
            crowd = Crowd(proxy)
            await crowd.ask("before")
            meanwhile = [asyncio.create_task(ask(proxy, f"meanwhile-{one}", "slow")) for one in range(3)]
            later = [asyncio.create_task(ask(proxy, f"later-{one}", "slower")) for one in range(3)]
            await slow.wait_hits(3, PATIENCE_S)
            await slower.wait_hits(3, PATIENCE_S)

            disk.full = True
            slow.gate.set()
            for reply in await asyncio.gather(*meanwhile):
                assert (reply.is_done, reply.end) == (False, BodyEnd.WHOLE)
                assert b"ledger_unavailable" in reply.body
            lines = await readyz(proxy, 503, REFUSES)
            assert lines[0] == "not ready"
            await refused(proxy, crowd)
            refusals = disk.refusals
            await until(lambda: disk.refusals > refusals + 3)  # it is tried again and again
            told = Counter(request for request, _ in stored(url))
            assert set(told.values()) == {1}

            disk.full = False
            await is_well(proxy)
            slower.gate.set()
            for one, reply in enumerate(await asyncio.gather(*later)):
                assert reply.is_done
                crowd.done.append(f"later-{one}")
            await crowd.ask("after")

    # the proxy has stopped: what there is, is in the database
    rows = stored(url)
    told = Counter(request for request, _ in rows)
    assert set(told.values()) == {1}, "a request is counted twice"
    endings = dict(rows)
    done = {request: endings.get(request) for request in crowd.done}
    assert done == dict.fromkeys(crowd.done, "completed")
    # what was cut off is on record too, with what the vendor will charge; what was refused never left
    assert {endings.get(f"meanwhile-{one}") for one in range(3)} == {"completed"}
    assert not any(ending is None for ending in endings.values())
    assert list((tmp_path / "ledger.db-journals").iterdir()) == []


async def test_full_again_and_again_under_traffic(disk: FullDisk, tmp_path: Path) -> None:
    """Whatever is under way each time: an answer that was sealed has its row, and no request has two."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    sealed: list[str] = []
    over = asyncio.Event()

    async def lane(proxy: Proxy, name: str) -> None:
        number = 0
        while not over.is_set():
            request = f"{name}-{number}"
            number += 1
            if (await ask(proxy, request, "quick")).is_done:
                sealed.append(request)
            await asyncio.sleep(0.002)

    async with (
        ReplayUpstream(QUICK) as quick,
        running_proxy(tmp_path, {"quick": quick.base_url}) as proxy,
        asyncio.TaskGroup() as group,
    ):
        for name in "abc":
            group.create_task(lane(proxy, name))
        for _ in range(5):
            wanted = len(sealed) + 10
            await until(lambda wanted=wanted: len(sealed) >= wanted)  # type: ignore[misc]
            disk.full = True
            await readyz(proxy, 503, REFUSES)
            disk.full = False
            await is_well(proxy)
        over.set()
    rows = stored(url)
    assert set(Counter(request for request, _ in rows).values()) == {1}
    endings = dict(rows)
    assert {endings.get(request) for request in sealed} == {"completed"}
    assert not any(ending is None for ending in endings.values())
