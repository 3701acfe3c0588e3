"""The Python client before a server that plays scripts: answers, refusals, cuts, hang-ups, over real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proxy.toon.client import Misplaced, ToonClient, ToonError, ask
from proxy.toon.text import load_vocabulary
from tests.support.scripts import byte_level
from tests.support.toon_events import TEXT, TEXT_IDS, TRACE, event, events, played, request, sse, text_portions
from tests.support.upstream import JSON, SSE, Play, ReplayUpstream, find_refusing_port
from tests.unit.toon.test_placing import parsed

ASKED = request()
TOLD = events(ASKED, text_portions())
VOCABULARY = load_vocabulary(byte_level())
WHOLE = event(ASKED, TEXT_IDS, 0, finish_reason="stop", stop_id=2, usage={"prompt_ids": 4}, x_prompt_ids=4)


def plain(body: object, status: int = 200, **headers: str) -> Play:
    return Play([(0.0, json.dumps(body).encode())], status=status, headers=[*JSON, *headers.items()])


@asynccontextmanager
async def asking(*plays: Play, **how: Any) -> AsyncIterator[tuple[ToonClient, ReplayUpstream]]:
    async with ReplayUpstream(*plays) as upstream, ToonClient(upstream.base_url, "key-1", **how) as client:
        yield client, upstream


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
async def test_a_stream_is_ids_in_place_and_text(size: int) -> None:
    """However its bytes come; the request is TOON, with the caller's key."""
    playing = asking(played(sse(TOLD), size), tokenizer=VOCABULARY)
    async with playing as (client, upstream), client.stream(ASKED) as stream:
        chunks = [chunk async for chunk in stream]
    assert [one for chunk in chunks for one in chunk.ids] == list(TEXT_IDS)
    assert "".join(chunk.text or "" for chunk in chunks) == TEXT
    assert not stream.misplaced
    (hit,) = upstream.hits
    assert (hit.method, hit.path) == ("POST", "/v1/completions/toon")
    assert (hit.headers["content-type"], hit.headers["accept"]) == ("application/toon+json", "text/event-stream")
    assert hit.headers["authorization"] == "Bearer key-1"
    assert json.loads(hit.body) == {**ASKED, "stream": True}


async def test_a_whole_answer_and_a_tokenizers_folder(tmp_path: Path) -> None:
    """The tokenizer is read off the event loop, once; a base URL may lack its `/v1`."""
    await asyncio.to_thread((tmp_path / "tokenizer.json").write_text, byte_level().to_str(), encoding="utf-8")
    async with asking(plain(WHOLE), tokenizer=tmp_path) as (client, upstream):
        answer = await client.complete(ASKED)
        assert (answer.text, answer.offset) == (TEXT, 112)
        async with ToonClient(upstream.base_url.removesuffix("/v1")) as keyless:
            assert (await keyless.complete(ASKED)).text is None
    assert "authorization" not in upstream.hits[1].headers
    assert json.loads(upstream.hits[1].body)["stream"] is False


@dataclass
class Mine:
    tids: dict[str, object]
    mask: dict[str, object]
    pos: dict[str, object]
    meta: dict[str, object] | None = None
    seed: int | None = None


async def test_requests_come_in_any_form() -> None:
    """A dataclass without its Nones, and the server's own type with the fields that are for others."""
    mine = Mine(ASKED["tids"], ASKED["mask"], ASKED["pos"], ASKED["meta"])
    theirs = parsed({**ASKED, "x_mine": {"a": 1}, "seed": 4})
    async with asking(plain(WHOLE)) as (client, upstream):
        await client.complete(mine)
        await client.complete(theirs)
        with pytest.raises(TypeError, match="not list"):
            await client.complete([1, 2])
    first, second = (json.loads(hit.body) for hit in upstream.hits)
    assert first == {**ASKED, "stream": False}
    assert (second["x_mine"], second["seed"]) == ({"a": 1}, 4)
    assert parsed(second) == msgspec.structs.replace(theirs, stream=False)


async def test_a_wrong_request_is_refused_before_it_is_sent() -> None:
    """In the server's words, with the pointer."""
    async with asking(plain(WHOLE)) as (client, upstream):
        with pytest.raises(ToonError) as told:
            await client.complete(request(tids={"v": "2.1", "ids": [1, True]}))
        assert (told.value.status, told.value.code, told.value.param) == (400, "invalid_type", "/tids/ids/1")
        with pytest.raises(ToonError):
            client.stream(request(max_tokens=0))
    assert not upstream.hits


async def test_events_out_of_place_are_dropped_and_told() -> None:
    """A duplicate spoils nothing."""
    told: list[Misplaced] = []
    stream_of = sse([TOLD[0], TOLD[1], TOLD[0], *TOLD[2:]])
    playing = asking(played(stream_of, 64), tokenizer=VOCABULARY, on_misplaced=told.append)
    async with playing as (client, _), client.stream(ASKED) as stream:
        text = "".join([chunk.text or "" async for chunk in stream])
    assert text == TEXT
    assert [one.reason for one in told] == ["behind"]
    assert list(stream.misplaced) == told


@pytest.mark.parametrize("spoiled", ["gap", "swap"])
async def test_a_hole_is_raised_once_all_before_it_was_handed_out(spoiled: str) -> None:
    """With all bytes in one read, and the error as the last thing that comes."""
    told = [*TOLD[:2], *TOLD[3:]] if spoiled == "gap" else [*TOLD[:2], TOLD[3], TOLD[2], *TOLD[4:]]
    ids: list[int] = []
    async with asking(played(sse(told))) as (client, _), client.stream(ASKED) as stream:
        with pytest.raises(ToonError, match="answer_incomplete") as error:
            async for chunk in stream:
                ids += chunk.ids
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
    assert error.value.retryable
    assert ids == list(TEXT_IDS[: 6 if spoiled == "gap" else 9])


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_cut_stream_raises(end: Any) -> None:
    """After what came."""
    ids: list[int] = []
    plays = Play([(0.0, sse(TOLD[:3], done=False)), (0.05, b"data: {")], end=end)
    async with asking(plays) as (client, _), client.stream(ASKED) as stream:
        with pytest.raises(ToonError, match="stream_cut"):
            async for chunk in stream:
                ids += chunk.ids
    assert ids == list(TEXT_IDS[:9])


async def test_refusals_say_what_the_server_said() -> None:
    """Before an answer and inside it; and what is no answer is none."""
    error = {"code": "overloaded", "message": "Busy.", "param": None, "retryable": True, "retry_after": 3}
    refused = plain({"error": error | {"trace_id": TRACE}}, 503)
    inside = played(sse([TOLD[0], {"error": error}], done=False))
    page = Play([(0.0, b"<html>moved</html>")], headers=[("content-type", "text/html")])
    moved = Play(status=307, headers=[("location", "http://127.0.0.1:9/")])
    async with asking(refused, refused, inside, page, moved) as (client, upstream):
        with pytest.raises(ToonError) as first:
            await client.complete(ASKED)
        assert (first.value.status, first.value.code, first.value.retry_after) == (503, "overloaded", 3)
        assert (first.value.retryable, first.value.trace_id) == (True, TRACE)
        for status, code in ((503, "overloaded"), (None, "overloaded"), (200, "unexpected_answer")):
            with pytest.raises(ToonError) as told:
                _ = [chunk async for chunk in client.stream(ASKED)]
            assert (told.value.status, told.value.code) == (status, code)
        with pytest.raises(ToonError, match="HTTP 307"):
            await client.complete(ASKED)
    assert len(upstream.hits) == 5, "nobody is asked again unasked"


async def test_nobody_there_and_an_answer_that_breaks() -> None:
    """Both may be asked again."""
    async with ToonClient(f"http://127.0.0.1:{find_refusing_port()}") as client:
        with pytest.raises(ToonError, match="connection_failed") as told:
            await client.complete(ASKED)
    assert told.value.retryable
    half = Play([(0.0, b'{"tids"')], headers=[*JSON, ("content-length", "500")], end="reset")
    async with asking(half) as (client, _):
        with pytest.raises(ToonError, match="stream_cut"):
            await client.complete(ASKED)


@pytest.mark.parametrize("way", ["left", "cancelled"])
async def test_leaving_hangs_up(way: str) -> None:
    """The server sees the connection close while it would go on for ever."""
    async with asking(Play([(0.0, sse(TOLD[:1], done=False))], headers=SSE, end="hang")) as (client, upstream):
        async with client.stream(ASKED) as stream:
            await anext(stream)
            if way == "cancelled":
                waiting = asyncio.create_task(stream.__anext__())
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
        async with asyncio.timeout(2):
            await upstream.hits[0].over.wait()
    assert upstream.hits[0].gone_at is not None


async def test_a_connection_serves_the_next_request() -> None:
    """An answer that was read to its end is no reason to connect again."""
    async with asking(played(sse(TOLD)), plain(WHOLE)) as (client, upstream):
        assert len([chunk async for chunk in client.stream(ASKED)]) == len(TOLD)
        await client.complete(ASKED)
        assert upstream.open_connections == 1


async def test_many_streams_of_one_client_do_not_mix() -> None:
    """Each has its own place and its own text."""

    async def one(client: ToonClient) -> str:
        return "".join([chunk.text or "" async for chunk in client.stream(ASKED)])

    async with asking(played(sse(TOLD), 50), tokenizer=VOCABULARY) as (client, _):
        assert await asyncio.gather(*(one(client) for _ in range(8))) == [TEXT] * 8


async def test_without_an_event_loop_one_call_is_enough() -> None:
    """`ask`, from a thread as from a script."""
    async with ReplayUpstream(plain(WHOLE)) as upstream:
        answer = await asyncio.to_thread(ask, upstream.base_url, ASKED, tokenizer=byte_level())
    assert answer.text == TEXT
