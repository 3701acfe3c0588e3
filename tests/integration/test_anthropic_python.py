"""anthropic-python against the proxy: every vendor's recorded answers, errors as the right exception, retries, hang-up.

The package is used as an application uses it, over `/v1/messages`, whatever API the vendor behind it speaks
(contract D1, W4, W6, W8, E).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import Message, MessageParam, ToolParam

from proxy.stores.recordings import Recording
from tests.support.answers import (
    ROLE,
    SCRIPTS,
    STOP,
    USAGE,
    answer,
    broken_off,
    completion,
    plain,
    say,
    vendor_error,
)
from tests.support.decoders import Said
from tests.support.proxy import ALIAS, Proxy, running_proxy
from tests.support.recorded import (
    answers,
    ask_all,
    asks_stream,
    complaints,
    expect_none,
    failed_otherwise,
    failures,
    recorded_proxy,
    wants_tools,
)
from tests.support.upstream import Play, ReplayUpstream, play_events

ANSWERS: Final = answers()  # read here, where no loop waits
FAILURES: Final = failures(but="openai")
ASK: list[MessageParam] = [{"role": "user", "content": "سلام"}]
TOOLS: list[ToolParam] = [
    {
        "name": "weather",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
#: What an HTTP answer of each class is raised as; `invalid_request` is several.
EXCEPTIONS: Final[Mapping[str, tuple[type[anthropic.APIStatusError], ...]]] = {
    "auth_failure": (anthropic.InternalServerError,),
    "rate_limited": (anthropic.RateLimitError,),
    "content_blocked": (anthropic.BadRequestError,),
    "upstream_timeout": (anthropic.GatewayTimeoutError,),
    "model_unavailable": (anthropic.ServiceUnavailableError,),
    "invalid_request": (
        anthropic.BadRequestError,
        anthropic.NotFoundError,
        anthropic.ContentTooLargeError,
        anthropic.UnprocessableEntityError,
    ),
}
_FINISH = {
    **{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"},
    **{"tool_use": "tool_calls", "refusal": "content_filter"},
}


@asynccontextmanager
async def client_of(proxy: Proxy, retries: int = 0, key: str = "none") -> AsyncIterator[AsyncAnthropic]:
    base_url = proxy.base_url.removesuffix("/v1")
    async with AsyncAnthropic(base_url=base_url, api_key=key, max_retries=retries, timeout=20) as client:
        yield client


def said_by(message: Message) -> Said:
    said = Said(model=message.model, finish=_FINISH.get(message.stop_reason or ""))
    for block in message.content:
        match block.type:
            case "text":
                said.text += block.text
            case "thinking":
                said.reasoning += block.thinking
            case "tool_use":
                said.calls.append((block.id, block.name, json.dumps(block.input, ensure_ascii=False)))
            case _:
                pass
    usage = message.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    said.usage = (usage.input_tokens + cached, usage.output_tokens)
    return said


def error_in(error: anthropic.APIStatusError) -> dict[str, Any]:
    """The contract's error in the envelope of this API."""
    assert isinstance(error.body, dict)
    assert error.body["type"] == "error"
    inner: dict[str, Any] = error.body["error"]
    return inner


def in_its_words(recording: Recording) -> dict[str, object]:
    """A refusal is text to this API, and a stop reason."""
    refusal = recording.expect.get("refusal")
    return {"text": refusal, "refusal": "", "finish": "content_filter"} if refusal else {}


async def ask_recorded(client: AsyncAnthropic, recording: Recording) -> Said:
    how: dict[str, Any] = {"tools": TOOLS} if wants_tools(recording) else {}
    said = Said()
    try:
        if not asks_stream(recording):
            return said_by(
                await client.messages.create(model=recording.key, max_tokens=99, messages=ASK, stream=False, **how)
            )
        async with client.messages.stream(model=recording.key, max_tokens=99, messages=ASK, **how) as stream:
            try:
                return said_by(await stream.get_final_message())
            except anthropic.APIStatusError:
                said = said_by(stream.current_message_snapshot)
                raise
    except anthropic.APIStatusError as error:
        said.error = error_in(error)
        return said


@pytest.mark.clause("D1", "W3", "W4", "W5", "W6")
async def test_every_recorded_answer_is_read(tmp_path: Path) -> None:
    """Text, thinking, tool calls, stop reason and usage as they were recorded, from every vendor in every dialect."""
    async with recorded_proxy(tmp_path, ANSWERS) as proxy, client_of(proxy) as client:
        said = await ask_all(ANSWERS, lambda recording: ask_recorded(client, recording))

    expect_none({each.key: complaints(each, said[each.key], **in_its_words(each)) for each in ANSWERS})


@pytest.mark.clause("D1", "E")
async def test_every_recorded_error_is_its_exception(tmp_path: Path) -> None:
    """Before anything was sent the exception is that of the HTTP status; class and code are ours in any case."""

    async def ask(client: AsyncAnthropic, recording: Recording) -> Said:
        with pytest.raises(anthropic.APIStatusError) as raised:
            await client.messages.create(model=recording.key, max_tokens=99, messages=ASK)
        error = error_in(raised.value)
        assert type(raised.value) in EXCEPTIONS[error["type"]]
        assert raised.value.response.headers["x-trace-id"] == error["trace_id"]
        return Said(error=error)

    async with recorded_proxy(tmp_path, FAILURES) as proxy, client_of(proxy) as client:
        said = await ask_all(FAILURES, lambda recording: ask(client, recording))

    expect_none({each.key: failed_otherwise(each, said[each.key].error or {}) for each in FAILURES})


@pytest.mark.clause("W4", "D1")
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_stream_is_read_whole(tmp_path: Path, script: str) -> None:
    """The package's own events, one after the other: text, usage and the end."""
    async with (
        ReplayUpstream(answer(*SCRIPTS[script])) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        client_of(proxy) as client,
    ):
        stream = await client.messages.create(model=ALIAS, max_tokens=99, messages=ASK, stream=True)
        events = [each async for each in stream]

    text = "".join(
        each.delta.text for each in events if each.type == "content_block_delta" and each.delta.type == "text_delta"
    )
    assert text == "".join(SCRIPTS[script])
    assert [each.type for each in events if each.type != "content_block_delta"] == [
        *("message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop")
    ]
    usage = next(each.usage for each in events if each.type == "message_delta")
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (8, 4)
    assert usage.output_tokens == USAGE["completion_tokens"]


@pytest.mark.clause("D1")
async def test_the_blocking_client_reads_the_same(tmp_path: Path) -> None:
    """`Anthropic`, streamed and plain, from a thread; models and a count of tokens cost nothing at a vendor."""
    texts = SCRIPTS["emoji"]
    plays = (answer(*texts), plain(completion("你好 👋🏽")))

    def ask(base_url: str) -> tuple[str, str, list[str], str, int]:
        with Anthropic(base_url=base_url.removesuffix("/v1"), api_key="none", timeout=20) as client:
            with client.messages.stream(model=ALIAS, max_tokens=99, messages=ASK) as stream:
                streamed = "".join(stream.text_stream)
            whole = said_by(client.messages.create(model=ALIAS, max_tokens=99, messages=ASK)).text
            models = [model.id for model in client.models.list()]
            count = client.messages.count_tokens(model=ALIAS, messages=ASK, system="به فارسی", tools=TOOLS)
            return streamed, whole, models, client.models.retrieve(ALIAS).display_name, count.input_tokens

    async with ReplayUpstream(*plays) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        streamed, whole, models, name, count = await asyncio.to_thread(ask, proxy.base_url)

    assert streamed == "".join(texts)
    assert whole == "你好 👋🏽"
    assert models == [ALIAS, "main"]
    assert name == ALIAS
    assert 10 < count < 100
    assert len(upstream.hits) == 2


@pytest.mark.clause("D1")
async def test_a_count_of_tokens_is_what_the_row_says(tmp_path: Path) -> None:
    """The count that a client gets beforehand is the one that the ledger keeps."""
    async with (
        ReplayUpstream(answer("!")) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        client_of(proxy) as client,
    ):
        counted = await client.messages.count_tokens(model=ALIAS, messages=ASK, system="به فارسی")
        await client.messages.create(model=ALIAS, max_tokens=99, messages=ASK, system="به فارسی")
        row = await proxy.row()
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.count_tokens(model="claude-0", messages=ASK)

    assert counted.input_tokens == row["counted"]["input"]


@pytest.mark.clause("D1")
async def test_thinking_keeps_its_seal_over_two_turns(tmp_path: Path) -> None:
    """What Anthropic signed is the client's, byte for byte, and goes back to Anthropic as it was."""
    recording = next(each for each in ANSWERS if each.key == "anthropic/thinking-redacted")
    async with (
        ReplayUpstream(recording, speed=0) as upstream,
        running_proxy(tmp_path, upstream.base_url, vendor="anthropic") as proxy,
        client_of(proxy) as client,
    ):
        how: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        async with client.messages.stream(model=ALIAS, max_tokens=2048, messages=ASK, **how) as stream:
            first = await stream.get_final_message()
        turns: list[MessageParam] = [*ASK, {"role": "assistant", "content": first.content}, *ASK]
        async with client.messages.stream(model=ALIAS, max_tokens=2048, messages=turns, **how) as stream:
            await stream.get_final_message()
        sent = [json.loads(hit.body) for hit in upstream.hits]

    thinking, redacted = first.content[:2]
    assert thinking.type == "thinking" and thinking.signature
    assert thinking.signature.encode() in recording.body
    assert redacted.type == "redacted_thinking" and redacted.data.encode() in recording.body
    assert sent[1]["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": thinking.thinking, "signature": thinking.signature},
        {"type": "redacted_thinking", "data": redacted.data},
    ]
    assert [body["thinking"] for body in sent] == [how["thinking"]] * 2


ERRORS: dict[str, tuple[Play, type[anthropic.APIStatusError], int, bool]] = {
    "our key": (vendor_error(401, "invalid_api_key", "No."), anthropic.InternalServerError, 502, False),
    "no money": (vendor_error(429, "insufficient_quota", "Pay."), anthropic.InternalServerError, 502, False),
    "slow down": (
        vendor_error(429, "rate_limit_exceeded", "Slow.", headers=[("retry-after", "1")]),
        anthropic.RateLimitError,
        429,
        True,
    ),
    "slow down for hours": (
        vendor_error(429, "rate_limit_exceeded", "Slow.", headers=[("retry-after", "7200")]),
        anthropic.RateLimitError,
        429,
        False,
    ),
    "blocked": (vendor_error(400, "content_policy_violation", "No."), anthropic.BadRequestError, 400, False),
    "too long": (vendor_error(400, "context_length_exceeded", "Long."), anthropic.BadRequestError, 400, False),
    "overloaded": (vendor_error(503, "server_error", "Busy."), anthropic.ServiceUnavailableError, 503, True),
    "no answer": (Play([]), anthropic.GatewayTimeoutError, 504, True),
    "reset": (Play(end="reset"), anthropic.GatewayTimeoutError, 504, True),
}


@pytest.mark.clause("D1", "E", "W6")
@pytest.mark.parametrize("case", ERRORS)
async def test_each_class_is_its_exception_and_only_what_may_be_is_retried(tmp_path: Path, case: str) -> None:
    """With one retry allowed the upstream is asked twice where `x-should-retry` says true, and once elsewhere."""
    play, exception, status, retried = ERRORS[case]

    async def ask(client: AsyncAnthropic, stream: bool) -> anthropic.APIStatusError:
        with pytest.raises(exception) as raised:
            await client.messages.create(model=ALIAS, max_tokens=99, messages=ASK, stream=stream)
        return raised.value

    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        client_of(proxy, retries=1) as client,
    ):
        errors = await asyncio.gather(ask(client, True), ask(client, False))
        rows = {row["trace_id"]: row for row in await proxy.rows(2 * (1 + retried))}

    assert len(upstream.hits) == 2 * (1 + retried)
    for error in errors:
        assert type(error) is exception
        assert error.status_code == status
        inner = error_in(error)
        row = rows[error.response.headers["x-trace-id"]]
        assert (inner["type"], inner["code"]) == (row["error_class"], row["error_code"])
        assert inner["trace_id"] == row["trace_id"]


@pytest.mark.clause("D1", "E")
async def test_the_callers_mistakes_are_theirs(tmp_path: Path) -> None:
    """400, 401, 404 and 413 are the exceptions of those names, in this API's envelope, and no vendor hears of them."""
    auth = {"mode": "keys", "keys": [{"tenant": "a", "sha256": "0" * 64}]}
    wrong: Any = [{"role": "?", "content": "?"}]
    async with ReplayUpstream(answer("!")) as upstream:
        async with running_proxy(tmp_path, upstream.base_url, auth=auth) as proxy, client_of(proxy) as client:
            with pytest.raises(anthropic.AuthenticationError) as key:
                await client.messages.create(model=ALIAS, max_tokens=99, messages=ASK)
        async with (
            running_proxy(tmp_path, upstream.base_url, limits={"request_bytes": 300}) as proxy,
            client_of(proxy) as client,
        ):
            with pytest.raises(anthropic.NotFoundError) as unknown:
                await client.messages.create(model="claude-0", max_tokens=99, messages=ASK)
            with pytest.raises(anthropic.ContentTooLargeError) as large:
                await client.messages.create(model=ALIAS, max_tokens=99, messages=ASK, system="x" * 400)
            with pytest.raises(anthropic.BadRequestError) as role:
                await client.messages.create(model=ALIAS, max_tokens=99, messages=wrong)

    codes = [error_in(raised.value)["code"] for raised in (key, unknown, large)]
    assert codes == ["invalid_api_key", "model_not_found", "request_too_large"]
    assert error_in(role.value)["type"] == "invalid_request"
    assert upstream.hits == []


@pytest.mark.clause("D1", "W6")
@pytest.mark.parametrize(
    ("play", "code"),
    [
        (play_events(ROLE, say("سلام "), b'{"error":{"message":"?","code":"server_error"}}'), "server_error"),
        (broken_off("سلام ", end="close"), "stream_cut"),
        (broken_off("سلام ", end="abort"), "stream_cut"),
        (broken_off("سلام ", end="reset"), "stream_cut"),
        (Play(broken_off("سلام ").reads, end="hang"), "idle_timeout"),
    ],
    ids=["error", "close", "abort", "reset", "silence"],
)
async def test_an_answer_that_stops_short_is_an_exception(tmp_path: Path, play: Play, code: str) -> None:
    """Text first, then `APIStatusError` with our code: no half answer passes for whole, nothing is asked again."""
    idle = {"deadlines": {"idle": 0.3}}
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=idle) as proxy,
        client_of(proxy, retries=2) as client,
        client.messages.stream(model=ALIAS, max_tokens=99, messages=ASK) as stream,
    ):
        text = ""
        with pytest.raises(anthropic.APIStatusError) as raised:
            async for piece in stream.text_stream:
                text += piece

    assert text == "سلام "
    assert error_in(raised.value)["code"] == code
    assert len(upstream.hits) == 1


@pytest.mark.clause("W8", "D1")
async def test_breaking_off_ends_the_upstream(tmp_path: Path) -> None:
    """Leaving the package's stream early is a hang-up like any other."""
    endless = Play([(0.0, b"data: " + ROLE + b"\n\n"), *[(0.02, b"data: " + say("خوب ") + b"\n\n")] * 500])
    async with ReplayUpstream(endless) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with (
            client_of(proxy) as client,
            client.messages.stream(model=ALIAS, max_tokens=99, messages=ASK) as stream,
        ):
            async for piece in stream.text_stream:
                if piece:
                    break
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.gone_at is not None
    assert row["ending"] == "client_gone"


@pytest.mark.clause("W1", "D1")
async def test_keep_alives_are_nothing_to_it(tmp_path: Path) -> None:
    """With keep-alives on, the package sees the same text."""
    reads = [(0.25, b"data: " + payload + b"\n\n") for payload in (say("你好"), STOP)]
    play = Play([*reads, (0.0, b"data: [DONE]\n\n")])
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, keepalive_s=0.1) as proxy,
        client_of(proxy) as client,
        client.messages.stream(model=ALIAS, max_tokens=99, messages=ASK) as stream,
    ):
        assert await stream.get_final_text() == "你好"
