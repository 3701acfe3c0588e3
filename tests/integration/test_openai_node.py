"""The npm package `openai` against the proxy: streams, tools, each error as the right exception, no wrong retry.

One small script (tests/clients/node) runs all cases in one process and prints a JSON line for each; every case has an
upstream of its own, so how often it was asked proves what was retried (contract W1, W4, W6, W8, E).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.answers import (
    ROLE,
    SCRIPTS,
    USAGE,
    answer,
    broken_off,
    chunk,
    completion,
    plain,
    say,
    vendor_error,
)
from tests.support.needs import needs
from tests.support.node import install, run_script
from tests.support.proxy import running_proxy
from tests.support.upstream import Play, ReplayUpstream, play_events

pytestmark = [pytest.mark.clause("W1", "W4", "W6", "W8", "E"), needs("npm")]

CALL = chunk(
    {"tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "weather", "arguments": ""}}]}
)


def arguments(piece: str) -> bytes:
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})


@dataclass(frozen=True)
class Case:
    """What the upstream plays, how it is asked, what must come, and how often the upstream is asked."""

    plays: tuple[Play, ...]
    wanted: Mapping[str, object]
    kind: str = "streamed"
    retries: int = 1
    asked: int = 1


def failed(exception: str, status: int | None, code: str, text: str = "") -> dict[str, object]:
    return {"text": text, "error": {"exception": exception, "isAPIError": True, "status": status, "code": code}}


def whole(text: str) -> dict[str, object]:
    return {"text": text, "finish": "stop", "usage": USAGE, "error": None}


ERROR_EVENT = b'{"error":{"message":"?","code":"server_error"}}'
CASES: Final[Mapping[str, Case]] = {
    **{name: Case((answer(*pieces),), whole("".join(pieces))) for name, pieces in SCRIPTS.items()},
    "plain": Case((plain(completion("你好 👋🏽")),), whole("你好 👋🏽"), kind="plain"),
    "tools": Case(
        (play_events(ROLE, CALL, arguments('{"city":"ته'), arguments('ران"}'), chunk({}, "tool_calls")),),
        {"calls": [["call_a", "weather", '{"city":"تهران"}']], "finish": "tool_calls", "error": None},
        kind="tools",
    ),
    "our key": Case(
        (vendor_error(401, "invalid_api_key", "No."),), failed("InternalServerError", 502, "invalid_credential")
    ),
    "no money": Case(
        (vendor_error(429, "insufficient_quota", "Pay."),), failed("InternalServerError", 502, "insufficient_quota")
    ),
    "slow down for hours": Case(
        (vendor_error(429, "rate_limit_exceeded", "Slow.", headers=[("retry-after", "7200")]),),
        failed("RateLimitError", 429, "rate_limited"),
    ),
    "slow down": Case(
        (vendor_error(429, "rate_limit_exceeded", "Slow.", headers=[("retry-after", "1")]), answer("안녕")),
        whole("안녕"),
        asked=2,
    ),
    "blocked": Case(
        (vendor_error(400, "content_policy_violation", "No."),), failed("BadRequestError", 400, "content_filter")
    ),
    "too long": Case(
        (vendor_error(400, "context_length_exceeded", "Long."),),
        failed("BadRequestError", 400, "context_length_exceeded"),
    ),
    "overloaded": Case(
        (vendor_error(503, "server_error", "Busy."),), failed("InternalServerError", 503, "server_error"), asked=2
    ),
    "plain and overloaded": Case(
        (vendor_error(503, "server_error", "Busy."),),
        failed("InternalServerError", 503, "server_error"),
        kind="plain",
        asked=2,
    ),
    "no answer": Case((Play([]),), failed("InternalServerError", 504, "stream_cut"), asked=2),
    "cured": Case(
        (Play(end="reset"), vendor_error(500, "server_error", "?"), answer("你好")), whole("你好"), retries=2, asked=3
    ),
    "error midway": Case(
        (play_events(ROLE, say("سلام "), ERROR_EVENT),), failed("APIError", None, "server_error", "سلام ")
    ),
    "end midway": Case((broken_off("سلام ", end="close"),), failed("APIError", None, "stream_cut", "سلام ")),
    "cut midway": Case((broken_off("سلام ", end="abort"),), failed("APIError", None, "stream_cut", "سلام ")),
    "reset midway": Case((broken_off("سلام ", end="reset"),), failed("APIError", None, "stream_cut", "سلام ")),
    "silence": Case((Play(broken_off("سلام ").reads, end="hang"),), failed("APIError", None, "idle_timeout", "سلام ")),
    "left": Case((Play(broken_off("سلام ").reads, end="hang"),), {"text": "سلام ", "error": None}, kind="left"),
}


@pytest.fixture(scope="module", autouse=True)
def npm() -> None:
    install()


async def test_every_case_is_what_the_package_should_see(tmp_path: Path) -> None:
    """Texts whole, tool calls parsed, exceptions by their names, and nothing asked twice that must not be."""
    deadlines = {"deadlines": {"idle": 0.5}}
    cases = [{"name": name, "model": name, "kind": case.kind, "retries": case.retries} for name, case in CASES.items()]
    async with AsyncExitStack() as stack:
        upstreams = {name: await stack.enter_async_context(ReplayUpstream(*case.plays)) for name, case in CASES.items()}
        urls = {name: upstream.base_url for name, upstream in upstreams.items()}
        proxy = await stack.enter_async_context(running_proxy(tmp_path, urls, upstream=deadlines))
        seen = await run_script("client.mjs", proxy.base_url, cases)
        rows = await proxy.rows(sum(case.asked for case in CASES.values()))
        asked = {name: len(upstream.hits) for name, upstream in upstreams.items()}

    assert asked == {name: case.asked for name, case in CASES.items()}
    traces = {row["trace_id"]: row["upstream"] for row in rows}
    for name, case in CASES.items():
        error = seen[name]["error"]
        if error is not None:
            assert traces[error.pop("trace")] == name
            assert error.pop("type") == next(row["error_class"] for row in rows if row["upstream"] == name)
        assert {field: seen[name][field] for field in case.wanted} == case.wanted, name
    assert [row["ending"] for row in rows if row["upstream"] == "left"] == ["client_gone"]
