"""One id from the caller to the vendor, the row and the log (contract Q2, C5)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.answers import answer, vendor_error
from tests.support.proxy import MODEL, chat, running_proxy, served_proxy
from tests.support.upstream import ReplayUpstream

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
HEX = re.compile(r"[0-9a-f]{32}")


Wanted = str | re.Pattern[str]
CASES: list[tuple[dict[str, str], Wanted, Wanted]] = [
    ({"traceparent": PARENT, "x-request-id": "req-7.a:b/c_1"}, TRACE, "req-7.a:b/c_1"),
    ({"traceparent": PARENT}, TRACE, HEX),
    ({"x-request-id": "req-7"}, "req-7", "req-7"),
    ({}, HEX, HEX),
    ({"traceparent": PARENT.replace(TRACE, "0" * 32), "x-request-id": "req-7"}, "req-7", "req-7"),
    ({"traceparent": PARENT.upper(), "x-request-id": "req-7"}, "req-7", "req-7"),
    ({"traceparent": "what", "x-request-id": "two words"}, HEX, HEX),
    ({"x-request-id": "r" * 129}, HEX, HEX),
    ({"x-request-id": '"><script>'}, HEX, HEX),
]


def is_wanted(wanted: Wanted, found: str) -> bool:
    return found == wanted if isinstance(wanted, str) else wanted.fullmatch(found) is not None


@pytest.mark.clause("Q2", "C5")
async def test_the_callers_ids_are_kept(tmp_path: Path) -> None:
    """Where they are well formed; else they are made. Response, row, error body and vendor see the same."""
    plays = [answer("سلام")] * len(CASES) + [vendor_error(500, "server_error", "Something broke.")]
    async with ReplayUpstream(*plays) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        good = [await proxy.ask(headers=sent) for sent, _, _ in CASES]
        bad = [await proxy.ask(chat(stream=False), headers=sent) for sent, _, _ in CASES]
        rows = await proxy.rows(2 * len(CASES))

    assert all(reply.json["error"]["trace_id"] == reply.headers["x-trace-id"] for reply in bad)  # type: ignore[index]
    for (sent, trace_id, request_id), reply, row, hit in zip(CASES * 2, good + bad, rows, upstream.hits, strict=True):
        assert reply.headers["x-trace-id"] == row["trace_id"]
        assert hit.headers["x-request-id"] == row["request_id"]
        # Where OpenAI's SDKs look, and Anthropic's.
        assert reply.headers["x-request-id"] == reply.headers["request-id"] == row["request_id"]
        assert hit.headers.get("traceparent") == (PARENT if trace_id == TRACE else None)
        assert is_wanted(trace_id, row["trace_id"]), sent
        assert is_wanted(request_id, row["request_id"]), sent
    made = [row["request_id"] for row in rows if HEX.fullmatch(row["request_id"])]
    assert len(set(made)) == len(made)


@pytest.mark.clause("C5", "L3")
async def test_each_attempt_is_one_line_of_the_log(tmp_path: Path) -> None:
    """JSON with the trace id, the ending and no word of prompt or answer; nothing else on standard output."""
    plays = (answer("حالِ شما چطور است؟"), vendor_error(429, "rate_limit_exceeded", "Slow down."))
    async with ReplayUpstream(*plays) as upstream, served_proxy(tmp_path, upstream.base_url) as proxy:
        for number in range(2):
            await proxy.ask(chat("نام من چیست؟"), headers={"traceparent": PARENT, "x-request-id": f"req-{number}"})
        rows = await proxy.rows(2)
        await proxy.said('"event":"attempt"', times=2)
        lines = proxy.log_lines
        text = proxy.log.read_text() + proxy.errors.read_text()

    attempts = [line for line in lines if line["event"] == "attempt"]
    assert [(line["trace_id"], line["request_id"], line["attempt_id"]) for line in attempts] == [
        (TRACE, row["request_id"], row["attempt_id"]) for row in rows
    ]
    assert [(line["ending"], line["error_class"], line["status"]) for line in attempts] == [
        ("completed", None, 200),
        ("vendor_error", "rate_limited", 429),
    ]
    assert {(line["tenant"], line["upstream"], line["model"], line["level"]) for line in attempts} == {
        ("default", "main", MODEL, "info")
    }
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line["timestamp"]) for line in lines)
    assert "چطور" not in text
    assert "نام" not in text
    assert [line["event"] for line in lines if line["event"] != "attempt"] == ["serving"]
