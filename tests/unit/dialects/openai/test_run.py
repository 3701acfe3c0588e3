"""Templates of text events: learned only where it is proved, matched only where reading would find the same."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.chunk import Chunk
from proxy.dialects.openai.read import OpenAIReader
from proxy.dialects.openai.run import PlainShape, TextRun
from tests.support.strategies import HEAD, chunk, encode, event, say

PAYLOAD = slice(len(b"data: "), -len(b"\n\n"))


def template() -> TextRun:
    run = TextRun.learn(say("x")[PAYLOAD], "x")
    assert run is not None
    return run


def raw(body: bytes) -> bytes:
    """The template's event with these bytes between the quotes of its text."""
    return say("@").replace(b"@", body)


@pytest.mark.clause("W2")
@pytest.mark.parametrize("text", ["x", "سلام", 'say "x"', "a\nb", "\\", '"content":"', "\x00", "😀", "},"])
def test_a_template_is_learned_from_any_text(text: str) -> None:
    """The same one from each, as long as the vendor writes the text as we would."""
    wire = say("@")[PAYLOAD].replace(b"@", orjson.dumps(text)[1:-1])
    run = TextRun.learn(wire, text)

    assert run is not None
    assert (run.prefix, run.suffix) == (template().prefix, template().suffix)
    assert run.match(say("نمونه"), 0) == (["نمونه"], ["نمونه".encode()])


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (b'{"choices":[{"delta":{"content": "x"}}]}', "x"),
        (b'{"choices":[{"delta":{"content":"\\u0078"}}]}', "x"),
        (b'{"content":"x","choices":[{"delta":{"content":"x"}}]}', "x"),
        (b'{"content":"x","choices":[{"delta":{"text":"x"}}]}', "x"),
        (b'{"choices":[{"delta":{"content":"x","content":"y"}}]}', "y"),
        (b'{"choices":[{"delta":{"content":"content"}}]}', "content"),
        (b'{"choices":[{"delta":{"reasoning":"x"}}]}', "x"),
        (b'{"choices":[{"delta":{"content":"x"}}],"deep":' + b"[" * 1000 + b"]" * 1000 + b"}", "x"),
    ],
    ids=["space", "escaped", "twice", "elsewhere", "double key", "its own name", "no content", "too deep to compare"],
)
def test_no_template_without_proof(wire: bytes, text: str) -> None:
    """The text elsewhere, written otherwise, or more than once."""
    assert TextRun.learn(wire, text) is None


@pytest.mark.clause("W2")
def test_a_run_ends_at_the_first_event_that_differs() -> None:
    """Whatever differs: another field, a comment, an empty text, an escaped quote, half an event."""
    run, row = template(), say("سلام") + say(" دنیا")
    for other in (
        chunk({"reasoning": "x"}),
        say("x", citations=[1]),
        b": hb\n\n",
        say(""),
        say('"'),
        say("x")[:-1],
        say("x")[:40],
        b"\n",
        b"event: x\n" + say("x"),
        say("x").replace(b"data: ", b"data:"),
        say("x").replace(b"\n\n", b"\r\n\r\n"),
    ):
        found = run.match(row + other + row, 0)
        assert found == (["سلام", " دنیا"], ["سلام".encode(), " دنیا".encode()])
        assert run.end_of(0, found[1]) == len(row)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    "bodies",
    [
        [b"\\"],
        [b"a", b"b\\"],
        [b"\\", b"a"],
        [b"a\\", b',"x'],
        [b"a\\\\"],
        [b"\\\\\\"],
        [b'a\\"'],
        [b'a","b'],
        [b"\\u00"],
        [b"\\ud83d"],
        [b"\\x"],
        [b"\x01"],
        [b"\xff"],
        [b"\xe2\x80"],
        [b""],
        [b'x"},"finish_reason":null}]}'],
        [b"\n\n"],
        [b"a\r"],
        [b"\\n", b"\\u2028", b"\\/"],
    ],
)
def test_adversarial_bodies_are_read_as_json_would_or_left(bodies: list[bytes]) -> None:
    """A body that ends in a backslash, closes its string, or is no UTF-8 never passes as what it is not."""
    data = b"".join(map(raw, bodies))
    found = template().match(data, 0)

    if found is not None:
        texts, taken = found
        assert taken == bodies[: len(taken)]
        for text, body in zip(texts, taken, strict=True):
            parsed = OpenAIReader().read(raw(body)[PAYLOAD], None)
            assert isinstance(parsed, Chunk)
            assert parsed.wire == raw(body)[PAYLOAD]
            assert parsed.deltas[0].texts == {"content": text}


@given(
    bodies=st.lists(
        st.one_of(st.binary(max_size=6), st.sampled_from((b"\\", b'"', b"\\n", b"a", b"\xd8\xb3"))), max_size=6
    )
)
def test_what_is_matched_is_what_is_read(bodies: list[bytes]) -> None:
    """For any bytes in the place of the text."""
    data = b"".join(map(raw, bodies))
    found = template().match(data, 0)

    for text, body in zip(*found, strict=True) if found is not None else ():
        assert orjson.loads(b'"' + body + b'"') == text != ""


def test_the_longest_line_is_known_without_reading() -> None:
    """For the limit on lines, which holds for runs as well."""
    bodies = [b"a", b"abc", b""]
    assert template().longest(bodies) == max(len(raw(body)) for body in bodies) - len(b"\n\n")


# ---- plain shapes --------------------------------------------------------------------------------------------------


def shape(**more: Any) -> PlainShape | None:
    wire = say("x", **more)[PAYLOAD]
    parsed = OpenAIReader().read(wire, None)
    assert isinstance(parsed, Chunk)
    return PlainShape.learn(wire, parsed)


@pytest.mark.clause("W2")
def test_a_plain_event_is_known_again_whatever_its_unknown_fields_say() -> None:
    """Same keys, same identity: obfuscation and filter results may change."""
    plain = shape(obfuscation="a", usage=None)
    assert plain is not None
    again = orjson.loads(say("سلام", obfuscation="zz", usage=None)[PAYLOAD])

    assert plain.text_of(again) == "سلام"
    chunk, unknown = plain.unknown_of(again)
    assert (chunk.extra, unknown) == ({"obfuscation": "zz"}, {})


@pytest.mark.parametrize("more", [{"error": None}, {"base_resp": {"status_code": 0}}, {"x_groq": {"id": "r"}}])
def test_events_that_may_speak_of_more_have_no_plain_shape(more: dict[str, object]) -> None:
    """Errors and usage hide there: they are read each time."""
    wire = encode({**HEAD, "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}], **more})
    parsed = Chunk([], id="chatcmpl-v1", created=HEAD["created"], model="gpt-4o-2024-11-20", wire=wire)  # type: ignore[arg-type]  # HEAD is mixed
    assert PlainShape.learn(wire, parsed) is None


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    "other",
    [
        say(""),
        say("x", extra=1),
        say("x", id="other"),
        say("x", created=1.772e9),
        say("x", model=None),
        say("x", object="chat.completion"),
        say("x", usage={"prompt_tokens": 1}),
        say("x", choices=[]),
        say("x", choices=[{"index": 0}]),
        say("x", choices=None),
        say("x", index=1),
        say("x", index=False),
        chunk({"content": "x"}, "stop"),
        chunk({"content": "x", "role": "assistant"}),
        chunk({"content": 5}),
        chunk({"reasoning": "x"}),
        chunk({}),
        event([]),
        event("x"),
        event(None),
    ],
)
def test_every_other_payload_is_not_plain(other: bytes) -> None:
    """It goes the ordinary way."""
    plain = shape()
    assert plain is not None
    assert plain.text_of(orjson.loads(other[PAYLOAD])) is None
