"""Bodies of token ids are checked without holding the event loop up, whatever becomes of the process that does it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
import uvloop

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.incoming import ToonIncoming
from proxy.toon.card import Card
from proxy.toon.catalogue import TokenModels
from proxy.toon.intake import Intake, serve_pipe
from proxy.upstream.tasks import Tasks
from tests.support.toon import toon

CARD = Card("2.1", 50_000, 16_384, "rope", 0, frozenset((0, 1)), 1024, frozenset((1,)))
MODELS = TokenModels({"کوچک": CARD})
LONG = toon(list(range(2, 6000)), x_segments=[{"length": 5998, "meta": {"source": "retrieval", "x_doc": "سند"}}])


@asynccontextmanager
async def intake(**more: Any) -> AsyncIterator[Intake]:
    tasks = Tasks()
    reading = Intake(MODELS, tasks, **more)
    try:
        yield reading
    finally:
        await reading.close()
        await tasks.join(5)


def process_of(reading: Intake) -> asyncio.subprocess.Process:
    process = reading._process
    assert process is not None
    return process


@pytest.mark.clause("T2")
@pytest.mark.parametrize(
    "body",
    [
        orjson.dumps(LONG),
        orjson.dumps({**LONG, "x_note": "一二三 👩‍👩‍👧"}),
        orjson.dumps(toon([*range(2, 6000), 60_000])),
        orjson.dumps(toon([2] * 9000)),
        orjson.dumps({**LONG, "model": "unknown"}),
        b'{"tids": ' + b"[" * 8000,
        b"",
    ],
)
async def test_the_process_beside_says_what_this_one_would(body: bytes) -> None:
    """Outline, alias, or mistake with its pointer."""
    async with intake(inline_bytes=-1) as beside, intake(inline_bytes=1 << 30) as here:
        far, near = await beside.read(body), await here.read(body)

    if isinstance(near, BadRequest):
        assert far == near
    else:
        assert isinstance(far, ToonIncoming)
        assert (far.asked, far.model, far.data) == (near.asked, near.model, body)


async def test_short_bodies_need_no_process() -> None:
    async with intake() as reading:
        assert isinstance(await reading.read(orjson.dumps(toon())), ToonIncoming)
        assert reading._process is None


async def test_a_killed_process_costs_no_request() -> None:
    """The one that it was at is checked here, and the next one has another."""
    async with intake() as reading:
        await reading.read(orjson.dumps(LONG))
        first = process_of(reading)
        os.kill(first.pid, signal.SIGKILL)
        assert isinstance(await reading.read(orjson.dumps(LONG)), ToonIncoming)
        assert isinstance(await reading.read(orjson.dumps(LONG)), ToonIncoming)
        assert process_of(reading).pid != first.pid


def test_one_that_was_killed_long_ago_costs_none_either() -> None:
    """On the loop of a worker, which has seen the pipe close, and then takes no bytes for it in a way of its own."""

    async def run() -> None:
        async with intake() as reading:
            await reading.read(orjson.dumps(LONG))
            first = process_of(reading)
            os.kill(first.pid, signal.SIGKILL)
            await first.wait()
            await asyncio.sleep(0.05)
            for _ in range(3):
                assert isinstance(await reading.read(orjson.dumps(LONG)), ToonIncoming)
            assert process_of(reading).pid != first.pid

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def test_a_process_that_hangs_costs_no_request() -> None:
    """It is given some time, and then up."""
    async with intake(patience_s=3.0) as reading:
        while reading._process is None:  # on a busy machine it may start slowly
            await reading.read(orjson.dumps(LONG))
        os.kill(process_of(reading).pid, signal.SIGSTOP)
        assert isinstance(await reading.read(orjson.dumps(LONG)), ToonIncoming)


async def test_who_leaves_while_waiting_takes_nobodys_answer() -> None:
    """The pipe stays in step."""
    async with intake() as reading:
        leaving = asyncio.ensure_future(reading.read(orjson.dumps({**LONG, "seed": 1})))
        await asyncio.sleep(0)
        leaving.cancel()
        seeds = await asyncio.gather(*(reading.read(orjson.dumps({**LONG, "seed": at})) for at in range(2, 8)))

    assert [one.asked.seed for one in seeds if isinstance(one, ToonIncoming)] == list(range(2, 8))


async def test_it_ends_with_its_worker() -> None:
    """By the end of its pipe, so that no way of dying leaves it behind."""
    async with intake() as reading:
        await reading.read(orjson.dumps(LONG))
        process = process_of(reading)
    assert process.returncode == 0


def test_a_pipe_that_ends_early_is_an_end() -> None:
    """Before the cards, or within a length."""
    for sent in (b"", b"\x01"):
        answers = io.BytesIO()
        serve_pipe(io.BytesIO(sent), answers)
        assert answers.getvalue() == b""
