"""langchain-openai against the proxy: `ChatOpenAI` over every vendor's recorded answers, errors, cuts and hang-up.

The package reads chat completions through openai-python, but puts chunks together its own way (contract W3, W4, W6, W8,
E).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from proxy.stores.recordings import Recording
from tests.support.answers import ROLE, SCRIPTS, USAGE, answer, broken_off, completion, plain, say, vendor_error
from tests.support.decoders import Said
from tests.support.proxy import ALIAS, Proxy, running_proxy
from tests.support.recorded import answers, ask_all, asks_stream, complaints, expect_none, recorded_proxy, wants_tools
from tests.support.upstream import Play, ReplayUpstream, play_events

# Read here, where no loop waits. This package puts the choices of an answer into one text, so it is asked for one.
ANSWERS: Final = tuple(each for each in answers() if "choices" not in each.expect)
ASK: Final = "سلام"
#: What the package does not keep: reasoning of a vendor that is not OpenAI, and refusals of a stream.
BEYOND_IT: Final = {"reasoning": "", "refusal": ""}


@tool
def weather(city: str) -> str:
    """Weather in a city."""
    return city


Models = Callable[..., ChatOpenAI]


@asynccontextmanager
async def models_of(proxy: Proxy) -> AsyncIterator[Models]:
    """Makes models that share connections of this loop; the package's own would outlive it."""
    async with openai.DefaultAsyncHttpxClient() as http:

        def model(name: str = ALIAS, retries: int = 0) -> ChatOpenAI:
            return ChatOpenAI(
                model=name,
                base_url=proxy.base_url,
                api_key="none",
                max_retries=retries,
                timeout=20,
                stream_usage=True,
                http_async_client=http,
            )

        yield model


def said_by(message: AIMessage) -> Said:
    said = Said(str(message.text))
    said.finish = message.response_metadata.get("finish_reason")
    said.calls = [
        (call["id"] or "", call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls
    ]
    if message.usage_metadata is not None:
        said.usage = (message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"])
    return said


async def ask_recorded(models: Models, recording: Recording) -> Said:
    model = models(recording.key)
    runnable = model.bind_tools([weather]) if wants_tools(recording) else model
    whole: AIMessageChunk | None = None
    said = Said()
    try:
        if not asks_stream(recording):
            return said_by(await runnable.ainvoke(ASK))
        async for chunk in runnable.astream(ASK):
            assert isinstance(chunk, AIMessageChunk)
            whole = chunk if whole is None else whole + chunk
    except openai.APIError as error:
        assert isinstance(error.body, dict)
        said.error = error.body
        said.text = str(whole.text) if whole is not None else ""
        return said
    assert whole is not None
    return said_by(whole)


@pytest.mark.clause("W3", "W4", "W5", "W6")
async def test_every_recorded_answer_is_read(tmp_path: Path) -> None:
    """Text, tool calls, finish and usage as they were recorded, from every vendor in every dialect."""
    async with recorded_proxy(tmp_path, ANSWERS) as proxy, models_of(proxy) as models:
        said = await ask_all(ANSWERS, lambda recording: ask_recorded(models, recording))

    expect_none({each.key: complaints(each, said[each.key], **BEYOND_IT) for each in ANSWERS})


@pytest.mark.clause("W4")
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_stream_and_a_body_are_read_whole(tmp_path: Path, script: str) -> None:
    """Chunks added up as the package adds them, and the same text as a plain answer."""
    text = "".join(SCRIPTS[script])
    async with (
        ReplayUpstream(answer(*SCRIPTS[script]), plain(completion(text))) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        models_of(proxy) as models,
    ):
        chunks = [chunk async for chunk in models().astream(ASK)]
        body = await models().ainvoke(ASK)

    whole = sum(chunks[1:], start=chunks[0])
    assert whole.text == body.text == text
    for message in (whole, body):
        assert message.response_metadata["finish_reason"] == "stop"
        assert message.usage_metadata is not None
        assert message.usage_metadata["input_tokens"] == USAGE["prompt_tokens"]
        assert message.usage_metadata["output_tokens"] == USAGE["completion_tokens"]
        assert message.usage_metadata["input_token_details"]["cache_read"] == 4


ERRORS: dict[str, tuple[Play, type[openai.APIStatusError], str, int]] = {
    "our key": (vendor_error(401, "invalid_api_key", "No."), openai.InternalServerError, "invalid_credential", 1),
    "slow down": (
        vendor_error(429, "rate_limit_exceeded", "Slow.", headers=[("retry-after", "1")]),
        openai.RateLimitError,
        "rate_limited",
        2,
    ),
    "blocked": (vendor_error(400, "content_policy_violation", "No."), openai.BadRequestError, "content_filter", 1),
    "overloaded": (vendor_error(503, "server_error", "Busy."), openai.InternalServerError, "server_error", 2),
    "reset": (Play(end="reset"), openai.InternalServerError, "stream_cut", 2),
    # For a prompt that is too long this package has an exception of its own, and looks for the code.
    "too long": (
        vendor_error(400, "context_length_exceeded", "Long."),
        openai.BadRequestError,
        "context_length_exceeded",
        1,
    ),
}


@pytest.mark.clause("E", "W6")
@pytest.mark.parametrize("case", ERRORS)
async def test_each_class_is_its_exception_and_only_what_may_be_is_retried(tmp_path: Path, case: str) -> None:
    """What openai-python raises comes through, and its retries do what `x-should-retry` says."""
    play, exception, code, asked = ERRORS[case]
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        models_of(proxy) as models,
    ):
        with pytest.raises(exception) as raised:
            await models(retries=1).ainvoke(ASK)

    assert raised.value.code == code
    assert len(upstream.hits) == asked


@pytest.mark.clause("W6")
@pytest.mark.parametrize(
    ("play", "code"),
    [
        (play_events(ROLE, say("سلام "), b'{"error":{"message":"?","code":"server_error"}}'), "server_error"),
        (broken_off("سلام ", end="close"), "stream_cut"),
        (broken_off("سلام ", end="reset"), "stream_cut"),
    ],
    ids=["error", "close", "reset"],
)
async def test_an_answer_that_stops_short_is_an_exception(tmp_path: Path, play: Play, code: str) -> None:
    """Text first, then `APIError` with our code: no half answer passes for whole, nothing is asked again."""
    text = ""
    async with (
        ReplayUpstream(play) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        models_of(proxy) as models,
    ):
        with pytest.raises(openai.APIError) as raised:
            async for chunk in models(retries=2).astream(ASK):
                text += str(chunk.text)

    assert text == "سلام "
    assert raised.value.code == code
    assert len(upstream.hits) == 1


@pytest.mark.clause("W8")
async def test_breaking_off_ends_the_upstream(tmp_path: Path) -> None:
    """Leaving the package's stream early is a hang-up like any other."""
    endless = Play([(0.0, b"data: " + ROLE + b"\n\n"), *[(0.02, b"data: " + say("خوب ") + b"\n\n")] * 500])
    async with (
        ReplayUpstream(endless) as upstream,
        running_proxy(tmp_path, upstream.base_url) as proxy,
        models_of(proxy) as models,
    ):
        async with aclosing(models().astream(ASK)) as stream:  # type: ignore[type-var]  # a generator, which its type hides
            async for chunk in stream:
                if chunk.text:
                    break
        hit = await upstream.hits[0].wait_over()
        row = await proxy.row()

    assert hit.gone_at is not None
    assert row["ending"] == "client_gone"
