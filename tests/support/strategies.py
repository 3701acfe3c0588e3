"""Streams made of tricky pieces: what vendors, relays and bad luck have written between a model and its reader.

`streams()` gives bytes that look like an answer of the OpenAI family often enough to reach every stage, and are wrong
in every place where something can be wrong. `uniform_streams()` gives long rows of events of one shape, with now and
then one that is not, for the fast path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from hypothesis import strategies as st

HEAD: Final = {
    "id": "chatcmpl-v1",
    "object": "chat.completion.chunk",
    "created": 1_772_000_000,
    "model": "gpt-4o-2024-11-20",
}

#: Texts in which something can break: clusters, halves of pairs, escapes, marks of other grammars.
TEXTS: Final = (
    "سلام", " می‌", "رود", "نَ", "你好，", "中", "नमस्", "ते ", "क्ष", "한", "ᄒ", "ᅡᆫ", "น้ำ", "ไหล", "e", "\u0301", "👩",
    "\u200d", "👧", "🏽", "🇮", "🇷", "\ufe0f", "\ud83d", "\ude00", "\ud800", "\udfff", "\U0001f600", "a\u2028b",
    "\u2029", "\u0085", "\ufeff", "\ufffd", "\x00", "\x1f", "\n", "\r\n", "\t", " ", "", "\\", '"', '\\"', "\\\\",
    "data: x\n\n", "data: [DONE]", "```", "`", "```json\n", "\n```", "{", "}", "[1, 2]", '{"a":1}', "Hello", " there",
    ".", "0", "é",
)  # fmt: skip
WORDS: Final = ("stop", "length", "tool_calls", "content_filter", "error", "", "null", "eos", "STOP", "function_call")
#: JSON values where a vendor's habit, or a fault, puts something else than the grammar says.
ODD: Final[tuple[object, ...]] = (
    None, True, False, 0, 1, -1, 1.5, 10**30, 1e300, "", "x", "0", "\ud83d", [], {}, [None], [[]], {"a": None},
    [{"type": "text", "text": "س"}], [{"type": "thinking", "thinking": [{"type": "text", "text": "🧵"}]}], ["x", 3],
    {"stop": 1}, {"error": {"message": "m", "code": 429}}, "nope",
)  # fmt: skip

texts = st.sampled_from(TEXTS)
odd = st.sampled_from(ODD)


def encode(value: object, *, ascii_only: bool = False, compact: bool = True) -> bytes:
    """As some vendor's encoder would; halves of pairs can only be written as escapes."""
    separators = (",", ":") if compact else None
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    if not ascii_only:
        text = "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text.encode()


# ---- events written by hand ------------------------------------------------------------------------------------------


def event(payload: object) -> bytes:
    return b"data: " + encode(payload) + b"\n\n"


def chunk(
    delta: Mapping[str, object] | None = None, finish: str | None = None, index: int = 0, **more: object
) -> bytes:
    """The event of a clean chat.completion.chunk; without a delta it has no choices."""
    choices = [] if delta is None else [{"index": index, "delta": delta, "finish_reason": finish}]
    return event({**HEAD, "choices": choices, **more})


def say(text: str, index: int = 0, **more: object) -> bytes:
    return chunk({"content": text}, None, index, **more)


def call(**fragment: object) -> bytes:
    """The event of one tool-call fragment."""
    return chunk({"tool_calls": [fragment]})


ROLE: Final = chunk({"role": "assistant", "content": ""})
STOP: Final = chunk({}, "stop")
USAGE: Final = chunk(usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})
END: Final = b"data: [DONE]\n\n"


# ---- whatever else ---------------------------------------------------------------------------------------------------


def _sometimes(value: st.SearchStrategy[object], other: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.integers(0, 19).flatmap(lambda dice: other if dice == 0 else value)


def _fields(
    always: Mapping[str, st.SearchStrategy[object]], maybe: Mapping[str, st.SearchStrategy[object]]
) -> st.SearchStrategy[dict[str, object]]:
    """Mostly right fields; now and then one with another kind of value, and unknown ones."""
    return st.fixed_dictionaries(
        {name: _sometimes(value, odd) for name, value in always.items()},
        optional={name: _sometimes(value, odd) for name, value in maybe.items()},
    )


_function = _fields(
    {"arguments": st.one_of(texts, st.sampled_from(('{"a"', ":1}", "{}", "")))},
    {"name": st.sampled_from(("天气", "get", ""))},
)
_call = _fields(
    {"function": _function},
    {"index": st.integers(0, 2), "id": st.sampled_from(("call_1", "call_2", "")), "type": st.just("function")},
)
_delta = st.one_of(
    _fields({"content": texts}, {}),
    _fields(
        {},
        {
            "role": st.just("assistant"),
            "content": texts,
            "reasoning_content": texts,
            "reasoning": texts,
            "refusal": texts,
            "tool_calls": st.lists(_sometimes(_call, odd), max_size=2),
            "annotations": odd,
            "function_call": odd,
        },
    ),
)
_choice = _fields(
    {"index": st.sampled_from((0, 0, 0, 0, 1)), "delta": _delta, "finish_reason": st.none()},
    {
        "logprobs": st.sampled_from((None, {"content": [{"token": "س", "logprob": -0.1}]})),
        "content_filter_results": odd,
    },
)
_finishing = _fields(
    {"index": st.sampled_from((0, 0, 1)), "delta": _delta, "finish_reason": st.sampled_from(WORDS)}, {}
)
_usage = st.fixed_dictionaries({"prompt_tokens": odd, "completion_tokens": st.integers(0, 9)})


def _chunk(choice: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[dict[str, object]]:
    head = {name: st.just(value) for name, value in HEAD.items()}
    choices = _sometimes(st.lists(_sometimes(choice, odd), min_size=1, max_size=2), odd)
    return _fields(
        {**head, "choices": choices},
        {"usage": st.one_of(st.none(), _usage), "system_fingerprint": st.just("fp"), "extra": odd},
    )


_payload = st.one_of(
    _chunk(_choice),
    _chunk(_choice),
    _chunk(_choice),
    _chunk(_finishing),
    st.fixed_dictionaries({"choices": st.just([]), "usage": _usage}),
    st.fixed_dictionaries({"error": odd}, optional={"choices": st.lists(_choice, max_size=1)}),
    st.fixed_dictionaries(
        {}, optional={"object": st.just("error"), "message": texts, "code": odd, "detail": odd, "type": odd}
    ),
    odd,
)
_json = st.builds(encode, _payload, ascii_only=st.booleans(), compact=st.booleans())
_ends = st.sampled_from((b"\n\n", b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b"\r\n", b"\r", b"\n\r\n", b""))
_junk = st.sampled_from(
    (
        b"\xef\xbb\xbf", b": ping\n\n", b":\n", b": x", b"data:\n\n", b"data: \n\n", b"data\n\n", b"event: error\n",
        b"event: ping\n", b"id: 1\n", b"retry: 5\n", b"\n", b"\r", b"\r\n", b"\x00", b"\xff", b"\xd8", b"\xf0\x9f",
        b"   \n", b"oops\n", b"<html>\n", b'error: {"error": {"message": "m"}}\n', b"data: [DONE]\n\n",
        b"data:[DONE]\n\n", b'data: "[DONE]"\n\n', b"data: [DONE]", b"data: data: {}\n\n", b"data: {\ndata: }\n\n",
        b"data: \xef\xbb\xbf{}\n\n", b'data: {"choices": [\n\n', b"data: words\n\n", b"data: NaN\n\n",
        b"data: " + b"[" * 1100 + b"\n\n", b'data: "words"\n\n', b'{"error":{"message":"m"}}\n',
    )
)  # fmt: skip


def _torn(data: bytes, at: int, with_: bytes) -> bytes:
    where = at % (len(data) + 1)
    return data[:where] + with_ + data[where:]


def _event(payload: bytes, field: bytes, end: bytes) -> bytes:
    return field + payload + end


_events = st.builds(_event, _json, st.sampled_from((b"data: ", b"data: ", b"data: ", b"data:", b"data:  ")), _ends)
_torn_events = st.builds(
    _torn, _events, st.integers(0, 400), st.sampled_from((b"\n", b"\r", b"\ndata: ", b"\xff", b"\\", b'"'))
)


def streams(max_size: int = 14) -> st.SearchStrategy[bytes]:
    """Bytes of an answer, mostly events of one stream."""
    pieces = st.lists(st.one_of(_events, _events, _events, _events, _torn_events, _junk), max_size=max_size)
    return pieces.map(b"".join)


# ---- events of one shape -------------------------------------------------------------------------------------------

_CONTENTS: Final = (
    "Hello", " there", " a\nb", ' said "x"', "\\", "\\\\", 'end\\"', "", "\x01", "\t", "é", "س", "سلام", "你好", "🧵",
    "👩", "\u200d", "\u2028", '","', '"},"finish_reason":null}]}', "data: ", "x" * 300, "/", "<", "\x7f",
)  # fmt: skip
TEMPLATES: Final[Sequence[tuple[bytes, bytes]]] = tuple(
    (before, after)
    for before, after in (
        (
            encode(HEAD)[:-1] + b',"choices":[{"index":0,"delta":{"content":"',
            b'"},"finish_reason":null}]}',
        ),
        (
            b'{"choices":[{"delta":{"content":"',
            b'"},"finish_reason":null,"index":0,"logprobs":null}],' + encode(HEAD)[1:],
        ),
        (
            encode(HEAD)[:-1]
            + b',"x":[{"content_filter_results":{}}],"choices":[{"index":0,"delta":{"role":null,"content":"',
            b'"},"finish_reason":null,"logprobs":null}],"usage":null} ',
        ),
        (
            json.dumps(HEAD).encode()[:-1] + b', "choices": [{"index": 0, "delta": {"content":"',
            b'"}, "finish_reason": null}]}',
        ),
    )
)
_other_events = st.sampled_from(
    (
        b": hb\n\n",
        b"data: {}\n\n",
        b"data:\n\n",
        b"event: x\n",
        chunk({"reasoning": "نَ"}),
        say("c", citations=[1]),
        say("ق", index=1),
        STOP,
        say("f", index=False),
        say("f", created=1.772e9),
        event({**HEAD, "choices": [5]}),
    )
)


@st.composite
def uniform_streams(draw: st.DrawFn) -> bytes:
    """Many events of one template, with other events, broken templates and odd ends in between."""
    before, after = draw(st.sampled_from(TEMPLATES))
    ascii_only = draw(st.booleans())
    lengths = st.lists(st.tuples(st.sampled_from(_CONTENTS), st.sampled_from((1, 1, 2, 40))), max_size=12)
    out = [
        b"data: "
        + encode(
            {**HEAD, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
        )
    ]
    out.append(b"\n\n")
    for content, times in draw(lengths):
        one = b"data: " + before + encode(content, ascii_only=ascii_only)[1:-1] + after + b"\n\n"
        out.append(one * times)
        match draw(st.integers(0, 11)):
            case 0:
                out.append(draw(_other_events))
            case 1:
                out.append(
                    _torn(
                        one,
                        draw(st.integers(0, 500)),
                        draw(st.sampled_from((b'"', b"\\", b"\n", b"\r", b"\xff", b"\n\n"))),
                    )
                )
            case 2:
                out.append(one[: draw(st.integers(0, 500)) % len(one)])
            case _:
                pass
    out.append(draw(st.sampled_from((b"", b"data: [DONE]\n\n", b"data: [DONE]\n"))))
    return b"".join(out)
