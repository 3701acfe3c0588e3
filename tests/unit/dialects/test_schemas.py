"""Schemas for vendors that hold answers to them: what strict mode takes, and what Claude takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from proxy.dialects.payload import as_mapping, encode_json
from proxy.dialects.schemas import Closer, is_strict, may_be_strict
from tests.support.any_json import payloads

STRING = {"type": "string"}
WORDS = ("type", "properties", "$defs", "$ref", "items", "anyOf", "required", "additionalProperties", "format", "enum")


def closed(schema: dict[str, Any]) -> tuple[object, bool]:
    closer = Closer()
    return closer.close(schema), closer.is_changed


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {"a": STRING}, "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": False}, True),
        ({"$defs": {"x": {"type": "object"}}, "type": "string"}, False),
        ({"type": "array", "items": {"type": "object"}}, False),
        ({"anyOf": [STRING, {"type": "object", "properties": {}}]}, False),
        ({}, True),
    ],
)
def test_strict_means_closed_with_all_required(schema: dict[str, Any], strict: bool) -> None:
    """At every depth. A client of OpenAI's own grammars is believed."""
    assert is_strict(schema) is strict
    assert may_be_strict(schema, "messages") is strict
    assert may_be_strict(schema, "chat") is True


def test_what_cannot_be_asked_for_is_put_into_words() -> None:
    """Bounds, patterns, formats and lengths; older words become the newer ones."""
    schema = {
        "$schema": "https://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "alter": {"type": "integer", "minimum": 0, "description": "سن"},
            "ref": {"$ref": "#/definitions/Ort"},
            "wann": {"type": ["string", "null"], "format": "date", "pattern": "^2"},
            "liste": {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3},
            "eins": {"oneOf": [STRING, {"type": "null"}], "default": None},
            "mail": {"type": "string", "format": "phone"},
        },
        "required": ["alter"],
        "definitions": {"Ort": {"type": "object", "properties": {"名": STRING}}},
    }

    assert closed(schema) == (
        {
            "type": "object",
            "properties": {
                "alter": {"type": "integer", "description": "سن\n\n{minimum: 0}"},
                "ref": {"$ref": "#/$defs/Ort"},
                "wann": {"type": ["string", "null"], "format": "date", "description": '{pattern: "^2"}'},
                "liste": {"type": "array", "items": STRING, "minItems": 1, "description": "{maxItems: 3}"},
                "eins": {"anyOf": [STRING, {"type": "null"}], "default": None},
                "mail": {"type": "string", "description": '{format: "phone"}'},
            },
            "required": ["alter"],
            "$defs": {"Ort": {"type": "object", "properties": {"名": STRING}, "additionalProperties": False}},
            "additionalProperties": False,
        },
        True,
    )


def test_what_is_closed_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": STRING}, "required": [], "additionalProperties": False}
    assert closed(schema) == (schema, False)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": True}}},
        {"type": "object", "patternProperties": {"^x": STRING}},
        {"type": "object", "properties": {"a": {"description": "anything"}}},
        {"$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"},
        {"type": "object", "properties": {"self": {"$ref": "#"}}},
    ],
    ids=["nothing", "free keys", "free keys within", "keys by pattern", "no type", "a circle", "the whole"],
)
def test_what_has_no_closed_form_is_told(schema: dict[str, Any]) -> None:
    """Free keys, circles, and places that say nothing."""
    assert closed(schema)[0] is None


def test_definitions_may_be_used_often() -> None:
    """Twice is no circle."""
    node = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/S"}, "b": {"$ref": "#/$defs/S"}},
        "$defs": {"S": STRING},
    }
    assert closed(node)[0] is not None


@given(schema=payloads(WORDS))
def test_any_schema_is_read(schema: object) -> None:
    """Whatever a client calls a schema; and what comes out can be written."""
    told = dict(as_mapping(schema)) | {"properties": schema, "required": schema, "type": schema, "$defs": schema}
    for one in (dict(as_mapping(schema)), told, {"type": "object", "items": schema, "format": schema, "anyOf": schema}):
        is_strict(one)
        encode_json(Closer().close(one))


def test_the_depth_is_bounded() -> None:
    deep: dict[str, Any] = STRING
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    assert closed(deep)[0] is None
    assert is_strict(deep) is False
