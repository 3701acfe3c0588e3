"""Downstream keep-alives: off by default, and what they are where they are switched on (contract W1, W6)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.answers import ROLE, STOP, answer, chunk, completion, encode, events, say, vendor_error
from tests.support.client import BodyEnd, Reply
from tests.support.proxy import chat, running_proxy
from tests.support.upstream import JSON, Play, ReplayUpstream

pytestmark = pytest.mark.clause("W1")

ALIVE = b": keep-alive\n"
ON = {"keepalive_s": 0.1}
SAID = events([ROLE, say("سلام")])
REST = events([STOP, b"[DONE]"])


def parts(reply: Reply) -> list[bytes]:
    """The body taken apart into keep-alives and whole events, and nothing else."""
    found = re.findall(rb": keep-alive\n|data: [^\n]+\n\n", reply.body)
    assert b"".join(found) == reply.body
    return found


def without(reply: Reply) -> Reply:
    """The same without keep-alives, for the properties that speak of events."""
    return Reply(
        reply.status, reply.headers, [], [type(reply.reads[0])(0.0, reply.body.replace(ALIVE, b""))], reply.end
    )


async def test_they_are_off_by_default(tmp_path: Path) -> None:
    """Nothing is written into a silence."""
    play = Play([(0.3, SAID), (0.3, REST)])
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask()

    assert reply.is_done
    assert ALIVE not in reply.body


async def test_they_come_while_the_upstream_is_silent(tmp_path: Path) -> None:
    """Before the first text and in the middle, between whole events only; the events are the same as without."""
    play = Play([(0.35, SAID), (0.35, REST)])
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, **ON) as proxy:
        reply = await proxy.ask()
        row = await proxy.row()

    kinds = "".join("k" if part == ALIVE else "e" for part in parts(reply))
    assert re.fullmatch(r"k{1,3}e{2,3}k{1,3}e{2,3}", kinds)
    assert (reply.status, reply.end) == (200, BodyEnd.WHOLE)
    assert without(reply).is_done
    assert without(reply).text == "سلام"
    assert reply.reads[0].t < 0.3
    assert (row["ending"], row["bytes_out"]) == ("completed", len(reply.body))


async def test_they_do_not_come_while_text_comes(tmp_path: Path) -> None:
    """A stream that speaks more often than `keepalive_s` has none in between."""
    async with (
        ReplayUpstream(answer(*["خوب "] * 12, delay=0.05)) as upstream,
        running_proxy(tmp_path, upstream.base_url, keepalive_s=0.3) as proxy,
    ):
        reply = await proxy.ask()

    assert reply.is_done
    assert ALIVE not in reply.body


async def test_they_come_before_the_upstreams_head(tmp_path: Path) -> None:
    """A vendor that thinks before it sends even its head is silent too."""
    play = Play([(0.0, SAID + REST)], head_delay=2.0)
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, **ON) as proxy:
        reply = await proxy.ask()

    assert parts(reply)[0] == ALIVE
    assert reply.reads[0].t < 1.5
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert without(reply).is_done


async def test_they_never_stand_inside_an_event(tmp_path: Path) -> None:
    """The upstream pauses inside an event, inside a letter even: ours are whole all the same."""
    letter = SAID.index("م".encode()) + 1
    play = Play([(0.0, SAID[:letter]), (0.3, SAID[letter:]), (0.0, REST[:20]), (0.3, REST[20:])])
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, **ON) as proxy:
        reply = await proxy.ask()

    assert ALIVE in parts(reply)
    assert without(reply).text == "سلام"
    assert without(reply).is_done


FAILURES = {
    "a status": (vendor_error(500, "server_error", "Something broke."), {}, "server_error"),
    "an event": (Play([(0.0, events([b'{"error":{"message":"x","code":"server_error"}}']))]), {}, "server_error"),
    "a reset": (Play([(0.0, b": x\n\n"), (0.3, b"")], end="reset"), {}, "stream_cut"),
    "no head": (Play(head_delay=9), {"first_byte": 0.4}, "first_byte_timeout"),
    "no progress": (Play([(0.0, events([chunk({})]))], end="hang"), {"first_byte": 0.4}, "first_byte_timeout"),
}


@pytest.mark.clause("W6")
@pytest.mark.parametrize("case", FAILURES)
async def test_after_one_a_failure_is_an_event(tmp_path: Path, case: str) -> None:
    """The head has gone out with the keep-alive: what would have been a status is an error event, without `[DONE]`."""
    play, deadlines, code = FAILURES[case]
    late = Play(play.reads, play.status, play.headers, play.end, head_delay=play.head_delay or 0.35)
    async with (
        ReplayUpstream(late) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream={"deadlines": deadlines}, **ON) as proxy,
    ):
        reply = await proxy.ask()
        row = await proxy.row()

    assert (reply.status, reply.end) == (200, BodyEnd.WHOLE)
    assert parts(reply)[0] == ALIVE
    events_told = without(reply).events
    assert [event["error"]["code"] for event in events_told] == [code]  # type: ignore[index]  # JSON
    assert b"[DONE]" not in reply.body
    assert (row["error_code"], row["events_out"]) == (code, 1)


async def test_a_plain_answer_has_none(tmp_path: Path) -> None:
    """One JSON body cannot hold comments."""
    play = Play([(0.3, encode(completion("안녕")))], headers=JSON)
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, **ON) as proxy:
        reply = await proxy.ask(chat(stream=False))

    assert reply.text == "안녕"
