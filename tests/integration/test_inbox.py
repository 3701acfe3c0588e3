"""An answer that no rule knows, through the real worker: classed, counted and kept beside the ledger (contract E)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from proxy.stores.recordings import find_recordings
from tests.support.answers import ROLE, say
from tests.support.proxy import OUR_KEY, chat, running_proxy
from tests.support.upstream import JSON, Play, ReplayUpstream, play_events

pytestmark = pytest.mark.clause("E")


async def test_what_no_rule_knows_lies_in_the_inbox_and_nothing_else_does(tmp_path: Path) -> None:
    """A teapot before the stream and a riddle in the middle of one are kept, without our key and the messages; a known
    error and a good answer are not."""
    teapot = {"flaw": f"kaputt-17 {OUR_KEY}", "messages": [{"role": "user", "content": "رازِ من"}]}
    plays = [
        Play([(0.0, json.dumps(teapot).encode())], status=418, headers=JSON),
        play_events(ROLE, say("你好"), '{"error": {"riddle": "kaputt-18"}}', done=False),
        Play([(0.0, b'{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}')], status=429, headers=JSON),
        play_events(ROLE, say("नमस्ते"), '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'),
    ]
    async with ReplayUpstream(*plays) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        for _ in plays:
            await proxy.ask(chat("رازِ من"))
        rows = await proxy.rows(len(plays))

    assert [row["error_code"] for row in rows] == ["unmapped", "unmapped", "rate_limited", None]
    mid, head = await asyncio.to_thread(find_recordings, [tmp_path / "ledger.db-inbox"])
    assert (head.vendor, head.status, head.obtained, head.request["path"]) == (
        "openai",
        418,
        "simulated",  # the fake upstream says so itself
        "/chat/completions",
    )
    assert json.loads(head.body) == {"flaw": "kaputt-17 [key]", "messages": "[…]"}
    assert (mid.status, mid.body) == (200, b'data: {"error":{"riddle":"kaputt-18"}}\n\n')
    assert rows[0]["trace_id"] in head.basis
    text = f"{head} {mid}"
    assert OUR_KEY not in text
    assert "راز" not in text
    assert "你好" not in text
