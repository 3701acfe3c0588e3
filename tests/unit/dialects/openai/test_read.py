"""One payload in, one canonical value out: every odd spelling that the family is known for, and some that it is not."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import NOTHING, Chunk, Delta, EndMark, ErrorSeen, Heartbeat, Malformed, ToolFragment
from proxy.dialects.openai.read import OpenAIReader, content_parts
from proxy.dialects.signs import speaks_of_error
from tests.support.strategies import HEAD, ODD, chunk, encode, odd

DATA = slice(len(b"data: "), -len(b"\n\n"))


def read(value: object, event: str | None = None) -> object:
    return OpenAIReader().read(value if isinstance(value, bytes) else encode(value), event)


def read_chunk(value: object) -> Chunk:
    parsed = read(value)
    assert isinstance(parsed, Chunk)
    return parsed


def read_delta(delta: object, **choice: object) -> Delta:
    parsed = read_chunk({**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}]})
    assert len(parsed.deltas) == 1
    return parsed.deltas[0]


def passes(delta: object, envelope: Mapping[str, object] = NOTHING, **choice: object) -> bool:
    """May these bytes go to the client as they came?"""
    value = {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}], **envelope}
    data = encode(value)
    parsed = OpenAIReader().read(data, None)
    assert isinstance(parsed, Chunk)
    assert parsed.wire in (None, data)
    return parsed.wire is not None


@pytest.mark.clause("W4")
def test_a_clean_chunk_is_understood_and_keeps_its_bytes() -> None:
    """Identity, text, and the bytes that may pass."""
    data = chunk({"content": "سلام"}, system_fingerprint="fp")[DATA]

    assert read(data) == Chunk(
        [Delta(0, {"content": "سلام"})],
        id="chatcmpl-v1",
        created=1_772_000_000,
        model="gpt-4o-2024-11-20",
        extra={"system_fingerprint": "fp"},
        wire=data,
    )


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("delta", "texts"),
    [
        ({"content": ""}, {}),
        ({"content": None}, {}),
        ({"content": " "}, {"content": " "}),
        ({"content": "\ud83d"}, {"content": "\ud83d"}),
        ({"reasoning_content": "فکر", "content": ""}, {"reasoning_content": "فکر"}),
        ({"reasoning": "想", "content": "好"}, {"reasoning": "想", "content": "好"}),
        ({"refusal": "नहीं"}, {"refusal": "नहीं"}),
        ({"content": ["a", {"type": "text", "text": "é"}]}, {"content": "aé"}),
        ({"content": {"type": "text", "text": "é"}}, {"content": "é"}),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "想"}]},
                    {"type": "text", "text": "好"},
                ]
            },
            {"reasoning_content": "想", "content": "好"},
        ),
        ({"content": [{"type": "thinking", "thinking": "想"}]}, {"reasoning_content": "想"}),
        ({"content": [{"type": "image_url"}, 3, None]}, {}),
        ({"content": 5}, {"content": "5"}),
        ({"content": 2.5, "reasoning": 0}, {"content": "2.5", "reasoning": "0"}),
        ({"content": False}, {}),
        ({"reasoning": {"text": "x"}}, {}),
    ],
)
def test_texts_are_found_wherever_they_stand(delta: dict[str, object], texts: dict[str, str]) -> None:
    """Strings, parts, numbers that a relay made of digits; nothing else is text."""
    assert read_delta(delta).texts == texts


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"),
        ("", None),
        ("null", None),
        (None, None),
        (False, None),
        (True, "true"),
        (1, "1"),
        ({"stop": 1}, '{"stop":1}'),
    ],
)
def test_the_finish_is_the_vendors_own_word(word: object, finish: str | None) -> None:
    """Nothing said is None; a word that is none is told as JSON, for the answer did end."""
    assert read_delta({}, finish_reason=word).finish == finish


@pytest.mark.clause("W1", "W4")
@pytest.mark.parametrize(
    ("delta", "choice", "envelope"),
    [
        ({"content": "a"}, {"finish_reason": ""}, {}),
        ({"content": "a"}, {"finish_reason": "null"}, {}),
        ({"content": "a"}, {"finish_reason": 0}, {}),
        ({"content": "a"}, {"index": "0"}, {}),
        ({"content": "a"}, {"index": -1}, {}),
        ({"content": "a"}, {"index": False}, {}),
        ({"content": "a"}, {"index": None}, {}),
        ({"content": "a"}, {"message": {}}, {}),
        ({"content": "a"}, {"usage": None}, {}),
        ({"content": 1}, {}, {}),
        ({"content": ["a"]}, {}, {}),
        ({"content": "a", "role": "model"}, {}, {}),
        ({"content": "a", "tool_calls": []}, {}, {}),
        ({"content": "a", "tool_calls": [None]}, {}, {}),
        ({"content": "a", "refusal": []}, {}, {}),
        ({"content": "a"}, {}, {"object": "chat.completion"}),
        ({"content": "a"}, {}, {"created": 1.5}),
        ({"content": "a"}, {}, {"created": "1"}),
        ({"content": "a"}, {}, {"created": True}),
        ({"content": "a"}, {}, {"usage": {"prompt_tokens": 1}}),
        ({"content": "a"}, {}, {"usage": {}}),
        ({"content": "a"}, {}, {"usage": 0}),
        ({"content": "a"}, {}, {"error": None}),
    ],
)
def test_what_is_not_clean_does_not_pass_as_it_came(
    delta: dict[str, object], choice: dict[str, object], envelope: dict[str, object]
) -> None:
    """A strict client would stumble over it, so it is written anew."""
    assert not passes(delta, envelope, **choice)


@pytest.mark.clause("W4")
def test_what_is_clean_passes_with_its_unknown_fields() -> None:
    """Nulls where OpenAI itself writes nulls, filter results, fingerprints."""
    assert passes({"content": "a", "role": None, "refusal": None}, {"usage": None, "obfuscation": "x"}, logprobs=None)
    assert passes({"role": "assistant", "content": "", "tool_calls": None}, {}, content_filter_results={"hate": {}})


@pytest.mark.parametrize("data", [b'{"choices": [{"delta": {"content": "a"}}]}', b'{"choices":[5]}', b'{"choices":[]}'])
def test_one_choice_alone_passes(data: bytes) -> None:
    """Neither an identity that is missing nor a choice that is none."""
    assert read_chunk(data).wire is None


def test_several_lines_do_not_pass() -> None:
    """Frame data that came in several lines is no one-line event."""
    parsed = OpenAIReader().read(json.dumps({**HEAD, "choices": []}, indent=1).encode(), None, one_line=False)
    assert isinstance(parsed, Chunk)
    assert parsed.wire is None


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (
            {"index": 1, "id": "a", "type": "function", "function": {"name": "天气", "arguments": "{"}},
            (1, "a", "天气", "{"),
        ),
        ({"function": {"arguments": "}"}}, (None, None, None, "}")),
        ({"index": -1, "id": "", "function": {"name": "", "arguments": None}}, (None, None, None, "")),
        (
            {"index": "0", "id": 7, "function": {"name": 3, "arguments": {"città": "Forlì"}}},
            (None, "7", None, '{"città":"Forlì"}'),
        ),
        ({"id": None, "function": None}, (None, None, None, "")),
        ({"id": [], "function": "x"}, (None, "[]", None, "")),
        ({}, (None, None, None, "")),
    ],
)
def test_fragments_are_narrowed(call: dict[str, object], fragment: tuple[object, ...]) -> None:
    """Index, id and name are None where they are not said; arguments that are an object become its text."""
    tools = read_delta({"tool_calls": [call]}).tools
    assert tools == [ToolFragment(*fragment)]  # type: ignore[arg-type]  # the tuple is the fragment's fields


def test_unknown_fields_of_a_call_are_kept() -> None:
    """And of a delta and of a choice."""
    delta = read_delta({"tool_calls": [{"index": 0, "extra_content": {"google": 1}}], "annotations": []}, seed=4)

    assert delta.tools is not None
    assert delta.tools[0].extra == {"extra_content": {"google": 1}}
    assert delta.extra == {"annotations": []}
    assert delta.choice_extra == {"seed": 4}


@pytest.mark.clause("W4")
@pytest.mark.parametrize(
    ("indexes", "choices"),
    [([0, 1], [0, 1]), ([None, None], [0, 1]), ([1, 1], [1, 1]), (["0", 2**70], [0, 2**70]), ([-1, True], [0, 1])],
)
def test_a_choice_without_an_index_is_at_its_place(indexes: list[object], choices: list[int]) -> None:
    """Negative, missing and mistyped indexes count as missing."""
    value = {**HEAD, "choices": [{"index": index, "delta": {"content": "x"}} for index in indexes]}
    # An integer beyond 64 bits reaches the tolerant reader only beside something that the strict one refuses.
    assert [delta.choice for delta in read_chunk({**value, "extra": "\ud83d"}).deltas] == choices


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    "value",
    [
        {"choices": [], "usage": {"prompt_tokens": 1}},
        {"usage": {"prompt_tokens": 1}},
        {"choices": None, "usage": {"prompt_tokens": 1}},
        {"choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 1}}]},
        {"choices": [], "x_groq": {"id": "r", "usage": {"prompt_tokens": 1}}},
    ],
)
def test_usage_is_found_at_each_vendors_place(value: dict[str, object]) -> None:
    """In the envelope, in the choice (Moonshot), in `x_groq`; verbatim."""
    assert read_chunk(value).usage == {"prompt_tokens": 1}


@pytest.mark.parametrize("usage", [None, {}, [], 0, "x"])
def test_usage_that_says_nothing_is_none(usage: object) -> None:
    """Only an object with something in it is usage."""
    assert read_chunk({**HEAD, "choices": [], "usage": usage}).usage is None


@pytest.mark.parametrize(("created", "kept"), [(5, 5), (5.9, 5), (-5, 0), ("5", 0), (None, 0), (True, 0), (1e300, 0)])
def test_created_is_a_whole_number_or_nothing(created: object, kept: int) -> None:
    """The writer puts ours in its place."""
    assert read_chunk({**HEAD, "created": created, "choices": []}).created == kept


@pytest.mark.clause("W4")
def test_a_message_stands_for_a_delta_where_there_is_none() -> None:
    """And in a plain body it comes first, since Perplexity puts an empty delta beside it."""
    both = {
        "choices": [{"index": 0, "delta": {"content": ""}, "message": {"content": "whole"}, "finish_reason": "stop"}]
    }
    only = {"choices": [{"message": {"content": "whole"}}]}
    body = OpenAIReader().read_body(encode(both))

    assert read_chunk(both).deltas[0].texts == {}
    assert read_chunk(only).deltas[0].texts == {"content": "whole"}
    assert isinstance(body, Chunk)
    assert body.deltas[0].texts == {"content": "whole"}


@pytest.mark.clause("W5")
@pytest.mark.parametrize(
    "data", [b"[DONE]", b" [DONE] ", b'"[DONE]"', b"data: [DONE]", b"data:data: [DONE]", b"\xef\xbb\xbf[DONE]"]
)
def test_the_end_mark_is_known_in_its_spellings(data: bytes) -> None:
    """Bare, quoted, and with a prefix that a relay wrote twice."""
    assert isinstance(read(data), EndMark)


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"data: ", b"data:data: ", b"data:" * 5000, b"data: \xef\xbb\xbf"])
def test_prefixes_before_the_json_are_dropped(prefix: bytes) -> None:
    """However many they are, without recursion."""
    assert read_chunk(prefix + chunk({"content": "é"})[DATA]).deltas[0].texts == {"content": "é"}


@pytest.mark.clause("W6", "E")
@pytest.mark.parametrize(
    ("value", "event"),
    [
        ({"error": {"message": "m"}}, None),
        ({"error": "m"}, None),
        ({"error": ["m"]}, None),
        ({}, "error"),
        (5, "error"),
        ("quota exceeded", None),
        ([{"error": {"code": 429}}], None),
        ({"object": "error", "message": "m"}, None),
        ({"type": "error"}, None),
        ({"errors": [1]}, None),
        ({"success": False}, None),
        ({"base_resp": {"status_code": 1004}}, None),
        ({"choices": [{"delta": {"content": "x"}}], "base_resp": {"status_code": 1027}}, None),
        ({"code": 500}, None),
        ({"code": "invalid_key"}, None),
        ({"status_code": 401}, None),
        ({"Response": {"Error": {"Code": "x"}}}, None),
        ({"message": "m"}, None),
        ({"detail": [{"msg": "m"}]}, None),
        ({"msg": {"a": 1}}, None),
    ],
)
def test_whatever_speaks_of_an_error_is_a_candidate(value: object, event: str | None) -> None:
    """The rules decide what it means; here it is only noticed."""
    assert isinstance(read(value, event), ErrorSeen)


@pytest.mark.clause("W1", "W6")
@pytest.mark.parametrize(
    ("value", "notes"),
    [
        ({}, {}),
        ({"type": "ping"}, {}),
        ({"choices": None}, {}),
        ({"choices": {}}, {}),
        ({"code": 0, "message": "", "x": 1}, {"code": 0, "x": 1}),
        ({"code": "200"}, {"code": "200"}),
        ({"error": None, "prompt_filter_results": [1]}, {"prompt_filter_results": [1]}),
        ([], {}),
        ([1], {}),
        (0, {}),
        (None, {}),
        ("", {}),
        (" ", {}),
    ],
)
def test_what_says_nothing_is_a_heartbeat(value: object, notes: dict[str, object]) -> None:
    """With what it carried besides, for the row."""
    assert read(value) == Heartbeat(notes)


def test_an_error_beside_text_keeps_the_text() -> None:
    """What else the payload carried is told before the error."""
    parsed = read({"choices": [{"delta": {"content": "پایان"}, "finish_reason": "error"}], "error": {"code": 502}})

    assert isinstance(parsed, ErrorSeen)
    assert parsed.chunk is not None
    assert parsed.chunk.deltas[0].texts == {"content": "پایان"}
    assert parsed.chunk.wire is None


def test_words_are_malformed_but_for_a_ping() -> None:
    """Kept for the rules, which know pages and sentences."""
    assert read(b"upstream connect error") == Malformed(b"upstream connect error")
    assert read(b"keep-alive", "ping") == Heartbeat()
    assert read(b'{"choices": [') == Malformed(b'{"choices": [')


@pytest.mark.clause("W3")
def test_bad_bytes_are_counted_and_do_not_stop_the_answer() -> None:
    """Each character that can never become UTF-8 is U+FFFD."""
    reader = OpenAIReader()
    parsed = reader.read(b'{"choices":[{"delta":{"content":"K\xe4\xe4se"}}]}', None)

    assert isinstance(parsed, Chunk)
    assert parsed.deltas[0].texts == {"content": "K\ufffd\ufffdse"}
    assert reader.replaced == 2


@pytest.mark.parametrize("depth", [300, 900, 1020])
def test_deep_nesting_anywhere_is_read(depth: int) -> None:
    """As content, id, finish reason, arguments, thinking: bounded work, and no `RecursionError`."""
    deep = b"[" * depth + b"]" * depth
    thinking = b'[{"thinking":' * (depth // 2) + b"[]" + b"}]" * (depth // 2)
    for data in (
        b'{"choices":[{"delta":{"content":%b}}]}' % deep,
        b'{"choices":[{"delta":{"content":%b}}]}' % thinking,
        b'{"choices":[{"delta":{},"finish_reason":%b}]}' % deep,
        b'{"choices":[{"delta":{"tool_calls":[{"id":%b,"function":{"arguments":%b}}]}}]}' % (deep, deep),
        b'{"error":%b}' % deep,
        b'{"x":%b}' % deep,
        deep,
    ):
        assert not isinstance(OpenAIReader().read(data, None), EndMark)


@given(
    value=st.one_of(odd, st.dictionaries(st.sampled_from(("choices", "error", "usage", "code", "x", "message")), odd))
)
def test_nothing_raises(value: object) -> None:
    """Any JSON is one of the five kinds."""
    for event in (None, "error", "ping", "message"):
        parsed = OpenAIReader().read(encode(value), event)
        assert isinstance(parsed, Chunk | ErrorSeen | EndMark | Heartbeat | Malformed)


@given(
    fields=st.dictionaries(
        st.sampled_from(("index", "delta", "message", "finish_reason", "logprobs", "usage", "x")), odd
    )
)
def test_no_choice_raises(fields: dict[str, object]) -> None:
    """Whatever stands in it, also where the delta's fields are odd."""
    for value in ODD:
        read({**HEAD, "choices": [fields, {"delta": {"role": value, "content": value, "tool_calls": value}}]})


def test_parts_are_told_in_order() -> None:
    """Thinking is reasoning, text is content, what is neither is dropped."""
    assert content_parts(["a", {"text": "b", "thinking": "c"}, {"text": ""}, {"text": 5}]) == [
        ("content", "a"),
        ("reasoning_content", "c"),
        ("content", "b"),
    ]


def test_success_words_are_no_errors() -> None:
    """`code: 0` and `code: "success"` stand in good answers of some vendors."""
    for code in (0, "0", 200, "200", "", "success", "ok", "OK", None):
        assert not speaks_of_error({"code": code})
