"""The token route before what nobody should send, and before answers that no engine should give (docs/toon.md)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from proxy.dialects.payload import MAX_DEPTH
from proxy.dialects.toon.format import MEDIA_TYPE
from tests.support.client import HOST, fetch
from tests.support.proxy import ALIAS, MODEL, running_proxy
from tests.support.toon import ToonService, made_models, serving_toon, toon
from tests.support.upstream import Play, ReplayUpstream, play_events

PATH: Final = "/v1/completions/toon"
CHAT: Final = "/v1/chat/completions"
TYPED: Final = {"content-type": MEDIA_TYPE}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_models(tmp_path_factory.mktemp("models"), model=MODEL)


@pytest.fixture(scope="module")
def service(registry: Path) -> Iterator[ToonService]:
    with serving_toon(registry) as running:
        yield running


def settings(registry: Path, vendor: str = "toon") -> dict[str, Any]:
    return {"toon": {"registry": str(registry)}, "vendor": vendor}


def chat(**more: Any) -> dict[str, object]:
    message = {"role": "user", "content": "سلام دنیا"}
    return {"model": MODEL, "messages": [message], "temperature": 0, "max_tokens": 30, "stream": False, **more}


# ---- what is asked -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("max_tokens", -4),
        ("temperature", -1),
        ("temperature", 5),
        ("top_p", -0.5),
        ("top_p", 3),
        ("top_logprobs", -3),
        ("top_logprobs", 50),
    ],
)
async def test_a_chat_out_of_its_ranges_reaches_no_model(service: ToonService, name: str, value: float) -> None:
    """A value that the arithmetic cannot do fails a whole step, and with it the answers of all others."""
    before = await service.figures()
    reply = await fetch(service.port, chat(logprobs=True, **{name: value}), path=CHAT)
    after = await service.figures()

    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"], error["param"]) == (400, "invalid_value", name)
    assert (after["failed_total"], after["steps_total"]) == (before["failed_total"], before["steps_total"])


@pytest.mark.parametrize("more", [{"top_p": 0}, {"seed": -1}, {"temperature": 2, "seed": -(2**63), "top_p": 0}])
async def test_what_other_chat_apis_take_is_taken(service: ToonService, more: dict[str, Any]) -> None:
    reply = await fetch(service.port, chat(**more), path=CHAT)

    assert reply.status == 200


async def test_a_streamed_chat_has_the_logprobs_of_every_id(service: ToonService) -> None:
    """Those of ids that are parts of a character too, which go with the text that they make."""
    asked = chat(logprobs=True, top_logprobs=1)
    whole = json.loads((await fetch(service.port, asked, path=CHAT)).body)
    streamed = await fetch(service.port, {**asked, "stream": True}, path=CHAT)

    told = whole["choices"][0]["logprobs"]["content"]
    assert len(told) == whole["usage"]["completion_tokens"]
    spoken = [one for event in streamed.events for one in event["choices"]]  # type: ignore[attr-defined]  # JSON
    assert [one["token"] for one in told] == [
        one["token"] for choice in spoken if choice.get("logprobs") for one in choice["logprobs"]["content"]
    ]


@pytest.mark.parametrize("at", ["x_note", "schema"])
async def test_what_is_nested_too_deeply_is_refused_at_once(
    tmp_path: Path, service: ToonService, registry: Path, at: str
) -> None:
    """At a depth that does not hang on how deep the code stands that looks at it; below, all of it comes back."""

    def asked(depth: int) -> bytes:
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        more = b',"x_note":%b}' % deep
        if at == "schema":
            more = b',"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":%b}}}' % deep
        return json.dumps(toon(max_tokens=2)).encode()[:-1] + more

    async with running_proxy(tmp_path, service.base_url, **settings(registry)) as proxy:
        replies = {
            depth: await proxy.ask(asked(depth), path=PATH, headers=TYPED)
            for depth in (MAX_DEPTH - 4, MAX_DEPTH + 1, 900, *range(960, 1000, 3), 5_000)
        }

    shallow = replies.pop(MAX_DEPTH - 4)
    assert shallow.status == (200 if at == "x_note" else 400)
    assert b"invalid_json" not in shallow.body
    refused = {(reply.status, json.loads(reply.body)["error"]["code"]) for reply in replies.values()}
    assert refused == {(400, "invalid_json")}


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ([f"{MEDIA_TYPE};freq=0"], 200),
        ([f"{MEDIA_TYPE}; Q=0.0 ;x=1"], 406),
        (["*/*", "text/html"], 200),
        ([MEDIA_TYPE, "application/json"], 200),
        (["text/html", "application/json"], 406),
    ],
)
async def test_accept_is_read_to_its_end(
    tmp_path: Path, service: ToonService, registry: Path, accept: list[str], status: int
) -> None:
    """In as many lines as it comes."""
    body = json.dumps(toon(max_tokens=2)).encode()
    lines = "".join(f"accept: {one}\r\n" for one in accept)
    async with running_proxy(tmp_path, service.base_url, **settings(registry)) as proxy:
        said = await _raw(proxy.port, PATH, f"content-type: {MEDIA_TYPE}\r\nconnection: close\r\n{lines}", body, "1.1")

    assert said.startswith(b"HTTP/1.1 %d" % status)


@pytest.mark.parametrize("through", ["proxy", "service"])
@pytest.mark.parametrize("path", [PATH, CHAT])
async def test_a_stream_over_http_1_0_ends_with_its_connection(
    tmp_path: Path, service: ToonService, registry: Path, path: str, through: str
) -> None:
    """Also where the client would have kept it: nothing else says where the stream ends."""
    asked = toon(max_tokens=2, stream=True) if path == PATH else {**chat(stream=True), "model": ALIAS}
    if through == "service":
        asked["model"] = MODEL
    kind = MEDIA_TYPE if path == PATH else "application/json"
    head = f"content-type: {kind}\r\nconnection: keep-alive\r\n"
    async with running_proxy(tmp_path, service.base_url, **settings(registry)) as proxy, asyncio.timeout(10):
        port = proxy.port if through == "proxy" else service.port
        said = await _raw(port, path, head, json.dumps(asked).encode(), "1.0")

    assert said.startswith(b"HTTP/1.0 200")
    assert said.endswith(b"data: [DONE]\n\n")


async def test_a_body_that_cannot_be_read_is_the_callers_mistake(service: ToonService) -> None:
    headers = {**TYPED, "content-encoding": "gzip"}
    reply = await fetch(service.port, b"no gzip", path=PATH, headers=headers)

    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (400, "invalid_body")


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_has_the_trace_of_its_row(
    tmp_path: Path, service: ToonService, registry: Path, stream: bool
) -> None:
    """Where the request has none of its own."""
    asked = toon(max_tokens=2, stream=stream, meta={"source": "user_input"})
    async with running_proxy(tmp_path, service.base_url, **settings(registry)) as proxy:
        reply = await proxy.ask(asked, path=PATH, headers=TYPED)
        row = await proxy.row()

    told = re.findall(rb'"trace_id":"([^"]*)"', reply.body)
    assert set(told) == {row["trace_id"].encode()} == {reply.headers["x-trace-id"].encode()}


async def test_what_the_engine_alone_can_refuse_keeps_its_code_and_its_place(
    tmp_path: Path, service: ToonService, registry: Path
) -> None:
    """A pattern is found to be none where it is compiled, and so is a schema."""
    mask = {"type": "custom", "scope": "full", "fallback": "none"}
    asked = toon(mask=mask | {"custom_def": {"name": "legal_citation", "citation_pattern": "(("}})
    async with running_proxy(tmp_path, service.base_url, **settings(registry)) as proxy:
        reply = await proxy.ask(asked, path=PATH, headers=TYPED)
        wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"$ref": "#/missing"}}}
        schema = await proxy.ask(toon(response_format=wanted, stream=True), path=PATH, headers=TYPED)
        tools = await proxy.ask(chat(model=ALIAS, n=2), path=CHAT)

    told = [(one.status, json.loads(one.body)["error"]) for one in (reply, schema, tools)]
    assert [(status, error["code"], error["param"]) for status, error in told] == [
        (400, "invalid_value", "/mask/custom_def/citation_pattern"),
        (400, "unsupported_schema", "/response_format/json_schema/schema"),
        (400, "unsupported_parameter", None),
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_schema_that_turns_out_too_large_is_the_callers(
    tmp_path: Path, service: ToonService, registry: Path, stream: bool
) -> None:
    """The same request would fail again, so nobody is told to send it again."""
    schema = {"type": "object", "properties": {f"مورد{at}": {"type": "string"} for at in range(1500)}}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    async with running_proxy(tmp_path, service.base_url, **settings(registry)) as proxy:
        reply = await proxy.ask(toon(response_format=wanted, stream=stream, seed=3), path=PATH, headers=TYPED)

    event = reply.events[-1] if reply.status == 200 else json.loads(reply.body)
    error: Any = event["error"]
    assert (error["code"], error["type"], error["retryable"]) == ("unsupported_schema", "invalid_request", False)


async def test_clients_that_leave_in_the_midst_are_no_errors_of_the_service(service: ToonService) -> None:
    """However their leaving is noticed: a log full of it would hide what is one."""
    body = json.dumps(toon(max_tokens=300, stream=True, logprobs=20)).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n\r\n"

    async def leave() -> None:
        reader, writer = await asyncio.open_connection(HOST, service.port)
        writer.write(head.encode() + body)
        await reader.readuntil(b"data: ")
        writer.transport.abort()

    log = service.registry.parent / "service.log"
    before = len(log.read_text())
    for _ in range(10):
        await asyncio.gather(*(leave() for _ in range(20)))
    async with asyncio.timeout(20):
        while (figures := await service.figures())["running"] + figures["waiting"]:  # noqa: ASYNC110  # it alone tells
            await asyncio.sleep(0.02)

    assert '"level":"error"' not in log.read_text()[before:]


async def _raw(port: int, path: str, headers: str, body: bytes, version: str) -> bytes:
    """All that comes until the connection ends."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        head = f"POST {path} HTTP/{version}\r\nhost: x\r\n{headers}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        return await reader.read()
    finally:
        writer.close()


# ---- what is answered ----------------------------------------------------------------------------------------------


def vllm_chunk(ids: object, finish: str | None = None, **more: object) -> str:
    choice = {"index": 0, "text": " a", "token_ids": ids, "finish_reason": finish, "stop_reason": None, **more}
    return json.dumps({"id": "cmpl-1", "object": "text_completion", "created": 7, "model": "m", "choices": [choice]})


def engine_chunk(ids: object, **more: object) -> str:
    return json.dumps({"id": "toon-1", "model": "m", "tids": {"v": "2.1", "ids": ids}, **more})


@pytest.mark.parametrize("ids", [[9.0], [True], ["9"], [-9], [9, None], "9", {}])
@pytest.mark.parametrize("vendor", ["toon", "vllm"])
async def test_what_is_no_id_is_no_hole_in_the_answer(tmp_path: Path, registry: Path, vendor: str, ids: object) -> None:
    """Left out without a word, all that follows would stand one place too early."""
    made, code = (engine_chunk, "engine_failed") if vendor == "toon" else (vllm_chunk, "no_token_ids")
    end = {"finish_reason": "length"} if vendor == "toon" else {"finish": "length"}
    streamed = play_events(made([8]), made(ids), made([10], **end))
    async with (
        ReplayUpstream(streamed) as upstream,
        running_proxy(tmp_path, upstream.base_url, **settings(registry, vendor)) as proxy,
    ):
        reply = await proxy.ask(toon(stream=True), path=PATH, headers=TYPED)
        row = await proxy.row()

    first, error = reply.events
    assert first["tids"] == {"v": "2.1", "ids": [8]}
    assert error["error"]["code"] == code  # type: ignore[index]  # JSON
    assert b"[DONE]" not in reply.body
    assert row["counted"]["output"] == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", [[1, 5, 6, 7], [5, 6]])
async def test_a_vllm_that_was_given_another_prompt_is_an_error(
    tmp_path: Path, registry: Path, prompt: list[int], stream: bool
) -> None:
    """A beginning-of-text id in front moves every position."""
    told = vllm_chunk([8], "length", prompt_token_ids=prompt)
    play = play_events(told) if stream else Play([(0.0, told.encode())], headers=[("content-type", "application/json")])
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, **settings(registry, "vllm")) as proxy,
    ):
        reply = await proxy.ask(toon([5, 6, 7], stream=stream), path=PATH, headers=TYPED)

    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (503, "prompt_changed")


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        ("engine_failed", "The engine failed while it worked on this request.", "engine_failed"),
        ("out_of_memory", "The engine had not enough memory left for this request.", "engine_failed"),
        ("invalid_logits", "What the model said of this request's next id is no number.", "engine_failed"),
        ("engine_stopped", "The engine was stopped before this answer was complete.", "shutting_down"),
    ],
)
async def test_whatever_ends_an_answer_in_the_engine_is_known(
    tmp_path: Path, registry: Path, code: str, message: str, told: str
) -> None:
    """None of it is left to rules that guess by words."""
    failure = json.dumps({"error": {"message": message, "type": "model_unavailable", "code": code, "param": None}})
    async with (
        ReplayUpstream(play_events(engine_chunk([8]), failure, done=False)) as upstream,
        running_proxy(tmp_path, upstream.base_url, **settings(registry)) as proxy,
    ):
        reply = await proxy.ask(toon(stream=True), path=PATH, headers=TYPED)
        row = await proxy.row()

    error: Any = reply.events[-1]["error"]
    assert (error["code"], error["type"], error["retryable"]) == (told, "model_unavailable", True)
    assert row["rule_id"].startswith("toon.")
