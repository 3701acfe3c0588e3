"""What is no HTTP, or none that we take, is answered in the contract's words and logged without a byte of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from proxy.server.runner import Runner
from tests.support.answers import answer
from tests.support.client import CHAT, HOST, BodyEnd, RawStream, Reply
from tests.support.proxy import Proxy, chat, running_proxy, served_proxy
from tests.support.strategies import encode
from tests.support.upstream import ReplayUpstream

SECRET = "sk-callers-own-0123456789"
BODY = encode(chat("سلام"))
KEY = f"authorization: Bearer {SECRET}"
SIZED = (KEY, "content-type: application/json", f"content-length: {len(BODY)}")
CHUNKED = (KEY, "content-type: application/json", "transfer-encoding: chunked")


def post(*lines: str, body: bytes = BODY, start: str = f"POST {CHAT} HTTP/1.1", host: str = "host: x") -> bytes:
    return "\r\n".join([start, host, *lines, "", ""]).encode("latin-1") + body


BAD = {
    "a header beyond the limit": (post(*SIZED, f"x-long: {SECRET * 1400}"), 400, "headers_too_large"),
    "a key beyond the limit": (post(f"authorization: Bearer {SECRET * 1400}"), 400, "headers_too_large"),
    "a line beyond the limit": (post(*SIZED, start=f"POST /{SECRET * 700} HTTP/1.1"), 400, "headers_too_large"),
    "too many headers": (post(*SIZED, *(f"x-{n}: {SECRET}" for n in range(200))), 400, "bad_request"),
    "two lengths": (post(*SIZED, "content-length: 3"), 400, "bad_request"),
    "a length that is none": (post(KEY, "content-length: ten"), 400, "bad_request"),
    "a length and chunks": (post(*SIZED, "transfer-encoding: chunked"), 400, "bad_request"),
    "an unknown transfer": (post(KEY, f"transfer-encoding: {SECRET}"), 400, "bad_request"),
    "no host": (post(*SIZED, host="x-a: b"), 400, "bad_request"),
    "a control character": (post(*SIZED, f"x-odd: {SECRET}\x01"), 400, "bad_request"),
    "a zero": (post(*SIZED, f"x-odd: {SECRET}\x00"), 400, "bad_request"),
    "a name that is none": (post(*SIZED, f"x odd {SECRET}: 1"), 400, "bad_request"),
    "no colon": (post(*SIZED, SECRET), 400, "bad_request"),
    "garbage": (f"{SECRET} \x7f\x00\r\n\r\n".encode(), 400, "bad_request"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SECRET.encode() + b"\r\n\r\n", 400, "bad_request"),
    "another version": (post(*SIZED, start=f"POST {CHAT} HTTP/3.7"), 400, "bad_request"),
    "an address that is none": (post(*SIZED, start=f"GET http://[{SECRET} HTTP/1.1"), 400, "bad_request"),
    "an unknown expectation": (post(*SIZED, f"expect: {SECRET}"), 400, "expectation_failed"),
    "an unknown encoding": (post(*SIZED, "content-encoding: zstd"), 415, "unsupported_content_encoding"),
    "a bad chunk": (post(*CHUNKED, body=b"zz\r\n" + SECRET.encode()), 400, "bad_request"),
    "a bad chunk after a good one": (post(*CHUNKED, body=b"2\r\n{}\r\nzz\r\n" + SECRET.encode()), 400, "bad_request"),
    "no path": (post(KEY, start="OPTIONS * HTTP/1.1", body=b""), 404, "not_found"),
    "a tunnel": (post(KEY, start="CONNECT example.org:443 HTTP/1.1", body=b""), 404, "not_found"),
}


async def send(port: int, *requests: bytes) -> Reply:
    """These bytes as they are, one write each, and all that comes back."""
    sock = socket.socket()
    sock.setblocking(False)
    stream = RawStream(sock, 65536)
    try:
        async with asyncio.timeout(10):
            await asyncio.get_running_loop().sock_connect(sock, (HOST, port))
            for request in requests:
                await stream.send(request)
            return await stream.read_to_end()
    finally:
        stream.leave()


def check_refused(case: str, reply: Reply) -> None:
    _, status, code = BAD[case]
    assert (reply.status, reply.end) == (status, BodyEnd.WHOLE), (case, reply)
    assert reply.headers["content-type"] == "application/json", case
    assert (reply.headers["server"], reply.headers["x-should-retry"]) == ("sluice", "false"), case
    error = reply.json["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["code"]) == ("invalid_request", code), case
    assert (error["param"], error["retryable"], error["retry_after"], error["upstream"]) == (None, False, None, None)
    assert error["message"], case
    assert error["trace_id"] == reply.headers["x-trace-id"], case
    assert len(error["trace_id"]) == 32
    assert SECRET.encode() not in b"".join(read.data for read in reply.reads), case


@pytest.mark.clause("E", "Q2")
async def test_bad_http_gets_the_error_body(tmp_path: Path) -> None:
    """Status, class, code, trace id and our name, nothing of what came; no row, no connection, and others are
    served."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        with capture_logs() as lines:
            told = {case: await send(proxy.port, request) for case, (request, _, _) in BAD.items()}
        assert await proxy.rows_now() == []
        assert upstream.hits == []
        assert (await proxy.ask()).is_done

    for case, reply in told.items():
        check_refused(case, reply)
    assert {line["log_level"] for line in lines} == {"info"}
    assert {reply.headers["x-trace-id"] for reply in told.values()} == {line["trace_id"] for line in lines}
    assert len(lines) == len(BAD)


@pytest.mark.clause("E")
@pytest.mark.parametrize("wait_s", [0.0, 0.1], ids=["at once", "while the handler waits"])
async def test_a_body_that_breaks_later_is_answered_once(tmp_path: Path, wait_s: float) -> None:
    """A second answer would pass for that of the next request, and none at all would keep the client waiting."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reader, writer = await asyncio.open_connection(HOST, proxy.port)
        try:
            writer.write(post(*CHUNKED, body=b"2\r\n{}\r\n"))
            await asyncio.sleep(wait_s)
            writer.write(b"zz\r\n")
            said = await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()
        assert (await proxy.ask()).is_done

    assert said.count(b" 400 Bad Request\r\n") == said.count(b"HTTP/1.") == 1
    assert b'"type":"invalid_request"' in said


@pytest.mark.clause("E")
async def test_garbage_after_a_good_request_does_not_harm_it(tmp_path: Path) -> None:
    """Its answer comes whole; the garbage gets its own."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reader, writer = await asyncio.open_connection(HOST, proxy.port)
        try:
            writer.write(post(*SIZED))
            await asyncio.sleep(0)
            writer.write(b"\x01\x02\r\n\r\n")
            said = await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()

    first, _, second = said.partition(b"data: [DONE]")
    assert first.startswith(b"HTTP/1.1 200 ")
    assert (second.count(b" 400 Bad Request\r\n"), second.count(b'"code":"bad_request"')) == (1, 1)


@pytest.mark.clause("L3", "W8")
async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(tmp_path: Path) -> None:
    """It gets nothing, nothing is recorded, and nothing is logged."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        with capture_logs() as lines:
            for end in ("close", "reset"):
                _, writer = await asyncio.open_connection(HOST, proxy.port)
                writer.write(post(*SIZED, body=BODY[:9]))
                await asyncio.sleep(0.05)
                writer.close() if end == "close" else writer.transport.abort()
            await asyncio.sleep(0.05)
        assert await proxy.rows_now() == []

    assert lines == []


@pytest.mark.clause("L3")
async def test_the_log_says_that_it_was_refused_and_nothing_of_it(tmp_path: Path) -> None:
    """One line of information each on the real standard output: no traceback, no key, no header."""
    async with ReplayUpstream(answer("سلام")) as upstream, served_proxy(tmp_path, upstream.base_url) as proxy:
        told = {case: await send(proxy.port, request) for case, (request, _, _) in BAD.items()}
        last = told["a tunnel"].headers["x-trace-id"]
        await proxy.said(last)
        lines = [line for line in proxy.log_lines if line["event"] != "serving"]
        text = proxy.log.read_text() + proxy.errors.read_text()

    assert {line["level"] for line in lines} == {"info"}
    assert [line["trace_id"] for line in lines] == [reply.headers["x-trace-id"] for reply in told.values()]
    assert SECRET not in text
    assert "Traceback" not in text


@pytest.mark.clause("Q2")
async def test_a_long_token_and_cookie_pass(tmp_path: Path) -> None:
    """Identity providers write tokens, and domains cookies, beyond the 8 KiB that aiohttp takes by itself."""
    long = {"authorization": f"Bearer {'x' * 20_000}", "cookie": "c=" + "y" * 30_000}
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(headers=long)

    assert reply.is_done


@pytest.mark.clause("Q2")
async def test_a_key_that_is_no_text_is_a_wrong_key(tmp_path: Path) -> None:
    """A byte beyond ASCII in the header is a 401 like any other key that is not known here."""
    auth = {"mode": "keys", "keys": [{"tenant": "a", "sha256": "0" * 64}]}
    async with (
        ReplayUpstream(answer("سلام")) as upstream,
        running_proxy(tmp_path, upstream.base_url, auth=auth) as proxy,
    ):
        reply = await proxy.ask(headers={"authorization": "Bearer \xff\xfe"})

    assert reply.status == 401
    assert upstream.hits == []


@pytest.mark.clause("C1")
async def test_head_is_get_without_the_body(tmp_path: Path) -> None:
    """Load balancers ask so: same status, type and length, no body; not where there is nothing to get."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        for path in ("/healthz", "/readyz", "/v1/models", "/v1/models/gpt-4o", "/metrics"):
            got = await proxy.get(path)
            head = await send(proxy.port, f"HEAD {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            assert (head.status, head.body) == (200, b""), path
            for name in ("content-type", "server", *(["content-length"] if path != "/metrics" else [])):
                assert head.headers[name] == got.headers[name], path
            assert head.headers["x-trace-id"]
        assert (await send(proxy.port, b"HEAD /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).status == 404


FORMS = (
    "text/plain",
    "text/plain;charset=UTF-8",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
)
JSONS = ("application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json", "text/json")


async def asked(proxy: Proxy, *lines: str) -> Reply:
    return await send(proxy.port, post(f"content-length: {len(BODY)}", "connection: close", *lines))


@pytest.mark.clause("Q2", "E")
async def test_what_any_web_page_could_send_is_refused(tmp_path: Path) -> None:
    """Forms and text go out of a browser to every address, ours too, without asking it first; JSON does not."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        refused = [await asked(proxy, f"content-type: {form}") for form in (*FORMS, "json", "text/plain, a/json")]
        refused.append(await asked(proxy, "origin: https://evil.example"))
        assert upstream.hits == []
        taken = [await asked(proxy, f"content-type: {form}") for form in JSONS]
        taken.append(await asked(proxy))
        taken.append(await asked(proxy, "content-type: application/json", "origin: https://app.example"))

    assert {reply.status for reply in refused} == {415}
    for reply in refused:
        error = reply.json["error"]
        assert isinstance(error, dict)
        assert (error["type"], error["code"], error["param"]) == (
            "invalid_request",
            "unsupported_media_type",
            "content-type",
        )
    assert all(reply.is_done for reply in taken)


@pytest.mark.clause("Q1")
async def test_a_body_with_a_bom_or_compressed_is_read(tmp_path: Path) -> None:
    """Some editors and languages begin every text with a byte order mark."""
    packed = gzip.compress(BODY)
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        assert (await proxy.ask(b"\xef\xbb\xbf" + BODY)).is_done
        assert (await proxy.ask(packed, headers={"content-encoding": "gzip"})).is_done

    assert json.loads(upstream.hits[0].body) == json.loads(upstream.hits[1].body)


@pytest.mark.clause("E", "L3")
async def test_a_failure_outside_of_our_handlers_is_told_and_logged_without_its_text() -> None:
    """Under the runner alone: an exception's text may be what the caller sent; where it was raised is not."""

    async def fail(request: web.Request) -> web.StreamResponse:
        raise ValueError(request.headers["x-odd"])

    async def late(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{")
        raise ValueError(request.headers["x-odd"])

    async def gone(_: web.Request) -> web.StreamResponse:
        raise ConnectionResetError

    app = web.Application()
    for path, handler in {"/fail": fail, "/late": late, "/gone": gone}.items():
        app.router.add_get(path, handler)
    runner = Runner(app)
    await runner.setup()
    sock = socket.create_server((HOST, 0))
    await web.SockSite(runner, sock).start()
    try:
        with capture_logs() as lines:
            told = [
                await send(sock.getsockname()[1], f"GET {path} HTTP/1.1\r\nhost: x\r\nx-odd: {SECRET}\r\n\r\n".encode())
                for path in ("/fail", "/late", "/gone")
            ]
    finally:
        await runner.cleanup()

    assert [(reply.status, reply.end.value) for reply in told] == [(503, "whole"), (200, "cut"), (0, "cut")]
    error = told[0].json["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["code"]) == ("model_unavailable", "internal_error")
    assert SECRET not in str(lines)
    errors = [line for line in lines if line["log_level"] == "error"]
    assert [line["error"] for line in errors] == ["ValueError", "ValueError"]
    assert "in fail" in errors[0]["frames"]
    assert "in late" in errors[1]["frames"]
