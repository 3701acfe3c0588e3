"""The simulator wrote to a peer that had left a moment ago: under uvloop that is a RuntimeError, not a ConnectionError,
and it ended in the loop's exception handler instead of with the exchange."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.client import open_stream
from tests.support.upstream import ReplayUpstream, play_events

LEAVERS = 60


@pytest.mark.clause("C2")
async def test_who_leaves_while_much_is_sent_causes_no_word(caplog: pytest.LogCaptureFixture) -> None:
    """Sixty peers go while bytes are on their way to them; each exchange just ends."""
    async with ReplayUpstream(play_events(*["سلام"] * 400, delay=0.0005)) as upstream:

        async def come_and_go(number: int) -> None:
            async with open_stream(upstream.port, {"stream": True}) as stream:
                await stream.read_events(number % 7 + 1)

        await asyncio.gather(*map(come_and_go, range(LEAVERS)))
        for hit in upstream.hits:
            await hit.wait_over()
        assert len(upstream.hits) == LEAVERS
        assert upstream.open_connections == 0
    assert [record.getMessage() for record in caplog.records] == []
