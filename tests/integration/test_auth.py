"""Callers' static keys and the small routes: who may ask, what is listed, what is not there (contract C1, C4, E)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.answers import answer
from tests.support.client import Reply
from tests.support.proxy import ALIAS, chat, running_proxy
from tests.support.upstream import ReplayUpstream

KEYS = {"acme": "key-of-acme-ضد", "globex": "key-of-globex"}
AUTH = {
    "mode": "keys",
    "keys": [{"tenant": name, "sha256": hashlib.sha256(key.encode()).hexdigest()} for name, key in KEYS.items()],
}


def bearer(key: str, scheme: str = "Bearer") -> dict[str, str]:
    # Headers are bytes: what a client sends in UTF-8 stands in this text as Latin-1.
    return {"authorization": f"{scheme} {key}".encode().decode("latin-1")}


def error_of(reply: Reply) -> dict[str, object]:
    error = reply.json["error"]
    assert isinstance(error, dict)
    assert error["trace_id"] == reply.headers["x-trace-id"]
    return error


@pytest.mark.clause("C4")
async def test_a_key_stands_for_its_tenant(tmp_path: Path) -> None:
    """Each row carries the tenant whose key came; the key itself stands neither there nor at the upstream."""
    async with (
        ReplayUpstream(answer("سلام")) as upstream,
        running_proxy(tmp_path, upstream.base_url, auth=AUTH) as proxy,
    ):
        assert (await proxy.ask(headers=bearer(KEYS["globex"]))).is_done
        assert (await proxy.ask(headers=bearer(KEYS["acme"], "bearer"))).is_done
        rows = await proxy.rows(2)

    assert [row["tenant"] for row in rows] == ["globex", "acme"]
    seen = str(rows) + str([(hit.headers, hit.body) for hit in upstream.hits])
    assert not any(key in seen for key in KEYS.values())


NO_KEY = {
    "none": {},
    "wrong": bearer("key-of-nobody"),
    "half": bearer(KEYS["acme"][:-1]),
    "another scheme": bearer(KEYS["acme"], "Basic"),
    "empty": bearer(""),
    "not ASCII": bearer("é"),
}


@pytest.mark.clause("E", "Q2")
async def test_without_a_known_key_there_is_nothing(tmp_path: Path) -> None:
    """401 wherever one asks, never to be retried, and no attempt."""
    async with (
        ReplayUpstream(answer("سلام")) as upstream,
        running_proxy(tmp_path, upstream.base_url, auth=AUTH) as proxy,
    ):
        for case, headers in NO_KEY.items():
            listed = await proxy.get("/v1/models", headers=headers)
            one = await proxy.get(f"/v1/models/{ALIAS}", headers=headers)
            for reply in (await proxy.ask(headers=headers), listed, one):
                error = error_of(reply)
                assert (reply.status, error["type"], error["code"]) == (401, "auth_failure", "invalid_api_key"), case
                assert (reply.headers["x-should-retry"], error["retryable"]) == ("false", False)
                assert error["upstream"] is None
        assert await proxy.rows_now() == []

    assert upstream.hits == []


@pytest.mark.clause("C1", "Q2")
async def test_health_and_metrics_need_no_key(tmp_path: Path) -> None:
    """Probes and scrapers have none. Every one of these answers carries a trace id too."""
    async with running_proxy(tmp_path, "http://127.0.0.1:9/v1", auth=AUTH) as proxy:
        replies = {path: await proxy.get(path) for path in ("/healthz", "/readyz", "/metrics")}

    assert {path: reply.status for path, reply in replies.items()} == dict.fromkeys(replies, 200)
    assert replies["/metrics"].headers["content-type"].startswith("text/plain; version=")
    assert all("x-trace-id" in reply.headers for reply in replies.values())


@pytest.mark.clause("C1")
async def test_models_are_the_aliases(tmp_path: Path) -> None:
    """As OpenAI lists them, one by one too; what is behind an alias is not told."""
    async with running_proxy(tmp_path, {"main": "http://127.0.0.1:9/v1", "فارسی": "http://127.0.0.1:9/v1"}) as proxy:
        listed = await proxy.get("/v1/models", headers={"x-request-id": "r-1"})
        one = await proxy.get("/v1/models/main")
        other = await proxy.get("/v1/models/%D9%81%D8%A7%D8%B1%D8%B3%DB%8C")

    assert listed.json["object"] == "list"
    data = listed.json["data"]
    assert isinstance(data, list)
    assert [(each["id"], each["object"], each["owned_by"]) for each in data] == [
        (alias, "model", "sluice") for alias in (ALIAS, "main", "فارسی")
    ]
    assert listed.headers["x-trace-id"] == "r-1"
    assert one.json == data[1]
    assert other.json == data[2]
    assert "127.0.0.1" not in str(listed.json)


@pytest.mark.clause("E")
async def test_an_unknown_model_is_404(tmp_path: Path) -> None:
    """Asked for or looked up: `model_not_found`, with the field's name, and not to be retried."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        replies = [
            await proxy.ask(chat(model="gpt-5-پارسی")),
            await proxy.ask(chat(model="x" * 5000)),
            await proxy.get("/v1/models/none/such"),
        ]
        assert await proxy.rows_now() == []

    for reply in replies:
        error = error_of(reply)
        assert (reply.status, error["type"], error["code"]) == (404, "invalid_request", "model_not_found")
        assert (error["param"], reply.headers["x-should-retry"]) == ("model", "false")
        assert len(reply.body) < 1000
    assert "gpt-5-پارسی" in str(error_of(replies[0])["message"])
    assert upstream.hits == []


@pytest.mark.clause("E", "Q2")
async def test_what_is_not_there_is_404(tmp_path: Path) -> None:
    """Unknown paths and methods get the same error body as everything else."""
    asked = [
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/complete"),
        ("DELETE", "/v1/models"),
        ("GET", "/"),
        ("GET", "/v1/../../etc/passwd"),
    ]
    async with running_proxy(tmp_path, "http://127.0.0.1:9/v1") as proxy:
        replies = [await proxy.ask(b"", method=method, path=path) for method, path in asked]

    for reply in replies:
        error = error_of(reply)
        assert (reply.status, error["type"], error["code"]) == (404, "invalid_request", "not_found")
        assert reply.headers["x-should-retry"] == "false"
        assert reply.headers["content-type"] == "application/json"
