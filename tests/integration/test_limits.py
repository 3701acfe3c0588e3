"""Limits of request, line and answer, each at limit-1, limit and limit+1, and requests that name an upstream."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.answers import ROLE, STOP, answer, completion, encode, events, plain, say
from tests.support.client import BodyEnd, Reply
from tests.support.proxy import chat, running_proxy
from tests.support.upstream import Play, ReplayUpstream

LIMIT = 2000


def error_of(reply: Reply) -> dict[str, object]:
    error = (reply.events[-1] if reply.headers["content-type"].startswith("text/event-stream") else reply.json)["error"]
    assert isinstance(error, dict)
    return error


def sized(size: int) -> bytes:
    """A valid request of that many bytes."""
    frame = len(json.dumps(chat("")).encode())
    body = json.dumps(chat("x" * (size - frame))).encode()
    assert len(body) == size
    return body


@pytest.mark.clause("Q1")
async def test_a_request_of_the_limit_is_the_longest(tmp_path: Path) -> None:
    """One byte more is 413 with the error body, and the upstream hears nothing of it."""
    async with (
        ReplayUpstream(answer("سلام")) as upstream,
        running_proxy(tmp_path, upstream.base_url, limits={"request_bytes": LIMIT}) as proxy,
    ):
        below, at, above = [await proxy.ask(sized(size)) for size in (LIMIT - 1, LIMIT, LIMIT + 1)]

    assert (below.status, at.status, above.status) == (200, 200, 413)
    assert len(upstream.hits) == 2
    error = error_of(above)
    assert (error["type"], error["code"], error["upstream"]) == ("invalid_request", "request_too_large", None)
    assert above.headers["x-should-retry"] == "false"
    assert above.headers["x-trace-id"] == error["trace_id"]


@pytest.mark.clause("Q1")
async def test_a_request_is_refused_while_it_is_read(tmp_path: Path) -> None:
    """The 413 comes when the limit is passed, long before the announced gigabyte has come."""
    async with (
        ReplayUpstream(answer("سلام")) as upstream,
        running_proxy(tmp_path, upstream.base_url, limits={"request_bytes": LIMIT}) as proxy,
    ):
        reply = await proxy.ask(b'{"model": "' + b"x" * 70_000, headers={"content-length": str(1 << 30)})

    assert (reply.status, error_of(reply)["code"]) == (413, "request_too_large")
    assert upstream.hits == []


@pytest.mark.clause("Q1")
async def test_a_packed_request_is_measured_unpacked(tmp_path: Path) -> None:
    """A few kB that unpack to twenty MB are too large like any other twenty MB."""
    bomb = gzip.compress(b'{"model": "' + b"x" * (20 << 20))
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(bomb, headers={"content-encoding": "gzip"})
        packed = await proxy.ask(gzip.compress(sized(900)), headers={"content-encoding": "gzip"})
        garbled = await proxy.ask(sized(900), headers={"content-encoding": "gzip"})

    assert (reply.status, error_of(reply)["code"]) == (413, "request_too_large")
    assert packed.is_done
    assert (garbled.status, error_of(garbled)["code"]) == (400, "invalid_body")
    assert garbled.headers["x-should-retry"] == "false"


def line_of(size: int) -> bytes:
    """An event whose line, `data: ` included, has that many bytes."""
    frame = len(b"data: " + say(""))
    line = b"data: " + say("y" * (size - frame))
    assert len(line) == size
    return line + b"\n\n"


@pytest.mark.clause("W7")
@pytest.mark.parametrize("before", [b"", events([ROLE, say("سلام ")])], ids=["first", "later"])
async def test_a_line_of_the_limit_is_the_longest(tmp_path: Path, before: bytes) -> None:
    """However it is cut. One byte more ends the stream with `line_too_long`, and the upstream is let go."""
    cases = [(size, cut) for size in (LIMIT - 1, LIMIT, LIMIT + 1) for cut in (1 << 16, 700)]
    plays = []
    for size, cut in cases:
        said = before + line_of(size) + events([STOP, b"[DONE]"])
        reads = [(0.0, said[at : at + cut]) for at in range(0, len(said), cut)]
        plays.append(Play(reads, end="close" if size <= LIMIT else "hang"))
    async with (
        ReplayUpstream(*plays) as upstream,
        running_proxy(tmp_path, upstream.base_url, limits={"line_bytes": LIMIT}) as proxy,
    ):
        replies = [await proxy.ask() for _ in cases]
        rows = await proxy.rows(len(cases))
        for hit in upstream.hits:
            await hit.wait_over()

    for (size, _), reply, row in zip(cases, replies, rows, strict=True):
        assert reply.end is BodyEnd.WHOLE
        assert reply.is_done is (size <= LIMIT)
        if reply.is_done:
            assert row["ending"] == "completed"
            continue
        error = error_of(reply)
        assert (error["type"], error["code"]) == ("model_unavailable", "line_too_long")
        assert reply.status == (200 if before else 503)
        assert b"[DONE]" not in reply.body
        assert (row["ending"], row["error_code"]) == ("limit", "line_too_long")


@pytest.mark.clause("W7")
@pytest.mark.parametrize(("size", "fits"), [(LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False)])
async def test_an_answer_of_the_limit_is_the_longest(tmp_path: Path, size: int, fits: bool) -> None:
    """Counted in bytes of text over the whole stream; the text within the limit was delivered."""
    pieces = ["س" * 100] * (LIMIT // 200 - 1) + ["z" * (size - LIMIT + 200)]
    assert len("".join(pieces).encode()) == size
    async with (
        ReplayUpstream(answer(*pieces)) as upstream,
        running_proxy(tmp_path, upstream.base_url, limits={"answer_bytes": LIMIT}) as proxy,
    ):
        reply = await proxy.ask()
        row = await proxy.row()

    assert reply.is_done is fits
    if not fits:
        assert error_of(reply)["code"] == "answer_too_long"
        assert reply.text == "".join(pieces[:-1])
        assert (row["ending"], row["error_code"]) == ("limit", "answer_too_long")


@pytest.mark.clause("W7")
@pytest.mark.parametrize(("over", "fits"), [(-1, True), (0, True), (1, False)])
async def test_a_plain_answer_has_the_same_limit(tmp_path: Path, over: int, fits: bool) -> None:
    """There the body as a whole is measured, and going over is a status."""
    body = encode(completion("你好" * 200))
    async with (
        ReplayUpstream(plain(body)) as upstream,
        running_proxy(tmp_path, upstream.base_url, limits={"answer_bytes": len(body) - over}) as proxy,
    ):
        reply = await proxy.ask(chat(stream=False))
        row = await proxy.row()

    assert reply.status == (200 if fits else 503)
    assert row["ending"] == ("completed" if fits else "limit")
    assert fits or error_of(reply)["code"] == "answer_too_long"


@pytest.mark.clause("Q1")
async def test_a_request_cannot_name_an_upstream(tmp_path: Path) -> None:
    """Where other gateways would send their key to an address of the caller's, this is a 400 and no connection."""
    async with (
        ReplayUpstream(answer("!")) as elsewhere,
        ReplayUpstream(answer("سلام")) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
    ):
        url = elsewhere.base_url
        told = {name: await proxy.ask(chat() | {name: url}) for name in ("api_base", "Base_URL", "apiBase")}
        told["base_url"] = await proxy.ask(chat(extra_body={"base_url": url}))
        told |= {name: await proxy.ask(headers={name.upper(): url}) for name in ("x-api-base", "x-upstream-url")}
        assert await proxy.rows_now() == []
        assert elsewhere.hits == upstream.hits == []

    for name, reply in told.items():
        error = error_of(reply)
        assert (reply.status, error["type"], error["code"]) == (400, "invalid_request", "upstream_not_allowed")
        assert error["param"] == name


REFUSED = {
    "no JSON": (b'{"model": "gpt-4o", ', "invalid_json", None),
    "nothing": (b"", "invalid_json", None),
    "a list": (b'["gpt-4o"]', "invalid_json", None),
    "a string": ('"سلام"'.encode(), "invalid_json", None),
    "a deep hole": (b"[" * 200_000, "invalid_json", None),
    "no model": (encode({"messages": []}), "model_required", "model"),
    "a number for a model": (encode(chat() | {"model": 4}), "model_required", "model"),
    "words for stream": (encode(chat() | {"stream": "yes"}), "invalid_type", "stream"),
    "a list for stream_options": (encode(chat() | {"stream_options": []}), "invalid_type", "stream_options"),
}


@pytest.mark.clause("E")
async def test_what_makes_no_sense_is_the_callers_mistake(tmp_path: Path) -> None:
    """400, `invalid_request`, a stable code, the field's name where it is one; no row, no connection."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        told = {case: await proxy.ask(body) for case, (body, _, _) in REFUSED.items()}
        assert await proxy.rows_now() == []

    assert upstream.hits == []
    for case, (_, code, param) in REFUSED.items():
        error = error_of(told[case])
        assert (told[case].status, error["type"], error["code"]) == (400, "invalid_request", code), case
        assert (error["param"], error["retryable"], error["upstream"]) == (param, False, None), case


@pytest.mark.clause("Q1")
async def test_what_no_strict_parser_takes_is_passed_on_all_the_same(tmp_path: Path) -> None:
    """Half a surrogate pair, an integer beyond 64 bits, a byte that is no UTF-8: the vendor may refuse them, not we."""
    odd = b'{"model":"gpt-4o","stream":true,"seed":123456789012345678901234567890,"messages":[{"role":"user",'
    odd += b'"content":"a\\ud83d b\xff \xd8\xb3"}]}'
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(odd)

    assert reply.is_done
    sent = json.loads(upstream.hits[0].body)
    assert sent["seed"] == 123456789012345678901234567890
    assert sent["messages"][0]["content"] == "a\ufffd b\ufffd س"
