"""What the reader makes of Converse: its events, its exceptions, its whole body, and what nobody promised."""

from __future__ import annotations

from base64 import b64encode

import pytest
from botocore.eventstream import EventStream  # type: ignore[import-untyped]  # it has no types
from botocore.loaders import Loader  # type: ignore[import-untyped]  # it has no types
from botocore.model import ServiceModel  # type: ignore[import-untyped]  # it has no types
from botocore.parsers import create_parser  # type: ignore[import-untyped]  # it has no types
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, Malformed, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.bedrock.read import BedrockReader
from proxy.stores.recordings import Recording
from tests.support.pipelines import PLAIN, play, recordings, run
from tests.support.strategies import encode, odd

EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")


def read(event: str | None, value: object, reader: BedrockReader | None = None) -> Parsed:
    return (reader or BedrockReader()).read(encode(value), event)


def block(number: int, **delta: object) -> dict[str, object]:
    return {"contentBlockIndex": number, "delta": delta, "p": "abcdefgh"}


# ---- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("event", "value", "delta"),
    [
        ("messageStart", {"role": "assistant", "p": "abc"}, Delta(0, {}, role="assistant")),
        ("contentBlockDelta", block(0, text="سلام 👩‍👧"), Delta(0, {"content": "سلام 👩‍👧"})),
        ("contentBlockDelta", block(0, text="\ud83d"), Delta(0, {"content": "\ud83d"})),
        ("contentBlockDelta", block(0, text=""), Delta(0, {})),
        ("contentBlockDelta", block(0, reasoningContent={"text": "想"}), Delta(0, {"reasoning_content": "想"})),
        (
            "contentBlockStart",
            {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "clock"}}},
            Delta(0, {}, [ToolFragment(2, "t1", "clock", "")]),
        ),
        (
            "contentBlockDelta",
            block(2, toolUse={"input": '{"zone":'}),
            Delta(0, {}, [ToolFragment(2, None, None, '{"zone":')]),
        ),
        (
            "contentBlockDelta",
            block(2, toolUse={"input": {"zone": "UTC"}}),  # a relay that parsed it
            Delta(0, {}, [ToolFragment(2, None, None, '{"zone":"UTC"}')]),
        ),
        (
            "contentBlockDelta",
            block(0, citation={"title": "ت"}),
            Delta(0, {}, extra={"citations": [{"title": "ت"}]}),
        ),
        ("messageStop", {"stopReason": "end_turn", "p": "ab"}, Delta(0, {}, finish="end_turn")),
        (
            "messageStop",
            {"stopReason": "tool_use", "additionalModelResponseFields": {"x": 1}},
            Delta(0, {}, finish="tool_use", choice_extra={"additionalModelResponseFields": {"x": 1}}),
        ),
    ],
)
def test_each_event_is_one_increment(event: str, value: dict[str, object], delta: Delta) -> None:
    """With its name in the frame's header, or around the payload as relays write it; padding says nothing."""
    assert read(event, value) == Chunk([delta])
    assert read(None, {event: value}) == Chunk([delta])


def test_what_aws_runs_itself_stays_with_the_family() -> None:
    """A call with a type is no call of the client's, and its arguments are none."""
    reader = BedrockReader()
    start = {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use"}}

    assert read("contentBlockStart", {"contentBlockIndex": 1, "start": start}, reader) == Chunk(
        [Delta(0, {}, extra={"native": [{"contentBlockIndex": 1, "start": start}]})]
    )
    parsed = read("contentBlockDelta", block(1, toolUse={"input": "{}"}), reader)
    assert isinstance(parsed, Chunk)
    assert parsed.deltas[0].tools is None
    assert "native" in parsed.deltas[0].extra


def test_a_seal_is_given_at_the_end_of_its_block_with_the_text_that_it_seals() -> None:
    """Text and signature in pieces; a block that only the vendor can read; each has a number of its own."""
    reader = BedrockReader()
    for delta in ({"text": "यह "}, {"text": "सोच"}, {"signature": "AB"}, {"signature": "CD"}):
        read("contentBlockDelta", block(0, reasoningContent=delta), reader)
    first = read("contentBlockStop", {"contentBlockIndex": 0}, reader)
    read("contentBlockDelta", block(1, reasoningContent={"redactedContent": b64encode(b"a").decode()}), reader)
    read("contentBlockDelta", block(1, reasoningContent={"redactedContent": b64encode(b"bc").decode()}), reader)
    second = read("contentBlockStop", {"contentBlockIndex": 1}, reader)

    sealed = {"text": "यह सोच", "signature": "ABCD", "format": "amazon-bedrock-v1", "index": 0}
    assert first == Chunk([Delta(0, {}, extra={"reasoning_details": [{"type": "reasoning.text", **sealed}]})])
    encrypted = {"data": b64encode(b"abc").decode(), "format": "amazon-bedrock-v1", "index": 1}
    assert second == Chunk([Delta(0, {}, extra={"reasoning_details": [{"type": "reasoning.encrypted", **encrypted}]})])
    assert read("contentBlockStop", {"contentBlockIndex": 0}, reader) == Heartbeat()


def test_pieces_that_are_no_base64_stay_as_they_came() -> None:
    """The vendor will refuse them; nothing is lost on the way."""
    reader = BedrockReader()
    for piece in ("AQ==", "A"):
        read("contentBlockDelta", block(0, reasoningContent={"redactedContent": piece}), reader)
    parsed = read("contentBlockStop", {"contentBlockIndex": 0}, reader)
    assert isinstance(parsed, Chunk)
    assert '"AQ==A"' in str(parsed.deltas[0].extra).replace("'", '"')


def test_a_seal_whose_block_was_not_ended_goes_with_the_finish() -> None:
    """Nothing of it may get lost: the next turn needs it."""
    reader = BedrockReader()
    read("contentBlockDelta", block(0, reasoningContent={"text": "想"}), reader)
    read("contentBlockDelta", block(0, reasoningContent={"signature": "S"}), reader)
    parsed = read("messageStop", {"stopReason": "end_turn"}, reader)

    assert isinstance(parsed, Chunk)
    assert parsed.deltas[0].finish == "end_turn"
    assert [d["signature"] for d in parsed.deltas[0].extra["reasoning_details"]] == ["S"]  # type: ignore[attr-defined]  # a list


@pytest.mark.clause("L2")
def test_usage_comes_last_and_leaves_the_cache_out() -> None:
    """Input is what was neither read from the cache nor written into it: here it is all of it."""
    usage = {
        "inputTokens": 31,
        "outputTokens": 57,
        "totalTokens": 2648,
        "cacheReadInputTokens": 2048,
        "cacheWriteInputTokens": 512,
    }
    trace = {"promptRouter": {"invokedModelId": "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0"}}
    value = {"usage": usage, "metrics": {"latencyMs": 9}, "trace": trace, "serviceTier": {"type": "flex"}}

    assert read("metadata", value) == Chunk(
        [],
        model="arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0",
        usage=usage,
        extra={"service_tier": "flex"},
    )
    assert BedrockReader().usage(usage) == Usage(2591, 57, 2048, 512)
    assert BedrockReader().usage({"inputTokens": 3, "outputTokens": 4}) == Usage(3, 4)
    assert BedrockReader().usage({"inputTokens": "3", "outputTokens": None}) == Usage(3)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("E")
def test_an_exception_is_an_error_with_its_name_as_its_code() -> None:
    """As a frame, around the payload as a relay writes it, and as headers alone."""
    value = {"message": "Too many tokens", "p": "ab"}
    seen = {"__type": "throttlingException", **value}

    assert read("throttlingException", value) == ErrorSeen(seen, encode(value))
    wrapped = {"throttlingException": value}
    assert read(None, wrapped) == ErrorSeen(seen, encode(wrapped))
    data = "کار نکرد".encode()
    assert BedrockReader().read(data, "InternalError") == ErrorSeen(
        {"__type": "InternalError", "message": "کار نکرد"}, data
    )
    assert BedrockReader().read(b"", "internalServerException") == ErrorSeen(
        {"__type": "internalServerException", "message": ""}, b""
    )


@pytest.mark.parametrize(
    ("event", "data", "parsed"),
    [
        ("initial-response", b"{}", Heartbeat()),
        ("somethingNew", b'{"note":"n"}', Heartbeat({"note": "n"})),
        ("somethingNew", b'{"message":"m"}', ErrorSeen({"message": "m"}, b'{"message":"m"}', is_vague=True)),
        (None, b'{"error":{"message":"m"}}', ErrorSeen({"error": {"message": "m"}}, b'{"error":{"message":"m"}}')),
        ("contentBlockDelta", b"{", Malformed(b"{")),
        (None, b"", Malformed(b"")),
        ("contentBlockStop", b"{}", Heartbeat()),
        ("contentBlockDelta", b"{}", Heartbeat()),
    ],
)
def test_what_is_no_piece_of_an_answer(event: str | None, data: bytes, parsed: Parsed) -> None:
    """Unknown events are signs of life, unless they speak of an error."""
    assert BedrockReader().read(data, event) == parsed


# ---- one body --------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W4")
def test_a_whole_body_is_one_increment() -> None:
    """Texts, reasoning with its seals, calls with their arguments as JSON text, citations, usage, tier."""
    content: list[dict[str, object]] = [
        {"reasoningContent": {"reasoningText": {"text": "想", "signature": "S"}}},
        {"reasoningContent": {"redactedContent": "AQI="}},
        {"text": "Grüße "},
        {"citationsContent": {"content": [{"text": "aus 東京"}], "citations": [{"title": "T"}]}},
        {"toolUse": {"toolUseId": "t1", "name": "clock", "input": {"zone": "東京"}}},
        {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
    ]
    usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    body = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": usage,
        "metrics": {"latencyMs": 1},
        "serviceTier": {"type": "default"},
        "something": "new",
    }
    details = [
        {"type": "reasoning.text", "text": "想", "signature": "S", "format": "amazon-bedrock-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "AQI=", "format": "amazon-bedrock-v1", "index": 1},
    ]
    extra = {"reasoning_details": details, "citations": [{"title": "T"}], "native": [content[5]]}
    delta = Delta(
        0,
        {"reasoning_content": "想", "content": "Grüße aus 東京"},
        [ToolFragment(4, "t1", "clock", '{"zone":"東京"}')],
        "assistant",
        "tool_use",
        extra=extra,
        choice_extra={"something": "new"},
    )
    assert BedrockReader().read_body(encode(body)) == Chunk([delta], usage=usage, extra={"service_tier": "default"})


@pytest.mark.parametrize(
    ("data", "parsed"),
    [
        (b'{"message":"m"}', ErrorSeen({"message": "m"}, b'{"message":"m"}', is_vague=True)),
        (b'{"__type":"x","error":"m"}', ErrorSeen({"__type": "x", "error": "m"}, b'{"__type":"x","error":"m"}')),
        (b"<html>", Malformed(b"<html>")),
        (b"{}", Heartbeat()),
        (b'{"output":{"message":{"role":"assistant","content":[]}}}', Chunk([])),
    ],
)
def test_a_body_that_is_no_answer(data: bytes, parsed: Parsed) -> None:
    """An error, a page, nothing."""
    assert BedrockReader().read_body(data) == parsed


def test_an_empty_answer_with_a_finish_is_an_answer() -> None:
    """A model that has nothing to add after a tool's result says so."""
    body = {"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"}
    assert BedrockReader().read_body(encode(body)) == Chunk([Delta(0, {}, role="assistant", finish="end_turn")])


# ---- anything at all -------------------------------------------------------------------------------------------------


@given(
    st.sampled_from((*EVENTS, None, "throttlingException", "x")),
    st.dictionaries(st.sampled_from(("contentBlockIndex", "delta", "start", "role", "stopReason", "usage", "p")), odd),
    st.sampled_from(("text", "reasoningContent", "toolUse", "citation", "toolResult", "image")),
    odd,
)
def test_nothing_raises(event: str | None, value: dict[str, object], kind: str, inner: object) -> None:
    """Whatever types the fields have."""
    reader = BedrockReader()
    for payload in (value, {**value, "delta": {kind: inner}}, {**value, "start": {kind: inner}}, {kind: value}):
        read(event, payload, reader)
        read(None, {event or "x": payload}, reader)
        reader.read_body(encode({"output": {"message": {"content": [payload, {kind: inner}]}}, **value}))
    for usage in (value, {"inputTokens": inner, "cacheReadInputTokens": inner}):
        reader.usage(usage)


@given(st.binary(max_size=60), st.sampled_from((*EVENTS, None, "throttlingException")))
def test_no_bytes_raise(data: bytes, event: str | None) -> None:
    """Nor whatever bytes they are."""
    BedrockReader().read(data, event)
    BedrockReader().read_body(data)


# ---- through the pipeline --------------------------------------------------------------------------------------------

MINE = tuple(one for one in recordings() if one.vendor == "bedrock")


@pytest.mark.parametrize("name", ["plain", "two-tool-calls", "reasoning-sealed", "cut-inside-letters"])
def test_botocore_reads_the_same_answer(name: str) -> None:
    """AWS's own client makes the same text, calls, finish and usage of the recorded bytes."""
    recording = next(one for one in MINE if one.name == name)
    said = said_by_botocore(recording)
    expect = recording.expect

    assert said["text"] == expect["text"]
    assert said["reasoning"] == expect.get("reasoning", "")
    assert said["calls"] == expect.get("tool_calls", [])
    assert said["usage"] == expect["usage"]


def said_by_botocore(recording: Recording) -> dict[str, object]:
    model = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
    operation = model.operation_model("ConverseStream")
    shape = operation.output_shape.members["stream"]

    class Raw:
        def stream(self) -> list[bytes]:
            return [read.data for read in recording.reads]

    text, reasoning, usage = "", "", None
    calls: dict[int, dict[str, str]] = {}
    for event in EventStream(Raw(), shape, create_parser("rest-json")._event_stream_parser, "ConverseStream"):
        kind, value = next(iter(event.items()))
        delta = value.get("delta", {})
        text += delta.get("text", "")
        reasoning += delta.get("reasoningContent", {}).get("text", "")
        if kind == "contentBlockStart":
            told = value["start"]["toolUse"]
            calls[value["contentBlockIndex"]] = {"id": told["toolUseId"], "name": told["name"], "arguments": ""}
        if "toolUse" in delta:
            calls[value["contentBlockIndex"]]["arguments"] += delta["toolUse"]["input"]
        usage = value.get("usage", usage)
    return {"text": text, "reasoning": reasoning, "calls": list(calls.values()), "usage": usage}


@pytest.mark.clause("W2")
@pytest.mark.parametrize("recording", MINE, ids=lambda one: one.name)
def test_the_reads_do_not_matter(recording: Recording) -> None:
    """One byte at a time, all at once, and as recorded: the same bytes for the client."""
    whole = play(recording).client
    assert play(recording, at=range(1, len(recording.body))).client == whole
    assert play(recording, at=()).client == whole


def test_a_stream_to_a_plain_client_is_one_body() -> None:
    """And its usage is in the client's terms, cache included."""
    recording = next(one for one in MINE if one.name == "reasoning-sealed")
    told = run([recording.body], PLAIN, vendor="bedrock", headers=dict(recording.headers))

    assert told.facts.vendor_usage == recording.expect["usage"]
    usage = told.body["usage"]
    assert isinstance(usage, dict)
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (2591, 57, 2648)
