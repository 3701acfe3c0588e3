"""A fault of a rule file in an operator's words: the wrong word, what is allowed, the nearest right one (contract R2).

In: pydantic's or YAML's error and what the rule language knows at that place. Out: the reason, to which its caller adds
file and line. Never: judges whether something is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final

import yaml

_NEAR: Final = 0.5
_SHOWN: Final = 80  # characters of a wrong value
_KINDS: Final = {
    "missing": "is missing",
    "dict_type": "must be a mapping, `key: value`",
    "model_type": "must be a mapping, `key: value`",
    "list_type": "must be a list: `[one, two]`, or a line `- one` for each",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "date_type": "must be a date such as 2026-11-30",
    "invalid_key": "a key must be a word",
}


def shown(value: object) -> str:
    """A wrong value in a message, which is one line of a length that a person reads."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def nearest(word: str, valid: Collection[str]) -> str:
    """The valid word that was probably meant, as the end of a sentence; all of them if there is none."""
    listed = ", ".join(valid)
    if near := get_close_matches(word, list(valid), n=1, cutoff=_NEAR):
        return f"the nearest valid one is {near[0]!r} (of {listed})"
    return f"valid are {listed}"


def unknown_key(key: str, here: Collection[str], elsewhere: Mapping[str, Collection[str]]) -> str:
    """`elsewhere`: the keys of other places by a name for each, since a key may only stand at the wrong depth."""
    if not get_close_matches(key, list(here), n=1, cutoff=_NEAR):
        for place, keys in elsewhere.items():
            if key in keys:
                return f"unknown key; {shown(key)} stands {place}, and here {nearest(key, here)}"
    return f"unknown key; {nearest(key, here)}"


def wrong_value(kind: str, text: str, value: object) -> str:
    """`kind` and `text` are pydantic's."""
    if kind in ("enum", "literal_error"):
        valid = re.findall(r"'([^']+)'", text)
        return f"{shown(value)} is not known; {nearest(str(value), valid)}"
    if kind == "string_type":
        return f"{shown(value)} must be text" + ("" if isinstance(value, dict | list) else ": put it in quotes")
    return _KINDS.get(kind, text.removeprefix("Value error, "))


def broken_yaml(error: yaml.MarkedYAMLError, text: str) -> str:
    """The reader's own words, and what an operator most likely did."""
    problem, mark = str(error.problem or error.context), error.problem_mark
    begun = error.context_mark
    letter = text[mark.index] if mark is not None and mark.index < len(text) else ""
    if begun is not None and mark is not None and begun.line != mark.line and "flow" in (error.context or ""):
        return f"is not YAML: a bracket or a quote is opened on line {begun.line + 1} and not closed ({problem})"
    hint = _hint(problem, letter, error.context or "")
    return f"is not YAML: {hint} ({problem})" if hint else f"is not YAML: {problem}"


def _hint(problem: str, letter: str, context: str) -> str:
    if "tab character" in problem or letter == "\t":
        return "indent with blanks, not with a tab"
    if "cannot start any token" in problem:
        return f"a text that begins with {letter} must stand in quotes"
    if "while scanning an alias" in context or "undefined alias" in problem:
        return "a text that begins with * must stand in quotes"
    if "mapping values are not allowed" in problem:
        return "a text that has `: ` in it must stand in quotes, and a key at its own depth"
    if "could not find expected ':'" in problem:
        return "a key needs `: ` behind it, with the blank"
    if "unknown escape" in problem:
        return "write regular expressions in single quotes, where a backslash is a backslash"
    if "did not find expected key" in problem or "'-' indicator" in problem:
        return "this line is not indented as its neighbours are"
    return "a bracket or a quote is not closed" if "expected ','" in problem else ""
