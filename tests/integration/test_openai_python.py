"""openai-python against the proxy: streams, tools, each error as the right exception, and no retry that must not be.

The package is used as an application uses it, with its retries at their default unless a test says otherwise; how often
the upstream was asked proves what was retried (contract W1, W4, W6, E).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.lib.streaming.chat import AsyncChatCompletionStreamManager
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from tests.support.answers import (
    ROLE,
    SCRIPTS,
    STOP,
    USAGE,
    VENDOR_MODEL,
    answer,
    broken_off,
    chunk,
    completion,
    plain,
    say,
    vendor_error,
)
from tests.support.proxy import ALIAS, Proxy, running_proxy
from tests.support.upstream import Play, ReplayUpstream, play_events

ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "سلام"}]
TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]


@asynccontextmanager
async def client_of(proxy: Proxy, retries: int = openai.DEFAULT_MAX_RETRIES) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=proxy.base_url, api_key="none", max_retries=retries, timeout=20) as client:
        yield client


@pytest.mark.clause("W1", "W4")
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_stream_is_read_whole(tmp_path: Path, script: str) -> None:
    """Text, role, finish and the usage chunk arrive as the package's own types."""
    async with (
        ReplayUpstream(answer(*SCRIPTS[script])) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        client_of(proxy) as client,
    ):
        stream = await client.chat.completions.create(
            model=ALIAS, messages=ASK, stream=True, stream_options={"include_usage": True}
        )
        chunks = [each async for each in stream]

    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == "".join(SCRIPTS[script])
    assert [each.choices[0].finish_reason for each in chunks if each.choices][-1] == "stop"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert {each.model for each in chunks} == {VENDOR_MODEL}
    usage = chunks[-1].usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (USAGE["prompt_tokens"], USAGE["completion_tokens"])


@pytest.mark.clause("W4")
async def test_the_blocking_client_reads_the_same(tmp_path: Path) -> None:
    """`OpenAI`, streamed and plain, from a thread of its own."""
    texts = SCRIPTS["emoji"]
    plays = (answer(*texts), plain(completion("你好 👋🏽")))

    def ask(base_url: str) -> tuple[str, str | None, list[str]]:
        with OpenAI(base_url=base_url, api_key="none", timeout=20) as client:
            with client.chat.completions.create(model=ALIAS, messages=ASK, stream=True) as stream:
                streamed = "".join(each.choices[0].delta.content or "" for each in stream if each.choices)
            whole = client.chat.completions.create(model=ALIAS, messages=ASK)
            assert whole.usage is not None
            return streamed, whole.choices[0].message.content, [model.id for model in client.models.list()]

    async with ReplayUpstream(*plays) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        streamed, whole, models = await asyncio.to_thread(ask, proxy.base_url)

    assert streamed == "".join(texts)
    assert whole == "你好 👋🏽"
    assert models == [ALIAS, "main"]


def call(index: int | None, arguments: str, **begin: object) -> bytes:
    """A fragment of a tool call, as sloppy vendors send it where `index` is left out."""
    name = begin.pop("name", None)
    function: dict[str, object] = {"arguments": arguments} | ({"name": name} if name else {})
    fragment: dict[str, object] = {"function": function, **begin} | ({} if index is None else {"index": index})
    return chunk({"tool_calls": [fragment]})


def stream_tools(client: AsyncOpenAI) -> AsyncChatCompletionStreamManager[None]:
    return client.chat.completions.stream(model=ALIAS, messages=ASK, tools=TOOLS)


@pytest.mark.clause("W3", "W4")
async def test_tool_calls_are_put_together(tmp_path: Path) -> None:
    """Two calls in parallel, cut anywhere, a letter's halves in two fragments: the helper parses both."""
    play = play_events(
        ROLE,
        call(0, "", id="call_a", type="function", name="weather"),
        call(0, '{"ci'),
        call(0, 'ty":"ته'),
        call(0, 'ران"}'),
        call(1, "", id="call_b", type="function", name="weather"),
        call(1, '{"city":"').replace(b'"{\\"city\\":\\""', b'"{\\"city\\":\\"\\ud83d"'),
        call(1, "").replace(b'"arguments":""', b'"arguments":"\\ude00\\"}"'),
        chunk({}, "tool_calls"),
    )
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        client_of(proxy) as client,
        stream_tools(client) as stream,
    ):
        done = [event async for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = await stream.get_final_completion()

    assert [(event.index, event.name, event.parsed_arguments) for event in done] == [
        (0, "weather", {"city": "تهران"}),
        (1, "weather", {"city": "😀"}),
    ]
    choice = final.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert [each.id for each in choice.message.tool_calls or ()] == ["call_a", "call_b"]


ERRORS: dict[str, tuple[Play, type[openai.APIStatusError], int, bool]] = {
    "our key": (vendor_error(401, "invalid_api_key", "No."), openai.InternalServerError, 502, False),
    "no money": (vendor_error(429, "insufficient_quota", "Pay."), openai.InternalServerError, 502, False),
    "slow down": (
        vendor_error(429, "rate_limit_exceeded", "Slow.", headers=[("retry-after", "1")]),
        openai.RateLimitError,
        429,
        True,
    ),
    "slow down for hours": (
        vendor_error(429, "rate_limit_exceeded", "Slow.", headers=[("retry-after", "7200")]),
        openai.RateLimitError,
        429,
        False,
    ),
    "blocked": (vendor_error(400, "content_policy_violation", "No."), openai.BadRequestError, 400, False),
    "too long": (vendor_error(400, "context_length_exceeded", "Long."), openai.BadRequestError, 400, False),
    "overloaded": (vendor_error(503, "server_error", "Busy."), openai.InternalServerError, 503, True),
    "no answer": (Play([]), openai.InternalServerError, 504, True),
    "reset": (Play(end="reset"), openai.InternalServerError, 504, True),
}


@pytest.mark.clause("E", "W6")
@pytest.mark.parametrize("case", ERRORS)
async def test_each_class_is_its_exception_and_only_what_may_be_is_retried(tmp_path: Path, case: str) -> None:
    """With one retry allowed the upstream is asked twice where `x-should-retry` says true, and once elsewhere."""
    play, exception, status, retried = ERRORS[case]

    async def ask(client: AsyncOpenAI, stream: bool) -> openai.APIStatusError:
        with pytest.raises(exception) as raised:
            await client.chat.completions.create(model=ALIAS, messages=ASK, stream=stream)
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
        assert isinstance(error.body, dict)
        row = rows[error.response.headers["x-trace-id"]]
        assert (error.type, error.code) == (row["error_class"], row["error_code"])
        assert error.body["trace_id"] == row["trace_id"]


@pytest.mark.clause("E")
async def test_a_retry_cures_what_passes(tmp_path: Path) -> None:
    """Two failures and then an answer: the package's default retries get it, and each try is a row."""
    plays = (vendor_error(503, "server_error", "Busy."), Play(end="reset"), answer("안녕"))
    async with ReplayUpstream(*plays) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with client_of(proxy) as client:
            stream = await client.chat.completions.create(model=ALIAS, messages=ASK, stream=True)
            text = "".join([each.choices[0].delta.content or "" async for each in stream if each.choices])
        rows = await proxy.rows(3)

    assert text == "안녕"
    assert [row["ending"] for row in rows] == ["vendor_error", "stream_cut", "completed"]


@pytest.mark.clause("E")
async def test_the_callers_mistakes_are_theirs(tmp_path: Path) -> None:
    """401, 404 and 413 are the exceptions of those names, asked once."""
    auth = {"mode": "keys", "keys": [{"tenant": "a", "sha256": "0" * 64}]}
    async with ReplayUpstream(answer("!")) as upstream:
        async with running_proxy(tmp_path, upstream.base_url, auth=auth) as proxy, client_of(proxy) as client:
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
        async with (
            running_proxy(tmp_path, upstream.base_url, limits={"request_bytes": 300}) as proxy,
            client_of(proxy) as client,
        ):
            with pytest.raises(openai.NotFoundError) as unknown:
                await client.chat.completions.create(model="gpt-0", messages=ASK)
            with pytest.raises(openai.APIStatusError) as large:
                await client.chat.completions.create(model=ALIAS, messages=ASK, user="x" * 400)
            with pytest.raises(openai.BadRequestError) as address:
                await client.chat.completions.create(
                    model=ALIAS, messages=ASK, extra_body={"api_base": "http://127.0.0.1:9/v1"}
                )

    assert (unknown.value.code, large.value.status_code) == ("model_not_found", 413)
    assert address.value.code == "upstream_not_allowed"
    assert upstream.hits == []


@pytest.mark.clause("W6")
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
    """Text first, then `APIError` with our code: no half answer is taken for whole, and nothing is asked again."""
    idle = {"deadlines": {"idle": 0.3}}
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=idle) as proxy,
        client_of(proxy) as client,
    ):
        stream = await client.chat.completions.create(model=ALIAS, messages=ASK, stream=True)
        text = ""
        with pytest.raises(openai.APIError) as raised:
            async for each in stream:
                text += each.choices[0].delta.content or ""
        await stream.close()

    assert text == "سلام "
    assert type(raised.value) is openai.APIError
    assert raised.value.code == code
    assert len(upstream.hits) == 1


@pytest.mark.clause("W8")
async def test_breaking_off_ends_the_upstream(tmp_path: Path) -> None:
    """Leaving the package's stream early is a hang-up like any other."""
    endless = Play([(0.0, b"data: " + ROLE + b"\n\n"), *[(0.02, b"data: " + say("خوب ") + b"\n\n")] * 500])
    async with ReplayUpstream(endless) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with (
            client_of(proxy) as client,
            await client.chat.completions.create(model=ALIAS, messages=ASK, stream=True) as stream,
        ):
            async for each in stream:
                if each.choices[0].delta.content:
                    break
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.gone_at is not None
    assert row["ending"] == "client_gone"


@pytest.mark.clause("W1")
async def test_keep_alives_are_nothing_to_it(tmp_path: Path) -> None:
    """With keep-alives on, the package sees the same chunks."""
    play = Play([(0.25, b"data: " + say("你好") + b"\n\n"), (0.25, b"data: " + STOP + b"\n\ndata: [DONE]\n\n")])
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, keepalive_s=0.1) as proxy,
        client_of(proxy) as client,
    ):
        stream = await client.chat.completions.create(model=ALIAS, messages=ASK, stream=True)
        deltas = [each.choices[0].delta.content async for each in stream]

    assert deltas == ["", "你好", None]
