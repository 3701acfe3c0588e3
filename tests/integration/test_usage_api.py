"""`/v1/usage`: a tenant sees its own figures and nobody else's (contract C3, L4)."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proxy.books.source import LiveLedger
from proxy.server import usage
from proxy.stores.ledger_sql import Database
from proxy.stores.schema import upgrade
from tests.integration.test_auth import AUTH, KEYS, bearer, error_of
from tests.support.answers import answer
from tests.support.books import attempt, values_of
from tests.support.proxy import running_proxy
from tests.support.upstream import ReplayUpstream

pytestmark = pytest.mark.clause("C3")


def written(url: str, count: int) -> list[str]:
    """The ids of so many attempts of the only tenant, all of one moment."""
    rows = [attempt(datetime(2026, 10, 5, tzinfo=UTC), tenant="default") for _ in range(count)]
    upgrade(url)
    database = Database(url)
    with database.transaction():
        database.write((), [values_of(row) for row in rows])
    database.close()
    return [row["attempt_id"] for row in rows]


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
        ("detail=everything", "detail", "must be attempts"),
        ("detail=attempts&by=model", "by", "is for groups"),
        ("detail=attempts&table=open", "table", "is for groups"),
        ("detail=attempts&period=2026&until=2026-01-01", "period", "or `since` and `until`"),
        ("detail=attempts&upstream=main", "upstream", "no parameter"),
        ("since=2026-02-01&until=2026-01-01", "until", "earlier than `since`"),
        ("vendor=%20,", "vendor", "must name one"),
        ("model=a&model=b", "model", "stands twice"),
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


async def test_a_tenant_reads_its_single_attempts(tmp_path: Path) -> None:
    """The row of the export, without the operator's part; what the journal alone has is there at once."""
    async with (
        ReplayUpstream(answer("سلام دنیا")) as upstream,
        running_proxy(tmp_path, upstream.base_url, auth=AUTH) as proxy,
    ):
        for number, tenant in enumerate(("globex", "acme", "acme")):
            headers = {**bearer(KEYS[tenant]), "x-request-id": f"{tenant}-{number}"}
            assert (await proxy.ask(headers=headers)).is_done
        acme = await proxy.get("/v1/usage?detail=attempts", headers=bearer(KEYS["acme"]))
        table = await proxy.get("/v1/usage?detail=attempts&format=csv&vendor=openai", headers=bearer(KEYS["globex"]))
        nothing = await proxy.get("/v1/usage?detail=attempts&period=2020", headers=bearer(KEYS["acme"]))
        groups = await proxy.get("/v1/usage?by=vendor&vendor=nobody", headers=bearer(KEYS["acme"]))
        nobody = await proxy.get("/v1/usage?detail=attempts")

    assert acme.headers["content-type"] == "application/jsonl"
    rows = rows_of(acme.body)
    assert [row["request_id"] for row in rows] == ["acme-1", "acme-2"]
    assert {(row["tenant"], row["ending"], row["vendor"]) for row in rows} == {("acme", "completed", "openai")}
    for body in (acme.body, table.body):
        assert b"main-key" not in body
        assert b'"main"' not in body
    (told,) = csv.DictReader(io.StringIO(table.body.decode()))
    assert (told["request_id"], told["tenant"]) == ("globex-0", "globex")
    assert (nothing.status, nothing.body) == (200, b"")
    assert (groups.status, groups.body) == (200, b"")
    assert nobody.status == 401


async def test_many_attempts_leave_in_pieces_and_what_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer of several pieces is whole; one over the limit is told as an error, not as a part of the truth."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    rows = await asyncio.to_thread(written, url, 400)
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.get("/v1/usage?detail=attempts")
        assert len(reply.body) > 5 * 64 * 1024
        assert [row["attempt_id"] for row in rows_of(reply.body)] == rows
        monkeypatch.setattr(usage, "MAX_ANSWER_BYTES", len(reply.body))
        assert (await proxy.get("/v1/usage?detail=attempts")).body == reply.body
        monkeypatch.setattr(usage, "MAX_ANSWER_BYTES", len(reply.body) - 1)
        refused = await proxy.get("/v1/usage?detail=attempts")
        assert (refused.status, error_of(refused)["code"]) == (503, "ledger_unavailable")


def test_memory_does_not_grow_with_the_attempts(tmp_path: Path) -> None:
    """Four times as many take no more of it: a row at a time, and the answer in a file."""
    peaks = []
    for count in (1_000, 4_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        place = LiveLedger(f"sqlite:///{folder}/ledger.db", folder / "journals")
        written(place.url, count)
        asked = usage.parse_query({"detail": "attempts"}, "", "default")
        assert isinstance(asked, usage.Asked)
        tracemalloc.start()
        told = usage.answer(place, asked)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert bytes(told.body).count(b"\n") == count
    assert peaks[1] < 1.2 * peaks[0] < 4_000_000
