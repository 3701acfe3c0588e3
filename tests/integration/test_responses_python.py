"""openai-python's Responses API against the proxy: every vendor's recorded answers, errors, retries, hang-up.

The package is used as an application uses it, over `/v1/responses`, whatever API the vendor behind it speaks
(contract D2, W4, W6, W8, E).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import FunctionToolParam, Response, ResponseUsage

from proxy.stores.recordings import Recording
from tests.support.answers import ROLE, SCRIPTS, STOP, USAGE, answer, broken_off, say, vendor_error
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
ASK: Final = "سلام"
TOOLS: Final[list[FunctionToolParam]] = [
    {
        "type": "function",
        "name": "weather",
        "strict": False,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]
#: What an HTTP answer of each class is raised as.
EXCEPTIONS: Final[dict[str, tuple[type[openai.APIStatusError], ...]]] = {
    "auth_failure": (openai.InternalServerError,),
    "rate_limited": (openai.RateLimitError,),
    "content_blocked": (openai.BadRequestError,),
    "upstream_timeout": (openai.InternalServerError,),
    "model_unavailable": (openai.InternalServerError,),
    "invalid_request": (
        openai.BadRequestError,
        openai.NotFoundError,
        openai.UnprocessableEntityError,
        openai.APIStatusError,  # 413 has no class of its own
    ),
}


@asynccontextmanager
async def client_of(proxy: Proxy, retries: int = 0) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=proxy.base_url, api_key="none", max_retries=retries, timeout=20) as client:
        yield client


def tokens_of(usage: ResponseUsage | None) -> tuple[int, int] | None:
    return (usage.input_tokens, usage.output_tokens) if usage is not None else None


def said_by(response: Response) -> Said:
    said = Said(response.output_text, model=str(response.model), usage=tokens_of(response.usage))
    for item in response.output:
        match item.type:
            case "message":
                said.refusal += "".join(part.refusal for part in item.content if part.type == "refusal")
            case "reasoning":
                said.reasoning += "\n\n".join(part.text for part in (*item.summary, *(item.content or ())))
            case "function_call":
                said.calls.append((item.call_id, item.name, item.arguments))
            case _:
                pass
    why = response.incomplete_details.reason if response.incomplete_details is not None else None
    whole = "tool_calls" if said.calls else "stop"
    said.finish = {None: whole, "max_output_tokens": "length"}.get(why, why)
    return said


async def streamed(client: AsyncOpenAI, said: Said, **how: Any) -> Said:
    """The package's own accumulation; what came before an exception is left in `said`."""
    last: Response | None = None
    async with client.responses.stream(**how) as stream:
        async for event in stream:
            match event.type:
                case "response.output_text.delta":
                    said.text += event.delta
                case "response.refusal.delta":
                    said.refusal += event.delta
                case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                    said.reasoning += event.delta
                case "response.reasoning_summary_part.added" if event.summary_index:
                    said.reasoning += "\n\n"
                case "response.completed" | "response.incomplete":
                    last = event.response
                case _:
                    pass
    assert last is not None, "a stream without its last event was taken for whole"
    whole = said_by(last)
    assert (whole.text, whole.reasoning, whole.refusal) == (said.text, said.reasoning, said.refusal)
    return whole


async def ask_recorded(client: AsyncOpenAI, recording: Recording) -> Said:
    how: dict[str, Any] = {"model": recording.key, "input": ASK, "store": False}
    how |= {"tools": TOOLS} if wants_tools(recording) else {}
    said = Said()
    try:
        if asks_stream(recording):
            return await streamed(client, said, **how)
        return said_by(await client.responses.create(**how))
    except openai.APIError as error:
        assert isinstance(error.body, dict)
        said.error = error.body
        return said


@pytest.mark.clause("D2", "W3", "W4", "W5", "W6")
async def test_every_recorded_answer_is_read(tmp_path: Path) -> None:
    """Text, reasoning, tool calls, status and usage as they were recorded, from every vendor in every dialect."""
    async with recorded_proxy(tmp_path, ANSWERS) as proxy, client_of(proxy) as client:
        said = await ask_all(ANSWERS, lambda recording: ask_recorded(client, recording))

    expect_none({each.key: complaints(each, said[each.key]) for each in ANSWERS})


@pytest.mark.clause("D2", "E")
async def test_every_recorded_error_is_its_exception(tmp_path: Path) -> None:
    """The exception is that of the HTTP status, for nothing was sent before it; class and code are the recording's."""

    async def ask(client: AsyncOpenAI, recording: Recording) -> Said:
        with pytest.raises(openai.APIStatusError) as raised:
            await client.responses.create(model=recording.key, input=ASK, store=False)
        assert isinstance(raised.value.body, dict)
        assert type(raised.value) in EXCEPTIONS[raised.value.body["type"]]
        return Said(error=raised.value.body)

    async with recorded_proxy(tmp_path, FAILURES) as proxy, client_of(proxy) as client:
        said = await ask_all(FAILURES, lambda recording: ask(client, recording))

    expect_none({each.key: failed_otherwise(each, said[each.key].error or {}) for each in FAILURES})


@pytest.mark.clause("W4", "D2")
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_stream_is_read_whole(tmp_path: Path, script: str) -> None:
    """The package's own events, numbered, one after the other: text, usage and the end."""
    async with (
        ReplayUpstream(answer(*SCRIPTS[script])) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        client_of(proxy) as client,
    ):
        stream = await client.responses.create(model=ALIAS, input=ASK, stream=True)
        events = [each async for each in stream]

    text = "".join(each.delta for each in events if each.type == "response.output_text.delta")
    assert text == "".join(SCRIPTS[script])
    assert [each.sequence_number for each in events] == list(range(len(events)))
    assert [each.type for each in events if each.type != "response.output_text.delta"] == [
        *("response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"),
        *("response.output_text.done", "response.content_part.done", "response.output_item.done"),
        "response.completed",
    ]
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == text
    assert tokens_of(last.response.usage) == (USAGE["prompt_tokens"], USAGE["completion_tokens"])


@pytest.mark.clause("D2")
async def test_reasoning_goes_back_as_it_came(tmp_path: Path) -> None:
    """The items of one answer, sealed reasoning among them, are the next request's input, and the vendor's again."""
    recording = next(each for each in ANSWERS if each.key == "openai/responses-reasoning")
    sealed: dict[str, Any] = {"include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"}}
    async with (
        ReplayUpstream(recording, speed=0) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream={"dialect": "responses"}) as proxy,
        client_of(proxy) as client,
    ):
        async with client.responses.stream(model=ALIAS, input=ASK, store=False, **sealed) as stream:
            first = await stream.get_final_response()
        turns: list[Any] = [*first.output, {"role": "user", "content": ASK}]
        async with client.responses.stream(model=ALIAS, input=turns, store=False, **sealed) as stream:
            await stream.get_final_response()
        sent = [json.loads(hit.body) for hit in upstream.hits]

    thought = next(item for item in first.output if item.type == "reasoning")
    assert thought.encrypted_content and thought.encrypted_content.encode() in recording.body
    back = next(item for item in sent[1]["input"] if item.get("type") == "reasoning")
    assert (back["id"], back["encrypted_content"]) == (thought.id, thought.encrypted_content)


ERRORS: dict[str, tuple[Play, type[openai.APIStatusError], int, bool]] = {
    "our key": (vendor_error(401, "invalid_api_key", "No."), openai.InternalServerError, 502, False),
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
    "reset": (Play(end="reset"), openai.InternalServerError, 504, True),
}


@pytest.mark.clause("D2", "E", "W6")
@pytest.mark.parametrize("case", ERRORS)
async def test_each_class_is_its_exception_and_only_what_may_be_is_retried(tmp_path: Path, case: str) -> None:
    """With one retry allowed the upstream is asked twice where `x-should-retry` says true, and once elsewhere."""
    play, exception, status, retried = ERRORS[case]

    async def ask(client: AsyncOpenAI, stream: bool) -> openai.APIStatusError:
        with pytest.raises(exception) as raised:
            await client.responses.create(model=ALIAS, input=ASK, stream=stream)
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
        row = rows[error.response.headers["x-trace-id"]]
        assert (error.type, error.code) == (row["error_class"], row["error_code"])


@pytest.mark.clause("D2", "E")
async def test_the_callers_mistakes_are_theirs(tmp_path: Path) -> None:
    """400 and 404 are the exceptions of those names, and no vendor hears of them."""
    async with (
        ReplayUpstream(answer("!")) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        client_of(proxy) as client,
    ):
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.responses.create(model="gpt-0", input=ASK)
        with pytest.raises(openai.BadRequestError) as stateful:
            await client.responses.create(model=ALIAS, input=ASK, previous_response_id="resp_1")

    assert unknown.value.code == "model_not_found"
    assert stateful.value.param == "previous_response_id"
    assert upstream.hits == []


@pytest.mark.clause("D2", "W6")
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
    """Text first, then `APIError` with our code: no half answer passes for whole, nothing is asked again."""
    idle = {"deadlines": {"idle": 0.3}}
    said = Said()
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, upstream=idle) as proxy,
        client_of(proxy, retries=2) as client,
    ):
        with pytest.raises(openai.APIError) as raised:
            await streamed(client, said, model=ALIAS, input=ASK)

    assert said.text == "سلام "
    assert type(raised.value) is openai.APIError
    assert raised.value.code == code
    assert len(upstream.hits) == 1


@pytest.mark.clause("W8", "D2")
async def test_breaking_off_ends_the_upstream(tmp_path: Path) -> None:
    """Leaving the package's stream early is a hang-up like any other."""
    endless = Play([(0.0, b"data: " + ROLE + b"\n\n"), *[(0.02, b"data: " + say("خوب ") + b"\n\n")] * 500])
    async with ReplayUpstream(endless) as upstream, running_proxy(tmp_path, upstream.base_url) as proxy:
        async with client_of(proxy) as client, client.responses.stream(model=ALIAS, input=ASK) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    break
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.gone_at is not None
    assert row["ending"] == "client_gone"


@pytest.mark.clause("W1", "D2")
async def test_keep_alives_are_nothing_to_it(tmp_path: Path) -> None:
    """With keep-alives on, the package sees the same text."""
    reads = [(0.25, b"data: " + payload + b"\n\n") for payload in (say("你好"), STOP)]
    play = Play([*reads, (0.0, b"data: [DONE]\n\n")])
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url, keepalive_s=0.1) as proxy,
        client_of(proxy) as client,
    ):
        said = await streamed(client, Said(), model=ALIAS, input=ASK)

    assert said.text == "你好"
