"""SIGTERM: what runs may finish, what does not is told, nothing new is taken, the ledger is whole (contract C1)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support.answers import SCRIPTS, answer
from tests.support.client import BodyEnd
from tests.support.proxy import chat, served_proxy
from tests.support.upstream import HangingUpstream, HangPhase, Play, ReplayUpstream

pytestmark = pytest.mark.clause("C1")


class KeptAlive:
    """A connection on which one request comes after the other."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=10)

    async def get(self, path: str) -> int:
        return await asyncio.to_thread(self._get, "GET", path, None)

    async def post(self, path: str, body: bytes) -> int:
        return await asyncio.to_thread(self._get, "POST", path, body)

    def _get(self, method: str, path: str, body: bytes | None) -> int:
        self._connection.request(method, path, body, {"content-type": "application/json"})
        response = self._connection.getresponse()
        response.read()
        return response.status

    def close(self) -> None:
        self._connection.close()


async def test_streams_finish_and_nothing_new_is_taken(tmp_path: Path) -> None:
    """The open stream ends with `[DONE]`; meanwhile not ready, no new connection, no new request on an old one."""
    slow = answer(*SCRIPTS["hindi"], *SCRIPTS["korean"], delay=0.1)
    async with ReplayUpstream(slow) as upstream, served_proxy(tmp_path, upstream.base_url) as proxy:
        old = KeptAlive(proxy.port)
        assert await old.get("/readyz") == 200
        async with proxy.open() as stream:
            await stream.read_events(2)
            proxy.signal()
            async with asyncio.timeout(1):
                while await old.get("/readyz") != 503:
                    pass
            assert await old.get("/healthz") == 200
            assert await old.post("/v1/chat/completions", b'{"model": "main", "messages": []}') == 503
            with pytest.raises(ConnectionRefusedError):
                await proxy.get("/healthz")
            reply = await stream.read_to_end()
        assert await proxy.exit_code() == 0
        row = await proxy.row()
        old.close()

    assert reply.is_done
    assert reply.text == "".join(SCRIPTS["hindi"] + SCRIPTS["korean"])
    assert row["ending"] == "completed"
    assert len(upstream.hits) == 1


@pytest.mark.clause("C1", "W6", "L1")
async def test_what_is_open_at_the_end_is_told(tmp_path: Path) -> None:
    """After shutdown_s: an error event where a stream has begun, else a status; each row `interrupted`; exit 0."""
    phases = {phase.value: phase for phase in HangPhase}
    async with AsyncExitStack() as stack:
        upstreams = {name: await stack.enter_async_context(HangingUpstream(phase)) for name, phase in phases.items()}
        urls = {name: upstream.base_url for name, upstream in upstreams.items()}
        proxy = await stack.enter_async_context(served_proxy(tmp_path, urls, shutdown_s=0.3))
        streams = {}
        for name in phases:
            for stream in (True, False):
                opened = proxy.open(chat(model=name, stream=stream))
                streams[name, stream] = await stack.enter_async_context(opened)
        for upstream in upstreams.values():
            await upstream.wait_hits(2)
        for name in ("first_event", "mid_event"):
            await streams[name, True].read_events(2)
        await asyncio.sleep(0.1)  # the heads are in
        proxy.signal()
        replies = {case: await stream.read_to_end() for case, stream in streams.items()}
        assert await proxy.exit_code() == 0
        rows = await proxy.rows(len(streams))

    for (name, stream), reply in replies.items():
        begun = stream and name in ("first_event", "mid_event")
        assert reply.end is BodyEnd.WHOLE, name
        error = (reply.events[-1] if begun else reply.json)["error"]
        assert isinstance(error, dict)
        assert (error["type"], error["code"], error["retryable"]) == ("model_unavailable", "shutting_down", True)
        assert reply.status == (200 if begun else 503)
        assert b"[DONE]" not in reply.body
        assert reply.text == "سلام" if begun else reply.headers["x-should-retry"] == "true"
    assert {(row["ending"], row["error_code"]) for row in rows} == {("interrupted", "shutting_down")}


async def test_without_streams_it_ends_at_once(tmp_path: Path) -> None:
    """Nothing to wait for: no use is made of the thirty seconds, whatever idle connections are open."""
    async with ReplayUpstream(Play()) as upstream, served_proxy(tmp_path, upstream.base_url) as proxy:
        old = KeptAlive(proxy.port)
        assert await old.get("/healthz") == 200
        proxy.signal()
        async with asyncio.timeout(3):
            assert await proxy.exit_code() == 0
        old.close()
