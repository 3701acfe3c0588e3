"""JSON in and out: any bytes are a value or `BROKEN`, any value is one line of valid JSON."""

from __future__ import annotations

import json
import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dialects.payload import (
    BROKEN,
    MAX_DEPTH,
    as_count,
    as_mapping,
    as_text,
    encode_json,
    is_empty,
    parse_json,
    whole_text,
)

_strings = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), _strings),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_strings, inner, max_size=4)),
    max_leaves=12,
)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("data", "value", "replaced"),
    [
        (b'{"a":"\xd8\xb3"}', {"a": "س"}, 0),
        (b'"\\ud83d\\ude00"', "😀", 0),
        (b'"\\ud83d"', "\ud83d", 0),
        (b'"\\ude00x"', "\ude00x", 0),
        (b'"\xff\xc3\xa9"', "\ufffdé", 1),
        (b'"\xef\xbf\xbd"', "\ufffd", 0),
        (b'"a\nb"', "a\nb", 0),
        (b"123456789012345678901234567890", 1.2345678901234568e29, 0),
        (b'["\\ud83d", 123456789012345678901234567890]', ["\ud83d", 123456789012345678901234567890], 0),
        (b"1e999", math.inf, 0),
        (b"", BROKEN, 0),
        (b"{", BROKEN, 0),
        (b"\xff", BROKEN, 1),
        (b"[DONE]", BROKEN, 0),
        (b"1" * 5000 + b'"', BROKEN, 0),
        (nested(1100), BROKEN, 0),
    ],
)
def test_any_bytes_are_a_value_or_broken(data: bytes, value: object, replaced: int) -> None:
    """Half pairs stay, bad UTF-8 is replaced and counted, raw control characters and huge numbers are read."""
    assert parse_json(data) == (value, replaced)


@given(st.binary(max_size=40))
def test_no_bytes_raise(data: bytes) -> None:
    """And what was read can be written."""
    value, replaced = parse_json(data)
    assert replaced >= 0
    if value is not BROKEN:
        orjson.loads(encode_json(value))


@pytest.mark.clause("W1", "W3")
@given(_values)
def test_any_value_is_one_line_of_valid_json(value: object) -> None:
    """UTF-8 without half pairs, without raw line ends, without NaN; whole values come back as they were."""
    data = encode_json(value)

    assert b"\n" not in data
    assert b"\r" not in data
    back = json.loads(data.decode(), parse_constant=pytest.fail)
    assert "\ud83d" not in json.dumps(back, ensure_ascii=False)
    try:
        assert orjson.loads(orjson.dumps(value)) == back
    except TypeError:
        assert type(back) is type(value) or (isinstance(value, float) and back is None)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 600, 1000])
def test_what_is_nested_too_deep_becomes_null(depth: int) -> None:
    """orjson reads deeper than it writes: the pipeline must not fail on the difference."""
    value, _ = parse_json(nested(depth))
    assert value is not BROKEN
    written = encode_json(value)

    assert (written == nested(depth)) is (depth <= MAX_DEPTH)
    assert orjson.loads(written) is not None
    assert encode_json({"\ud83d": value}).startswith(b'{"\xef\xbf\xbd":[')


@pytest.mark.clause("W3")
@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("سلام", "سلام"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d", "\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\ud83db", "a\ufffdb"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
    ],
)
def test_halves_are_joined_where_they_meet(text: str, whole: str) -> None:
    """And replaced where they have lost their other half."""
    assert whole_text(text) == whole


def test_values_are_narrowed_without_a_guess() -> None:
    """A wrong kind of value counts as nothing said."""
    texts: tuple[object, ...] = ("é", 1, None, ["x"])
    objects: tuple[object, ...] = ({"a": 1}, [], None)
    counts: tuple[object, ...] = (0, 7, -1, True, 1.0, "7", None)
    values: tuple[object, ...] = (None, "", [], {}, 0, False, " ", [None])

    assert [as_text(value) for value in texts] == ["é", "", "", ""]
    assert [as_mapping(value) for value in objects] == [{"a": 1}, {}, {}]
    assert [as_count(value) for value in counts] == [0, 7, None, None, None, None, None]
    assert [is_empty(value) for value in values] == [True] * 4 + [False] * 4
