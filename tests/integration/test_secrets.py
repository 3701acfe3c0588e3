"""A vendor that throws our own key back: it must come out nowhere (contract Q2, L3)."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest

from tests.support.answers import ROLE, chunk, encode, events, plain, say
from tests.support.proxy import chat, served_proxy
from tests.support.upstream import JSON, SSE, Play, ReplayUpstream, play_events

pytestmark = pytest.mark.clause("Q2", "L3")

#: One that looks like words, and one with characters that JSON escapes: no pattern of a key knows them.
KEYS = ["correct.horse.battery.staple", 'q/W"e\\r+t=y']
PROMPT = "رمز من چیست؟"


def echoes(key: str) -> list[Play]:
    """Everything that a vendor may answer with, the key in it wherever there is room."""
    headers = [("x-request-id", key), ("x-error", key), ("www-authenticate", f'Bearer realm="{key}"')]
    told = {"message": f"Incorrect API key provided: {key}. You sent {key!r}.", "type": key, "code": key, "param": key}
    error = encode({"error": told, "request": {"authorization": f"Bearer {key}"}})
    html = f"<html><title>500 Error</title><pre>authorization: Bearer {key}</pre></html>".encode()
    return [
        plain(error, 401, headers),
        plain(error, 500, headers),
        plain(error, 200, headers),
        Play([(0.0, html)], status=502, headers=[("content-type", "text/html"), *headers]),
        Play([(0.0, f"no {key}".encode())], status=418, headers=[("content-type", "text/plain")]),
        Play([(0.0, events([error]))], headers=[*SSE, *headers]),
        Play([(0.0, events([ROLE, say("سلام"), error]))], headers=[*SSE, *headers]),
        Play([(0.0, f": {key}\n\n".encode() + events([ROLE, say("سلام")]))], headers=[*SSE, *headers], end="reset"),
        Play([(0.0, events([ROLE, say("سلام")]) + f"error: bad key {key}\n\n".encode())], headers=SSE),
        Play([(0.0, events([ROLE, say("سلام")]))], headers=[*SSE, *headers], end="hang"),
        play_events(
            chunk({"content": "سلام"}, id=key, model=key, service_tier=key), chunk({}, "stop", usage={key: key})
        ),
        Play(headers=[*JSON, *headers], end="reset"),
    ]


def read_ledger(folder: Path) -> list[bytes]:
    """Database and journals, byte by byte."""
    paths = [*folder.glob("ledger.db*"), *folder.glob("ledger.db*/**/*")]
    return [path.read_bytes() for path in paths if path.is_file()]


@pytest.mark.parametrize("key", KEYS)
async def test_our_key_comes_out_nowhere(tmp_path: Path, key: str) -> None:
    """Not in a response, a row, the export, the metrics, standard output or standard error, in no spelling of it."""
    plays = echoes(key)
    ours = {"api_key": key, "deadlines": {"idle": 0.3}}
    async with ReplayUpstream(*plays) as upstream, served_proxy(tmp_path, upstream.base_url, upstream=ours) as proxy:
        replies = [await proxy.ask(chat(PROMPT)) for _ in plays]
        await proxy.rows(len(plays))
        await proxy.said('"event":"attempt"', times=len(plays))
        rows = await proxy.export()
        metrics = (await proxy.get("/metrics")).body
    files = await asyncio.to_thread(read_ledger, tmp_path)

    assert [hit.headers["authorization"] for hit in upstream.hits] == [f"Bearer {key}"] * len(plays)
    places = {
        "errors": b"".join(reply.body + repr(reply.headers).encode() for reply in replies if not reply.is_done),
        "rows": rows + b"".join(files),
        "metrics": metrics,
        "stdout": proxy.log.read_bytes(),
        "stderr": proxy.errors.read_bytes(),
    }
    spellings = {key.encode(), json.dumps(key)[1:-1].encode(), base64.b64encode(key.encode()).rstrip(b"=")}
    for place, text in places.items():
        for spelling in spellings:
            found = text.find(spelling)
            assert found < 0, f"{place}: …{text[max(0, found - 80) : found + 80]!r}…"
        assert PROMPT.encode() not in text, place
