"""The client leaves: what its upstream sees within 100 ms, and what the ledger says afterwards (contract W8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.app import shared_counter
from tests.support.answers import ROLE, SCRIPTS, STOP, USAGE, VENDOR_USAGE, completion, encode, events, say
from tests.support.proxy import chat, running_proxy, served_proxy
from tests.support.upstream import JSON, HangingUpstream, HangPhase, Play, ReplayUpstream

pytestmark = pytest.mark.clause("W8")

WITHIN_S = 0.1
FLOOD = Play([(0.0, events([ROLE])), *[(0.0, events([say("سلام" * 2000)] * 4))] * 1000])
DRAIN = {"on_client_gone": "drain"}


async def settled(value: Callable[[], int]) -> int:
    """The value, once it has not moved for a while."""
    async with asyncio.timeout(10):
        before = -1
        while (now := value()) != before or not now:
            before = now
            await asyncio.sleep(0.15)
    return now


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("phase", [HangPhase.HEAD, HangPhase.BODY])
async def test_who_leaves_before_anything_came_ends_the_request(tmp_path: Path, phase: HangPhase, stream: bool) -> None:
    """The handler waits for a head or for progress, and is still told: nothing was delivered, the row says so."""
    async with HangingUpstream(phase) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with proxy.open(chat(stream=stream)) as client:
            await upstream.wait_hits()
            await asyncio.sleep(0.05)  # so that the head is in, where one comes
            left_at = client.leave()
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.gone_at is not None
    assert hit.gone_at - left_at < WITHIN_S
    assert (row["ending"], row["error_class"], row["error_code"]) == ("client_gone", None, None)
    assert (row["bytes_out"], row["events_out"], row["delivered_output"], row["ttft_ms"]) == (0, 0, 0, None)
    assert row["streamed"] is stream


@pytest.mark.parametrize("phase", [HangPhase.FIRST_EVENT, HangPhase.MID_EVENT])
async def test_who_leaves_in_the_middle_ends_the_request(tmp_path: Path, phase: HangPhase) -> None:
    """Between two events, or while half a character waits for its rest: cancelled, with what was delivered."""
    async with HangingUpstream(phase) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with proxy.open() as client:
            await client.read_events(2)
            left_at = client.leave()
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()
        await proxy.wait_metric("sluice_open_streams", 0)
        assert upstream.open_connections == 0

    assert hit.gone_at is not None
    assert hit.gone_at - left_at < WITHIN_S
    assert row["ending"] == "client_gone"
    assert (row["events_out"], row["bytes_out"]) == (2, len(client.reply.body))
    assert row["delivered_output"] == shared_counter().count(client.reply.text)
    assert row["counted"]["output"] == shared_counter().count("سلام")


async def test_who_leaves_without_having_read_ends_the_request(tmp_path: Path) -> None:
    """The proxy waits for a client that does not read, not for its upstream: it is told all the same."""
    async with ReplayUpstream(FLOOD) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with proxy.open(receive_buffer=4096) as client:
            await client.read_head()
            hit = upstream.hits[0]
            sent = await settled(lambda: hit.bytes_sent)
            left_at = client.leave()
        await hit.wait_over()
        row = await proxy.row()

    assert hit.gone_at is not None
    assert hit.gone_at - left_at < WITHIN_S
    assert row["ending"] == "client_gone"
    assert row["bytes_in"] <= sent


async def test_all_who_leave_at_once_are_noticed(tmp_path: Path) -> None:
    """Fifty clients go in the same moment; fifty requests end, fifty rows are closed, nothing stays open."""
    count = 50
    async with HangingUpstream(HangPhase.FIRST_EVENT) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:

        async def come_and_go(everybody: asyncio.Barrier) -> None:
            async with proxy.open() as client:
                await client.read_events(2)
                await everybody.wait()

        everybody = asyncio.Barrier(count)
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(come_and_go(everybody))
        rows = await proxy.rows(count)
        await proxy.wait_metric("sluice_open_streams", 0)
        assert upstream.open_connections == 0

    assert {row["ending"] for row in rows} == {"client_gone"}


REST = [(0.2, events([say("حالِ شما "), say("چطور است؟"), STOP])), (0.05, events([VENDOR_USAGE, b"[DONE]"]))]
ANSWER = encode(completion("سلام"))
LONG = Play([(0.0, events([ROLE, say("سلام ")])), *REST])


async def test_drain_reads_to_the_end_for_the_usage(tmp_path: Path) -> None:
    """The upstream is read to its end; the row has the vendor's usage, what came, and what was delivered of it."""
    async with (
        ReplayUpstream(LONG) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=DRAIN) as proxy,
    ):
        async with proxy.open() as client:
            await client.read_events(2)
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.finished_at is not None
    assert (row["ending"], row["error_class"], row["vendor_usage"]) == ("client_gone", None, USAGE)
    assert 0 < row["delivered_output"] < row["counted"]["output"]
    assert row["events_out"] == 2


@pytest.mark.parametrize("stream", [True, False])
async def test_drain_begins_before_the_head(tmp_path: Path, stream: bool) -> None:
    """Who leaves while the vendor still thinks has asked all the same: the answer is read, nothing is delivered."""
    said = Play(LONG.reads, head_delay=0.3) if stream else Play([(0.0, ANSWER)], headers=JSON, head_delay=0.3)
    async with (
        ReplayUpstream(said) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=DRAIN) as proxy,
    ):
        async with proxy.open(chat(stream=stream)):
            await upstream.wait_hits()
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.finished_at is not None
    assert (row["ending"], row["vendor_usage"]) == ("client_gone", USAGE)
    assert (row["events_out"], row["bytes_out"], row["delivered_output"]) == (0, 0, 0)
    assert row["counted"]["output"] > 0


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (Play([(0.0, events([ROLE, say("سلام ")])), (0.2, b"")], end="reset"), "a reset"),
        (Play([(0.0, events([ROLE, say("سلام ")]))], end="hang"), "silence until a deadline"),
    ],
    ids=["reset", "hang"],
)
async def test_drain_ends_though_the_upstream_does_not(tmp_path: Path, play: Play, why: str) -> None:
    """What goes wrong while nobody listens is still one row, `client_gone`, and no connection stays open."""
    deadlines = {"deadlines": {"idle": 0.4}}
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=DRAIN | deadlines) as proxy,
    ):
        async with proxy.open() as client:
            await client.read_events(2)
        row = await proxy.row()
        await upstream.hits[0].wait_over()

    assert row["ending"] == "client_gone", why
    assert row["delivered_output"] == row["counted"]["output"] > 0


@pytest.mark.parametrize("config", [{}, DRAIN], ids=["cancel", "drain"])
async def test_leaving_after_the_finish_is_completed(tmp_path: Path, config: dict[str, object]) -> None:
    """The answer was complete, only usage was waited for: the client had what it wanted."""
    play = Play([(0.0, events([ROLE, say("你好")])), (0.05, events([STOP])), (0.4, events([VENDOR_USAGE, b"[DONE]"]))])
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=config) as proxy,
    ):
        async with proxy.open() as client:
            await client.read_events(2)
            await asyncio.sleep(0.2)  # the finish itself is written only at the end: nothing tells that it came
        row = await proxy.row()

    assert (row["ending"], row["finish_reason"], row["error_class"]) == ("completed", "stop", None)
    assert row["vendor_usage"] == (USAGE if config else None)


async def test_leaving_after_done_is_completed(tmp_path: Path) -> None:
    """As clients do that close their connection when they have read `[DONE]`."""
    async with ReplayUpstream(LONG) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with proxy.open() as client:
            while not client.reply.is_done:
                await client.read_once()
        row = await proxy.row()

    assert row["ending"] == "completed"


@pytest.mark.clause("C5")
async def test_the_export_of_a_running_proxy_tells_it(tmp_path: Path) -> None:
    """`sluice serve` in a process of its own: cancelled and drained, as `sluice ledger export` prints them."""
    async with HangingUpstream(HangPhase.FIRST_EVENT) as hanging, ReplayUpstream(LONG) as drained:
        urls = {"hanging": hanging.base_url, "drained": drained.base_url}
        accounts = {name: {"vendor": "openai", "base_url": url} for name, url in urls.items()}
        accounts["drained"] |= DRAIN
        async with served_proxy(tmp_path, urls, upstreams=accounts) as proxy:
            left_at = {}
            for name, upstream in (("hanging", hanging), ("drained", drained)):
                async with proxy.open(chat("".join(SCRIPTS["emoji"]), model=name)) as client:
                    await client.read_events(2)
                    left_at[name] = client.leave()
                await upstream.hits[0].wait_over()
            gone_at = hanging.hits[0].gone_at
            await proxy.rows(2)
            exported = [json.loads(line) for line in (await proxy.export()).splitlines()]

    assert gone_at is not None
    assert gone_at - left_at["hanging"] < WITHIN_S
    assert [(row["upstream"], row["ending"], row["vendor_usage"]) for row in exported] == [
        ("hanging", "client_gone", None),
        ("drained", "client_gone", USAGE),
    ]
