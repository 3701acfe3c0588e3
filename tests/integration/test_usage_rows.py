"""What the ledger's rows say of usage, through the running proxy (contract L2).

Recorded answers of vendors that report each in its own way, whole and cut; and clients that leave. The vendor's object
stands in the row as it came, and beside it what it amounts to, each figure with where it is from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.canon.usage import FIGURES
from tests.support.answers import ROLE, USAGE, VENDOR_USAGE, answer, broken_off, say
from tests.support.pipelines import recordings
from tests.support.proxy import Row, chat, running_proxy
from tests.support.recorded import ask_all, asks_stream, dialect_of, expect_none, recorded_proxy
from tests.support.upstream import HangingUpstream, HangPhase, Play, ReplayUpstream, play_events

pytestmark = [pytest.mark.clause("L2", "C5"), pytest.mark.timeout(60)]

#: For each way of reporting a recording, the state of its row, and what stands there: input, output, what came from the
#: cache and what went into it, reasoning, total.
TOLD: Final[Mapping[str, tuple[str, str, tuple[int | None, ...]]]] = {
    "openai/usage-chunk-obfuscation": ("final", "rrrar", (19, 31, 8, None, 0, 50)),
    "openai/responses-reasoning": ("final", "rrrrr", (25, 412, 0, 0, 384, 437)),
    "anthropic/thinking-pings-and-cache": ("final", "drrra", (2118, 27, 2000, 100, None, None)),
    "anthropic/connection-closed-midway": ("partial", "raaaa", (11, None, None, None, None, None)),
    "gemini/sealed-tools": ("final", "rdaar", (64, 124, None, None, 91, 188)),
    "gemini/cut": ("partial", "rraaa", (20, 6, None, None, None, 26)),
    "vertex/cut": ("lost", "aaaaa", (None,) * 6),
    "bedrock/reasoning-sealed": ("final", "drrra", (2591, 57, 2048, 512, None, 2648)),
    "bedrock/connection-closed-midway": ("lost", "aaaaa", (None,) * 6),
    "cohere/plain": ("final", "rraaa", (507, 16, None, None, None, None)),
    "cohere/error-in-the-end": ("final", "rraaa", (480, 2, None, None, None, None)),
    "minimax/pro-plain": ("total_only", "aaaaa", (None, None, None, None, None, 187)),
    "minimax/pro-plain-json": ("total_only", "aaaaa", (None, None, None, None, None, 187)),
    "baidu_qianfan_v1/plain": ("final", "rdaaa", (5, 7, None, None, None, 12)),
    "groq/x-groq-usage": ("final", "rraaa", (74, 19, None, None, None, 93)),
    "xai/reasoning-outside-completion": ("final", "rdrar", (12, 189, 3, None, 180, 201)),
    "dashscope/connection-closed-midway": ("partial", "rraaa", (21, 1, None, None, None, 22)),
    "openrouter/processing-comments": ("final", "rrraa", (13, 22, 0, None, None, 35)),
    "new_api/deflate-body": ("estimated", "rraaa", (9, 5, None, None, None, 14)),
    "azure_openai/content-filter-midway": ("absent", "aaaaa", (None,) * 6),
    "together/truncated-clean-eof": ("lost", "aaaaa", (None,) * 6),
}
# Read here, where no loop waits: recordings, and the rules that say in which dialect they are.
PLAYED: Final = [recording for recording in recordings() if recording.key in TOLD and dialect_of(recording)]
LETTERS: Final = {"reported": "r", "derived": "d", "absent": "a"}
#: Cohere's second scale.
BILLED: Final = {"cohere/plain": (12, 14), "cohere/error-in-the-end": (3, 2)}


async def test_every_way_of_reporting_is_told_apart(tmp_path: Path) -> None:
    """State, where each figure is from, and the figures, as an export tells them; verbatim what the vendor sent."""
    assert len(PLAYED) == len(TOLD)
    async with recorded_proxy(tmp_path, PLAYED) as proxy:
        await ask_all(PLAYED, lambda one: proxy.ask(chat(stream=asks_stream(one), model=one.key), timeout_s=30.0))
        rows = {row["upstream"]: row for row in await proxy.rows(len(PLAYED))}

    found: dict[str, list[str]] = {}
    for recording in PLAYED:
        key, row = recording.key, rows[recording.key]
        wanted = (*TOLD[key], BILLED.get(key, (None, None)))
        found[key] = [f"wanted {wanted}, the row says {said(row)}"] if said(row) != wanted else []
        if "usage" in recording.expect and row["vendor_usage"] != recording.expect["usage"]:
            found[key].append(f"vendor_usage is {row['vendor_usage']}")
    expect_none(found)


def said(row: Row) -> tuple[object, ...]:
    usage: dict[str, Any] = row["usage"]
    told = "".join(LETTERS[usage[f"{name}_told"]] for name in FIGURES)
    figures = tuple(usage[name] for name in (*FIGURES, "total"))
    return usage["state"], told, figures, (usage["billed_input"], usage["billed_output"])


@pytest.mark.parametrize(
    ("play", "state"),
    [
        (answer("سلام", " دنیا"), "final"),
        (broken_off("你好"), "lost"),
        (play_events(ROLE, say("नम"), VENDOR_USAGE, say("स्ते"), end="abort", done=False), "partial"),
        (play_events(ROLE, say("مرحبا"), VENDOR_USAGE, end="hang", done=False), "partial"),
    ],
    ids=["whole", "cut before it came", "cut behind running figures", "silent behind running figures"],
)
async def test_our_count_never_stands_for_a_figure(tmp_path: Path, play: Play, state: str) -> None:
    """It stands beside it: what was counted is no report."""
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream={"deadlines": {"idle": 0.3}}) as proxy,
    ):
        await proxy.ask()
        row = await proxy.row()

    assert row["counted"]["output"] > 0
    assert row["usage"]["state"] == state
    lost = state == "lost"
    assert row["vendor_usage"] == (None if lost else USAGE)
    assert [row["usage"][name] for name in ("input", "output")] == ([None, None] if lost else [12, 34])


@pytest.mark.clause("W8")
@pytest.mark.parametrize("phase", [HangPhase.HEAD, HangPhase.FIRST_EVENT])
async def test_a_client_that_leaves_takes_the_report_along(tmp_path: Path, phase: HangPhase) -> None:
    """The vendor worked and may charge for it, whether or not something of its answer had come."""
    async with HangingUpstream(phase) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with proxy.open() as client:
            await upstream.wait_hits()
            if phase is HangPhase.FIRST_EVENT:
                await client.read_events(2)
        row = await proxy.row()

    assert (row["ending"], row["usage"]["state"]) == ("client_gone", "lost")


async def test_a_recipe_that_is_edited_goes_for_the_next_attempt(tmp_path: Path) -> None:
    """Whoever learns that the figures are characters says so in the rule file, without a restart (contract R2)."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        await proxy.ask()
        file = tmp_path / "rules" / "openai.yaml"
        before = file.read_text()
        edited = before.replace("usage: {scope: final,", "usage: {unit: characters, scope: final,")
        assert edited != before
        file.write_text(edited)
        while True:  # within a second, says the contract; the test's own limit is longer
            reply = await proxy.ask(chat(stream_options={"include_usage": True}))
            if b'"estimated"' in reply.body:
                break
        rows = await proxy.rows(len(upstream.hits))

    states = [row["usage"]["state"] for row in sorted(rows, key=lambda row: row["started_at"])]
    assert (states[0], states[-1]) == ("final", "characters")
    assert all(row["vendor_usage"] == USAGE for row in rows)
    assert json.loads(reply.body.split(b"\n\n")[-3].removeprefix(b"data: "))["usage"]["prompt_tokens"] != 12
