"""Plain values as the YAML that a person would write into a rule file (contract R3).

In: text, numbers, truth, days, lists and mappings. Out: text for a flow (`{status: 429}`), or lines that open up level
by level where one line would be too long. Regular expressions stand in single quotes, plain words in none. What is
written reads back as the same value. Never: a line break or a control character that is not escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Final

import yaml

WIDTH: Final = 120
#: Under these keys stand regular expressions.
_REGEX_KEYS: Final = frozenset({"match", "header", "body", "comment", "heartbeats"})
_PLAIN: Final = re.compile(r"[^\W\d][\w./$'-]*( [\w./$'-]+)*\.?|\$[a-z]+")
# What YAML takes in single quotes: all that is printable and breaks no line. (A no-break space is worth seeing.)
_NEEDS_ESCAPE: Final = re.compile("[^\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def flow(value: object, *, quoted: bool = False) -> str:
    """On one line, as it may stand inside `{}` and `[]` too. `quoted`: texts are regular expressions."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case str():
            return _text(str(value), quoted)
        case int() | float():
            return str(yaml.safe_dump(value)).split("\n", 1)[0]
        case date():
            return value.isoformat()
        case Mapping():
            inner = (f"{flow(str(key))}: {flow(one, quoted=quoted or is_regex_key(key))}" for key, one in value.items())
            return "{" + ", ".join(inner) + "}"
        case list() | tuple():
            return "[" + ", ".join(flow(one, quoted=quoted) for one in value) + "]"
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a rule file")


def entry(key: str, value: object, column: int, *, quoted: bool = False) -> list[str]:
    """The lines of `key: value`, of which the first begins at `column`: one if it fits `WIDTH`."""
    quoted = quoted or is_regex_key(key)
    inside = " " * (column + 2)
    line = " " * column + f"{flow(key)}: {flow(value, quoted=quoted)}"
    if len(line) <= WIDTH or not isinstance(value, Mapping | list | tuple) or not value:
        return [line]
    lines = [" " * column + f"{flow(key)}:"]
    if isinstance(value, Mapping):
        for name, one in value.items():
            lines += entry(str(name), one, column + 2, quoted=quoted)
    else:
        lines += [f"{inside}- {flow(one, quoted=quoted)}" for one in value]
    return lines


def comment(text: str, column: int) -> list[str]:
    """The lines of a comment; whatever the text holds, it stays one."""
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(" " * column + f"# {word}")
    return lines


def is_regex_key(key: object) -> bool:
    """Do regular expressions stand under this key?"""
    return key in _REGEX_KEYS


def _text(text: str, quoted: bool) -> str:
    if not quoted and _PLAIN.fullmatch(text) and _NEEDS_ESCAPE.search(text) is None and _stays_text(text):
        return text
    if _NEEDS_ESCAPE.search(text) is None:
        return "'" + text.replace("'", "''") + "'"
    return '"' + _NEEDS_ESCAPE.sub(_escape, text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _stays_text(text: str) -> bool:
    """`null`, `yes` and `1e3` are texts only in quotes."""
    return bool(yaml.safe_load(text) == text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
