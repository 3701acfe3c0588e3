"""`/v1/usage`: a tenant sees its own figures and nobody else's (contract C3, L4)."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_auth import AUTH, KEYS, bearer, error_of
from tests.support.answers import answer
from tests.support.proxy import running_proxy
from tests.support.upstream import ReplayUpstream

pytestmark = pytest.mark.clause("C3")


def rows_of(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.splitlines()]


async def test_a_tenant_sees_its_own_figures_and_nobody_elses(tmp_path: Path) -> None:
    """Whatever it asks for: rows of the other tenant are in no answer, in neither form."""
    async with (
        ReplayUpstream(answer("سلام دنیا")) as upstream,
        running_proxy(tmp_path, upstream.base_url, auth=AUTH) as proxy,
    ):
        for tenant, times in (("globex", 1), ("acme", 2)):
            for _ in range(times):
                assert (await proxy.ask(headers=bearer(KEYS[tenant]))).is_done
        acme = await proxy.get("/v1/usage?by=model,endpoint", headers=bearer(KEYS["acme"]))
        globex = await proxy.get("/v1/usage?by=&format=csv", headers=bearer(KEYS["globex"]))
        nobody = await proxy.get("/v1/usage")
        again = await proxy.get("/v1/usage?by=model,endpoint", headers=bearer(KEYS["acme"]))

    assert acme.headers["content-type"] == "application/jsonl"
    (row,) = rows_of(acme.body)
    assert (row["requests"], row["endpoint"]) == (2, "/v1/chat/completions")
    assert row["counted_output"] > 0
    assert again.body == acme.body
    (told,) = csv.DictReader(io.StringIO(globex.body.decode()))
    assert told["requests"] == "1"
    assert "tenant" not in told
    assert nobody.status == 401


@pytest.mark.parametrize(
    ("query", "param", "words"),
    [
        ("tenant=globex", "tenant", "no parameter"),
        ("by=tenant", "by", "cannot be grouped by `tenant`"),
        ("by=credential", "by", "cannot be grouped"),
        ("by=day,hour", "by", "one span of time"),
        ("period=2026-13", "period", "no period"),
        ("period=2026&since=2026-01-01", "period", "or `since` and `until`"),
        ("since=yesterday", "since", "must be a moment"),
        ("time_zone=Mars", "time_zone", "no time zone"),
        ("format=xlsx", "format", "jsonl, csv"),
        ("table=secrets", "table", "usage, open"),
    ],
)
async def test_a_wrong_parameter_is_named(query: str, param: str, words: str, tmp_path: Path) -> None:
    """The contract's error body, with what may be written."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.get(f"/v1/usage?{query}")
    assert reply.status == 400
    error = error_of(reply)
    assert (error["code"], error["param"]) == ("invalid_parameter", param)
    assert words in str(error["message"])


async def test_a_period_bounds_what_is_told(tmp_path: Path) -> None:
    """A year without an attempt has no rows, and no error."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        assert (await proxy.ask()).is_done
        reply = await proxy.get("/v1/usage?period=2020&time_zone=Asia/Tehran")
        all_of_it = await proxy.get("/v1/usage?by=week&table=usage", headers={"accept": "text/csv"})
    assert (reply.status, reply.body) == (200, b"")
    assert all_of_it.headers["content-type"] == "text/csv; charset=utf-8"
    assert all_of_it.body.count(b"\r\n") == 2
