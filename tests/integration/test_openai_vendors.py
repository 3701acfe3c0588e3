"""openai-python's chat completions over every vendor dialect: recorded answers and errors, whatever API is behind.

What the package makes of a stream or a body is what the recording says (contract W3, W4, W5, W6, E).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import openai
import pytest
from openai import AsyncOpenAI
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam, ChatCompletionToolParam

from proxy.stores.recordings import Recording
from tests.support.decoders import Said
from tests.support.needs import needs
from tests.support.node import case_of, install, run_script
from tests.support.node import said_by as said_in
from tests.support.recorded import (
    IDLE_S,
    RecordedUpstream,
    answers,
    ask_all,
    asks_stream,
    complaints,
    dialect_of,
    expect_none,
    failed_otherwise,
    failures,
    recorded_proxy,
    wants_tools,
)

ANSWERS: Final = answers()  # read here, where no loop waits
FAILURES: Final = failures()
#: A plain streamed answer of every dialect.
PLAIN: Final = ("plain", "completions-plain", "pro-plain", "responses-plain")
ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "سلام"}]
TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
]
_INVALID: Final = (
    openai.BadRequestError,
    openai.NotFoundError,
    openai.UnprocessableEntityError,
    openai.APIStatusError,  # 413 has no class of its own
)
#: What an HTTP answer of each class is raised as.
EXCEPTIONS: Final[dict[str, tuple[type[openai.APIStatusError], ...]]] = {
    "auth_failure": (openai.InternalServerError,),
    "rate_limited": (openai.RateLimitError,),
    "content_blocked": (openai.BadRequestError,),
    "upstream_timeout": (openai.InternalServerError,),
    "model_unavailable": (openai.InternalServerError,),
    "invalid_request": _INVALID,
}


@pytest.fixture(scope="module")
def npm() -> None:
    install()


def client_of(base_url: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=20)


def tokens_of(usage: CompletionUsage | None) -> tuple[int, int] | None:
    return (usage.prompt_tokens, usage.completion_tokens) if usage is not None else None


def said_by(whole: ChatCompletion) -> Said:
    choice = whole.choices[0]
    said = Said(choice.message.content or "", refusal=choice.message.refusal or "", finish=choice.finish_reason)
    said.reasoning = reasoning_in(choice.message)
    for call in choice.message.tool_calls or ():
        assert call.type == "function"
        said.calls.append((call.id, call.function.name, call.function.arguments))
    said.usage, said.model = tokens_of(whole.usage), whole.model
    return said


def reasoning_in(message: object) -> str:
    """Not a field of the package's types: applications read it from what is beside them."""
    return str(getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or "")


async def streamed(client: AsyncOpenAI, said: Said, **how: Any) -> None:
    """Puts a stream together, chunk by chunk, as applications do; an exception leaves what came before it."""
    calls: dict[int, list[str]] = {}
    stream = await client.chat.completions.create(**how, stream=True, stream_options={"include_usage": True})
    async with stream:
        async for chunk in stream:
            said.usage = tokens_of(chunk.usage) or said.usage
            for choice in (each for each in chunk.choices if each.index == 0):
                said.text += choice.delta.content or ""
                said.refusal += choice.delta.refusal or ""
                said.reasoning += reasoning_in(choice.delta)
                said.finish = choice.finish_reason or said.finish
                for call in choice.delta.tool_calls or ():
                    function = call.function
                    assert function is not None
                    whole = calls.setdefault(call.index, [call.id or "", function.name or "", ""])
                    whole[2] += function.arguments or ""
    said.calls = [(identity, name, arguments) for identity, name, arguments in calls.values()]


async def ask_recorded(client: AsyncOpenAI, recording: Recording) -> Said:
    how: dict[str, Any] = {"model": recording.key, "messages": ASK}
    how |= {"tools": TOOLS} if wants_tools(recording) else {}
    said = Said()
    try:
        if not asks_stream(recording):
            return said_by(await client.chat.completions.create(**how))
        await streamed(client, said, **how)
    except openai.APIError as error:
        assert isinstance(error.body, dict)
        said.error = error.body
    return said


@pytest.mark.clause("W3", "W4", "W5", "W6")
async def test_every_recorded_answer_is_read(tmp_path: Path) -> None:
    """Text, reasoning, tool calls, finish and usage as they were recorded, from every vendor in every dialect."""
    async with recorded_proxy(tmp_path, ANSWERS) as proxy, client_of(proxy.base_url) as client:
        said = await ask_all(ANSWERS, lambda recording: ask_recorded(client, recording))

    expect_none({each.key: complaints(each, said[each.key]) for each in ANSWERS})


@pytest.mark.clause("W8")
async def test_breaking_off_ends_every_vendors_answer(tmp_path: Path) -> None:
    """Whatever the framing, a client that leaves takes its upstream with it."""
    half = [
        replace(each, reads=each.reads[: len(each.reads) // 2 + 1], end="hang")
        for each in ANSWERS
        if each.name in PLAIN
    ]
    assert {dialect_of(each) for each in half} == {dialect_of(each) for each in ANSWERS}
    upstream = RecordedUpstream(half)

    async def leave(client: AsyncOpenAI, recording: Recording) -> Said:
        said = Said()
        stream = await client.chat.completions.create(model=recording.key, messages=ASK, stream=True)
        async with stream:
            async for chunk in stream:
                said.text += "".join(choice.delta.content or "" for choice in chunk.choices)
                if said.text:
                    break
        return said

    async with (
        recorded_proxy(tmp_path, half, upstream) as proxy,
        client_of(proxy.base_url) as client,
    ):
        await ask_all(half, lambda recording: leave(client, recording))
        for hit in upstream.hits:
            await hit.wait_over(IDLE_S / 2)  # sooner than a deadline would have ended it
        rows = await proxy.rows(len(half))

    assert {row["ending"] for row in rows} == {"client_gone"}


@needs("npm")
@pytest.mark.clause("W3", "W4", "W5", "W6")
async def test_the_npm_package_reads_the_same(tmp_path: Path, npm: None) -> None:
    """`openai` of npm, over the same recordings."""
    async with recorded_proxy(tmp_path, ANSWERS) as proxy:
        seen = await run_script("client.mjs", proxy.base_url, [case_of(each) for each in ANSWERS])

    expect_none({each.key: complaints(each, said_in(seen[each.key])) for each in ANSWERS})


@pytest.mark.clause("E", "W6")
async def test_every_recorded_error_is_its_exception(tmp_path: Path) -> None:
    """The exception is that of the HTTP status, for nothing was sent before it; class and code are the recording's."""

    async def ask(client: AsyncOpenAI, recording: Recording) -> Said:
        with pytest.raises(openai.APIStatusError) as raised:
            await client.chat.completions.create(model=recording.key, messages=ASK)
        assert isinstance(raised.value.body, dict)
        assert type(raised.value) in EXCEPTIONS[raised.value.body["type"]]
        assert raised.value.response.headers["x-trace-id"] == raised.value.body["trace_id"]
        return Said(error=raised.value.body)

    async with recorded_proxy(tmp_path, FAILURES) as proxy, client_of(proxy.base_url) as client:
        said = await ask_all(FAILURES, lambda recording: ask(client, recording))

    expect_none({each.key: failed_otherwise(each, said[each.key].error or {}) for each in FAILURES})
