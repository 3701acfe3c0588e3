"""Rules edited under a running proxy: in force within a second, or refused with file and line (contract R2)."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.support.answers import ROLE, SCRIPTS, answer, events, plain, say
from tests.support.client import Reply
from tests.support.proxy import ROOT, Proxy, chat, running_proxy, served_proxy
from tests.support.upstream import Play, ReplayUpstream

pytestmark = pytest.mark.clause("R2")

ODD = {"flaw": {"word": "kaputt-17"}}
RULE = """\
vendor: openai
dialect: openai
rules:
  - id: openai.kaputt
    when: {json: {flaw.word: kaputt-17}}
    then: {class: CLASS, code: CODE}
    evidence: recordings/openai/errors/openai-09.jsonl
    seen: 2026-11-30
    proof: composed
"""


def rule(error_class: str, code: str) -> str:
    return RULE.replace("CLASS", error_class).replace("CODE", code)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A folder of our own with what every set shares, and two vendors."""
    folder = tmp_path / "rules"
    folder.mkdir()
    for name in ("_default.yaml", "_infra.yaml", "mistral.yaml"):
        shutil.copy(ROOT / "rules" / name, folder)
    (folder / "openai.yaml").write_text(rule("rate_limited", "first"))
    return folder


async def code_of(proxy: Proxy) -> object:
    error = (await proxy.ask(chat(stream=False))).json["error"]
    assert isinstance(error, dict)
    return error["code"]


async def within_a_second(proxy: Proxy, code: str) -> None:
    began = time.monotonic()
    while await code_of(proxy) != code:
        assert time.monotonic() - began < 1.0
        await asyncio.sleep(0.02)


async def test_an_edit_is_in_force_within_a_second(tmp_path: Path, rules: Path) -> None:
    """However an editor saves: written in place, renamed over, or as a further file; rows name the rule."""
    async with (
        ReplayUpstream(plain(ODD, 503)) as upstream,
        running_proxy(tmp_path, upstream.base_url, rules=str(rules)) as proxy,
    ):
        assert await code_of(proxy) == "first"
        (rules / "openai.yaml").write_text(rule("rate_limited", "in_place"))
        await within_a_second(proxy, "in_place")
        (rules / "new.tmp").write_text(rule("model_unavailable", "renamed"))
        (rules / "new.tmp").rename(rules / "openai.yaml")
        await within_a_second(proxy, "renamed")
        rows = await proxy.rows_now()

    assert {row["rule_id"] for row in rows} == {"openai.kaputt"}
    assert (rows[0]["error_class"], rows[-1]["error_class"]) == ("rate_limited", "model_unavailable")


async def test_an_open_stream_keeps_the_rules_it_began_with(tmp_path: Path, rules: Path) -> None:
    """Its error is told by the old rule, the next request's by the new one."""
    late = Play(
        [(0.0, events([ROLE, say("سلام")])), (1.2, events([b'{"error":{"message":"?"},"flaw":{"word":"kaputt-17"}}']))]
    )
    async with ReplayUpstream(late) as streaming, ReplayUpstream(plain(ODD, 503)) as upstream:
        urls = {"main": upstream.base_url, "streaming": streaming.base_url}
        async with (
            running_proxy(tmp_path, urls, rules=str(rules)) as proxy,
            proxy.open(chat(model="streaming")) as stream,
        ):
            await stream.read_events(2)
            (rules / "openai.yaml").write_text(rule("rate_limited", "second"))
            await within_a_second(proxy, "second")
            reply = await stream.read_to_end()

    assert reply.events[-1]["error"]["code"] == "first"  # type: ignore[index]  # JSON


async def test_a_broken_file_is_refused_and_the_last_good_set_stays(tmp_path: Path, rules: Path) -> None:
    """The log says file, line and reason, once; a good edit afterwards is taken."""
    async with (
        ReplayUpstream(plain(ODD, 503)) as upstream,
        served_proxy(tmp_path, upstream.base_url, rules=str(rules)) as proxy,
    ):
        (rules / "openai.yaml").write_text(rule("no_such_class", "broken"))
        await proxy.said('"event":"rules refused"')
        assert await code_of(proxy) == "first"
        (rules / "openai.yaml").write_text(rule("rate_limited", "mended"))
        await within_a_second(proxy, "mended")
        (rules / "openai.yaml").unlink()
        await proxy.said('"event":"rules refused"', times=2)
        assert await code_of(proxy) == "mended"
        lines = proxy.log_lines

    refused = [line for line in lines if line["event"] == "rules refused"]
    assert refused[0]["file"].endswith("rules/openai.yaml")
    assert refused[0]["line"] == 6
    assert "no_such_class" in refused[0]["reason"] or "class" in refused[0]["reason"]
    assert "openai" in refused[1]["reason"]
    assert len(refused) == 2


EDITS = 20
STREAMS, REFUSALS = 24, 6
#: Every fifth edit is one of these: half a file, a class that there is not, no rule file at all, an empty one.
BROKEN = (rule("auth_failure", "half")[:60], rule("no_such_class", "wrong"), "- 余额\n", "")


def write_edit(file: Path, number: int) -> str | None:
    """One edit, in place and by rename in turn; the code that it brings, None if it is broken."""
    code = f"edit_{number:02}" if number % 5 != 2 else None
    text = rule("auth_failure", code) if code else BROKEN[number // 5]
    if number % 2:
        file.with_name("next.tmp").write_text(text)
        os.replace(file.with_name("next.tmp"), file)
    else:
        file.write_text(text)
    return code


async def test_a_reload_under_load_drops_nothing(tmp_path: Path, rules: Path) -> None:
    """Twenty edits in the midst of open streams, four of them broken: every stream ends whole, every refusal is told by
    a good set, newer ones never by an older one, and there is one row for each request."""
    said = [piece for pieces in SCRIPTS.values() for piece in pieces]
    file = rules / "openai.yaml"
    file.write_text(rule("auth_failure", "edit_"))
    codes = ["edit_"]
    streamed: list[Reply] = []
    told: list[str] = []
    asked_again = 1
    async with (
        ReplayUpstream(answer(*said, delay=0.01)) as good,
        ReplayUpstream(plain(ODD, 503)) as odd,
        running_proxy(tmp_path, {"main": odd.base_url, "good": good.base_url}, rules=str(rules)) as proxy,
    ):
        for number in range(EDITS):
            streams = [asyncio.create_task(proxy.ask(chat(model="good"))) for _ in range(STREAMS)]
            refusals = [asyncio.create_task(code_of(proxy)) for _ in range(REFUSALS)]
            await good.wait_hits((number + 1) * STREAMS, timeout_s=20)
            code = await asyncio.to_thread(write_edit, file, number)
            codes += [code] if code else []
            streamed += await asyncio.gather(*streams)
            told += sorted(str(word) for word in await asyncio.gather(*refusals))
        while await code_of(proxy) != codes[-1]:
            asked_again += 1
            assert asked_again < 1000, "the last edit was never in force"
        rows = await proxy.rows_now()

    assert [reply for reply in streamed if not reply.is_done or reply.text != "".join(said)] == []
    assert set(told) <= set(codes)
    assert told == sorted(told)
    assert len(set(told)) > 5, "edits were in force while streams were open"
    assert len(rows) == EDITS * (STREAMS + REFUSALS) + asked_again
    assert {row["ending"] for row in rows} == {"completed", "vendor_error"}
