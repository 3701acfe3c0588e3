"""Our count of a prompt: one formula, for every client and vendor."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dialects.base import BadRequest
from proxy.dialects.openai.send import countable
from proxy.dialects.registry import CLIENT_DIALECTS
from proxy.metering.images import ASSUMED, image_tokens, size_of
from proxy.metering.prompt import count_prompt, read_prompt
from proxy.metering.tokens import load_counter
from tests.support.any_json import payloads

pytestmark = pytest.mark.clause("L2")


@pytest.mark.clause("L2")
def test_roles_names_texts_calls_and_definitions_are_counted_and_nothing_else() -> None:
    """A chat request is counted over what the model reads as text: no ids, no images, no sampling settings."""
    body: dict[str, Any] = {
        "model": "gpt-4o",
        "temperature": 0.5,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "مریم", "content": [
                {"type": "text", "text": "این چیست؟"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]},
            {"role": "assistant", "content": None, "reasoning_content": "看看", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "گربه"},
        ],
        "tools": [{"type": "function", "function": {"name": "look"}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "animal"}},
    }  # fmt: skip
    assert read_prompt(body).pieces == [
        "system", "Be brief.",
        "user", "مریم", "این چیست؟",
        "assistant", "看看", "look", '{"at": 1}',
        "tool", "گربه",
        '{"type":"function","function":{"name":"look"}}',
        '{"name":"animal"}',
    ]  # fmt: skip
    assert read_prompt(body).text == "\n".join(read_prompt(body).pieces)
    # four messages, the answer, one call, one tool, an image that cannot be seen
    assert read_prompt(body).extra == 4 * 3 + 3 + 3 + 7 + 765


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": None, "tools": 7, "response_format": []},
        {"messages": [None, 3, "x", {"role": 1, "content": {"text": "?"}, "tool_calls": [{"function": "f"}, 1]}]},
    ],
)
def test_what_has_the_wrong_type_is_passed_over(body: dict[str, Any]) -> None:
    """A malformed request is its vendor's to refuse: counting it raises nothing and counts nothing."""
    assert read_prompt(body).pieces == []


def test_a_tool_that_json_cannot_write_is_still_counted() -> None:
    """Integers over 64 bits in a tool's schema do not stop the count: it is over names and values, in order."""
    tool = {"name": "数", "maximum": 10**30, "enum": [1, None, {"ок": True}]}
    assert read_prompt({"tools": [tool]}).pieces == [f"name\n数\nmaximum\n{10**30}\nenum\n1\nNone\nок\nTrue"]


def test_a_tool_nested_as_deep_as_a_request_can_be_counts_the_same_at_any_depth_of_the_stack() -> None:
    """What recurses would fail a thousand levels down, and where it fails depends on who called it."""
    deep = orjson.loads(b'{"tools": [' + b'{"a": [' * 500 + b'"\xd8\xaf"' + b"]}" * 500 + b"]}")

    def count_below(frames: int) -> int:
        return count_below(frames - 1) if frames else count_prompt(load_counter(), deep)

    assert count_below(0) == count_below(700) > 500


@pytest.mark.parametrize("role", ["user", "", None, 1])
@pytest.mark.parametrize("content", ["سلام", "", None, [{"type": "text", "text": "你好"}]])
def test_a_field_that_says_nothing_changes_no_count(role: object, content: object) -> None:
    """The usual message takes a short way, with the same result."""
    short, long = ({"role": role, "content": content, **more} for more in ({}, {"name": ""}))
    assert read_prompt({"messages": [short]}) == read_prompt({"messages": [long]})


def png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(header))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def webp(width: int, height: int) -> bytes:
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return b"RIFF" + bytes(4) + b"WEBPVP8X" + bytes(8) + size + bytes(10)


def jpeg(width: int, height: int) -> bytes:
    notes = b"\xff\xe1" + struct.pack(">H", 5002) + bytes(5000)
    frame = b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + bytes(10)
    return b"\xff\xd8" + notes + frame + bytes(20)


def data_url(raw: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"


@pytest.mark.parametrize("made", [png, gif, webp, jpeg])
def test_an_images_size_is_read_from_its_head(made: Any) -> None:
    """In four forms, behind a camera's notes too, from the first bytes alone."""
    assert size_of(data_url(made(1920, 1080))) == (1920, 1080)
    assert size_of(data_url(made(1920, 1080) + bytes(400_000))) == (1920, 1080)


@pytest.mark.parametrize(
    ("size", "detail", "tokens"),
    [
        ((512, 512), "high", 85 + 170),
        ((1024, 1024), None, 85 + 4 * 170),
        ((2048, 4096), "auto", 85 + 6 * 170),
        ((1, 1), "high", 85 + 170),
        ((30_000, 10), "high", 85 + 4 * 170),
        ((4096, 4096), "low", 85),
    ],
)
def test_an_image_counts_by_its_pixels(size: tuple[int, int], detail: str | None, tokens: int) -> None:
    """Scaled as the documented formula says, in tiles."""
    assert image_tokens(data_url(png(*size)), detail) == tokens


@pytest.mark.parametrize(
    "url",
    [
        "https://example.test/ガ.png",
        "data:image/png;base64,????",
        "data:image/png,plain",
        data_url(png(0, 5)),
        data_url(b"\xff\xd8" + b"\xff" * 100_000),
        data_url(b"\xff\xd8" + b"\xff\xe1\x00\x02" * 30_000),
        data_url(b"\xff\xd8\xff\xc0\x00\x11\x08\x04"),
        data_url(b"\xff\xd8" + b"\xff\xd0" * 30_000),
        "data:",
        "",
    ],
)
def test_an_image_that_cannot_be_seen_counts_as_a_usual_one(url: str) -> None:
    """At an address, broken, or of no size."""
    assert size_of(url) is None
    assert image_tokens(url) == image_tokens(data_url(png(*ASSUMED)))


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF0000WEBPVP8L", b"\xff\xd8"])
)
def test_no_header_makes_it_fail(raw: bytes, head: bytes) -> None:
    """Whatever stands in the data: a number of tokens between that of one tile and that of the largest image."""
    assert 85 < image_tokens(data_url(head + raw)) <= 85 + 170 * 16


@given(payloads(["messages", "content", "image_url", "url", "tools", "tool_calls", "function", "role", "text"]))
def test_any_body_is_counted(body: Any) -> None:
    """What a client sent is no reason to fail, and one more message never counts less."""
    counter = load_counter()
    body = body if isinstance(body, dict) else {"messages": body}
    before = count_prompt(counter, body)
    assert before >= 0
    if isinstance(body.get("messages"), list):
        more = {**body, "messages": [*body["messages"], {"role": "user", "content": "سلام"}]}
        assert count_prompt(counter, more) > before


def test_the_three_apis_count_the_same_for_the_same_prompt() -> None:
    """One question with a tool, as chat completions, as messages and as responses have it."""
    schema = {"type": "object", "properties": {"город": {"type": "string"}}}
    chat: dict[str, object] = {
        "model": "m",
        "messages": [{"role": "system", "content": "短く。"}, {"role": "user", "content": "Какая погода?"}],
        "tools": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": schema}}],
    }
    messages = {
        "model": "m",
        "max_tokens": 5,
        "system": "短く。",
        "messages": [{"role": "user", "content": "Какая погода?"}],
        "tools": [{"name": "weather", "description": "d", "input_schema": schema}],
    }
    responses = {
        "model": "m",
        "instructions": "短く。",
        "input": [{"role": "user", "content": "Какая погода?"}],
        "tools": [{"type": "function", "name": "weather", "description": "d", "parameters": schema, "strict": None}],
    }
    counts = []
    for name, body in (("chat", chat), ("messages", messages), ("responses", responses)):
        parsed = CLIENT_DIALECTS[name].parse(orjson.dumps(body))
        assert not isinstance(parsed, BadRequest)
        canonical = parsed.canonical
        assert not isinstance(canonical, BadRequest)
        counts.append(count_prompt(load_counter(), countable(canonical)))
    assert len(set(counts)) == 1, counts
    assert counts[0] == count_prompt(load_counter(), chat)


PNG = base64.b64encode(png(800, 600)).decode()


def test_a_whole_conversation_counts_the_same_in_the_three_apis() -> None:
    """Text parts, an image in the question, a call of a tool, its result and what followed, as each API has it."""
    chat: dict[str, object] = {
        "model": "m",
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "این عکس کجاست؟"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"en":"मुंबई"}'}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "東京, 3 km"},
            {"role": "assistant", "content": "Ты в Токио."},
            {"role": "user", "content": "谢谢"},
        ],
    }  # fmt: skip
    messages = {
        "model": "m",
        "max_tokens": 5,
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "این عکس کجاست؟"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "find", "input": {"en": "मुंबई"}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "東京, 3 km"}]},
            {"role": "assistant", "content": "Ты в Токио."},
            {"role": "user", "content": "谢谢"},
        ],
    }  # fmt: skip
    responses = {
        "model": "m",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "این عکس کجاست؟"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
            ]},
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"en":"मुंबई"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "東京, 3 km"},
            {"role": "assistant", "content": "Ты в Токио."},
            {"role": "user", "content": "谢谢"},
        ],
    }  # fmt: skip
    expected = read_prompt(chat)
    for name, body in (("chat", chat), ("messages", messages), ("responses", responses)):
        parsed = CLIENT_DIALECTS[name].parse(orjson.dumps(body))
        assert not isinstance(parsed, BadRequest)
        canonical = parsed.canonical
        assert not isinstance(canonical, BadRequest)
        assert read_prompt(countable(canonical)) == expected, name
    assert expected.extra == 5 * 3 + 3 + 3 + 85 + 4 * 170
