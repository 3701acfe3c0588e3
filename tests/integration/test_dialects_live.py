"""Every client dialect through a running proxy: what goes over the wire, when, and what the ledger says afterwards.

The same answers, failures and departures for each kind of client; the form is read by tests/support/decoders, which
knows the public APIs and not our writers. (contract D1, D2; W, E, L, Q in each dialect's own form)
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.dialects.registry import CLIENT_DIALECTS
from proxy.metering.prompt import ANSWER_TOKENS, FORMULA, MESSAGE_TOKENS
from tests.support.answers import (
    ROLE,
    STOP,
    USAGE,
    VENDOR_USAGE,
    answer,
    completion,
    encode,
    events,
    plain,
    say,
    vendor_error,
)
from tests.support.client import RawStream, Reply
from tests.support.decoders import DECODERS, Said
from tests.support.proxy import ALIAS, Proxy, running_proxy, served_proxy
from tests.support.upstream import Play, ReplayUpstream

pytestmark = pytest.mark.clause("D1", "D2")

CLIENTS: Final = sorted(DECODERS)
every_client = pytest.mark.parametrize("client", CLIENTS)
KEY: Final = "sk-a-caller"
ALIVE: Final = b": keep-alive\n"
CUT: Final = Play([(0.0, events([ROLE])), (0.0, events([say("سلام حال")])), (0.0, events([say("خوب!")]))], end="hang")
#: What each dialect asks JSON with.
JSON_WANTED: Final[dict[str, dict[str, object]]] = {
    "chat": {"response_format": {"type": "json_object"}},
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
    "responses": {"text": {"format": {"type": "json_object"}}},
}


def body_of(client: str, *, stream: bool = True, said: str = "سلام", **more: object) -> dict[str, object]:
    """The least that a client of this dialect sends."""
    asked: dict[str, dict[str, object]] = {
        "chat": {"messages": [{"role": "user", "content": said}]},
        "completions": {"prompt": said},
        "embeddings": {"input": said},
        "messages": {"max_tokens": 100, "messages": [{"role": "user", "content": said}]},
        "responses": {"input": said},
    }
    return {"model": ALIAS, **({} if client == "embeddings" else {"stream": stream}), **asked[client], **more}


def path_of(client: str) -> str:
    return CLIENT_DIALECTS[client].endpoint


async def ask(proxy: Proxy, client: str, body: dict[str, object] | bytes | None = None, **how: Any) -> Reply:
    return await proxy.ask(body_of(client) if body is None else body, **{"path": path_of(client), **how})


def events_in(reply: Reply) -> list[bytes]:
    """The JSON events of a stream."""
    blocks = reply.body.replace(ALIVE, b"").split(b"\n\n")[:-1]
    return [block for block in blocks if block != b"data: [DONE]"]


def said_by(reply: Reply, client: str) -> Said:
    is_stream = reply.headers["content-type"].startswith("text/event-stream")
    return DECODERS[client](reply.body.replace(ALIVE, b""), is_stream)


def error_in(reply: Reply, client: str) -> dict[str, Any]:
    """The contract's error object, out of the dialect's own envelope."""
    body = json.loads(reply.body)
    assert body.pop("type", None) == ("error" if client == "messages" else None)
    assert body.keys() == {"error"}
    error = body["error"]
    assert isinstance(error, dict)
    assert reply.headers["x-should-retry"] == ("true" if error["retryable"] else "false")
    assert reply.headers["x-trace-id"] == error["trace_id"]
    return error


async def until(stream: RawStream, count: int) -> None:
    while len(events_in(stream.reply)) < count and await stream.read_once():
        pass


# ---- answers -----------------------------------------------------------------------------------------------------


@pytest.mark.clause("C5", "L2", "W4", "W5")
@every_client
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("streamed", [True, False], ids=["vendor streams", "vendor answers"])
async def test_an_answer_and_its_row(tmp_path: Path, client: str, stream: bool, streamed: bool) -> None:
    """However the vendor sends it and the client wants it; the row counts what was written."""
    play = answer("سلام، ", "حالِ شم", "ا چطور") if streamed else plain(completion("سلام، حالِ شما چطور"))
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await ask(proxy, client, body_of(client, stream=stream))
        row = await proxy.row()

    said = said_by(reply, client)
    assert (said.text, said.finish, said.ended) == ("سلام، حالِ شما چطور", "stop", True)
    assert said.usage == ((12, 34) if client in ("messages", "responses") or not stream else None)
    assert (row["endpoint"], row["streamed"]) == (path_of(client), stream)
    assert (row["ending"], row["finish_reason"], row["vendor_usage"]) == ("completed", "stop", USAGE)
    assert row["bytes_out"] == len(reply.body)
    assert row["events_out"] == (len(events_in(reply)) if stream else 0)
    assert row["counted"]["input"] == 3 + MESSAGE_TOKENS + ANSWER_TOKENS
    assert (row["counted_reasoning"], row["count_formula"]) == (0, FORMULA)
    assert row["delivered_output"] == row["counted"]["output"] > 0


@pytest.mark.clause("W3")
@every_client
async def test_a_held_letter_waits_no_longer_than_it_must(tmp_path: Path, client: str) -> None:
    """A letter that a sign may follow goes when its time has come, though the vendor says nothing more."""
    play = Play([(0.0, events([ROLE, say("سلام")])), (1.0, events([STOP, b"[DONE]"]))])
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        proxy.open(body_of(client), path=path_of(client)) as stream,
    ):
        while "م".encode() not in stream.reply.body:
            assert await stream.read_once()
        at = stream.reply.arrivals[-1].t
        reply = await stream.read_to_end()

    assert at < 0.7
    assert said_by(reply, client).text == "سلام"


@pytest.mark.clause("C4")
@pytest.mark.parametrize("client", sorted(JSON_WANTED))
@pytest.mark.parametrize("stream", [True, False])
async def test_a_fence_around_json_is_taken_off(tmp_path: Path, client: str, stream: bool) -> None:
    """In each dialect's own way of asking for JSON, and the header says so."""
    pieces = ("``", "`json", '\n{"a":', ' "سلام"}', "\n``", "`")
    async with ReplayUpstream(answer(*pieces)) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await ask(proxy, client, {**body_of(client, stream=stream), **JSON_WANTED[client]})
        row = await proxy.row()

    assert said_by(reply, client).text == '{"a": "سلام"}'
    assert reply.headers["x-sluice-repaired"] == "fences"
    assert row["delivered_output"] < row["counted"]["output"]


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W6", "E")
@every_client
async def test_an_error_is_a_status_until_the_answer_begins(tmp_path: Path, client: str) -> None:
    """A vendor's 429, and an error behind nothing but a role: an HTTP answer in the dialect's envelope."""
    late = Play(
        [(0.0, events([ROLE, b'{"error":{"message":"Overloaded","code":"server_error","type":"server_error"}}']))]
    )
    limited = vendor_error(429, "rate_limit_exceeded", "Slow down.", headers=[("retry-after", "7")])
    async with ReplayUpstream(limited, late) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        first, second = await ask(proxy, client), await ask(proxy, client)
        rows = await proxy.rows(2)

    assert (first.status, first.headers["retry-after"]) == (429, "7")
    told = error_in(first, client)
    assert (told["type"], told["retry_after"], told["upstream"]["status"]) == ("rate_limited", 7, 429)
    assert (second.status, error_in(second, client)["type"]) == (503, "model_unavailable")
    assert [(row["ending"], row["events_out"], row["delivered_output"]) for row in rows] == [("vendor_error", 0, 0)] * 2


@pytest.mark.clause("W1", "W5", "W6")
@every_client
@pytest.mark.parametrize("keepalive_s", [0, 0.1])
@pytest.mark.parametrize("begun", [True, False])
async def test_an_error_is_the_last_event_afterwards(
    tmp_path: Path, client: str, keepalive_s: float, begun: bool
) -> None:
    """A vendor that falls silent: one event of the dialect's own, no end mark, and the body ends properly."""
    play = CUT if begun else Play([(0.0, events([ROLE]))], end="hang")
    deadlines = {"deadlines": {"first_byte": 0.6, "stall": 0.6}}
    config: dict[str, Any] = {"upstream": deadlines, "keepalive_s": keepalive_s}
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, **config) as proxy:
        reply = await ask(proxy, client)
        row = await proxy.row()

    assert (ALIVE in reply.body) is bool(keepalive_s)
    if not begun and not keepalive_s:
        assert (reply.status, error_in(reply, client)["code"]) == (504, "first_byte_timeout")
        return
    said = said_by(reply, client)
    assert (said.text, said.ended) == ("سلام حالخوب!" if begun else "", False)
    assert said.error is not None
    assert said.error["code"] == row["error_code"] == ("stall_timeout" if begun else "first_byte_timeout")
    assert said.error["trace_id"] == reply.headers["x-trace-id"]
    assert (reply.status, reply.end.value) == (200, "whole")
    assert (row["ending"], row["events_out"]) == ("timeout", len(events_in(reply)))
    assert row["bytes_out"] == len(reply.body)


@pytest.mark.clause("C1")
async def test_a_shutdown_is_told_to_every_client(tmp_path: Path) -> None:
    """What is still open when the time is over gets its dialect's error event."""
    async with ReplayUpstream(CUT) as upstream, served_proxy(tmp_path, upstream.base_url, shutdown_s=0.4) as proxy:
        asking = {client: asyncio.create_task(ask(proxy, client)) for client in CLIENTS}
        await upstream.wait_hits(len(CLIENTS))
        await asyncio.sleep(0.2)
        proxy.signal()
        replies = {client: await reply for client, reply in asking.items()}
        assert await proxy.exit_code() == 0
        rows = await proxy.rows(len(CLIENTS))

    for client, reply in replies.items():
        said = said_by(reply, client)
        assert (said.text, said.ended, reply.end.value) == ("سلام حالخوب!", False, "whole"), client
        assert said.error is not None and said.error["code"] == "shutting_down"
        row = next(row for row in rows if row["endpoint"] == path_of(client))
        assert (row["ending"], row["events_out"]) == ("interrupted", len(events_in(reply)))


# ---- leaving -----------------------------------------------------------------------------------------------------


@pytest.mark.clause("W8")
@every_client
async def test_who_leaves_takes_the_upstream_along(tmp_path: Path, client: str) -> None:
    """Within 100 ms; the row says what was written."""
    async with ReplayUpstream(CUT) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with proxy.open(body_of(client), path=path_of(client)) as stream:
            while "ب!".encode() not in stream.reply.body and await stream.read_once():
                pass
            left_at = stream.leave()
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.gone_at is not None and hit.gone_at - left_at < 0.1
    assert (row["ending"], row["error_code"]) == ("client_gone", None)
    assert (row["events_out"], row["bytes_out"]) == (len(events_in(stream.reply)), len(stream.reply.body))
    assert row["delivered_output"] == row["counted"]["output"] > 0


@pytest.mark.clause("W8", "L2")
@every_client
async def test_a_drained_answer_says_what_was_delivered_of_it(tmp_path: Path, client: str) -> None:
    """The rest is read for the vendor's usage and written to nobody."""
    rest = [(0.1, events([say("خوب")]))] * 4 + [(0.0, events([STOP, VENDOR_USAGE, b"[DONE]"]))]
    play = Play([(0.0, events([ROLE, say("سلام حال ")])), *rest])
    drain = {"on_client_gone": "drain"}
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=drain) as proxy,
    ):
        async with proxy.open(body_of(client), path=path_of(client)) as stream:
            await until(stream, 2 if client in ("chat", "completions") else 3)
            stream.leave()
        row = await proxy.row()

    assert (row["ending"], row["finish_reason"], row["vendor_usage"]) == ("client_gone", "stop", USAGE)
    assert row["delivered_output"] < row["counted"]["output"]
    assert row["bytes_out"] >= len(stream.reply.body) > 0


# ---- the request -------------------------------------------------------------------------------------------------


@pytest.mark.clause("Q1", "Q2", "E", "C4")
@pytest.mark.parametrize("client", sorted(set(CLIENT_DIALECTS) - {"toon"}))  # whose bodies are no JSON of this kind
async def test_what_is_refused_before_any_attempt(tmp_path: Path, client: str) -> None:
    """Each with its status and code, in the dialect's envelope, and with no row."""
    auth = {"mode": "keys", "keys": [{"tenant": "t", "sha256": hashlib.sha256(KEY.encode()).hexdigest()}]}
    config: dict[str, Any] = {"auth": auth, "limits": {"request_bytes": 4000}}
    good, body = {"x-api-key": KEY}, body_of(client)
    refusals: list[tuple[int, str, dict[str, object] | bytes, dict[str, str]]] = [
        (401, "invalid_api_key", body, {}),
        (401, "invalid_api_key", body, {"x-api-key": "sk-another"}),
        (401, "invalid_api_key", body, {"authorization": f"Basic {KEY}"}),
        (404, "model_not_found", {**body, "model": "gpt-unknown"}, good),
        (413, "request_too_large", body_of(client, said="x" * 5000), good),
        (415, "unsupported_media_type", body, {**good, "content-type": "text/plain"}),
        (400, "invalid_json", b'{"model": ', good),
        (400, "invalid_json", b"[]", good),
        (400, "model_required", {**body, "model": 7}, good),
        (400, "invalid_type", {**body, "stream": "yes"}, good),
        (400, "upstream_not_allowed", {**body, "api_base": "http://127.0.0.1:9"}, good),
        (400, "upstream_not_allowed", body, {**good, "x-base-url": "http://127.0.0.1:9"}),
    ]
    async with (
        ReplayUpstream(answer("آب")) as upstream,
        running_proxy(tmp_path, upstream.base_url, **config) as proxy,
    ):
        for status, code, sent, headers in refusals:
            reply = await ask(proxy, client, sent, headers=headers)
            error = error_in(reply, client)
            assert (reply.status, error["code"], error["upstream"]) == (status, code, None), (code, reply.body)
            assert error["type"] == ("auth_failure" if status == 401 else "invalid_request")
        assert await proxy.rows_now() == []
        assert upstream.hits == []


@pytest.mark.clause("E")
async def test_a_path_that_is_nowhere_answers_in_the_askers_envelope(tmp_path: Path) -> None:
    """Told by the path, or by the header that every client of Anthropic's sends."""
    theirs = {"anthropic-version": "2023-06-01"}
    nowhere = [
        ("chat", "GET", "/v1/chat/completions", {}),
        ("chat", "POST", "/v1/responses/", {}),
        ("chat", "GET", "/v1/models/none", {}),
        ("messages", "GET", "/v1/messages", {}),
        ("messages", "POST", "/v1/messages/batches", {}),
        ("messages", "GET", "/v1/models/none", theirs),
        ("messages", "POST", "/v1/complete", theirs),
    ]
    async with ReplayUpstream(answer("آب")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        for client, method, path, headers in nowhere:
            reply = await proxy.ask(b"{}", method=method, path=path, headers=headers)
            assert (reply.status, error_in(reply, client)["type"]) == (404, "invalid_request"), path


@pytest.mark.clause("Q2")
async def test_the_models_are_listed_for_both_kinds_of_clients(tmp_path: Path) -> None:
    """In OpenAI's form, and in Anthropic's to who sends its header; a wrong key is refused in the same form."""
    auth = {"mode": "keys", "keys": [{"tenant": "t", "sha256": hashlib.sha256(KEY.encode()).hexdigest()}]}
    theirs, good = {"anthropic-version": "2023-06-01"}, {"x-api-key": KEY}
    async with (
        ReplayUpstream(answer("آب")) as upstream,
        running_proxy(tmp_path, upstream.base_url, auth=auth) as proxy,
    ):
        ours = await proxy.get("/v1/models", headers=good)
        listed = await proxy.get("/v1/models", headers={**good, **theirs})
        one = await proxy.get(f"/v1/models/{ALIAS}", headers={**good, **theirs})
        assert error_in(await proxy.get("/v1/models"), "chat")["code"] == "invalid_api_key"
        assert error_in(await proxy.get("/v1/models", headers=theirs), "messages")["code"] == "invalid_api_key"

    assert [model["id"] for model in ours.json["data"]] == [ALIAS, "main"]  # type: ignore[attr-defined]  # JSON
    assert ours.json["object"] == "list"
    assert (listed.json["first_id"], listed.json["last_id"], listed.json["has_more"]) == (ALIAS, "main", False)
    assert (one.json["type"], one.json["id"]) == ("model", ALIAS)


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("client", ["chat", "completions", "responses"])
async def test_what_an_upstream_cannot_be_told_is_refused_or_dropped(tmp_path: Path, client: str) -> None:
    """As the operator configures it; the header names it, also beside an error."""
    body = body_of(client, seed=4, logit_bias={"7": 1})
    busy = vendor_error(529, "overloaded_error", "Overloaded")
    async with (
        ReplayUpstream(busy) as upstream,
        running_proxy(tmp_path, upstream.base_url, vendor="anthropic") as proxy,
    ):
        refused = await ask(proxy, client, body)
        assert upstream.hits == []
    assert (refused.status, error_in(refused, client)["code"]) == (400, "unsupported_parameter")
    assert "x-sluice-dropped" not in refused.headers

    drops = {"unsupported": "drop"}
    (tmp_path / "drops").mkdir()
    async with (
        ReplayUpstream(busy) as upstream,
        running_proxy(tmp_path / "drops", upstream.base_url, vendor="anthropic", upstream=drops) as proxy,
    ):
        dropped = await ask(proxy, client, body)
    assert error_in(dropped, client)["type"] == "model_unavailable"
    assert dropped.headers["x-sluice-dropped"] == "seed, logit_bias"


async def test_counting_tokens_of_a_long_prompt_holds_nobody_up(tmp_path: Path) -> None:
    """Our count without an attempt; while megabytes are counted others are served."""
    said = "سلام دنیا hello " * 300_000
    async with ReplayUpstream(answer("آب")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        path = f"{path_of('messages')}/count_tokens"
        asking = asyncio.create_task(proxy.ask(encode(body_of("messages", said=said)), path=path))
        loop, waits = asyncio.get_running_loop(), []
        while not asking.done():
            begun = loop.time()
            assert (await proxy.get("/healthz")).status == 200
            waits.append(loop.time() - begun)
        short = await proxy.ask({"model": ALIAS, "messages": [{"role": "user", "content": "سلام"}]}, path=path)
        wrong = await proxy.ask({"model": ALIAS, "messages": [{"role": "wizard", "content": "x"}]}, path=path)
        assert await proxy.rows_now() == []

    counted = (await asking).json["input_tokens"]
    assert isinstance(counted, int) and counted > 900_000
    assert max(waits) < 0.5  # sending and reading the body in this very process is part of it
    assert short.json == {"input_tokens": 3 + MESSAGE_TOKENS + ANSWER_TOKENS}
    assert error_in(wrong, "messages")["param"] == "messages[0].role"
