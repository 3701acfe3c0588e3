"""Every deadline over real sockets: its own code, its own ending, at its time (contract C4, W6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers import ROLE, SCRIPTS, STOP, answer, chunk, completion, encode, events, say
from tests.support.client import BodyEnd
from tests.support.proxy import chat, running_proxy
from tests.support.upstream import (
    JSON,
    HangingUpstream,
    HangPhase,
    Play,
    ReplayUpstream,
    UnreachableUpstream,
    find_refusing_port,
)

pytestmark = pytest.mark.clause("C4", "W6")

#: The timer looks ten times a second; the rest is the machine's.
LATE_S = 0.45
BEAT = b": still here\n\n" + events([chunk({}), chunk({"content": ""})])
BEATS = [(0.05, BEAT)] * 60


def limits(**deadlines: float) -> dict[str, object]:
    return {"deadlines": {"connect": 5, "first_byte": 5, "stall": 5, "idle": 5, "total": 9, **deadlines}}


BEFORE = {
    "no head": (Play(head_delay=9), {"first_byte": 0.3}, "first_byte_timeout", None),
    "no head, total": (Play(head_delay=9), {"total": 0.3}, "total_timeout", None),
    "a head and silence": (Play(end="hang"), {"first_byte": 0.3}, "first_byte_timeout", 200),
    "a head and heartbeats": (Play(BEATS), {"first_byte": 0.3}, "first_byte_timeout", 200),
    "silence, and idle is shorter": (Play(end="hang"), {"idle": 0.3}, "idle_timeout", 200),
    "heartbeats, total": (Play(BEATS), {"total": 0.3}, "total_timeout", 200),
}


@pytest.mark.parametrize("case", BEFORE)
async def test_before_the_commit_point_a_deadline_is_a_504(tmp_path: Path, case: str) -> None:
    """Which deadline it was stands in the code; a heartbeat is a byte but no progress; the upstream is let go."""
    play, deadlines, code, status = BEFORE[case]
    async with ReplayUpstream(play) as upstream:
        async with running_proxy(tmp_path, upstream.base_url, upstream=limits(**deadlines)) as proxy:
            reply = await proxy.ask()
            row = await proxy.row()
        hit = await upstream.hits[0].wait_over()

    assert (reply.status, reply.end) == (504, BodyEnd.WHOLE)
    error = reply.json["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["code"], error["retryable"]) == ("upstream_timeout", code, True)
    assert (error["upstream"]["status"], row["upstream_status"]) == (status, status)
    assert (row["ending"], row["error_class"], row["error_code"]) == ("timeout", "upstream_timeout", code)
    assert row["ttft_ms"] is None
    assert 0.28 <= reply.reads[0].t <= 0.3 + LATE_S
    assert hit.finished_at is None


SAID = [(0.0, events([ROLE, say("سلام ")]))]
AFTER = {
    "silence": (Play(SAID, end="hang"), {"idle": 0.3}, "idle_timeout"),
    "silence, and stall is shorter": (Play(SAID, end="hang"), {"stall": 0.3}, "stall_timeout"),
    "heartbeats": (Play(SAID + BEATS), {"stall": 0.3, "idle": 0.2}, "stall_timeout"),
    "text for ever": (Play(SAID + [(0.05, events([say("خوب ")]))] * 60), {"total": 0.3}, "total_timeout"),
}


@pytest.mark.parametrize("case", AFTER)
async def test_after_the_commit_point_a_deadline_is_an_event(tmp_path: Path, case: str) -> None:
    """The text that came stands, the error event names the deadline, the body ends properly without `[DONE]`."""
    play, deadlines, code = AFTER[case]
    async with ReplayUpstream(play) as upstream:
        async with running_proxy(tmp_path, upstream.base_url, upstream=limits(**deadlines)) as proxy:
            reply = await proxy.ask()
            row = await proxy.row()
        hit = await upstream.hits[0].wait_over()

    assert (reply.status, reply.end) == (200, BodyEnd.WHOLE)
    assert reply.text.startswith("سلام ")
    error = reply.events[-1]["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["code"]) == ("upstream_timeout", code)
    assert b"[DONE]" not in reply.body
    assert (row["ending"], row["error_code"]) == ("timeout", code)
    assert 0.28 <= reply.reads[-1].t <= 0.3 + LATE_S
    assert hit.finished_at is None


async def test_a_connect_that_nobody_answers(tmp_path: Path) -> None:
    """`connect` passed: 504, and no status of the upstream, because none came."""
    with UnreachableUpstream() as upstream:
        async with running_proxy(tmp_path, upstream.base_url, upstream=limits(connect=0.3)) as proxy:
            replies = [await proxy.ask(chat(stream=stream)) for stream in (True, False)]
            rows = await proxy.rows(2)

    for reply, row in zip(replies, rows, strict=True):
        error = reply.json["error"]
        assert isinstance(error, dict)
        assert (reply.status, error["code"], error["upstream"]["status"]) == (504, "connect_timeout", None)
        assert (row["ending"], row["error_code"], row["upstream_status"]) == ("timeout", "connect_timeout", None)
        assert 0.28 <= reply.reads[0].t <= 0.3 + LATE_S


async def test_a_connect_that_is_refused(tmp_path: Path) -> None:
    """Nobody listens: no timeout, but a model that is not there, at once."""
    async with running_proxy(tmp_path, f"http://127.0.0.1:{find_refusing_port()}/v1") as proxy:
        reply = await proxy.ask()
        row = await proxy.row()

    error = reply.json["error"]
    assert isinstance(error, dict)
    assert (reply.status, error["type"], error["code"]) == (503, "model_unavailable", "connect_failed")
    assert (row["ending"], row["error_class"]) == ("vendor_error", "model_unavailable")


async def test_a_finished_answer_needs_no_end(tmp_path: Path) -> None:
    """After the finish `after_finish_s` is the one deadline; heartbeats do not prolong it; the answer is complete."""
    play = Play([(0.0, events([ROLE, say("你好"), STOP])), *BEATS], end="hang")
    tight = limits(stall=0.1, idle=0.1) | {"after_finish_s": 0.3}
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=tight) as proxy,
    ):
        reply = await proxy.ask()
        row = await proxy.row()

    assert reply.is_done
    assert row["ending"] == "completed"
    assert 0.28 <= reply.reads[-1].t <= 0.3 + LATE_S


@pytest.mark.parametrize("gap", ["before the text", "inside the text"])
async def test_zero_switches_a_deadline_off(tmp_path: Path, gap: str) -> None:
    """With everything at 0 silence is waited for, however long."""
    said = events([ROLE, say("안녕")])
    play = Play([(0.5 if gap == "before the text" else 0.0, said), (0.5, events([STOP]))])
    off = {"deadlines": dict.fromkeys(("connect", "first_byte", "stall", "idle", "total"), 0)}
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, upstream=off) as proxy:
        assert (await proxy.ask()).is_done


BODY = encode(completion("".join(SCRIPTS["hindi"])))


async def test_a_plain_answer_may_take_its_time(tmp_path: Path) -> None:
    """Without a stream `first_byte` runs to the head, and neither idle nor stall applies to the body."""
    play = Play([(0.4, BODY[:100]), (0.4, BODY[100:])], headers=JSON)
    tight = limits(first_byte=0.3, stall=0.2, idle=0.2)
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, upstream=tight) as proxy:
        reply = await proxy.ask(chat("नमस्ते", stream=False))

    assert (reply.status, reply.text) == (200, "".join(SCRIPTS["hindi"]))


@pytest.mark.parametrize(
    ("play", "deadlines", "code"),
    [
        (Play(head_delay=9), {"first_byte": 0.3}, "first_byte_timeout"),
        (Play(head_delay=9), {"total": 0.3}, "total_timeout"),
        (Play([(0.0, BODY[:100])], headers=JSON, end="hang"), {"total": 0.3}, "total_timeout"),
    ],
)
async def test_a_plain_answer_has_deadlines_too(
    tmp_path: Path, play: Play, deadlines: dict[str, float], code: str
) -> None:
    """To its head, and over all."""
    async with ReplayUpstream(play) as upstream:
        async with running_proxy(tmp_path, upstream.base_url, upstream=limits(**deadlines)) as proxy:
            reply = await proxy.ask(chat("नमस्ते", stream=False))
            row = await proxy.row()
        assert (await upstream.hits[0].wait_over()).finished_at is None

    assert (reply.status, reply.json["error"]["code"]) == (504, code)  # type: ignore[index]  # JSON
    assert row["ending"] == "timeout"
    assert 0.28 <= reply.reads[0].t <= 0.3 + LATE_S


async def test_a_stream_within_its_deadlines_is_left_alone(tmp_path: Path) -> None:
    """Longer than stall and idle as a whole, shorter between its pieces."""
    play = answer(*SCRIPTS["korean"], *SCRIPTS["korean"], delay=0.08)
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=limits(stall=0.5, idle=0.4)) as proxy,
    ):
        reply = await proxy.ask()

    assert reply.is_done
    assert reply.text == "".join(SCRIPTS["korean"]) * 2
    assert reply.reads[-1].t > 0.8


@pytest.mark.parametrize("phase", [HangPhase.FIRST_EVENT, HangPhase.MID_EVENT])
async def test_deadlines_of_one_stream_are_its_own(tmp_path: Path, phase: HangPhase) -> None:
    """One upstream hangs, inside a character or between events, and the other's stream goes on."""
    slow = answer(*SCRIPTS["chinese"], delay=0.1)
    async with HangingUpstream(phase) as hanging, ReplayUpstream(slow) as other:
        urls = {"hanging": hanging.base_url, "other": other.base_url}
        async with (
            running_proxy(tmp_path, urls, upstream=limits(idle=0.3)) as proxy,
            proxy.open(chat(model="hanging")) as stuck,
        ):
            assert (await proxy.ask(chat(model="other"))).is_done
            reply = await stuck.read_to_end()

    assert reply.text == "سلام"
    assert reply.events[-1]["error"]["code"] == "idle_timeout"  # type: ignore[index]  # JSON
