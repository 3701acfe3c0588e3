"""From an unknown answer to a rule in force: proxy, inbox, `sluice learn --accept`, reload (contracts E, C3, R2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from proxy.__main__ import run
from tests.support.inboxes import ALIKE, make_project
from tests.support.proxy import OUR_KEY, PATIENCE_S, Proxy, chat, running_proxy
from tests.support.upstream import JSON, Play, ReplayUpstream

pytestmark = pytest.mark.clause("E", "C3", "R2")


async def test_an_unmapped_answer_has_its_class_after_learn(tmp_path: Path) -> None:
    """The same answer before and after: by its status alone, then by the rule that was learned from it, in the same
    running process. Neither our key nor anything of the request is in what was written."""
    project = await asyncio.to_thread(make_project, tmp_path, "openai")
    said = {**ALIKE, "messages": [{"role": "user", "content": "رازِ من"}], "key": OUR_KEY}
    play = Play([(0.0, json.dumps(said, ensure_ascii=False).encode())], status=418, headers=JSON)
    inbox = tmp_path / "ledger.db-inbox"
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, rules="rules") as proxy:
        assert [await error_of(proxy) for _ in range(3)] == [("model_unavailable", "unmapped", None)] * 3
        await until(lambda: asyncio.to_thread(is_counted, inbox, 3))

        assert await asyncio.to_thread(run, ["learn", "--config", str(proxy.config), "--accept"]) == 0

        learned = ("rate_limited", "daily_limit_reached", "openai.daily-limit-reached")
        await until(lambda: is_now(proxy, learned))
    # What came after the rule was written and before it was in force: the next run finds it known.
    assert await asyncio.to_thread(run, ["learn", "--config", str(proxy.config), "--accept"]) == 0
    texts = await asyncio.to_thread(project.texts)
    (evidence,) = (text for name, text in texts.items() if "errors/learned-" in name)
    assert b'"obtained": "simulated"' in evidence  # the fake upstream says so itself
    assert "راز" not in evidence.decode()
    assert [name for name, text in texts.items() if OUR_KEY.encode() in text] == ["sluice.yaml"]
    assert not [name for name in texts if name.startswith(inbox.name)]


async def error_of(proxy: Proxy) -> tuple[object, object, object]:
    """Class and code as the caller is told, and the rule as the ledger has it."""
    before = len(await proxy.rows_now())
    told = (await proxy.ask(chat("رازِ من", stream=False))).json["error"]
    row = (await proxy.rows(before + 1))[-1]
    assert isinstance(told, dict)
    assert (row["error_class"], row["error_code"]) == (told["type"], told["code"])
    return told["type"], told["code"], row["rule_id"]


async def is_now(proxy: Proxy, error: tuple[object, object, object]) -> bool:
    return await error_of(proxy) == error


def is_counted(inbox: Path, times: int) -> bool:
    return sum(path.stat().st_size for path in inbox.glob("*/*.count")) == times


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Files are written, and rules reloaded, by threads that tell nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
