"""The client leaves after event N, for every N (contract W8, L1): one row each, true to what was told, nothing open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tests.support.answers import ROLE, SCRIPTS, STOP, VENDOR_USAGE, events, say
from tests.support.proxy import Row, chat, running_proxy
from tests.support.upstream import Play, ReplayUpstream

pytestmark = pytest.mark.clause("W8", "L1")

#: None of them ends in what may join with the next: each leaves as it came.
PIECES: Final = ("سلام،", " 你好。", " Hello.", " 👋🏽!", " 안녕.", " नमस्ते।")
ASK: Final = chat(stream_options={"include_usage": True})
TOLD_AT_THE_END: Final = 3  # finish, usage and [DONE] leave together, when the row is durable


def hangs_after(pieces: int) -> Play:
    """The role and so many pieces of text, one per read, and then silence."""
    return Play([(0.0, events([payload])) for payload in [ROLE, *map(say, PIECES[:pieces])]], end="hang")


@pytest.mark.parametrize("drain", [False, True], ids=["cancel", "drain"])
async def test_whoever_leaves_after_event_n_has_a_row_that_says_n(tmp_path: Path, drain: bool) -> None:
    """The upstream hangs right behind the event after which the client goes, so that what was told is known: the row
    counts just that, and afterwards no stream, no upstream connection and no open row is left."""
    count = len(PIECES)
    plays = [hangs_after(told) for told in range(count + 1)]
    config = {"on_client_gone": "drain" if drain else "cancel", "deadlines": {"idle": 0.3}}
    async with (
        ReplayUpstream(*plays) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=config) as proxy,
    ):
        bodies: list[bytes] = []
        for told in range(count + 1):
            async with proxy.open(ASK) as client:
                reply = await client.read_events(told + 1) if told else client.reply
                await upstream.wait_hits(told + 1)
                bodies.append(reply.body)
                client.leave()
            await upstream.hits[told].wait_over(5)
        rows = await proxy.rows(count + 1)
        await proxy.wait_metric("sluice_open_streams", 0)
        assert upstream.open_connections == 0

    assert [row["ending"] for row in rows] == ["client_gone"] * (count + 1)
    assert [row["events_out"] for row in rows] == [0, *range(2, count + 2)]
    assert [row["bytes_out"] for row in rows] == [len(body) for body in bodies]
    assert [row["delivered_output"] <= row["counted"]["output"] for row in rows] == [True] * (count + 1)


async def test_whoever_leaves_within_the_last_events_has_a_completed_row(tmp_path: Path) -> None:
    """Finish, usage and `[DONE]` leave when the row is durable: wherever among them one goes, the answer was whole."""
    play = Play([(0.0, events([ROLE, *map(say, PIECES), STOP, VENDOR_USAGE, b"[DONE]"]))])
    total = 1 + len(PIECES) + TOLD_AT_THE_END
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        for told in range(total - TOLD_AT_THE_END + 1, total + 1):
            async with proxy.open(ASK, read_bytes=64) as client:
                await client.read_events(told)
        rows = await proxy.rows(TOLD_AT_THE_END)

    assert [(row["ending"], row["finish_reason"]) for row in rows] == [("completed", "stop")] * TOLD_AT_THE_END
    assert [row["delivered_output"] for row in rows] == [row["counted"]["output"] for row in rows]


async def test_a_crowd_of_which_each_leaves_elsewhere(tmp_path: Path) -> None:
    """Forty at once over paced streams, each leaving after another number of events, some never: one row each, told by
    what they were told, and nothing stays open."""
    crowd = 40
    texts = [piece for pieces in SCRIPTS.values() for piece in pieces]
    paced = [(0.01, events([payload])) for payload in [ROLE, *map(say, texts), STOP, VENDOR_USAGE, b"[DONE]"]]
    ends: dict[str, bool] = {}

    async with ReplayUpstream(Play(paced)) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:

        async def come_and_go(number: int) -> None:
            async with proxy.open(ASK, headers={"x-request-id": f"crowd-{number}"}) as client:
                reply = await client.read_events(number)
                ends[f"crowd-{number}"] = reply.is_done

        async with asyncio.TaskGroup() as group:
            for number in range(crowd):
                group.create_task(come_and_go(number))
        rows = {row["request_id"]: row for row in await proxy.rows(crowd)}
        await proxy.wait_metric("sluice_open_streams", 0)
        open_connections = upstream.open_connections
        metrics = await proxy.metrics()

    assert rows.keys() == ends.keys()
    assert sum(ends.values()) >= crowd - len(texts) - 3
    for name, done in ends.items():
        assert rows[name]["ending"] in (("completed",) if done else ("client_gone", "completed")), name
    assert ended(rows, "client_gone") > 5
    assert open_connections <= ended(rows, "completed")  # those may be kept for the next request
    assert sum(value for name, value in metrics.items() if name.startswith("sluice_attempts_total")) == crowd


def ended(rows: dict[str, Row], ending: str) -> int:
    return sum(row["ending"] == ending for row in rows.values())
