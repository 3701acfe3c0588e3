"""Headers pass by allow-list, both ways; redirects are not followed (contract Q2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers import ROLE, STOP, completion, encode, events, say, vendor_error
from tests.support.client import Reply
from tests.support.proxy import OUR_KEY, chat, running_proxy
from tests.support.upstream import JSON, SSE, Play, ReplayUpstream

pytestmark = pytest.mark.clause("Q2")

THEIRS = {
    "authorization": "Bearer callers-own-key",
    "proxy-authorization": "Basic callers-own",
    "cookie": "session=callers-own",
    "x-api-key": "callers-own",
    "api-key": "callers-own",
    "x-forwarded-for": "10.1.2.3",
    "forwarded": "for=10.1.2.3",
    "openai-organization": "org-callers-own",
    "user-agent": "callers-own/1.0",
    "x-anything": "callers-own",
    "accept-encoding": "gzip",
}
PASSED = {
    "openai-beta": "assistants=v2",
    "idempotency-key": "k-1",
    "http-referer": "https://app.example",
    "x-title": "t",
}
VENDORS = [
    ("set-cookie", "vendor=1; Path=/"),
    ("server", "vendor"),
    ("x-ratelimit-remaining-tokens", "12"),
    ("openai-organization", "org-of-ours"),
    ("authorization", f"Bearer {OUR_KEY}"),
    ("x-request-id", "req-vendor-1"),
    ("via", "1.1 vendor"),
    ("access-control-allow-origin", "*"),
    ("x-trace-id", "the-vendors"),
]
OURS = {"content-type", "x-trace-id", "x-request-id", "request-id", "date", "server"}


def said(*, stream: bool) -> Play:
    if stream:
        return Play([(0.0, events([ROLE, say("你好"), STOP, b"[DONE]"]))], headers=[*SSE, *VENDORS])
    return Play([(0.0, encode(completion("你好")))], headers=[*JSON, *VENDORS])


@pytest.mark.parametrize("stream", [True, False])
async def test_a_vendor_sees_what_it_may(tmp_path: Path, stream: bool) -> None:
    """Our key in place of the caller's, the few headers that pass, and nothing else of the caller's."""
    async with ReplayUpstream(said(stream=stream)) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        await proxy.ask(chat(stream=stream), headers={**THEIRS, **PASSED})

    seen = upstream.hits[0].headers
    assert seen["authorization"] == f"Bearer {OUR_KEY}"
    assert {name: seen.get(name) for name in PASSED} == PASSED
    assert not any("callers-own" in value or "10.1.2.3" in value for value in seen.values())
    assert set(seen) == {
        *("host", "user-agent", "accept", "accept-encoding", "authorization"),
        *("content-type", "content-length", "x-request-id", *PASSED),
    }
    assert seen["accept-encoding"] == ("identity" if stream else "gzip, deflate, br")


def check_caller_sees_ours_only(reply: Reply, more: set[str]) -> None:
    assert set(reply.headers) == OURS | more
    assert OUR_KEY not in str(reply.headers)
    assert "aiohttp" not in reply.headers["server"].lower()
    assert reply.headers["server"] != "vendor"
    assert reply.headers["x-trace-id"] != "the-vendors"


async def test_a_caller_sees_no_header_of_the_vendor(tmp_path: Path) -> None:
    """Streamed, plain or an error: the head is ours alone, and says nothing of what we run on."""
    refused = vendor_error(429, "rate_limit_exceeded", "Slow down.", headers=[*VENDORS, ("retry-after", "3")])
    async with (
        ReplayUpstream(said(stream=True), said(stream=False), refused) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
    ):
        streamed = await proxy.ask()
        plain = await proxy.ask(chat(stream=False))
        error = await proxy.ask()
        rows = await proxy.rows(3)

    check_caller_sees_ours_only(streamed, {"cache-control", "x-accel-buffering", "transfer-encoding"})
    check_caller_sees_ours_only(plain, {"content-length"})
    check_caller_sees_ours_only(error, {"content-length", "x-should-retry", "retry-after"})
    assert {row["vendor_request_id"] for row in rows} == {"req-vendor-1"}


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """Our key does not go where a vendor points; the caller is not told where that was."""
    statuses = [301, 302, 303, 307, 308]
    async with ReplayUpstream(said(stream=True)) as elsewhere:
        headers = [("location", f"{elsewhere.base_url}/chat/completions"), ("content-type", "text/html")]
        plays = [Play([(0.0, b"<html>moved</html>")], status=status, headers=headers) for status in statuses]
        async with ReplayUpstream(*plays) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
            replies = [await proxy.ask() for _ in statuses]
            rows = await proxy.rows(len(statuses))
        assert elsewhere.hits == []

    assert [(row["ending"], row["upstream_status"]) for row in rows] == [("vendor_error", each) for each in statuses]
    for reply, status in zip(replies, statuses, strict=True):
        assert 400 <= reply.status < 600
        assert "location" not in reply.headers
        assert str(elsewhere.port) not in reply.body.decode()
        assert reply.json["error"]["upstream"]["status"] == status  # type: ignore[index]  # JSON


async def test_a_cookie_is_not_kept_for_the_next_request(tmp_path: Path) -> None:
    """What a vendor sets for one caller's request must not come back with another's."""
    async with ReplayUpstream(said(stream=True)) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        for _ in range(2):
            await proxy.ask()

    assert len(upstream.hits) == 2
    assert all("cookie" not in hit.headers for hit in upstream.hits)


async def test_a_configured_header_goes_along(tmp_path: Path) -> None:
    """`headers:` of an upstream are ours, and win over what a caller may set."""
    async with ReplayUpstream(said(stream=True)) as upstream:
        ours = {"headers": {"X-Title": "sluice", "x-vendor-project": "p-1"}}
        async with running_proxy(tmp_path, upstream.base_url, upstream=ours) as proxy:
            await proxy.ask(headers={"x-title": "callers", "x-vendor-project": "callers"})

    seen = upstream.hits[0].headers
    assert (seen["x-title"], seen["x-vendor-project"]) == ("sluice", "p-1")
