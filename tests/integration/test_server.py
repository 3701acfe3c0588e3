"""The stream over real HTTP, through the production runner: head, events, commit point, errors, and the plain form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.answers import (
    ROLE,
    SCRIPTS,
    STOP,
    USAGE,
    VENDOR_MODEL,
    VENDOR_USAGE,
    answer,
    broken_off,
    chunk,
    completion,
    events,
    plain,
    say,
    vendor_error,
)
from tests.support.client import BodyEnd
from tests.support.proxy import MODEL, chat, running_proxy
from tests.support.upstream import Play, ReplayUpstream, play_events

FENCED = ("``", "`json\n", '{"سلام": ', '"دنیا"}', "\n``", "`")
ASKED_JSON = {"response_format": {"type": "json_object"}}


@pytest.mark.clause("W1", "W4", "W5")
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_stream_leaves_clean(tmp_path: Path, script: str) -> None:
    """One `data:` line and a blank line per event, one role first, one finish last, `[DONE]`, and the text is whole."""
    pieces = SCRIPTS[script]
    async with ReplayUpstream(answer(*pieces)) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(chat("سلام"))

    assert (reply.status, reply.end) == (200, BodyEnd.WHOLE)
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert len(reply.headers["x-trace-id"]) == 32
    assert reply.body.endswith(b"data: [DONE]\n\n")
    assert b"\r" not in reply.body
    assert all(block.startswith(b"data: ") and b"\n" not in block for block in reply.blocks)
    assert reply.text == "".join(pieces)
    choices = [event["choices"][0] for event in reply.events]  # type: ignore[index]  # JSON
    assert [choice["delta"].get("role") for choice in choices] == ["assistant", *[None] * (len(choices) - 1)]
    assert [choice["finish_reason"] for choice in choices] == [*[None] * (len(choices) - 1), "stop"]
    assert {(event["id"], event["created"], event["model"]) for event in reply.events} == {
        ("chatcmpl-v1", 1_772_000_000, VENDOR_MODEL)
    }


@pytest.mark.clause("W4")
@pytest.mark.parametrize("asked", [True, False])
async def test_usage_is_always_asked_for_and_shown_to_who_asked(tmp_path: Path, asked: bool) -> None:
    """The vendor is asked for usage in any case; the client gets the one usage chunk only if it asked."""
    options = {"stream_options": {"include_usage": True}} if asked else {}
    async with ReplayUpstream(answer("안녕")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(chat("안녕") | options)
        row = await proxy.row()

    sent = json.loads(upstream.hits[0].body)
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["model"] == MODEL
    told = [(event["choices"], event["usage"]) for event in reply.events if event.get("usage")]
    assert told == ([([], USAGE)] if asked else [])
    assert reply.is_done
    assert row["vendor_usage"] == USAGE


@pytest.mark.clause("W4")
async def test_a_vendor_without_usage_leaves_our_count(tmp_path: Path) -> None:
    """Where the vendor says nothing, the usage chunk is our own count and says so."""
    upstream_says = play_events(ROLE, say("你好，世界"), STOP)
    asked = chat("你好", stream_options={"include_usage": True})
    async with ReplayUpstream(upstream_says) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        usage = (await proxy.ask(asked)).events[-1]["usage"]
        row = await proxy.row()

    assert isinstance(usage, dict)
    assert usage["estimated"] is True
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (row["counted"]["input"], row["counted"]["output"])
    assert usage["completion_tokens"] > 0
    assert row["vendor_usage"] is None


@pytest.mark.clause("W6")
async def test_there_is_no_head_before_progress(tmp_path: Path) -> None:
    """Comments, a role and empty deltas move nothing; the first text brings head and role along."""
    beats = b": still here\n\n" + events([ROLE, chunk({}), chunk({"content": ""})])
    play = Play([(0.0, beats), (0.25, events([say("你好")])), (0.0, events([STOP, b"[DONE]"]))])
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask()

    assert reply.reads[0].t >= 0.24
    assert reply.text == "你好"
    assert [event["choices"][0]["delta"] for event in reply.events] == [  # type: ignore[index]  # JSON
        {"role": "assistant", "content": ""},
        {"content": "你好"},
        {},
    ]


ERRORS = {
    "slow down": (
        vendor_error(429, "rate_limit_exceeded", "Slow down.", headers=[("retry-after", "20")]),
        (429, "rate_limited", "true", "20"),
    ),
    "slow down for hours": (
        vendor_error(429, "rate_limit_exceeded", "Slow down.", headers=[("retry-after", "7200")]),
        (429, "rate_limited", "false", "7200"),
    ),
    "our key is wrong": (
        vendor_error(401, "invalid_api_key", "Incorrect API key."),
        (502, "auth_failure", "false", None),
    ),
    "no money": (
        vendor_error(429, "insufficient_quota", "You exceeded your current quota."),
        (502, "auth_failure", "false", None),
    ),
    "blocked": (
        vendor_error(400, "content_policy_violation", "Your request was rejected."),
        (400, "content_blocked", "false", None),
    ),
    "too long": (
        vendor_error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
        (400, "invalid_request", "false", None),
    ),
    "no such model": (
        vendor_error(404, "model_not_found", "The model does not exist."),
        (503, "model_unavailable", "true", None),
    ),
    "broken": (
        vendor_error(500, "server_error", "The server had an error."),
        (503, "model_unavailable", "true", None),
    ),
    "a gateway's page": (
        Play(
            [(0.0, b"<html><head><title>502 Bad Gateway</title></head><center>nginx</center></html>")],
            status=502,
            headers=[("content-type", "text/html")],
        ),
        (503, "model_unavailable", "true", None),
    ),
    "an error inside a 200": (
        plain({"error": {"message": "Slow down.", "type": "requests", "code": "rate_limit_exceeded"}}),
        (429, "rate_limited", "true", "2"),
    ),
    "an error as the first event": (
        play_events('{"error":{"message":"The server had an error.","code":"server_error"}}'),
        (503, "model_unavailable", "true", None),
    ),
    "nothing inside a 200": (Play([]), (504, "upstream_timeout", "true", None)),
    "cut before any text": (broken_off(end="reset"), (504, "upstream_timeout", "true", None)),
}


FIELDS = {"message", "type", "code", "param", "retryable", "retry_after", "upstream", "trace_id"}


@pytest.mark.clause("W6", "E")
@pytest.mark.parametrize("case", ERRORS)
async def test_an_error_before_the_commit_point_is_a_status(tmp_path: Path, case: str) -> None:
    """Streamed or plain: status, headers and every field of the error body; nothing of it is an event stream."""
    play, (status, error_class, should_retry, retry_after) = ERRORS[case]
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        replies = [await proxy.ask(chat("سلام", stream=stream)) for stream in (True, False)]
        rows = await proxy.rows(2)

    assert [row["streamed"] for row in rows] == [True, False]
    for reply, row in zip(replies, rows, strict=True):
        assert (reply.status, reply.end) == (status, BodyEnd.WHOLE)
        assert reply.headers["content-type"] == "application/json"
        assert (reply.headers["x-should-retry"], reply.headers.get("retry-after")) == (should_retry, retry_after)
        error = reply.json["error"]
        assert isinstance(error, dict)
        assert set(error) == FIELDS
        assert error["type"] == error_class
        assert error["message"]
        assert error["code"]
        assert error["param"] is None
        assert error["retryable"] is (should_retry == "true")
        assert json.dumps(error["retry_after"]) == (retry_after or "null")
        assert error["trace_id"] == reply.headers["x-trace-id"] == row["trace_id"]
        assert (error["upstream"]["name"], error["upstream"]["status"]) == ("main", play.status)
        assert (row["error_class"], row["error_code"]) == (error["type"], error["code"])
        assert row["ending"] in ("vendor_error", "stream_cut")


LATE_ERRORS = {
    "a vendor's error": (
        play_events(ROLE, say("سلام "), b'{"error":{"message":"Something broke.","code":"server_error"}}'),
        ("model_unavailable", "server_error", "vendor_error"),
    ),
    "a proper end without a finish": (
        broken_off("سلام ", end="close"),
        ("upstream_timeout", "stream_cut", "stream_cut"),
    ),
    "a closed connection": (broken_off("سلام ", end="abort"), ("upstream_timeout", "stream_cut", "stream_cut")),
    "a reset": (broken_off("سلام ", end="reset"), ("upstream_timeout", "stream_cut", "stream_cut")),
    "half an event": (
        Play([(0.0, events([ROLE, say("سلام ")])), (0.0, b'data: {"id":"x","choices":[{"delta":{"con')]),
        ("upstream_timeout", "stream_cut", "stream_cut"),
    ),
    "an event that is no JSON": (
        play_events(ROLE, say("سلام "), b'{"choices":[{"delta":{"content":"x"}', STOP),
        ("model_unavailable", "malformed_event", "vendor_error"),
    ),
}


@pytest.mark.clause("W6")
@pytest.mark.parametrize("case", LATE_ERRORS)
async def test_an_error_after_the_commit_point_is_an_event(tmp_path: Path, case: str) -> None:
    """Head and text stand; then one error event, a proper end of the body, and no `[DONE]`."""
    play, (error_class, code, ending) = LATE_ERRORS[case]
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask()
        row = await proxy.row()

    assert (reply.status, reply.end) == (200, BodyEnd.WHOLE)
    assert reply.text == "سلام "
    error = reply.events[-1]["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["code"]) == (error_class, code)
    assert error["trace_id"] == reply.headers["x-trace-id"]
    assert [event.get("error") for event in reply.events[:-1]] == [None] * (len(reply.events) - 1)
    assert b"[DONE]" not in reply.body
    assert (row["ending"], row["error_class"], row["error_code"]) == (ending, error_class, code)
    assert row["events_out"] == len(reply.events)


@pytest.mark.clause("W4")
async def test_a_plain_answer_passes_with_its_unknown_fields(tmp_path: Path) -> None:
    """`stream: false` is asked as such, and the one JSON body keeps what we do not know."""
    body = completion("你好，世界 👋🏽", annotations=[{"type": "url_citation"}]) | {"system_fingerprint": "fp_1"}
    async with ReplayUpstream(plain(body)) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(chat("你好", stream=False, vendor_knob={"深": 1}))
        row = await proxy.row()

    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json == body
    sent = json.loads(upstream.hits[0].body)
    assert (sent["stream"], sent["vendor_knob"]) == (False, {"深": 1})
    assert "stream_options" not in sent
    assert upstream.hits[0].headers["accept"] == "application/json"
    assert row["trace_id"] == reply.headers["x-trace-id"]
    assert (row["ending"], row["streamed"], row["vendor_usage"]) == ("completed", False, USAGE)


@pytest.mark.clause("W4")
async def test_a_stream_that_nobody_asked_for_becomes_one_body(tmp_path: Path) -> None:
    """Some vendors stream whatever was asked: the client still gets the one JSON body that it wanted."""
    async with (
        ReplayUpstream(answer(*SCRIPTS["hindi"])) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
    ):
        reply = await proxy.ask(chat("नमस्ते", stream=False))

    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json["object"] == "chat.completion"
    assert reply.text == "".join(SCRIPTS["hindi"])
    assert reply.json["usage"] == USAGE
    assert reply.json["choices"][0]["finish_reason"] == "stop"  # type: ignore[index]  # JSON


@pytest.mark.clause("W4", "W5")
async def test_one_body_becomes_the_stream_that_was_asked_for(tmp_path: Path) -> None:
    """And some answer a stream request with one JSON body: the client still gets events."""
    async with (
        ReplayUpstream(plain(completion("سلام دنیا"))) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
    ):
        reply = await proxy.ask(chat("سلام", stream_options={"include_usage": True}))

    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.text == "سلام دنیا"
    assert {event["object"] for event in reply.events} == {"chat.completion.chunk"}
    assert reply.events[-1]["usage"] == USAGE
    assert reply.is_done


@pytest.mark.clause("C4")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_fence_around_json_is_taken_off_and_the_head_says_so(tmp_path: Path, stream: bool) -> None:
    """Asked for JSON, the client gets JSON; the header names the repair; the row counts what the vendor sent."""
    play = answer(*FENCED) if stream else plain(completion("".join(FENCED)))
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        reply = await proxy.ask(chat("سلام", stream=stream) | ASKED_JSON)
        row = await proxy.row()

    assert json.loads(reply.text) == {"سلام": "دنیا"}
    assert reply.headers["x-sluice-repaired"] == "fences"
    assert row["delivered_output"] < row["counted"]["output"]


@pytest.mark.clause("C4")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("asked", "config"), [({}, {}), (ASKED_JSON, {"json": {"repair": "none"}})], ids=["not asked", "switched off"]
)
async def test_a_fence_stays_where_it_may(
    tmp_path: Path, stream: bool, asked: dict[str, object], config: dict[str, object]
) -> None:
    """Who did not ask for JSON, or runs without repair, gets the text as the model wrote it."""
    play = answer(*FENCED) if stream else plain(completion("".join(FENCED)))
    async with ReplayUpstream(play) as upstream, running_proxy(tmp_path, upstream.base_url, **config) as proxy:
        reply = await proxy.ask(chat("سلام", stream=stream) | asked)

    assert reply.text == "".join(FENCED)
    assert "x-sluice-repaired" not in reply.headers


@pytest.mark.clause("L1", "W5")
async def test_the_row_is_there_when_done_is_seen(tmp_path: Path) -> None:
    """Whoever has read `[DONE]` finds the closed row at once: it was durable before."""
    async with ReplayUpstream(answer("سلام")) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        for number in range(1, 4):
            assert (await proxy.ask()).is_done
            assert [row["ending"] for row in await proxy.rows_now()] == ["completed"] * number


@pytest.mark.clause("W5")
async def test_what_comes_after_the_finish_is_waited_for_and_no_longer(tmp_path: Path) -> None:
    """Usage after the finish is taken along; a vendor that then neither ends nor speaks is left in time."""
    play = Play([(0.0, events([ROLE, say("你好"), STOP])), (0.1, events([VENDOR_USAGE]))], end="hang")
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream={"after_finish_s": 0.3}) as proxy,
    ):
        reply = await proxy.ask()
        row = await proxy.row()
        hit = await upstream.hits[0].wait_over()

    assert reply.is_done
    assert (row["ending"], row["vendor_usage"]) == ("completed", USAGE)
    assert hit.gone_at is not None
    assert 0.3 <= reply.reads[-1].t < 1.0
