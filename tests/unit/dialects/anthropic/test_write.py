"""Canonical values to Anthropic's events, read back by Anthropic's own SDK (contract D1, W4, W5)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.anthropic import CLIENT
from proxy.dialects.anthropic.write import MessagesWriter
from tests.support.anthropic_sdk import Event, body_of, complaints_about, events_of, message_of

OURS = Count(input=7, output=11)
CONTAINER = {"id": "c", "expires_at": "2026-12-01T00:00:00Z"}
ROLE = {"role": "assistant", "content": ""}


def writer() -> MessagesWriter:
    one = MessagesWriter("msg_5eed", 9, "asked-for")
    one.settle()
    return one


def write(*deltas: Mapping[str, object], finish: str = "stop", word: str | None = None, **seal: object) -> bytes:
    """A whole stream of these deltas."""
    one = writer()
    out = [one.event(None, 0, delta) for delta in (ROLE, *deltas)]
    out.append(one.event(None, 0, {}, finish=finish, word=word))
    usage, native = seal.get("usage", Usage(10, 20)), seal.get("native")
    assert isinstance(usage, Usage)
    assert isinstance(native, dict | None)
    out.append(one.seal(usage, native, OURS, wanted=True))
    client = b"".join(out)
    assert complaints_about(events_of(client), complete=True) == []
    return client


def blocks(client: bytes) -> list[Event]:
    content = message_of(client)["content"]
    assert isinstance(content, list)
    return content


def call(slot: int, identity: str = "", name: str = "", arguments: str = "", **more: object) -> dict[str, object]:
    made: dict[str, object] = {"index": slot}
    function = {"arguments": arguments}
    if identity:
        made |= {"id": identity, "type": "function"}
        function = {"name": name, **function}
    return {"tool_calls": [{**made, "function": function, **more}]}


@pytest.mark.clause("D1", "W4", "W5")
def test_the_events_stand_in_anthropics_order() -> None:
    """Byte for byte, the last two from the seal alone."""
    one = writer()
    told = one.event(None, 0, ROLE) + one.event(None, 0, {"content": "سلام"}) + one.event(None, 0, {}, finish="stop")
    sealed = one.seal(Usage(10, 20), None, OURS, wanted=True)

    assert told.decode() == (
        "event: message_start\n"
        'data: {"type":"message_start","message":{"id":"msg_5eed","type":"message","role":"assistant",'
        '"model":"asked-for","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}\n\n'
        "event: content_block_start\n"
        'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        "event: content_block_delta\n"
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"سلام"}}\n\n'
        "event: content_block_stop\n"
        'data: {"type":"content_block_stop","index":0}\n\n'
    )
    assert sealed.decode() == (
        "event: message_delta\n"
        'data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},'
        '"usage":{"input_tokens":10,"output_tokens":20}}\n\n'
        'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    assert sealed.count(b"\n\n") == one.seal_events(wanted=False)


@pytest.mark.clause("W4")
def test_calls_that_interleave_become_blocks_one_after_the_other() -> None:
    """The second waits until the first is whole, and text that comes in between waits behind it."""
    client = write(
        call(0, "a", "f"),
        call(1, "b", "g"),
        call(1, arguments='{"y":'),
        {"content": "zwischendurch"},
        call(0, arguments='{"x": "}'),
        call(1, arguments="2}"),
        call(0, arguments='"}'),
        finish="tool_calls",
    )

    assert blocks(client) == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": "}"}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {"y": 2}},
        {"type": "text", "text": "zwischendurch"},
    ]
    assert message_of(client)["stop_reason"] == "tool_use"


def test_a_whole_call_makes_room_at_once() -> None:
    """Nothing waits that need not."""
    one = writer()
    one.event(None, 0, ROLE)
    one.event(None, 0, call(0, "a", "f", '{"x":1}'))

    assert b'"tool_use"' in one.event(None, 0, call(1, "b", "g"))
    assert b'"partial_json":"{}"' in one.event(None, 0, call(1, arguments="{}"))


def test_a_call_without_arguments_is_an_empty_object() -> None:
    """Its `{}` comes at the end, when others may have passed it."""
    client = write(call(0, "a", "f"), call(1, "b", "g", '{"k":1}'), call(0, arguments="{}"), finish="tool_calls")

    assert [block["input"] for block in blocks(client)] == [{}, {"k": 1}]


def test_calls_that_are_never_whole_end_with_the_answer() -> None:
    """Cut arguments are the model's own."""
    client = write(call(0, "a", "f", '{"x":'), call(1, "b", "g", '{"y":'), finish="length")

    assert [block["id"] for block in blocks(client)] == ["a", "b"]


def test_thinking_keeps_its_own_seal() -> None:
    """The signature ends its block; a redacted block is whole."""
    own = {"type": "reasoning.text", "text": "思考", "signature": "sig", "format": "anthropic-claude-v1", "index": 0}
    redacted = {"type": "reasoning.encrypted", "data": "zip", "format": "anthropic-claude-v1", "index": 1}
    client = write(
        {"reasoning_content": "思"},
        {"reasoning_content": "考"},
        {"reasoning_details": [own]},
        {"reasoning_details": [redacted]},
        {"content": "四"},
    )

    assert blocks(client) == [
        {"type": "thinking", "thinking": "思考", "signature": "sig"},
        {"type": "redacted_thinking", "data": "zip"},
        {"type": "text", "text": "四"},
    ]


def test_seals_of_other_families_say_whose_they_are() -> None:
    """Over a summary in the thinking block, over nothing in a block of its own, over a call before it."""
    sealed = {"type": "reasoning.encrypted", "data": "enc", "format": "openai-responses-v1", "index": 0}
    google = {"extra_content": {"google": {"thought_signature": "gem"}}}
    client = write(
        {"reasoning_content": "kurz"},
        {"reasoning_details": [sealed]},
        {"reasoning_details": [sealed]},
        call(0, "a", "f", "{}", **google),
        finish="tool_calls",
    )

    assert blocks(client) == [
        {"type": "thinking", "thinking": "kurz", "signature": "openai-responses-v1#enc"},
        {"type": "redacted_thinking", "data": "openai-responses-v1#enc"},
        {"type": "redacted_thinking", "data": "google-gemini-v1#gem"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]


def test_a_seal_never_cuts_a_call_in_two() -> None:
    """It waits like everything else."""
    sealed = {"type": "reasoning.encrypted", "data": "enc", "format": "google-gemini-v1", "index": 0}
    client = write(
        call(0, "a", "f", '{"x":'), {"reasoning_details": [sealed]}, call(0, arguments="1}"), finish="tool_calls"
    )

    assert [block["type"] for block in blocks(client)] == ["tool_use", "redacted_thinking"]
    assert blocks(client)[0]["input"] == {"x": 1}


def test_pieces_of_a_reasoning_without_a_seal_are_no_blocks() -> None:
    """OpenRouter says its details bit by bit beside the text."""
    client = write(
        {
            "reasoning": "a",
            "reasoning_details": [{"type": "reasoning.text", "text": "a", "format": "anthropic-claude-v1"}],
        },
        {
            "reasoning": "b",
            "reasoning_details": [{"type": "reasoning.text", "text": "b", "signature": "s", "format": None}],
        },
        {"content": "c"},
    )

    assert blocks(client)[0] == {"type": "thinking", "thinking": "ab", "signature": "s"}


def detail(text: str, seal: str, **more: object) -> dict[str, object]:
    return {"type": "reasoning.text", "text": text, "signature": seal, "format": "anthropic-claude-v1", **more}


@pytest.mark.clause("W3", "D1")
def test_a_seal_waits_for_the_end_of_its_text() -> None:
    """What was held back when the seal came is of its block: a signature over less is refused with the next turn."""
    client = write(
        {"reasoning_content": "سلا", "reasoning_details": [detail("سلام", "s")]},
        {"reasoning_content": "م"},
        {"reasoning_content": "دوم", "reasoning_details": [detail("دوم!", "t")]},
        {"reasoning_content": "!سوم"},
        {"content": "آب"},
    )

    assert blocks(client) == [
        {"type": "thinking", "thinking": "سلام", "signature": "s"},
        {"type": "thinking", "thinking": "دوم!", "signature": "t"},
        {"type": "thinking", "thinking": "سوم", "signature": ""},
        {"type": "text", "text": "آب"},
    ]


def test_a_text_that_never_comes_keeps_no_seal() -> None:
    """The next block, and the end of the answer, end it."""
    client = write({"reasoning_content": "سل", "reasoning_details": [detail("سلام", "s")]}, {"content": "آب"})
    assert blocks(client)[0] == {"type": "thinking", "thinking": "سل", "signature": "s"}
    client = write({"reasoning_content": "سل", "reasoning_details": [detail("سلام", "s")]})
    assert blocks(client) == [{"type": "thinking", "thinking": "سل", "signature": "s"}]


def test_several_sealed_thoughts_at_once_are_several_blocks() -> None:
    """A vendor that answers a stream with one body says all its reasoning in one delta, and in a body as well."""
    said = {"reasoning_content": "یکبینسهدو", "reasoning_details": [detail("یک", "1"), detail("سه", "3")]}
    told = [
        {"type": "thinking", "thinking": "یک", "signature": "1"},
        {"type": "thinking", "thinking": "بین", "signature": ""},
        {"type": "thinking", "thinking": "سه", "signature": "3"},
        {"type": "thinking", "thinking": "دو", "signature": ""},
    ]

    assert blocks(write(said)) == told
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **said}, "finish_reason": "stop"}
    assert body_of(writer().body([choice], Usage(1, 2), None, OURS, {}))["content"] == told


def test_reasoning_under_two_names_is_told_once() -> None:
    """Also where their tails come one after the other."""
    client = write({"reasoning_content": "a", "reasoning": "a"}, {"reasoning_content": "b"}, {"reasoning": "b"})
    assert blocks(client) == [{"type": "thinking", "thinking": "ab", "signature": ""}]


def test_a_body_in_an_array_is_that_body() -> None:
    """Readers take it for one, so nothing of it may be lost."""
    body = {"type": "message", "content": [{"type": "text", "text": "سلام"}], "stop_reason": "end_turn", "x": 1}
    patched = writer().patch(
        json.dumps([body]).encode(), {0: "stop"}, Usage(1, 2), None, OURS, lambda _index, text: text, "5eed"
    )
    assert json.loads(patched)["content"] == body["content"]
    assert json.loads(patched)["x"] == 1


@pytest.mark.parametrize(
    ("finish", "word", "native", "told"),
    [
        ("stop", "stop", None, "end_turn"),
        ("length", "length", None, "max_tokens"),
        ("length", "model_context_window_exceeded", None, "model_context_window_exceeded"),
        ("content_filter", "SAFETY", None, "refusal"),
        ("tool_calls", "end_turn", {}, "tool_use"),
        ("stop", "pause_turn", {}, "pause_turn"),
        ("stop", "compaction", {}, "compaction"),
        ("stop", "eos", None, "end_turn"),
    ],
)
def test_the_stop_reason_is_anthropics_word(finish: str, word: str, native: object, told: str) -> None:
    """The vendor's own where it says the same, and newer ones of the family."""
    one = writer()
    one.event(None, 0, ROLE)
    one.event(None, 0, {}, finish=finish, word=word)
    sealed = one.seal(Usage(1, 2), native if isinstance(native, dict) else None, OURS, wanted=True)

    assert f'"stop_reason":"{told}"'.encode() in sealed


def test_what_the_vendor_says_at_the_end_stands() -> None:
    """Stop sequence, details, and fields beside them."""
    raw = {
        "type": "message_delta",
        "delta": {"stop_reason": "stop_sequence", "stop_sequence": "。", "container": None},
        "usage": {"output_tokens": 4},
        "context_management": {"applied_edits": []},
        "name": "any",
    }
    native = {"message_start": {"input_tokens": 2}, "message_delta": {"output_tokens": 4, "new_field": 1}}
    client = write({"content": "x"}, {"native": [raw]}, word="stop_sequence", usage=Usage(2, 4), native=native)
    last = events_of(client)[-2]

    assert last["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "。", "container": None}
    assert last["usage"] == {"output_tokens": 4, "new_field": 1}
    assert last["context_management"] == {"applied_edits": []}


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (
            Usage(100, 20, cache_read=60, cache_write=10, reasoning=5),
            {
                "input_tokens": 30,
                "output_tokens": 20,
                "cache_creation_input_tokens": 10,
                "cache_read_input_tokens": 60,
                "output_tokens_details": {"thinking_tokens": 5},
            },
        ),
        (Usage(), {"input_tokens": 7, "output_tokens": 11, "estimated": True}),
        (Usage(3, None), {"input_tokens": 3, "output_tokens": 11, "estimated": True}),
    ],
)
def test_usage_is_told_in_anthropics_terms(usage: Usage, told: dict[str, object]) -> None:
    """Input without what the cache gave and took; our own count says that it is one."""
    assert events_of(write({"content": "x"}, usage=usage))[-2]["usage"] == told


def test_the_head_says_what_is_known_so_far() -> None:
    """The vendor's own figures and fields where it is of this family."""
    one = MessagesWriter("msg_5eed", 9, "asked-for")
    usage = {"message_start": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1}}
    chunk = Chunk([], "msg_v", 0, "claude-x", usage, {"service_tier": "standard", "container": CONTAINER})
    one.adopt(chunk)
    one.settle()
    message = events_of(one.event(chunk, 0, ROLE))[0]["message"]

    assert (message["id"], message["model"], message["usage"]) == ("msg_v", "claude-x", usage["message_start"])
    assert message["container"] == CONTAINER
    assert "service_tier" not in message


def test_only_the_first_choice_exists() -> None:
    """The grammar has no place for others."""
    assert writer().event(None, 1, {"content": "x"}) == b""


def test_a_refusal_is_text_that_ends_as_one() -> None:
    """As Anthropic's own models refuse."""
    client = write({"refusal": "Nein."})

    assert (blocks(client), message_of(client)["stop_reason"]) == ([{"type": "text", "text": "Nein."}], "refusal")


@pytest.mark.clause("D1", "E")
def test_errors_are_anthropics_envelope() -> None:
    """As an event and as a body."""
    error = {"type": "rate_limited", "code": "rate_limited", "message": "…"}

    assert writer().error_event(error).decode() == (
        'event: error\ndata: {"type":"error","error":{"type":"rate_limited","code":"rate_limited","message":"…"}}\n\n'
    )
    assert CLIENT.error_body(error) == {"type": "error", "error": error}


def test_a_body_is_built_from_a_choice() -> None:
    """Thinking, the family's own blocks, text, calls, in this order."""
    message = {
        "role": "assistant",
        "content": "四。",
        "reasoning_content": "思考",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "enc", "format": "openai-responses-v1"}],
        "native": [{"type": "web_search_tool_result", "tool_use_id": "s", "content": []}],
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":[1]}'}}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "native_finish": "STOP"}
    body = body_of(writer().body([choice], Usage(4, 5), None, OURS, {"system_fingerprint": "fp"}))

    assert body == {
        "id": "msg_5eed",
        "type": "message",
        "role": "assistant",
        "model": "asked-for",
        "content": [
            {"type": "thinking", "thinking": "思考", "signature": "openai-responses-v1#enc"},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            {"type": "text", "text": "四。"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": [1]}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 4, "output_tokens": 5},
    }


def test_a_vendors_own_body_is_only_made_right() -> None:
    """Unknown fields stay; a fence goes from all text blocks together; input becomes an object."""
    vendor = (
        b'{"id":"v","type":"message","model":"claude-x","new":1,"content":[{"type":"text","text":"```json\\n{"},'
        b'{"type":"text","text":"}\\n```","citations":null},{"type":"tool_use","name":"f","input":"{\\"a\\":1}"}],'
        b'"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}'
    )
    usage = {"input_tokens": 1, "output_tokens": 2}
    patched = writer().patch(vendor, {0: "tool_calls"}, Usage(1, 2), usage, OURS, lambda _i, _t: "{}", "5eed")

    assert body_of(patched) == {
        "id": "msg_5eed",
        "type": "message",
        "model": "asked-for",
        "new": 1,
        "content": [
            {"type": "text", "text": "{}"},
            {"type": "tool_use", "name": "f", "input": {"a": 1}, "id": "toolu_5eed2"},
        ],
        "stop_reason": "tool_use",
        "usage": usage,
        "role": "assistant",
        "stop_sequence": None,
    }


_VALUES: st.SearchStrategy[object] = st.text(max_size=5) | st.lists(st.integers(), max_size=2)
_ARGUMENTS = st.dictionaries(st.text(max_size=3), _VALUES, max_size=3)


@st.composite
def _streams(draw: st.DrawFn) -> tuple[list[dict[str, object]], list[dict[str, object]], str]:
    """Pieces of calls, texts and seals in any order in which each call's own pieces stay in order."""
    wanted = draw(st.lists(_ARGUMENTS, max_size=3))
    queues: list[list[dict[str, object]]] = []
    for slot, arguments in enumerate(wanted):
        text = json.dumps(arguments, ensure_ascii=False)
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        queues.append([call(slot, f"id{slot}", "f"), *(call(slot, arguments=piece) for piece in pieces if piece)])
    seal = {"type": "reasoning.encrypted", "data": "enc", "format": "google-gemini-v1", "index": 0}
    extras: list[dict[str, object]] = [
        {"content": "متن"},
        {"reasoning_content": "思"},
        {"reasoning_details": [seal]},
    ]
    queues.append(draw(st.lists(st.sampled_from(extras), max_size=4)))
    said = "متن" * sum("content" in one for one in queues[-1])
    deltas = []
    while queues := [queue for queue in queues if queue]:
        deltas.append(draw(st.sampled_from(queues)).pop(0))
    return deltas, wanted, said


@pytest.mark.clause("W4")
@given(_streams())
def test_any_order_of_pieces_gives_whole_blocks(
    stream: tuple[list[dict[str, object]], list[dict[str, object]], str],
) -> None:
    """Each call with all of its arguments, and every text."""
    deltas, wanted, said = stream
    told = blocks(write(*deltas, finish="tool_calls" if wanted else "stop"))
    calls = {block["id"]: block["input"] for block in told if block["type"] == "tool_use"}

    assert calls == {f"id{slot}": arguments for slot, arguments in enumerate(wanted)}
    assert "".join(block["text"] for block in told if block["type"] == "text") == said


def test_a_seal_without_text_is_a_block_of_its_own() -> None:
    """Newer models leave their thinking's text out."""
    sealed = {"type": "reasoning.text", "text": "", "signature": "sig", "format": "anthropic-claude-v1", "index": 0}

    assert blocks(write({"reasoning_details": [sealed]}, {"content": "x"}))[0] == {
        "type": "thinking",
        "thinking": "",
        "signature": "sig",
    }


def test_what_only_this_family_knows_is_put_back() -> None:
    """Whole blocks, special fields of a call, a citation whose text is still to come; each with its own number here."""
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    cited = {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None}
    cited |= {"start_char_index": 0, "end_char_index": 1, "file_id": None}
    special = {"type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": caller}
    client = write(
        {"native": [result]},
        {"native": [{"type": "content_block_delta", "index": 9, "delta": {"type": "unheard_of"}}]},
        {"native": [{"type": "content_block_start", "index": 4, "content_block": special}]},
        call(0, "a", "f"),
        {"native": [{"type": "content_block_stop", "index": 4}]},
        call(0, arguments="{}"),
        {
            "native": [
                {"type": "content_block_delta", "index": 5, "delta": {"type": "citations_delta", "citation": cited}}
            ]
        },
        {"content": "x"},
        finish="tool_calls",
    )
    told = blocks(client)

    assert [block["type"] for block in told] == ["web_search_tool_result", "tool_use", "text"]
    assert told[1]["caller"] == caller
    assert told[2]["citations"] == [cited]


def test_a_body_of_a_stream_of_this_family() -> None:
    """Raw events become blocks, the last event's word and details stand, figures of both events are one object."""
    raws = [
        {
            "type": "content_block_start",
            "content_block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        },
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '{"query":"是"}'}},
        {"type": "content_block_stop"},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_stop"},
        {"type": "message_delta", "delta": {"stop_reason": "pause_turn", "stop_sequence": None, "stop_details": None}},
    ]
    google = {"extra_content": {"google": {"thought_signature": "gem"}}}
    function = {"name": "f", "arguments": "{}"}
    message = {
        "content": None,
        "refusal": "",
        "native": raws,
        "tool_calls": [{"id": "a", "function": function, **google}],
    }
    native = {
        "message_start": {"input_tokens": 3, "output_tokens": 1, "service_tier": "standard"},
        "message_delta": {"output_tokens": 4, "input_tokens": None},
    }
    body = body_of(
        writer().body([{"message": message, "finish_reason": "stop"}], Usage(3, 4), native, OURS, {"service_tier": "x"})
    )

    assert body["content"] == [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "是"}},
        {"type": "redacted_thinking", "data": "google-gemini-v1#gem"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    assert (body["stop_reason"], body["usage"]) == (
        "pause_turn",
        {"input_tokens": 3, "output_tokens": 4, "service_tier": "standard"},
    )
