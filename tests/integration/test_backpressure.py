"""A slow reader slows its own upstream and nobody else's (contract W7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.answers import ROLE, SCRIPTS, STOP, answer, events, say
from tests.support.client import BodyEnd
from tests.support.proxy import chat, running_proxy
from tests.support.upstream import Play, ReplayUpstream

pytestmark = pytest.mark.clause("W7")

BLOCK = events([say("حالِ شما چطور است؟ " * 200)] * 8)
BLOCKS = 1000
#: What two TCP connections over loopback and our own buffers may hold between an upstream and a reader that reads
#: nothing: the kernel lets a connection's buffers grow to some MB each.
IN_BETWEEN = 24 << 20
SMALL = 4096


def flood(blocks: int = BLOCKS) -> Play:
    play = Play([(0.0, events([ROLE])), *[(0.0, BLOCK)] * blocks, (0.0, events([STOP, b"[DONE]"]))])
    assert blocks < BLOCKS or len(BLOCK) * blocks > 2 * IN_BETWEEN
    return play


async def at_rest(value: Callable[[], int]) -> int:
    """The value, once it has not moved for a while."""
    async with asyncio.timeout(20):
        before = -1
        while (now := value()) != before or not now:
            before = now
            await asyncio.sleep(0.2)
    return now


async def test_a_reader_that_stops_stops_its_upstream_alone(tmp_path: Path) -> None:
    """The upstream's bytes come to rest far before its end; another stream goes on; reading on makes it send on."""
    quick = answer(*SCRIPTS["hindi"], delay=0.02)
    async with ReplayUpstream(flood()) as flooding, ReplayUpstream(quick) as other:
        urls = {"flooding": flooding.base_url, "other": other.base_url}
        async with (
            running_proxy(tmp_path, urls) as proxy,
            proxy.open(chat(model="flooding"), receive_buffer=SMALL, timeout_s=30) as stuck,
        ):
            await stuck.read_head()
            hit = flooding.hits[0]
            rest = await at_rest(lambda: hit.bytes_sent)
            assert rest < IN_BETWEEN
            beside = await proxy.ask(chat(model="other"))
            assert hit.bytes_sent == rest
            async with asyncio.timeout(10):
                while hit.bytes_sent == rest:
                    await stuck.read_once()

    assert beside.is_done
    assert beside.text == "".join(SCRIPTS["hindi"])
    assert beside.reads[-1].t < 1.0


async def test_a_slow_reader_gets_all_and_is_no_silence_of_the_upstream(tmp_path: Path) -> None:
    """While a client pauses for longer than idle and stall nothing is read: that is not the upstream's fault."""
    deadlines = {"deadlines": {"idle": 0.3, "stall": 0.3}}
    async with (
        ReplayUpstream(flood(60)) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=deadlines) as proxy,
    ):
        async with proxy.open(receive_buffer=SMALL, timeout_s=30) as client:
            await client.read_events(2)
            await asyncio.sleep(0.8)
            reply = await client.read_to_end()
        row = await proxy.row()

    assert reply.is_done
    assert reply.end is BodyEnd.WHOLE
    assert reply.text.count("؟") == 200 * 8 * 60
    assert row["ending"] == "completed"


async def test_a_reader_that_never_reads_holds_its_upstream_no_longer_than_total(tmp_path: Path) -> None:
    """When `total` passes the upstream's connection is closed at once; the reader is told when it reads again."""
    deadlines = {"deadlines": {"total": 0.6}}
    async with (
        ReplayUpstream(flood()) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=deadlines) as proxy,
    ):
        async with proxy.open(receive_buffer=SMALL, timeout_s=30) as stuck:
            await stuck.read_head()
            hit = await upstream.hits[0].wait_over()
            assert hit.gone_at is not None
            assert 0.55 < hit.gone_at - hit.at < 1.2
            reply = await stuck.read_to_end()
        row = await proxy.row()

    assert reply.events[-1]["error"]["code"] == "total_timeout"  # type: ignore[index]  # JSON
    assert reply.end is BodyEnd.WHOLE
    assert (row["ending"], row["error_code"]) == ("timeout", "total_timeout")
