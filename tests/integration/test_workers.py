"""`--workers 2`: one port, one sum of metrics, one ledger; a dead worker takes only its own streams along (C1, L1)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.answers import SCRIPTS, answer
from tests.support.client import BodyEnd, RawStream, Reply
from tests.support.proxy import ServedProxy, chat, served_proxy
from tests.support.upstream import HangingUpstream, HangPhase, ReplayUpstream

pytestmark = pytest.mark.clause("C1", "L1")

TWO = {"options": ("--workers", "2")}


async def attempts(proxy: ServedProxy, **labels: str) -> float:
    """How many ended, by `/metrics` of whichever worker answers."""
    wanted = [f'{name}="{value}"' for name, value in labels.items()]
    samples = (await proxy.metrics()).items()
    return sum(
        value
        for name, value in samples
        if name.startswith("sluice_attempts_total{") and all(label in name for label in wanted)
    )


async def test_both_workers_serve_one_port_and_one_ledger(tmp_path: Path) -> None:
    """Requests are spread; each row names its writer; `/metrics` is the sum, whoever answers."""
    count = 24
    async with (
        ReplayUpstream(answer(*SCRIPTS["persian"])) as upstream,
        served_proxy(tmp_path, upstream.base_url, **TWO) as proxy,
    ):
        replies = [await proxy.ask() for _ in range(count)]
        rows = await proxy.rows(count)
        assert len(set(proxy.workers)) == 2
        assert {await attempts(proxy, ending="completed") for _ in range(6)} == {count}
        assert {(await proxy.metrics())["sluice_open_streams"] for _ in range(3)} == {0}
        first = sum([value for name, value in (await proxy.metrics()).items() if "first_token_seconds_count" in name])

    assert all(reply.is_done for reply in replies)
    assert {row["trace_id"] for row in rows} == {reply.headers["x-trace-id"] for reply in replies}
    assert len({row["writer"] for row in rows}) == 2
    assert first == count


async def test_a_killed_worker_is_replaced_and_no_finished_stream_is_lost(tmp_path: Path) -> None:
    """`kill -9` while streams run: the other worker's go on, its own are cut, and the ledger tells which is which."""
    done = answer(*SCRIPTS["emoji"])
    async with ReplayUpstream(done) as quick, HangingUpstream(HangPhase.FIRST_EVENT) as hanging:
        urls = {"quick": quick.base_url, "hanging": hanging.base_url}
        async with served_proxy(tmp_path, urls, **TWO) as proxy, AsyncExitStack() as stack:
            finished = [await proxy.ask(chat(model="quick")) for _ in range(10)]
            open_streams = [await stack.enter_async_context(proxy.open(chat(model="hanging"))) for _ in range(12)]
            for stream in open_streams:
                await stream.read_events(2)
            victim = proxy.workers[0]
            os.kill(victim, signal.SIGKILL)
            cut = await the_cut_ones(open_streams)
            await proxy.said(rf"process {victim}\) was ended by SIGKILL; starting another")
            during = [await proxy.ask(chat(model="quick")) for _ in range(6)]
            async with asyncio.timeout(10):
                while len(set(proxy.workers)) < 3:
                    during.append(await proxy.ask(chat(model="quick")))
            for stream in open_streams:
                stream.leave()
            rows = await proxy.rows(len(finished) + len(during) + len(open_streams))

    assert 0 < len(cut) < len(open_streams)
    assert all(reply.is_done for reply in finished + during)
    endings: dict[str, Counter[str]] = {}
    for row in rows:
        endings.setdefault(row["trace_id"], Counter())[row["ending"]] += 1
    for reply in finished + during:
        assert endings[reply.headers["x-trace-id"]] == {"completed": 1}
    for stream in open_streams:
        ending = "interrupted" if stream.reply in cut else "client_gone"
        assert endings[stream.reply.headers["x-trace-id"]] == {ending: 1}


async def the_cut_ones(streams: list[RawStream]) -> list[Reply]:
    """Those that the death of their worker has ended."""
    cut = []
    for stream in streams:
        try:
            async with asyncio.timeout(0.1):
                await stream.read_to_end()
            cut.append(stream.reply)
        except TimeoutError:
            continue
    assert {reply.end for reply in cut} <= {BodyEnd.CUT, BodyEnd.RESET}
    return cut
