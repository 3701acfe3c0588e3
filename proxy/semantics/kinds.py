"""The kinds of values that a rule file's keys take: regular expressions, statuses, words, paths, slugs.

In: plain YAML values. Out: what the rules need of them, compiled once, or a ValueError with a reason for a person, to
which `rulefile` adds file and line. `Strict` is what its models have in common. Contract clauses R1 and R2.
"""

from __future__ import annotations

import re
from datetime import timedelta, timezone
from re import Pattern
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from proxy.semantics.complaints import shown
from proxy.semantics.paths import SAID, JsonPath, parse_path

_STATUS_FAMILY = re.compile(r"([1-5])xx")
_WORD = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_HEADER = re.compile(r"[a-z][a-z0-9-]*")
_ZONE = re.compile(r"([+-])(0\d|1[0-4]):([0-5]\d)")
_DAY_S = 86_400


def _compile(value: object) -> Pattern[str]:
    """A regular expression, or a list of which any may hold. Each is compiled by itself first, so that a fault is told
    of the one that has it."""
    given = value if isinstance(value, list) else [value]
    expressions = [one for one in given if isinstance(one, str) and one]
    if not given or len(expressions) < len(given):
        raise ValueError("must be a regular expression in quotes, or a list of them")
    for one in expressions:
        try:
            re.compile(one, re.IGNORECASE)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"bad regular expression {shown(one)}: {error}") from error
    whole = "|".join(f"(?:{one})" for one in expressions) if len(expressions) > 1 else expressions[0]
    try:
        return re.compile(whole, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:  # flags such as (?s), or one group's name in two of them
        raise ValueError(f"as a list, these do not go together: {error}") from error


def _statuses(value: object) -> tuple[range, ...]:
    """429, [500, 502], "5xx", "any"."""
    ranges = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, int) and not isinstance(item, bool) and 100 <= item <= 599:
            ranges.append(range(item, item + 1))
        elif isinstance(item, str) and (family := _STATUS_FAMILY.fullmatch(item)):
            first = int(family.group(1)) * 100
            ranges.append(range(first, first + 100))
        elif item == "any":
            ranges.append(range(0, 1000))
        else:
            raise ValueError(f"{shown(item)} is not a status: write 429, [500, 502], '5xx' or any{_meant(item)}")
    if not ranges:
        raise ValueError("an empty list never holds")
    return tuple(ranges)


def _meant(item: object) -> str:
    """The status that a word was probably meant to be."""
    text = str(item)
    if re.fullmatch(r"[1-5]\d\d", text):
        return f"; did you mean {text}, without quotes?"
    return f"; did you mean '{text[0]}xx'?" if re.fullmatch(r"[1-5]\W*[xX*]\w*", text) else ""


def as_text(value: object) -> str:
    """How `json:` compares: as text and without case, so that 429 and "429" are one, and null, true are words."""
    if value is None:
        return "null"
    return str(value).lower()


def _words(value: object) -> frozenset[str]:
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        raise ValueError("must be a value or a list of values")
    if not items:
        raise ValueError("an empty list never holds")
    return frozenset(as_text(item) for item in items)


def _path(value: object) -> JsonPath:
    return parse_path(value if isinstance(value, str) else str(value))


def _place(value: object) -> JsonPath:
    path = _path(value)
    if path.text in (*SAID, "$"):
        raise ValueError(f"{path.text} is no place: write a path such as x_acme.usage or choices[0].usage")
    return path


def _one_place(value: object) -> JsonPath:
    path = _place(value)
    if None in path.steps:
        raise ValueError(f"{path.text} may stand for several places: write one, such as billed.input_tokens")
    return path


def listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _slug(value: object) -> object:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a word of small letters, digits, _ . and -")
    return value


def _field_name(value: object) -> object:
    if value is not False and not (isinstance(value, str) and value):
        raise ValueError(f"{shown(value)} must be this vendor's name of the field, or false where it takes none")
    return value


def _time_zone(value: object) -> timezone:
    """`'+08:00'`, ahead of UTC."""
    found = _ZONE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{shown(value)} is no time zone: write how far ahead of UTC it is, in quotes: '+08:00'")
    ahead = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return timezone(-ahead if found[1] == "-" else ahead)


def _header_name(value: object) -> object:
    if not isinstance(value, str) or not _HEADER.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a header's name in small letters, such as api-key")
    return value


Regex = Annotated[Any, BeforeValidator(_compile)]
Statuses = Annotated[Any, BeforeValidator(_statuses)]
Words = Annotated[Any, BeforeValidator(_words)]
Path = Annotated[Any, BeforeValidator(_path)]
Places = Annotated[list[Annotated[Any, BeforeValidator(_place)]], BeforeValidator(listed)]
OnePlace = Annotated[Any, BeforeValidator(_one_place)]
Slug = Annotated[str, BeforeValidator(_slug)]
FieldName = Annotated[Any, BeforeValidator(_field_name)]
TimeZone = Annotated[Any, BeforeValidator(_time_zone)]
HeaderName = Annotated[str, BeforeValidator(_header_name)]
Texts = Annotated[list[str], BeforeValidator(listed)]
FinishWords = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(listed)]
Seconds = Annotated[float, Field(ge=0, le=_DAY_S, allow_inf_nan=False)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
