"""The simulator on loopback: exact reads, timings and ends, and what it notices of its peer. On both event loops."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path

import aiohttp
import pytest
import uvloop

from proxy.errors import ConfigError
from proxy.stores.recordings import Read, Recording
from proxy.stores.simulator import Simulator
from tests.support.client import BodyEnd, Reply, fetch, open_stream
from tests.support.upstream import (
    HangingUpstream,
    HangPhase,
    Play,
    ReplayUpstream,
    UnreachableUpstream,
    find_refusing_port,
    play_events,
)

#: The loop's clock steps by a millisecond, and the request is on its way for some of it.
CLOCK_S = 0.003
SALAM = "data: سلام\n\n".encode()


#: Sockets behave differently under the two loops, so what rests on them runs under both.
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
on_both_loops = pytest.mark.parametrize("loop", LOOPS)


def run_on(loop: str, scenario: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(scenario)


def make(name: str, *reads: Read, vendor: str = "openai", content_type: str = "text/event-stream") -> Recording:
    return Recording(
        path=Path(f"{name}.jsonl"),
        vendor=vendor,
        name=name,
        obtained="composed",
        odd="something",
        request={"method": "POST", "path": "/v1/chat/completions"},
        status=200,
        headers=(("content-type", content_type),),
        end="close",
        reads=reads or (Read(0.0, f"data: {vendor}/{name}\n\n".encode()),),
    )


async def ask(recordings: Sequence[Recording], body: dict[str, object], **more: object) -> Reply:
    simulator = Simulator(recordings, speed=0)
    port = await simulator.start()
    try:
        return await fetch(port, body, **more)  # type: ignore[arg-type]  # passed on as given
    finally:
        await simulator.stop()


@pytest.mark.clause("C2")
async def test_each_read_is_one_http_chunk_with_its_bytes() -> None:
    """Cuts inside letters, inside CRLF and empty reads come out where they were recorded, marked as simulated."""
    pieces = [SALAM[:7], SALAM[7:9], SALAM[9:-1], b"\n", b"", b": \r", b"\n"]

    reply = await ask([make("salam", *(Read(0.0, piece) for piece in pieces))], {"model": "salam", "stream": True})

    assert [arrival.data for arrival in reply.arrivals] == [piece for piece in pieces if piece]
    assert reply.end is BodyEnd.WHOLE
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.headers["x-sluice-simulated"] == "true"
    assert reply.headers["x-sluice-recording"] == "openai/salam"


@pytest.mark.clause("C2")
@pytest.mark.parametrize(("speed", "wanted_s"), [(0, 0.0), (1, 0.2), (4, 0.05)])
async def test_reads_come_when_they_were_recorded(speed: float, wanted_s: float) -> None:
    """Speed 1 keeps the recorded moments, 4 is four times as fast, 0 does not wait."""
    simulator = Simulator([make("slow", Read(0.0, b"a"), Read(0.1, b"b"), Read(0.2, b"c"))], speed=speed)
    port = await simulator.start()
    reply = await fetch(port, {"model": "slow", "stream": True})
    await simulator.stop()

    took = [arrival.t for arrival in reply.arrivals]
    assert [arrival.data for arrival in reply.arrivals] == [b"a", b"b", b"c"]
    assert took[2] >= wanted_s - CLOCK_S
    assert took[1] >= wanted_s / 2 - CLOCK_S
    assert took[2] < wanted_s + 0.15


@pytest.mark.clause("C2")
@pytest.mark.parametrize(
    ("body", "headers", "played"),
    [
        ({"model": "groq/dup", "stream": True}, {}, b"groq/dup"),
        ({"model": "dup", "stream": True}, {}, b"openai/dup"),
        ({"model": "gpt-4o", "stream": True}, {}, b"openai/demo-many-scripts"),
        ({"model": "dup", "stream": True}, {"x-sluice-recording": "groq/dup"}, b"groq/dup"),
        ({"model": "gpt-4o"}, {}, b"openai/demo-many-scripts-json"),
        ({"model": "groq/dup", "stream": False}, {}, b"groq/dup"),
        ({"model": 5}, {}, b"openai/demo-many-scripts-json"),
    ],
)
async def test_the_model_or_a_header_picks_the_recording(
    body: dict[str, object], headers: dict[str, str], played: bytes
) -> None:
    """By full name, by short name (the first one given wins), by header; else the demo; plain answers by a sibling."""
    recordings = [
        make("dup"),
        make("dup", vendor="groq"),
        make("demo-many-scripts"),
        make("demo-many-scripts-json", content_type="application/json"),
    ]

    reply = await ask(recordings, body, headers=headers)

    assert reply.body == b"data: " + played + b"\n\n"


async def test_models_are_listed_and_other_paths_refused() -> None:
    """Each recording is a model that says what is odd; anything else is a 404 in OpenAI's form; nothing loaded too."""
    models = await ask([make("a"), make("b", vendor="groq")], {}, method="GET", path="/v1/models")
    elsewhere = await ask([make("a")], {}, path="/v1/images/generations")
    nothing = await ask([], {"model": "a"})

    assert [(each["id"], each["odd"]) for each in models.json["data"]] == [  # type: ignore[attr-defined]  # JSON
        ("openai/a", "something"),
        ("groq/b", "something"),
    ]
    assert (elsewhere.status, nothing.status) == (404, 404)
    assert elsewhere.json["error"]["code"] == "not_simulated"  # type: ignore[index]  # JSON


@pytest.mark.clause("C2")
@pytest.mark.parametrize(
    ("path", "body", "headers", "played"),
    [
        ("/v1/messages", {"model": "anthropic/a", "stream": True}, {}, "anthropic/a"),
        ("/v1beta/models/gemini%2Fa:streamGenerateContent?alt=sse", {"contents": []}, {}, "gemini/a"),
        ("/v1beta/models/gemini%2Fa:generateContent", {"contents": []}, {}, "gemini/a-json"),
        ("/model/gemini%2Fa/converse-stream", {"messages": []}, {}, "gemini/a"),
        ("/api/chat", {"model": "gemini/a", "stream": False}, {}, "gemini/a-json"),
        ("/services/aigc/text-generation/generation", {"model": "gemini/a"}, {"x-dashscope-sse": "enable"}, "gemini/a"),
        ("/", {"Model": "gemini/a", "Stream": True}, {}, "gemini/a"),
    ],
)
async def test_every_familys_path_is_played(
    path: str, body: dict[str, object], headers: dict[str, str], played: str
) -> None:
    """The model stands in the body or in the path, and so does the wish for a stream."""
    made = [make("a", vendor="anthropic"), make("a", vendor="gemini"), make("a-json", vendor="gemini")]
    reply = await ask(made, body, path=path, headers=headers)
    assert reply.headers.get("x-sluice-recording") == played


def test_two_recordings_of_one_name_are_refused() -> None:
    """Otherwise a request would silently get the other one."""
    with pytest.raises(ConfigError, match="openai/a"):
        Simulator([make("a"), make("a")])


@pytest.mark.parametrize(("end", "seen"), [("close", BodyEnd.WHOLE), ("abort", BodyEnd.CUT), ("reset", BodyEnd.RESET)])
@on_both_loops
def test_ends_are_played(end: str, seen: BodyEnd, loop: str) -> None:
    """A proper end, a FIN without one, a RST: all bytes arrive before each, and the upstream knows it ended."""
    run_on(loop, see_end(end, seen))


async def see_end(end: str, seen: BodyEnd) -> None:
    async with ReplayUpstream(Play([(0.0, SALAM), (0.0, SALAM[:8])], end=end)) as upstream:  # type: ignore[arg-type]
        reply = await fetch(upstream.port, {"stream": True})
        hit = await upstream.hits[0].wait_over()

    assert reply.end is seen
    assert reply.body == SALAM + SALAM[:8]
    assert (hit.sent, hit.finished_at is not None, hit.gone_at) == (2, True, None)


@on_both_loops
def test_a_reset_comes_after_everything_sent_before_it(loop: str) -> None:
    """Also when that is more than the kernel's buffers hold and the reader is slow to take it."""
    run_on(loop, read_a_megabyte_before_a_reset())


async def read_a_megabyte_before_a_reset() -> None:
    big = bytes(1_000_000)
    async with ReplayUpstream(Play([(0.0, big)], end="reset")) as upstream:
        reply = await fetch(upstream.port, {}, read_bytes=50_000, pause_s=0.001)

    assert (len(reply.body), reply.end) == (len(big), BodyEnd.RESET)


@pytest.mark.clause("W8")
@on_both_loops
def test_the_moment_the_peer_leaves_is_seen_while_playing_and_while_hanging(loop: str) -> None:
    """Tests of hang-ups rest on this clock: within a few milliseconds, wherever the upstream stands."""
    run_on(loop, leave_twice())


async def leave_twice() -> None:
    playing = Play([(0.0, SALAM), (5.0, SALAM)])
    hanging = Play([(0.0, SALAM)], end="hang")
    async with ReplayUpstream(playing, hanging) as upstream:
        for _ in range(2):
            async with open_stream(upstream.port, {"stream": True}) as stream:
                reply = await stream.read_events(1)
                left_at = stream.leave()
            hit = await upstream.hits[-1].wait_over()
            assert reply.end is BodyEnd.LEFT
            assert (hit.sent, hit.finished_at) == (1, None)
            assert hit.gone_at is not None
            assert -0.005 < hit.gone_at - left_at < 0.05
        assert upstream.open_connections == 0


@pytest.mark.clause("W7")
@on_both_loops
def test_a_reader_that_stops_reading_stops_the_upstream(loop: str) -> None:
    """`sent` is what really left: with a small window it stays far behind until the reader goes on."""
    run_on(loop, stop_reading_for_a_while())


async def stop_reading_for_a_while() -> None:
    piece = bytes(10_000)
    async with (
        ReplayUpstream(Play([(0.0, piece)] * 1000)) as upstream,
        open_stream(upstream.port, {}, receive_buffer=4096) as stream,
    ):
        await stream.read_head()
        await asyncio.sleep(0.1)
        sent_while_blocked = upstream.hits[0].sent
        await asyncio.sleep(0.1)
        assert upstream.hits[0].sent == sent_while_blocked < 900
        reply = await stream.read_to_end()

    assert reply.end is BodyEnd.WHOLE
    assert len(reply.body) == 10_000_000


async def test_an_http_client_reuses_the_connection_and_sees_the_ends() -> None:
    """aiohttp, the proxy's own client, gets whole bodies on one connection and the right exception at each bad end."""
    plays = [
        play_events('{"a":1}'),
        play_events('{"a":2}'),
        Play([(0, SALAM)], end="abort"),
        Play([(0, SALAM)], end="reset"),
    ]
    async with ReplayUpstream(*plays) as upstream, aiohttp.ClientSession() as session:
        for n in (1, 2):
            async with session.post(f"{upstream.base_url}/chat/completions", json={"n": n, "متن": "سلام"}) as response:
                assert await response.read() == b'data: {"a":%d}\n\ndata: [DONE]\n\n' % n
        assert upstream.open_connections == 1
        for failure in (aiohttp.ClientPayloadError, aiohttp.ClientError):
            async with session.post(f"{upstream.base_url}/chat/completions", data=b"x") as response:
                with pytest.raises(failure):
                    await response.read()

    assert [json.loads(hit.body)["متن"] for hit in upstream.hits[:2]] == ["سلام", "سلام"]
    assert len(upstream.hits) == 4


@pytest.mark.parametrize(
    ("phase", "status", "body"),
    [
        (HangPhase.HEAD, 0, b""),
        (HangPhase.BODY, 200, b""),
        (HangPhase.FIRST_EVENT, 200, b"data: {"),
        (HangPhase.MID_EVENT, 200, b"data: {"),
    ],
)
async def test_upstreams_hang_where_they_are_told(phase: HangPhase, status: int, body: bytes) -> None:
    """Nothing comes after the named phase, and the leaving peer is still noticed."""
    async with HangingUpstream(phase) as upstream:
        async with open_stream(upstream.port, {"stream": True}) as stream:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await stream.read_to_end()
        hit = await upstream.hits[0].wait_over()

    assert stream.reply.status == status
    assert stream.reply.body.startswith(body)
    assert (len(stream.reply.data_lines), hit.finished_at) == (1 if body else 0, None)
    assert hit.gone_at is not None
    if phase is HangPhase.MID_EVENT:
        with pytest.raises(UnicodeDecodeError):
            stream.reply.body.decode()


async def test_an_unreachable_port_hangs_and_a_refusing_one_refuses() -> None:
    """The two ways in which a connect goes wrong."""
    with UnreachableUpstream() as upstream, pytest.raises(TimeoutError):
        await fetch(upstream.port, {}, timeout_s=0.2)
    with pytest.raises(ConnectionRefusedError):
        await fetch(find_refusing_port(), {})


async def test_a_head_can_be_late_and_the_last_play_repeats() -> None:
    """`head_delay` comes before the status line; every later request gets the last play again."""
    async with ReplayUpstream(Play([(0.0, SALAM)], status=529, head_delay=0.1)) as upstream:
        began = time.monotonic()
        first, second = [await fetch(upstream.port, {}) for _ in range(2)]

    assert time.monotonic() - began >= 0.2
    assert (first.status, second.status, second.body) == (529, 529, SALAM)


async def test_what_is_not_http_is_dropped_without_a_word() -> None:
    """A peer that speaks something else gets its connection closed, and the next one is served."""
    async with ReplayUpstream(play_events("{}")) as upstream:
        for headers in ({"content-length": "many"}, {"content-length": "-1"}, {"x": "y" * 70_000}):
            reply = await fetch(upstream.port, {}, headers=headers)
            assert (reply.status, reply.end in (BodyEnd.CUT, BodyEnd.RESET)) == (0, True)
        assert (await fetch(upstream.port, {})).status == 200


async def test_a_request_body_may_come_in_chunks() -> None:
    """Clients that stream their body are understood: the hit has it whole, and the connection goes on."""

    async def pieces() -> AsyncIterator[bytes]:
        for piece in ('{"model":"س'.encode()[:-1], 'س"}'.encode()[1:]):
            yield piece

    async with ReplayUpstream(play_events("{}")) as upstream, aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.post(f"{upstream.base_url}/chat/completions", data=pieces()) as response:
                assert response.status == 200
                await response.read()
        assert upstream.open_connections == 1

    assert [json.loads(hit.body) for hit in upstream.hits] == [{"model": "س"}] * 2


async def test_the_oldest_hits_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator that runs for days does not grow."""
    monkeypatch.setattr("proxy.stores.simulator._MAX_HITS", 2)
    async with ReplayUpstream(play_events("{}")) as upstream:
        for number in range(4):
            await fetch(upstream.port, {"n": number})

    assert [json.loads(hit.body)["n"] for hit in upstream.hits] == [2, 3]
