"""JSON text to values and back, and the narrowing of JSON values: the one door through which JSON enters.

`parse_json` takes any bytes and never raises: orjson first; where that refuses, the standard library with replacement
of bad UTF-8, since vendors do send half surrogate pairs (`"\\ud83d"`), raw control characters and integers beyond 64
bits. `encode_json` never raises for a value that `parse_json` gave: what no valid JSON can hold becomes U+FFFD or
null, and so does what is nested deeper than anybody means (`MAX_DEPTH`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import orjson

# orjson reads 1,024 levels and writes 254; the interpreter's stack, of which this takes two frames a level, holds
# 1,000.
MAX_DEPTH = 254
_LEAST_INT, _GREATEST_INT = -(2**63), 2**64 - 1  # what orjson writes
# Digits and points look alike, and so do both letters of exponents.
_DIGITS = bytes.maketrans(b"123456789.E", b"0000000000e")
_LONG_NUMBER, _TINY_NUMBER = b"0" * 17, b"0e-000"


class _Broken:
    """The one value `BROKEN`: these bytes are no JSON."""

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN = _Broken()


def parse_json(data: bytes) -> tuple[object, int]:
    """The value and the number of characters that bad UTF-8 cost; `(BROKEN, n)` if it is no JSON."""
    try:
        return orjson.loads(data), 0
    except orjson.JSONDecodeError:
        return parse_leniently(data)


def parse_leniently(data: bytes) -> tuple[object, int]:
    """What orjson refuses. A lone surrogate stays in the string: its other half may come with the next delta."""
    text = data.decode("utf-8", "replace")
    replaced = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return BROKEN, replaced
    return value, replaced


def parse_request(data: bytes) -> tuple[object, bool]:
    """The value, and whether all of its numbers survive: if not, `encode_json` of it would say other numbers than the
    text does. May be wrong in the safe direction."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return parse_leniently(data)[0], False
    # A double keeps any 15 digits, and underflows at 1e-308. Looking for runs in a translated copy takes as long as
    # parsing; a regular expression would take ten times that, before each request.
    shape = data.translate(_DIGITS)
    return value, not (_LONG_NUMBER in shape or _TINY_NUMBER in shape)


def parse_numbers_as_text(data: bytes) -> object:
    """As `parse_leniently`, for `encode_json` alone: each number is the text that it was, NaN and Infinity too."""
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False, parse_int=_verbatim, parse_float=_verbatim, parse_constant=_verbatim)
    except (ValueError, RecursionError):
        return BROKEN


def _verbatim(number: str) -> orjson.Fragment:
    return orjson.Fragment(number)


def encode_json(value: object) -> bytes:
    """One line of JSON, valid UTF-8, key order kept."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_valid(value, 0))


def whole_text(text: str) -> str:
    """The text with surrogate halves joined where they meet, and U+FFFD for those that have lost their other half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _valid(value: object, depth: int) -> object:
    match value:
        case str():
            return whole_text(value)
        case dict() | list() if depth >= MAX_DEPTH:
            return None
        case dict():
            return {whole_text(str(k)): _valid(v, depth + 1) for k, v in value.items()}
        case list():
            return [_valid(v, depth + 1) for v in value]
        case int() if not _LEAST_INT <= value <= _GREATEST_INT:
            return orjson.Fragment(str(value))
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def as_mapping(value: object) -> Mapping[str, object]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    """The value if it is a string, else ''."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int | None:
    """The value if it is a whole number of something, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def is_empty(value: object) -> bool:
    """Says nothing: null, '', [] or {}."""
    return value is None or value == "" or value == [] or value == {}
