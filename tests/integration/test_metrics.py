"""`/metrics` after known traffic: names, labels and sums (contract C1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers import ROLE, SCRIPTS, STOP, answer, broken_off, chunk, events, say, vendor_error
from tests.support.proxy import ALIAS, chat, running_proxy
from tests.support.upstream import HangingUpstream, HangPhase, Play, ReplayUpstream, play_events

pytestmark = pytest.mark.clause("C1")


def attempts(upstream: str, error_class: str, ending: str) -> str:
    return f'sluice_attempts_total{{ending="{ending}",error_class="{error_class}",upstream="{upstream}"}}'


async def test_every_ending_is_counted_by_upstream_and_class(tmp_path: Path) -> None:
    """One counter with three labels tells how many attempts ended how, where and why."""
    plays = [
        answer(*SCRIPTS["chinese"]),
        answer(*SCRIPTS["korean"]),
        vendor_error(429, "rate_limit_exceeded", "Slow down."),
        vendor_error(401, "invalid_api_key", "No."),
        broken_off("سلام", end="reset"),
        Play(end="hang"),
    ]
    deadlines = {"deadlines": {"first_byte": 0.2}}
    async with ReplayUpstream(*plays) as upstream, HangingUpstream(HangPhase.FIRST_EVENT) as hanging:
        urls = {"main": upstream.base_url, "second": hanging.base_url}
        async with running_proxy(tmp_path, urls, upstream=deadlines) as proxy:
            for _ in plays:
                await proxy.ask()
            await proxy.ask(chat(model="second"), leave_after_events=2)
            await proxy.ask(chat(model="nobody"))
            await proxy.rows(len(plays) + 1)
            found = await proxy.metrics()

    counted = {name: value for name, value in found.items() if name.startswith("sluice_attempts_total")}
    assert counted == {
        attempts("main", "", "completed"): 2,
        attempts("main", "rate_limited", "vendor_error"): 1,
        attempts("main", "auth_failure", "vendor_error"): 1,
        attempts("main", "upstream_timeout", "stream_cut"): 1,
        attempts("main", "upstream_timeout", "timeout"): 1,
        attempts("second", "", "client_gone"): 1,
    }
    assert found['sluice_time_to_first_token_seconds_count{upstream="main"}'] == 3
    assert found['sluice_time_to_first_token_seconds_count{upstream="second"}'] == 1
    assert found["sluice_open_streams"] == 0
    labels = "".join(found)
    assert ALIAS not in labels
    assert "nobody" not in labels


async def test_what_cleaning_did_is_counted(tmp_path: Path) -> None:
    """Held characters, swallowed heartbeats, replaced bytes, errors that no rule knew."""
    dirty = Play(
        [
            (0.0, b": beat\n\n: beat\n\n" + events([ROLE, chunk({}), chunk({"content": ""})])),
            (0.0, b"data: " + say("x?y").replace(b"?", b"\xff") + b"\n\n"),
            (0.0, events([say("سلام")])),
            (0.0, events([STOP, b"[DONE]"])),
        ]
    )
    odd = Play([(0.0, b'{"flaw":"kaputt-17"}')], status=418, headers=[("content-type", "application/json")])
    async with ReplayUpstream(dirty, odd) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        await proxy.ask()
        await proxy.ask()
        found = await proxy.metrics()

    assert found['sluice_heartbeats_total{upstream="main"}'] == 4
    assert found["sluice_replaced_chars_total"] == 1
    assert found["sluice_held_chars_total"] >= 1
    assert found['sluice_unmapped_errors_total{upstream="main"}'] == 1


async def test_time_to_first_token_and_added_delay_are_times(tmp_path: Path) -> None:
    """The vendor's thinking stands in the first, the proxy's own time in the second, finer than the loop's clock is."""
    play = play_events(ROLE, *map(say, SCRIPTS["hindi"]), STOP)
    slow = Play([(0.25, play.reads[0][1]), *play.reads[1:]])
    async with ReplayUpstream(slow) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        await proxy.ask()
        found = await proxy.metrics()

    assert 0.24 < found['sluice_time_to_first_token_seconds_sum{upstream="main"}'] < 1.0
    assert found["sluice_added_delay_seconds_count"] == 1
    delay_ms = found["sluice_added_delay_seconds_sum"] * 1000
    assert 0 < delay_ms < 200
    assert abs(delay_ms - round(delay_ms)) > 1e-6


async def test_open_streams_are_those_that_run(tmp_path: Path) -> None:
    """Up while they are open, and back to nothing."""
    async with HangingUpstream(HangPhase.FIRST_EVENT) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with proxy.open() as one, proxy.open() as other:
            await one.read_events(2)
            await other.read_events(2)
            assert (await proxy.metrics())["sluice_open_streams"] == 2
        await proxy.wait_metric("sluice_open_streams", 0)
