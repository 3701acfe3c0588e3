"""Events of the Messages API to canonical values: transcripts, and what no vendor should send (facts of vendors, 3)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk, Delta, EndMark, ErrorSeen, Heartbeat, Malformed
from proxy.canon.usage import Usage
from proxy.dialects.anthropic.read import AnthropicReader
from proxy.dialects.anthropic.usage import read_usage

START: dict[str, object] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "usage": {"input_tokens": 3, "output_tokens": 1, "service_tier": "priority"},
    },
}


def read(*events: object) -> list[object]:
    """What each event says, by one reader."""
    reader = AnthropicReader()
    return [reader.read(json.dumps(event).encode(), None) for event in events]


def deltas(*events: object) -> list[Delta]:
    found = []
    for parsed in read(*events):
        assert isinstance(parsed, Chunk)
        found += parsed.deltas
    return found


def start(kind: str, index: int = 0, **fields: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def piece(kind: str, index: int = 0, **fields: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int = 0) -> dict[str, object]:
    return {"type": "content_block_stop", "index": index}


def test_the_head_gives_identity_role_and_the_input() -> None:
    """Usage stands under the event's name, the tier beside the identity."""
    (chunk,) = read(START)

    assert isinstance(chunk, Chunk)
    assert (chunk.id, chunk.model, chunk.extra) == ("msg_1", "claude-x", {"service_tier": "priority"})
    assert chunk.deltas == [Delta(0, {}, role="assistant")]
    assert chunk.usage == {"message_start": {"input_tokens": 3, "output_tokens": 1, "service_tier": "priority"}}


def test_text_thinking_and_seals_come_in_their_places() -> None:
    """A signature is told when its block ends, with the block's whole text; a redacted block at once."""
    told = deltas(
        start("thinking", thinking="", signature=""),
        piece("thinking_delta", thinking="فکر "),
        piece("thinking_delta", thinking="思考"),
        piece("signature_delta", signature="sig"),
        stop(),
        start("redacted_thinking", 1, data="zip"),
        stop(1),
        start("text", 2, text=""),
        piece("text_delta", 2, text="नमस्ते"),
        stop(2),
    )

    assert [delta.texts for delta in told if delta.texts] == [
        {"reasoning_content": "فکر "},
        {"reasoning_content": "思考"},
        {"content": "नमस्ते"},
    ]
    assert [delta.extra["reasoning_details"] for delta in told if delta.extra] == [
        [
            {
                "type": "reasoning.text",
                "text": "فکر 思考",
                "signature": "sig",
                "format": "anthropic-claude-v1",
                "index": 0,
            }
        ],
        [{"type": "reasoning.encrypted", "data": "zip", "format": "anthropic-claude-v1", "index": 1}],
    ]


def test_tool_calls_are_numbered_among_themselves() -> None:
    """Whatever the numbers of their blocks; a block that is used again is another call."""
    told = deltas(
        start("text", text="x"),
        start("tool_use", 1, id="a", name="f", input={}),
        piece("input_json_delta", 1, partial_json=""),
        piece("input_json_delta", 1, partial_json='{"k":'),
        piece("input_json_delta", 1, partial_json="1}"),
        start("tool_use", 1, id="b", name="g", input={"whole": "是"}),
        stop(1),
        start("tool_use", 1, id="c", name="h", input={"twice": 1}),
        piece("input_json_delta", 1, partial_json='{"twice":'),
        piece("input_json_delta", 1, partial_json="1}"),
        start("tool_use", 1, id="d", name="i", input='{"text":2}'),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    )
    fragments = [(t.index, t.id, t.name, t.arguments) for delta in told for t in delta.tools or ()]

    assert fragments == [
        (0, "a", "f", ""),
        (0, None, None, '{"k":'),
        (0, None, None, "1}"),
        (1, "b", "g", ""),
        (1, None, None, '{"whole":"是"}'),
        (2, "c", "h", ""),
        (2, None, None, '{"twice":'),
        (2, None, None, "1}"),
        (3, "d", "i", ""),
        (3, None, None, '{"text":2}'),
    ]


def test_what_only_this_family_knows_goes_on_raw() -> None:
    """Server tools with all their events, citations, unknown fields of a call, and where the next text block begins."""
    raw = [
        start("server_tool_use", 0, id="s", name="web_search", input={}),
        piece("input_json_delta", 0, partial_json="{}"),
        stop(0),
        start("text", 1, text=""),
        piece("citations_delta", 1, citation={"type": "page_location"}),
        start("text", 2, text=""),
        start("tool_use", 3, id="a", name="f", input={}, caller={"type": "code_execution_20250825"}),
        start("tool_use", 4, id="b", name="f", input={}, caller={"type": "direct"}),
    ]
    told = [delta.extra.get("native") for delta in deltas(*raw)]

    assert told == [[raw[0]], [raw[1]], [raw[2]], [raw[4]], [raw[5]], [raw[6]], None]


def test_the_last_event_gives_the_finish_and_the_output() -> None:
    """A running total; a stop sequence and details go on raw; the mark ends it."""
    last = {
        "type": "message_delta",
        "delta": {"stop_reason": "stop_sequence", "stop_sequence": "。"},
        "usage": {"output_tokens": 9},
    }
    _, chunk, end = read(START, last, {"type": "message_stop"})

    assert isinstance(chunk, Chunk)
    assert isinstance(end, EndMark)
    assert chunk.deltas == [Delta(0, {}, finish="stop_sequence", extra={"native": [last]})]
    assert chunk.usage == {
        "message_start": {"input_tokens": 3, "output_tokens": 1, "service_tier": "priority"},
        "message_delta": {"output_tokens": 9},
    }


def test_a_head_that_is_sent_again_changes_only_the_figures() -> None:
    """Relays splice streams."""
    again = {"type": "message_start", "message": {"id": "msg_2", "usage": {"input_tokens": 7}}}
    delta = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 2}}
    *_, third = read(START, delta, again)

    assert isinstance(third, Chunk)
    assert third.usage == {"message_start": {"input_tokens": 7}, "message_delta": {"output_tokens": 2}}


@pytest.mark.parametrize(
    ("data", "event", "kind"),
    [
        (b'{"type":"ping"}', "ping", Heartbeat),
        (b"", "ping", Heartbeat),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', "error", ErrorSeen),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', None, ErrorSeen),
        (b'{"error":{"message":"openai-like"}}', None, ErrorSeen),
        (b'{"message":"busy"}', None, ErrorSeen),
        (b'{"type":"vendor_event","n":1}', "vendor_event", Heartbeat),
        (b"[DONE]", None, Heartbeat),
        (b'{"type":"message_stop"}', None, EndMark),
        (b"{}", "message_stop", EndMark),
        (b'"words"', None, ErrorSeen),
        (b"{no json", None, Malformed),
    ],
)
def test_what_is_no_piece_of_an_answer(data: bytes, event: str | None, kind: type) -> None:
    """A sign of life, an error, an end mark or words."""
    assert isinstance(AnthropicReader().read(data, event), kind)


def test_text_is_never_lost_to_a_block_that_was_told_wrongly() -> None:
    """No start, a start of another kind, or none that is an object."""
    told = deltas(
        piece("text_delta", text="a"), start("tool_use", id="x", name="f"), piece("text_delta", text="b"), stop()
    )

    assert "".join(delta.texts.get("content", "") for delta in told) == "ab"


@pytest.mark.parametrize("block", [{}, None, {"text": ""}, {"type": None}, {"type": ""}])
def test_a_block_without_a_type_is_what_its_fields_say(block: object) -> None:
    """Text most of all: it must not get lost."""
    begun = {"type": "content_block_start", "index": 0, "content_block": block}

    assert [delta.texts for delta in deltas(begun, piece("text_delta", text="متن"), stop())] == [{"content": "متن"}]
    call = {"type": "content_block_start", "index": 1, "content_block": {"id": "a", "name": "f", "input": {}}}
    (told,) = deltas(call)
    assert told.tools is not None and told.tools[0].name == "f"


def test_a_seal_is_told_though_its_block_lost_its_end() -> None:
    """Some relays leave `content_block_stop` out."""
    thought = (start("thinking", thinking="", signature=""), piece("thinking_delta", thinking="先"))
    sealed = (*thought, piece("signature_delta", signature="sig"))
    detail = {"type": "reasoning.text", "text": "先", "signature": "sig", "format": "anthropic-claude-v1", "index": 0}
    for more in (start("text", text="x"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}):
        told = deltas(*sealed, more)
        assert [d.extra["reasoning_details"] for d in told if "reasoning_details" in d.extra] == [[detail]]


def test_events_are_known_by_their_names_too() -> None:
    """A relay may drop the types that stand in the JSON, and glue events together, which leaves the last one's name."""
    reader = AnthropicReader()
    said = b'{"delta":{"type":"text_delta","text":"a"}}'
    told = reader.read(said, "content_block_delta")
    assert isinstance(told, Chunk) and told.deltas[0].texts == {"content": "a"}
    glued = reader.read(said.replace(b'{"delta"', b'{"type":"content_block_delta","delta"'), "error")
    assert isinstance(glued, Chunk) and glued.deltas[0].texts == {"content": "a"}


def test_content_may_be_one_string() -> None:
    chunk = AnthropicReader().read_body(json.dumps({"type": "message", "content": "hé", "stop_reason": "x"}).encode())
    assert isinstance(chunk, Chunk) and chunk.deltas[0].texts == {"content": "hé"}


def test_a_plain_answer_is_one_delta() -> None:
    """Blocks joined by kind; blocks of this family alone raw and whole."""
    search = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "先", "signature": "sig"},
            {"type": "text", "text": "سلام "},
            search,
            {"type": "text", "text": "👩\u200d🚀"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": [1]}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 4, "output_tokens": 5},
    }
    chunk = AnthropicReader().read_body(json.dumps(body).encode())

    assert isinstance(chunk, Chunk)
    (delta,) = chunk.deltas
    assert delta.texts == {"reasoning_content": "先", "content": "سلام 👩\u200d🚀"}
    assert delta.tools is not None
    assert [(t.id, t.name, t.arguments) for t in delta.tools] == [("t", "f", '{"a":[1]}')]
    assert delta.extra["native"] == [search]
    assert (delta.finish, chunk.usage) == ("tool_use", {"input_tokens": 4, "output_tokens": 5})


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"type":"error","error":{"type":"api_error","message":"x"}}', ErrorSeen),
        (b'{"detail":"Not Found"}', ErrorSeen),
        (b"{}", Heartbeat),
        (b"<html>", Malformed),
        (b"null", Heartbeat),
    ],
)
def test_a_body_that_is_no_message(body: bytes, kind: type) -> None:
    """An error, or nothing."""
    assert isinstance(AnthropicReader().read_body(body), kind)


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("vendor", "usage"),
    [
        (
            {
                "message_start": {
                    "input_tokens": 18,
                    "cache_creation_input_tokens": 100,
                    "cache_read_input_tokens": 2000,
                    "output_tokens": 1,
                },
                "message_delta": {"output_tokens": 27},
            },
            Usage(2118, 27, 2000, 100),
        ),
        (
            {
                "message_start": {"input_tokens": 43, "output_tokens": 1},
                "message_delta": {"input_tokens": 61, "output_tokens": 8, "cache_read_input_tokens": None},
            },
            Usage(61, 8),
        ),
        ({"message_start": {"input_tokens": 11, "output_tokens": 1}}, Usage(11, None)),
        (
            {"input_tokens": 5, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
            Usage(5, 9, reasoning=4),
        ),
        ({"message_start": "x", "message_delta": {"output_tokens": -1}}, Usage()),
    ],
)
def test_input_is_what_was_read_written_and_neither(vendor: dict[str, object], usage: Usage) -> None:
    """The later figure stands; the output of a stream is known only at its end."""
    assert read_usage(vendor) == usage


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "input", "id", "usage", "content", "x"]), inner, max_size=4)
    ),
    max_leaves=6,
)
_KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message"]
)
_BLOCK = st.fixed_dictionaries({"type": st.sampled_from(["text", "thinking", "tool_use", "redacted_thinking", "x", 3])})


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": _KINDS},
            optional={
                "index": _JSON,
                "content_block": _JSON | _BLOCK,
                "delta": _JSON | _BLOCK,
                "message": _JSON,
                "usage": _JSON,
                "content": _JSON,
            },
        ),
        max_size=6,
    )
)
def test_no_json_makes_it_raise(events: list[dict[str, object]]) -> None:
    """Any types in any place."""
    reader = AnthropicReader()
    for event in events:
        parsed = reader.read(json.dumps(event).encode(), None)
        if isinstance(parsed, Chunk) and parsed.usage is not None:
            reader.usage(parsed.usage)
        AnthropicReader().read_body(json.dumps(event).encode())


def test_a_result_from_the_turn_before_stands_in_the_head() -> None:
    """A server tool that was paused gives it before anything is said."""
    left = {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {}}
    message = {**START["message"], "content": [left, {"type": "text", "text": "و"}]}  # type: ignore[dict-item]  # a JSON object
    told = deltas({"type": "message_start", "message": message})

    assert [(delta.role, delta.texts, dict(delta.extra)) for delta in told] == [
        ("assistant", {}, {}),
        (None, {}, {"native": [left]}),
        (None, {"content": "و"}, {}),
    ]


def test_a_thinking_block_without_a_seal_is_only_text() -> None:
    """Relays that copy this API have none."""
    told = deltas(start("thinking", thinking="思"), stop(), piece("thinking_delta", 1, thinking="考"))

    assert [(delta.texts, dict(delta.extra)) for delta in told] == [
        ({"reasoning_content": "思"}, {}),
        ({"reasoning_content": "考"}, {}),
    ]
