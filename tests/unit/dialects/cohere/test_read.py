"""What the reader makes of Cohere's chat: its events, its endings, its whole body, and what nobody promised."""

from __future__ import annotations

import json

import pytest
from cohere.core.unchecked_base_model import construct_type
from cohere.v2.types.v2chat_stream_response import V2ChatStreamResponse
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, ErrorSeen, Heartbeat, Malformed, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.cohere.read import CohereReader
from proxy.stores.recordings import Recording
from proxy.wire.sse import SseDecoder
from tests.support.pipelines import play, recordings
from tests.support.strategies import encode, odd

KINDS = (
    *("message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start"),
    *("tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "debug"),
)


def read(value: object, event: str | None = None) -> Parsed:
    return CohereReader().read(encode(value), event)


def said(kind: str, message: object, **more: object) -> dict[str, object]:
    return {"type": kind, "delta": {"message": message}, **more}


# ---- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("value", "delta"),
    [
        (said("content-start", {"content": {"type": "text", "text": ""}}, index=0), Delta(0, {})),
        (said("content-start", {"content": {"type": "text", "text": "س"}}, index=0), Delta(0, {"content": "س"})),
        (said("content-delta", {"content": {"text": "سلام 👩‍👧"}}, index=0), Delta(0, {"content": "سلام 👩‍👧"})),
        (said("content-delta", {"content": {"thinking": "想"}}, index=0), Delta(0, {"reasoning_content": "想"})),
        (said("tool-plan-delta", {"tool_plan": "योजना"}), Delta(0, {"reasoning_content": "योजना"})),
        (
            said(
                "tool-call-start",
                {"tool_calls": {"id": "c1", "type": "function", "function": {"name": "clock"}}},
                index=1,
            ),
            Delta(0, {}, [ToolFragment(1, "c1", "clock", "")]),
        ),
        (
            said("tool-call-delta", {"tool_calls": {"function": {"arguments": '{"z":'}}}, index=1),
            Delta(0, {}, [ToolFragment(1, None, None, '{"z":')]),
        ),
        (
            said("citation-start", {"citations": {"start": 0, "text": "ت"}}, index=0),
            Delta(0, {}, extra={"citations": [{"start": 0, "text": "ت"}]}),
        ),
    ],
)
def test_each_event_is_one_increment(value: dict[str, object], delta: Delta) -> None:
    """By its type in the JSON, or by the event's name where the JSON has none."""
    assert read(value) == Chunk([delta])
    kind = str(value.pop("type"))
    assert read(value, kind) == Chunk([delta])


def test_the_first_event_has_the_id() -> None:
    """And the role."""
    value = said("message-start", {"role": "assistant", "content": []}, id="r-1")
    assert read(value) == Chunk([Delta(0, {}, role="assistant")], id="r-1")


def test_log_probabilities_are_those_of_chat_completions() -> None:
    """One item may be several tokens: the logarithm of its text is their sum."""
    value = said(
        "content-delta",
        {"content": {"text": "né"}},
        logprobs={"text": "né", "token_ids": [1, 2], "logprobs": [-1.0, -0.5]},
    )
    told = {"token": "né", "logprob": -1.5, "bytes": [110, 195, 169], "top_logprobs": []}
    assert read(value) == Chunk([Delta(0, {"content": "né"}, logprobs={"content": [told]})])


@pytest.mark.parametrize("kind", ["content-end", "tool-call-end", "citation-end", "debug", "ping"])
def test_some_events_say_nothing(kind: str) -> None:
    """Above all not the prompt that a debug event repeats."""
    assert read({"type": kind, "prompt": "secret"}) == Heartbeat()


# ---- endings ---------------------------------------------------------------------------------------------------------

USAGE = {
    "billed_units": {"input_tokens": 12, "output_tokens": 14},
    "tokens": {"input_tokens": 507, "output_tokens": 16},
    "cached_tokens": 384,
}


def end(**delta: object) -> dict[str, object]:
    return {"type": "message-end", "id": "r-1", "delta": delta}


@pytest.mark.clause("W4", "L2")
def test_the_last_event_has_finish_and_usage() -> None:
    """In the vendor's word and object; an empty usage is none."""
    assert read(end(finish_reason="COMPLETE", usage=USAGE)) == Chunk(
        [Delta(0, {}, finish="COMPLETE")], id="r-1", usage=USAGE
    )
    assert read(end(finish_reason="COMPLETE", usage={})) == Chunk([Delta(0, {}, finish="COMPLETE")], id="r-1")
    assert read(end(finish_reason="COMPLETE", usage={"tokens": {}, "billed_units": None})) == Chunk(
        [Delta(0, {}, finish="COMPLETE")], id="r-1"
    )


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("vendor", "usage"),
    [
        (USAGE, Usage(507, 16, 384)),
        ({"tokens": {"input_tokens": 507.0, "output_tokens": 16.0}}, Usage(507, 16)),
        ({"billed_units": {"input_tokens": 12, "output_tokens": 14}}, Usage(12, 14)),
        ({"tokens": {"input_tokens": 9}, "billed_units": {"input_tokens": 5, "output_tokens": 6}}, Usage(9, 6)),
        ({"tokens": {"input_tokens": 1.5, "output_tokens": "x"}, "cached_tokens": -1}, Usage()),
    ],
)
def test_usage_is_what_was_processed(vendor: dict[str, object], usage: Usage) -> None:
    """Not what is billed, unless nothing else is said; whole numbers that are written as floats are whole numbers."""
    assert CohereReader().usage(vendor) == usage


@pytest.mark.clause("E")
@pytest.mark.parametrize(
    "delta",
    [
        {"finish_reason": "ERROR"},
        {"finish_reason": "TIMEOUT", "usage": USAGE},
        {"finish_reason": "COMPLETE", "error": "it failed"},
        {"error": "it failed"},
    ],
)
def test_an_answer_that_failed_says_so_at_its_end(delta: dict[str, object]) -> None:
    """In its finish, in words, or in both; what was used until then is known."""
    value = end(**delta)
    word = delta.get("finish_reason")
    chunk = Chunk(
        [Delta(0, {}, finish=str(word) if word else None)], id="r-1", usage=USAGE if "usage" in delta else None
    )
    assert read(value) == ErrorSeen(delta, encode(value), chunk)


@pytest.mark.parametrize(
    ("data", "event", "parsed"),
    [
        (b"[DONE]", None, Heartbeat()),
        (
            b'{"message":"m","id":"x"}',
            None,
            ErrorSeen({"message": "m", "id": "x"}, b'{"message":"m","id":"x"}', is_vague=True),
        ),
        (b'{"message":"m"}', "error", ErrorSeen({"message": "m"}, b'{"message":"m"}')),
        (b'{"type":"something-new","note":"n"}', None, Heartbeat({"note": "n"})),
        (b"{", None, Malformed(b"{")),
        (b"{}", None, Heartbeat()),
    ],
)
def test_what_is_no_piece_of_an_answer(data: bytes, event: str | None, parsed: Parsed) -> None:
    """The end mark, flat errors, events that nobody has told of."""
    assert CohereReader().read(data, event) == parsed


# ---- one body --------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W4")
def test_a_whole_body_is_one_increment() -> None:
    """Thinking and the plan are reasoning, texts are joined; calls, citations, log probabilities, usage."""
    message = {
        "role": "assistant",
        "tool_plan": " योजना",
        "content": [
            {"type": "thinking", "thinking": "想"},
            {"type": "text", "text": "أهلاً "},
            {"type": "text", "text": "🌙"},
        ],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "clock", "arguments": '{"z":1}'}}],
        "citations": [{"start": 0}],
    }
    logprobs = [{"text": "a", "token_ids": [1], "logprobs": [-0.1]}, {"text": "b", "token_ids": [2]}]
    body = {"id": "r-1", "finish_reason": "TOOL_CALL", "message": message, "usage": USAGE, "logprobs": logprobs}
    told = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}

    delta = Delta(
        0,
        {"reasoning_content": "想 योजना", "content": "أهلاً 🌙"},
        [ToolFragment(0, "c1", "clock", '{"z":1}')],
        "assistant",
        "TOOL_CALL",
        logprobs={"content": [told]},
        extra={"citations": [{"start": 0}]},
    )
    assert CohereReader().read_body(encode(body)) == Chunk([delta], id="r-1", usage=USAGE)
    assert read(body) == Chunk([delta], id="r-1", usage=USAGE)


def test_a_whole_body_may_have_failed() -> None:
    """Its text is no part of the error."""
    body = {"id": "r-1", "finish_reason": "ERROR", "message": {"role": "assistant", "content": [{"text": "half"}]}}
    parsed = CohereReader().read_body(encode(body))
    assert isinstance(parsed, ErrorSeen)
    assert parsed.payload == {"id": "r-1", "finish_reason": "ERROR"}


@pytest.mark.parametrize(
    ("data", "parsed"),
    [
        (b'{"message":"m"}', ErrorSeen({"message": "m"}, b'{"message":"m"}', is_vague=True)),
        (b"<html>", Malformed(b"<html>")),
        (b'{"message":{}}', Chunk([])),
        (b"{}", Heartbeat()),
    ],
)
def test_a_body_that_is_no_answer(data: bytes, parsed: Parsed) -> None:
    """An error, a page, nothing."""
    assert CohereReader().read_body(data) == parsed


# ---- anything at all -------------------------------------------------------------------------------------------------


@given(
    st.sampled_from((*KINDS, "x")),
    st.dictionaries(st.sampled_from(("content", "tool_plan", "tool_calls", "citations", "role")), odd),
    st.dictionaries(st.sampled_from(("index", "id", "usage", "finish_reason", "error", "logprobs")), odd),
    odd,
)
def test_nothing_raises(kind: str, message: dict[str, object], fields: dict[str, object], inner: object) -> None:
    """Whatever types the fields have."""
    reader = CohereReader()
    for value in (
        {"type": kind, "delta": {"message": message, **fields}, **fields},
        {"type": kind, "delta": {"message": {"tool_calls": {"function": {"arguments": inner, "name": inner}}}}},
        {"type": kind, "delta": inner},
        {"message": message, **fields},
    ):
        reader.read(encode(value), None)
        reader.read_body(encode(value))
    reader.usage(fields)
    reader.usage({"tokens": inner, "billed_units": {"input_tokens": inner}})


@given(st.binary(max_size=60), st.sampled_from((*KINDS, None, "error")))
def test_no_bytes_raise(data: bytes, event: str | None) -> None:
    """Nor whatever bytes they are."""
    CohereReader().read(data, event)
    CohereReader().read_body(data)


# ---- recordings ------------------------------------------------------------------------------------------------------

MINE = tuple(one for one in recordings() if one.vendor == "cohere")


@pytest.mark.parametrize("recording", [one for one in MINE if one.asks_stream], ids=lambda one: one.name)
def test_recorded_events_are_those_of_the_sdk(recording: Recording) -> None:
    """Each composed event has the type and the fields that Cohere's own client knows, and no others."""
    for frame in SseDecoder(10_000, 10_000).feed(recording.body):
        if frame.data in (b"", b"{}", b"[DONE]"):
            continue
        value = json.loads(frame.data)
        parsed = construct_type(type_=V2ChatStreamResponse, object_=value)  # type: ignore[arg-type]  # a union is a type to it
        assert type(parsed).__name__.removesuffix("V2ChatStreamResponse") in {
            "".join(map(str.title, kind.split("-"))) for kind in KINDS
        }
        assert not getattr(parsed, "model_extra", None)


@pytest.mark.clause("W2")
@pytest.mark.parametrize("recording", MINE, ids=lambda one: one.name)
def test_the_reads_do_not_matter(recording: Recording) -> None:
    """One byte at a time, all at once, and as recorded: the same bytes for the client."""
    whole = play(recording).client
    assert play(recording, at=range(1, len(recording.body))).client == whole
    assert play(recording, at=()).client == whole
