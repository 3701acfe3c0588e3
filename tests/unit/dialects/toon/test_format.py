"""`proxy.dialects.toon.format`: what is no TOON request is refused with status, code, pointer, and words that help."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dialects.base import BadRequest
from proxy.dialects.toon import format as toon
from proxy.dialects.toon.format import MAX_IDS, ToonRequest, parse_toon
from tests.support.strategies import odd
from tests.support.toon_bodies import BAD_BODIES, BAD_FIELDS, FULLEST, GOOD_BODIES, LEAST, changed


def named(case: tuple[Any, ...]) -> str:
    return f"{case[0]} {str(case[1])[:24]}"


@pytest.mark.clause("T2")
@pytest.mark.parametrize("case", BAD_FIELDS, ids=named)
def test_a_wrong_field_is_refused_where_it_is(case: tuple[str, object, str, str]) -> None:
    """One thing wrong in a body that is right: its code, its pointer, and a message that names the place."""
    pointer, value, code, at = case
    refused = parse_toon(json.dumps(changed(LEAST, pointer, value)).encode())
    assert isinstance(refused, BadRequest), refused
    assert (refused.status, refused.code, refused.param) == (400, code, at)
    assert is_for_people(refused.message)


@pytest.mark.clause("T2")
@pytest.mark.parametrize("case", BAD_BODIES, ids=lambda case: case[0])
def test_a_wrong_body_is_refused(case: tuple[str, bytes, int, str, str]) -> None:
    """Whatever it is, by a value and in time."""
    _, body, status, code, pointer = case
    refused = parse_toon(body)
    assert isinstance(refused, BadRequest), refused
    assert (refused.status, refused.code, refused.param) == (status, code, pointer)
    assert is_for_people(refused.message)


def is_for_people(message: str) -> bool:
    """A sentence, short, without the words of a library."""
    words = ("Expected `", "Invalid enum", "matching regex", "is refused (", "$.")
    return message.endswith(".") and len(message) < 400 and not any(word in message for word in words)


def test_the_table_is_long_and_has_each_code() -> None:
    """So that nothing is left out unseen."""
    codes = {case[2] for case in BAD_FIELDS} | {case[3] for case in BAD_BODIES}
    assert len(BAD_FIELDS) + len(BAD_BODIES) >= 200
    assert codes == {
        *("invalid_json", "missing_field", "unknown_field", "invalid_type", "invalid_value"),
        *("unsupported_positions", "too_many_ids", "request_too_large"),
    }


@pytest.mark.parametrize(("pointer", "value", "said"), [
    ("/mask/type", "full", "`/mask/type` must be one of causal, padding, bidirectional, custom; it is `\"full\"`."),
    ("/tids/ids", [3, 2.0], "`/tids/ids/1` must be an integer, not a number with a point or an exponent: "
     "write it without them."),
    ("/tids/ids", [-1], "`/tids/ids/0` must be 0 or more; it is `-1`."),
    ("/tids/ids", [], "`/tids/ids` must have 1 or more elements; it is of 0 elements."),
    ("/tids/v", "21", "`/tids/v` must be a digit, a dot and a digit, as in `2.1`; it is `\"21\"`."),
    ("/top_p", 0, "`/top_p` must be more than 0; it is `0`."),
    ("/temperature", 3, "`/temperature` must be at most 2; it is `3`."),
    ("/stream", 1, "`/stream` must be `true` or `false`, not an integer."),
    ("/meta", {"trace_id": "kurz"}, "`/meta/trace_id` must have 8 or more characters; it is `\"kurz\"`."),
    ("/pos/offset", ..., "`/pos/offset` is required, and is not there."),
    ("/pos/ofset", 0, "`ofset` is no field of `/pos`; known are base, offset, stride, and any name that "
     "begins with `x_` or `x-`."),
])  # fmt: skip
def test_a_refusal_says_what_is_there_and_what_may_be(pointer: str, value: object, said: str) -> None:
    """In words that need no knowledge of how it is made."""
    refused = parse_toon(json.dumps(changed(LEAST, pointer, value)).encode())
    assert isinstance(refused, BadRequest)
    assert refused.message == said


def test_what_is_quoted_is_short() -> None:
    """A name and a value of half a megabyte are not sent back."""
    for pointer, value in (("/" + "n" * 500_000, 1), ("/mask/type", "v" * 500_000), ("/model", "م" * 200_000)):
        refused = parse_toon(json.dumps(changed(LEAST, pointer, value)).encode())
        assert isinstance(refused, BadRequest)
        assert len(refused.message) < 500
        assert len(refused.param or "") < 100


@pytest.mark.parametrize("case", GOOD_BODIES, ids=lambda case: case[0])
def test_what_looks_odd_and_is_right_passes(case: tuple[str, bytes]) -> None:
    """Nothing is refused for its look."""
    assert isinstance(parse_toon(case[1]), ToonRequest)


def test_fields_for_others_pass_at_every_level() -> None:
    """Those of the top are kept, and segments with what is inside them for others; nothing else that is known."""
    found = parse_toon(json.dumps(FULLEST).encode())
    assert isinstance(found, ToonRequest)
    assert found.passed == {name: FULLEST[name] for name in ("x_mine", "x-other", "x_segments")}
    assert found.tids.ids == FULLEST["tids"]["ids"]
    assert isinstance(found.x_segments, list)
    assert [segment.length for segment in found.x_segments] == [1, 3]
    usual = parse_toon(json.dumps({**LEAST, "x_window": 4}).encode())
    assert isinstance(usual, ToonRequest)
    assert usual.passed == {}


def test_defaults_are_those_of_the_page() -> None:
    """What a request does not say."""
    found = parse_toon(json.dumps(LEAST).encode())
    assert isinstance(found, ToonRequest)
    assert (found.max_tokens, found.temperature, found.top_p) == (256, 1.0, 1.0)
    assert (found.stream, found.stop_ids, found.x_special_tokens) == (False, [], "keep")


KEYS = sorted({name for body in (LEAST, FULLEST) for name in body})
BODIES = st.dictionaries(
    st.sampled_from([*KEYS, "x_a", "nope"]),
    st.one_of(odd, st.sampled_from([*LEAST.values(), *FULLEST.values()])),
    max_size=6,
)


@given(BODIES, st.booleans())
def test_the_quick_way_and_the_careful_one_agree(more: dict[str, object], is_full: bool) -> None:
    """In any body: what the quick way takes, the careful one takes for the same; what it does not, is looked at."""
    body = json.dumps({**(FULLEST if is_full else LEAST), **more}).encode()
    assert parse_toon(body) == toon._parse_with_care(body)


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_bytes_raise(body: bytes) -> None:
    """Neither way."""
    for one in (body, json.dumps(LEAST).encode()[:-1] + b"," + body, b'{"tids": ' + body + b"}"):
        assert isinstance(parse_toon(one), BadRequest | ToonRequest)


@given(st.integers(MAX_IDS - 2, MAX_IDS + 2), st.sampled_from(["1", "12345", "-1", "1.0"]))
def test_the_number_of_ids_is_counted_before_they_are_looked_at(count: int, one: str) -> None:
    """At the limit, and around it."""
    text = re.sub(r"\[123, 456\]", f"[{','.join([one] * count)}]", json.dumps(LEAST))
    found = parse_toon(text.encode())
    if count > MAX_IDS:
        assert isinstance(found, BadRequest)
        assert (found.status, found.code) == (413, "too_many_ids")
    else:
        assert isinstance(found, BadRequest) is (one not in ("1", "12345"))


@pytest.mark.parametrize("name", ["x_candidates", "x-tids"])
def test_ids_of_a_field_for_others_are_not_the_requests(name: str) -> None:
    """However many they are, below what a body may hold."""
    found = parse_toon(json.dumps({**LEAST, name: {"ids": [12345] * 20_000}}).encode())
    assert isinstance(found, ToonRequest)
