"""Text completions, both ways: what a client asks and gets, and how a vendor of this API is asked and read."""

from __future__ import annotations

import json

import orjson
import pytest
from openai.types.chat import ChatCompletion
from openai.types.completion_choice import Logprobs
from openai.types.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

from proxy.canon.chunk import Chunk, Delta, ErrorSeen
from proxy.canon.request import Image, Message, Request, Text, Tool
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.completions.logprobs import to_chat, to_completions
from proxy.dialects.completions.read import CompletionsReader
from proxy.dialects.completions.request import parse_completions_request
from proxy.dialects.completions.send import send_completions
from proxy.dialects.incoming import Incoming
from proxy.pipeline import Asked
from tests.support.decoders import decode_completions
from tests.support.pipelines import run
from tests.support.strategies import END, encode, say

STREAM = Asked(stream=True, usage=True, client="completions")
PLAIN = Asked(stream=False, usage=True, client="completions")


def parse(**fields: object) -> Request | BadRequest:
    request = parse_completions_request(encode({"model": "m", **fields}))
    assert isinstance(request, Incoming)
    return request.canonical


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("prompt", ["روزی روزگاری", ["روزی روزگاری"]])
def test_a_prompt_is_one_message_of_the_user(prompt: object) -> None:
    """Alone, or as a list of one."""
    request = parse(prompt=prompt, max_tokens=5, stop="\n", n=1, echo=False, best_of=1, logprobs=2)
    assert isinstance(request, Request)
    assert [(message.role, message.text) for message in request.messages] == [("user", "روزی روزگاری")]
    assert (request.max_tokens, request.stop, request.n, request.top_logprobs) == (5, ("\n",), None, 2)
    assert request.extra == {}


@pytest.mark.clause("Q1")
@pytest.mark.parametrize("prompt", [None, "", 7, [], ["一", "二"], [1, 2, 3], [[1], [2]]])
def test_other_prompts_are_for_vendors_of_this_api(prompt: object) -> None:
    """Several prompts and token ids cannot be one message; the answer says so by name."""
    refused = parse(prompt=prompt)
    assert isinstance(refused, BadRequest)
    assert (refused.code, refused.param) == ("unsupported_prompt", "prompt")


@pytest.mark.clause("Q1")
def test_a_vendor_of_this_api_gets_the_body_as_it_came() -> None:
    """Token ids, unknown fields and all; usage is asked for in a stream."""
    body = {"model": "alias", "prompt": [1, 2, 3], "suffix": "終", "stream": True, "echo": True}
    request = parse_completions_request(encode(body))
    assert isinstance(request, Incoming)
    assert orjson.loads(request.for_upstream("base-1")) == {
        **body,
        "model": "base-1",
        "stream_options": {"include_usage": True},
    }


@pytest.mark.clause("Q1")
def test_a_base_model_is_told_one_text_and_the_rest_is_named() -> None:
    """Roles, images and tools have no place in it."""
    losses = Losses()
    request = Request(
        client="chat",
        model="alias",
        messages=(
            Message("system", (Text("短く"),), at=0),
            Message("user", (Text("سلام"), Image(url="https://example.org/a.png")), at=1),
        ),
        tools=(Tool("t"),),
        max_tokens=9,
        stream=True,
    )
    body = send_completions(request, "base-1", losses, {"max_tokens": "max_new"})
    assert body == {
        "model": "base-1",
        "prompt": "短く\n\nسلام",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_new": 9,
    }
    assert losses.real == ("messages[0].role", "messages[1].role", "messages[1].image", "tools")
    TypeAdapter(CompletionCreateParamsStreaming).validate_python(body)


@pytest.mark.clause("W4", "W5")
def test_a_chat_stream_reads_as_completions() -> None:
    """The same text, finish and usage, in this API's objects, without roles."""
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    finish = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": usage}
    last = {**finish, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
    reads = [say("سلام "), say("你好"), b"data: " + encode(last) + b"\n\n", END]
    transcript = run(reads, STREAM)
    said = decode_completions(transcript.client, True)

    assert (said.text, said.finish, said.usage, said.ended) == ("سلام 你好", "length", (3, 4), True)
    first = json.loads(transcript.client.split(b"\n\n")[0][6:])
    assert (first["object"], first["choices"][0]["text"]) == ("text_completion", "سلام ")


@pytest.mark.clause("W4")
def test_a_vendors_own_completions_pass_through_the_same_stages() -> None:
    """Its stream, and its plain body with the fields that we do not know."""
    event = {"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "base", "choices": []}
    pieces = [{**event, "choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in ("گل ", "سرخ")]
    pieces.append({**event, "choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    reads = [b"data: " + encode(piece) + b"\n\n" for piece in pieces] + [END]
    said = decode_completions(run(reads, STREAM, dialect="completions").client, True)
    assert (said.text, said.finish, said.ended) == ("گل سرخ", "stop", True)

    body = {**event, "choices": [{"index": 0, "text": "گل", "finish_reason": "stop", "stop_reason": 7}], "x": 1}
    plain = run(
        [encode(body)],
        Asked(stream=False, client="completions"),
        headers={"content-type": "application/json"},
        dialect="completions",
    )
    told = json.loads(plain.client)
    assert (told["x"], told["choices"][0]["stop_reason"], told["choices"][0]["text"]) == (1, 7, "گل")
    assert told["usage"]["estimated"] is True


def test_the_reader_tells_errors_and_chunks_apart() -> None:
    """An error beside choices is an error; anything goes in, nothing raises."""
    reader = CompletionsReader()
    assert isinstance(reader.read(b'{"error":{"message":"x"}}', None), ErrorSeen)
    chunk = reader.read(b'{"choices":[{"text":"a"},7,{"index":"x","text":5,"finish_reason":"stop"}]}', None)
    assert isinstance(chunk, Chunk)
    assert chunk.deltas == [Delta(0, {"content": "a"}), Delta(2, {}, finish="stop")]


LOGPROBS = {
    "tokens": ["گل", " سرخ"],
    "token_logprobs": [-0.25, -1.5],
    "top_logprobs": [{"گل": -0.25, "دل": -2.0}, {" سرخ": -1.5}],
    "text_offset": [7, 9],
}


@pytest.mark.clause("W4")
def test_log_probabilities_keep_their_grammar() -> None:
    """A vendor's own come back as they were; a chat client finds those of chats."""
    choice = {"index": 0, "text": "گل سرخ", "logprobs": LOGPROBS, "finish_reason": "stop"}
    body = {"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "base", "choices": [choice]}
    reads = [b"data: " + encode(body) + b"\n\n", END]

    own = json.loads(run(reads, STREAM, dialect="completions").client.split(b"\n\n")[0][6:])
    assert own["choices"][0]["logprobs"] == LOGPROBS
    plain = run([encode(body)], PLAIN, headers={"content-type": "application/json"}, dialect="completions")
    assert json.loads(plain.client)["choices"][0]["logprobs"] == LOGPROBS

    chats = run(reads, Asked(stream=False, client="chat"), dialect="completions")
    told = ChatCompletion.model_validate_json(chats.client).choices[0].logprobs
    assert told is not None and told.content is not None
    assert [(one.token, one.logprob, len(one.top_logprobs)) for one in told.content] == [
        ("گل", -0.25, 2),
        (" سرخ", -1.5, 1),
    ]
    assert told.content[0].bytes == list("گل".encode())


@pytest.mark.clause("W4")
@pytest.mark.parametrize("stream", [True, False])
def test_a_chats_log_probabilities_are_told_in_lists(stream: bool) -> None:
    """With offsets into the answer, over all of its events."""
    entries = [
        {"token": token, "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": token, "logprob": -0.5}]}
        for token in ("ab", "cde")
    ]
    reads = [
        b"data: "
        + encode(
            {
                **{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"},
                "choices": [{"index": 0, "delta": {"content": one["token"]}, "logprobs": {"content": [one]}}],
            }
        )
        + b"\n\n"
        for one in entries
    ]
    made = run([*reads, END], STREAM if stream else PLAIN)
    bodies = [json.loads(line[6:]) for line in made.client.split(b"\n\n")[:2]] if stream else [json.loads(made.client)]
    told = [Logprobs.model_validate(body["choices"][0]["logprobs"]) for body in bodies]

    assert [one.tokens for one in told] == ([["ab"], ["cde"]] if stream else [["ab", "cde"]])
    assert [one.text_offset for one in told] == ([[0], [2]] if stream else [[0, 2]])
    assert told[0].top_logprobs is not None
    assert told[0].top_logprobs[0] == {"ab": -0.5}


def test_log_probabilities_of_any_form() -> None:
    """What is of neither form stays as it is, lists may be short, and nothing raises."""
    assert to_chat(None) is None
    assert to_chat([1]) == to_completions([1], 0) == [1]
    assert to_chat({"x": 1}) == to_completions({"x": 1}, 0) == {"x": 1}
    short = to_chat({"tokens": ["a", 5], "token_logprobs": [-1.0], "top_logprobs": None, "more": 1})
    assert to_completions(short, 3) == {
        "more": 1,
        "tokens": ["a", ""],
        "token_logprobs": [-1.0, None],
        "top_logprobs": None,
        "text_offset": [3, 4],
    }
    assert to_completions({"content": [{}, 7, {"token": None}]}, 0) == {
        "tokens": ["", ""],
        "token_logprobs": [None, None],
        "top_logprobs": None,
        "text_offset": [0, 0],
    }


@pytest.mark.parametrize("said", [{"message": {"role": "assistant", "content": "گل"}}, {"delta": {"content": "گل"}}])
def test_a_server_that_knows_only_chats_loses_no_text(said: dict[str, object]) -> None:
    """Its plain answer at this API's address is told as this API's; so is one in an array."""
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    value: object = {**body, "choices": [{"index": 0, "finish_reason": "stop", **said}]}
    for told in (value, [value]):
        made = run([encode(told)], PLAIN, headers={"content-type": "application/json"}, dialect="completions")
        choice = json.loads(made.client)["choices"][0]
        assert choice["text"] == "گل"
        assert not {"message", "delta"} & set(choice)
