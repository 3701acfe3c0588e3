"""toon.schema.json says what `parse_toon` does, but for what a schema cannot say; answers are as it has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, TypeChecker
from jsonschema.validators import extend

import proxy.dialects.toon
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import ToonRequest, parse_toon
from proxy.dialects.toon.outline import outline
from proxy.dialects.toon.write import ToonWriter
from tests.support.strategies import odd
from tests.support.toon_bodies import BAD_BODIES, BAD_FIELDS, FULLEST, GOOD_BODIES, LEAST, changed
from tests.support.toon_events import events, request

FILE: Final = Path(proxy.dialects.toon.__file__).with_name("toon.schema.json")
SCHEMA: Final = json.loads(FILE.read_text(encoding="utf-8"))
PLAIN: Final = Draft202012Validator(SCHEMA)


def _is_int(_: TypeChecker, value: object) -> bool:
    return type(value) is int


#: The same with `1.0` as no integer: the one thing that no schema can say and that stands in every second field.
STRICT: Final = extend(  # type: ignore[no-untyped-call]  # the package has none for it
    Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_int)
)(SCHEMA)


def of(name: str) -> Draft202012Validator:
    return Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"})


#: What a schema lets through, by the code of the refusal: sums over an array, a sum of fields.
BEYOND_A_SCHEMA: Final = {
    ("/x_segments", "invalid_value"): "they do not cover the ids",
    ("/pos/offset", "unsupported_positions"): "the last position is beyond an integer",
    ("/pos/stride", "unsupported_positions"): "the last position is beyond an integer",
}


def is_beyond(refused: BadRequest) -> bool:
    """`/x_segments` is refused for its length too, which a schema can say."""
    sums = "segments cover" in refused.message or refused.code == "unsupported_positions"
    return sums and (refused.param or "", refused.code) in BEYOND_A_SCHEMA


def test_the_schema_is_one() -> None:
    """By the draft that it names; and each part is found."""
    Draft202012Validator.check_schema(SCHEMA)
    assert {"request", "answer", "event", "error"} <= set(SCHEMA["$defs"])


@pytest.mark.parametrize("case", BAD_FIELDS, ids=lambda case: f"{case[0]} {str(case[1])[:24]}")
def test_what_is_refused_is_no_instance(case: tuple[str, object, str, str]) -> None:
    """But for what is listed here."""
    body = changed(LEAST, case[0], case[1])
    refused = parse_toon(json.dumps(body).encode())
    assert isinstance(refused, BadRequest)
    assert STRICT.is_valid(body) is is_beyond(refused)


def test_whole_bodies_are_judged_alike() -> None:
    """Those that are JSON at all, and of a size that a schema can know; one of those with 8193 ids is enough."""
    for name, body in GOOD_BODIES:
        assert PLAIN.is_valid(json.loads(body)), name
    for name, body, status, code, _ in BAD_BODIES:
        if name == "too many ids" or (status == 400 and code != "invalid_json"):
            assert not STRICT.is_valid(json.loads(body)), name


def test_a_schema_takes_a_whole_number_in_any_writing() -> None:
    """2.0 is an integer to JSON Schema, and none here: a position is never rounded."""
    for pointer, value in (("/pos/offset", 0.0), ("/tids/ids", [1.0]), ("/max_tokens", 2.0), ("/seed", 1e3)):
        body = changed(LEAST, pointer, value)
        assert PLAIN.is_valid(body)
        refused = parse_toon(json.dumps(body).encode())
        assert isinstance(refused, BadRequest)
        assert refused.code == "invalid_type"


NAMES: Final = ("tids", "mask", "pos", "meta", "x_segments", "response_format", "x_special_tokens", "x_window", "model")
POINTERS: Final = sorted(
    {case[0] for case in BAD_FIELDS}
    | {f"/{name}" for name in NAMES}
    | {"/mask/custom_def/name", "/meta/source", "/x_segments/0/length", "/x_segments/0/meta", "/stop_ids/0"}
)
VALUES = st.one_of(odd, st.sampled_from([case[1] for case in BAD_FIELDS]), st.integers(-2, 9))


@given(st.lists(st.tuples(st.sampled_from(POINTERS), VALUES), min_size=1, max_size=3))
def test_the_two_agree_on_any_body(changes: list[tuple[str, object]]) -> None:
    """Any values in any places of a body that has everything."""
    body: dict[str, Any] = changed(FULLEST, "/x_mine", 1)
    for pointer, value in changes:
        try:
            body = changed(body, pointer, value)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            continue  # its place went away with an earlier change
    found = parse_toon(encoded(body))
    if isinstance(found, BadRequest) and (found.code == "invalid_json" or is_beyond(found)):
        return
    assert STRICT.is_valid(body) is isinstance(found, ToonRequest), found


def encoded(body: Mapping[str, Any]) -> bytes:
    """Half of a pair can only be written as an escape, and is refused as no JSON."""
    return json.dumps(body).encode()


WORD = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=128)
META = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["user_input", "retrieval", "system_prompt", "cache", "model_output"]),
        "trace_id": WORD,
        "origin_tokens": st.lists(WORD, max_size=3),
        "x_note": odd.filter(lambda value: "\\ud" not in json.dumps(value)),
    },
)
NATURAL = st.integers(0, 2**63 - 1)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Any request that is right."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    scope = draw(st.sampled_from(["full", "partial", "dynamic"]))
    mask = {"scope": scope, "fallback": draw(st.sampled_from(["pad", "none", "truncate"]))}
    kind = draw(st.sampled_from(["causal", "padding", "bidirectional", "custom"]))
    defined = {"custom_def": {"name": "sliding_window", "window": draw(st.integers(1, 8192))}}
    body: dict[str, Any] = {
        "tids": {
            "v": f"{draw(st.integers(0, 9))}.{draw(st.integers(0, 9))}",
            "ids": draw(st.lists(NATURAL, min_size=sum(lengths), max_size=sum(lengths))),
        },
        "mask": {**mask, "type": kind, **(defined if kind == "custom" else {})},
        "pos": {"base": "none", "offset": draw(st.integers(0, 2**62)), "stride": draw(st.integers(1, 2**40))},
    }
    if scope == "partial" or draw(st.booleans()):
        body["x_segments"] = [{"length": length, "meta": draw(META)} for length in lengths]
    more = st.fixed_dictionaries(
        {},
        optional={
            "meta": META,
            "model": WORD,
            "max_tokens": st.integers(1, 1_000_000),
            "temperature": st.floats(0, 2) | st.integers(0, 2),
            "top_p": st.floats(0, 1, exclude_min=True),
            "seed": NATURAL,
            "stop_ids": st.lists(NATURAL, max_size=16),
            "stream": st.booleans(),
            "logprobs": st.integers(0, 20),
            "x_special_tokens": st.sampled_from(["strip", "keep", "refuse"]),
            "response_format": st.sampled_from([{"type": "text"}, FULLEST["response_format"]]),
        },
    )
    return body | draw(more)


@given(requests())
def test_what_is_an_instance_is_taken(body: dict[str, Any]) -> None:
    """Valid by both, and its answer is an answer."""
    assert PLAIN.is_valid(body)
    found = parse_toon(json.dumps(body).encode())
    assert isinstance(found, ToonRequest), found
    for name, told in written(found):
        assert not list(of(name).iter_errors(told)), name


def written(asked: ToonRequest) -> list[tuple[str, object]]:
    """What the proxy's writer makes for a request: the events of a stream, and a plain answer."""
    writer = ToonWriter("toon-1", 1_790_000_000, "small", {"toon": outline(asked)})
    shown = [{"id": 5, "logprob": -0.5, "top": [[5, -0.5]]}]
    first = writer.event(None, 0, {"token_ids": [5], "token_logprobs": shown})
    finish = writer.event(None, 0, {}, finish="stop", choice_extra={"stop_id": 2})
    usage = Usage(len(asked.tids.ids), 1, cache_read=0)
    seal = writer.seal(usage, None, Count(1, 1), wanted=True)
    choice: dict[str, object] = {
        "message": {"token_ids": [5], "token_logprobs": shown},
        "finish_reason": "stop",
        "stop_id": None,
    }
    body = ToonWriter("toon-1", 1_790_000_000, "small", {"toon": outline(asked)}).body(
        [choice], usage, None, Count(1, 1), {}
    )
    lines = (first + finish + seal).decode().split("\n\n")
    told = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert len(told) == 3
    return [*(("event", one) for one in told), ("answer", json.loads(body))]


def test_events_answers_and_errors_have_their_shape() -> None:
    """Right ones are instances; an event that says nothing, an answer without its place and half an error are not."""
    asked = request()
    for one in events(asked, [[1], [2, 3]]):
        assert of("event").is_valid(one)
        assert not of("event").is_valid({**one, "pos": {}})
    empty = {name: value for name, value in events(asked, [[1]])[1].items() if name not in ("finish_reason", "stop_id")}
    assert not of("event").is_valid(empty)
    error = {"type": "invalid_request", "code": "invalid_type", "message": "No.", "param": "/tids", "retryable": False}
    assert of("error").is_valid({"error": error | {"retry_after": None, "upstream": None, "trace_id": "t"}})
    assert not of("error").is_valid({"error": "no"})
