"""What is wrong with a field, in words that a person can act on: msgspec's verdict, told anew.

In: msgspec's message of one field, the JSON that it is about, and what each enumerated field allows. Out: the caller's
mistake with a JSON pointer, which says what is there, what may be, and where. Never: more of the body than a few dozen
characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from proxy.dialects.base import BadRequest

#: How much of a value, or of a name, is quoted.
_MAX_QUOTED: Final = 64
_AT: Final = re.compile(r" - at `\$(.*)`$")
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
_KIND: Final = re.compile(r"Expected `([^`]*)`, got `(\w+)`")
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (>=|<=|>|<) (\S+)")
_LENGTH: Final = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_KINDS: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "`true` or `false`",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_FOUND: Final = {**_KINDS, "float": "a number with a point or an exponent", "bool": "a boolean"}
_BOUNDS: Final = {">=": "{} or more", "<=": "at most {}", ">": "more than {}", "<": "less than {}"}


def bad_field(told: str, body: Mapping[str, object], allowed: Mapping[str, Sequence[str]]) -> BadRequest:
    """`allowed` has the values of enumerated fields, by the end of their pointer."""
    at = _AT.search(told)
    steps = [name or place for name, place in _STEP.findall(at[1])] if at is not None else []
    what = told[: at.start()] if at is not None else told
    pointer = "".join(f"/{escaped(step)}" for step in steps)
    if (missing := re.fullmatch(r"Object missing required field `(\w+)`", what)) is not None:
        return missing_field(f"{pointer}/{missing[1]}")
    if (kind := _KIND.match(what)) is not None:
        wanted, found = _KINDS.get(kind[1], kind[1]), _FOUND.get(kind[2], kind[2])
        hint = ": write it without them" if (kind[1], kind[2]) == ("int", "float") else ""
        return BadRequest("invalid_type", f"`{pointer}` must be {wanted}, not {found}{hint}.", pointer)
    listed = next((values for end, values in allowed.items() if pointer.endswith(end)), ())
    return BadRequest("invalid_value", f"`{pointer}` {_limit(what, listed)}; it is {_there(body, steps)}.", pointer)


def missing_field(pointer: str) -> BadRequest:
    return BadRequest("missing_field", f"`{pointer}` is required, and is not there.", pointer)


def unknown_field(pointer: str, name: str, known: Sequence[str]) -> BadRequest:
    where = f"of `{pointer}`" if pointer else "of a request"
    told = (
        f"`{_cut(name)}` is no field {where}; known are {', '.join(known)}, and any name that begins with `x_` or `x-`."
    )
    return BadRequest("unknown_field", told, f"{pointer}/{escaped(_cut(name))}")


def no_json(body: bytes, reason: str) -> BadRequest:
    if not body.strip():
        told = "The request body is empty: send a JSON object."
    elif body.startswith(b"\xef\xbb\xbf"):
        told = "The request body begins with a byte order mark: send plain UTF-8 without it."
    else:
        told = f"The request body is not valid JSON: {reason}."
    return BadRequest("invalid_json", told, "")


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _limit(what: str, listed: Sequence[str]) -> str:
    """What a value must be, whose kind is right."""
    if listed:
        return f"must be one of {', '.join(listed)}"
    if (bound := _BOUND.match(what)) is not None:
        return f"must be {_BOUNDS[bound[1]].format(_number(bound[2]))}"
    if (length := _LENGTH.match(what)) is not None:
        unit = "characters" if length[1] == "str" else "elements"
        return f"must have {_BOUNDS[length[2]].format(length[3])} {unit}"
    if "matching regex" in what:
        return "must be a digit, a dot and a digit, as in `2.1`"
    return f"is refused ({what})"


def _number(text: str) -> str:
    return text.removesuffix(".0")


def _there(body: object, steps: Sequence[str]) -> str:
    for step in steps:
        if isinstance(body, list):
            body = body[int(step)]
        elif isinstance(body, dict):
            body = body[step]
    if isinstance(body, list | dict):
        return f"of {len(body)} elements"
    return f"`{_cut(json.dumps(body, ensure_ascii=False))}`"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
