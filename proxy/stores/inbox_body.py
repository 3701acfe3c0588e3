"""An answer's body, made fit to be kept: no key, no address, nothing of the request or of an answer's text.

In: the bytes of a body, event or line. Out: the same shape with each text scrubbed
by itself (`semantics/scrub`), and `[…]` in place of what a vendor quotes of the request: validators give the messages
back, under names such as `input`. It never raises. Contract clauses E and L3.
"""

from __future__ import annotations

import re
from typing import Final

from proxy.dialects.payload import BROKEN, encode_json, parse_json
from proxy.semantics.scrub import scrub

WITHHELD: Final = "[…]"
_MAX_TEXT: Final = 2000
_MAX_NAME: Final = 100
_MAX_DEPTH: Final = 24
# Under these names stands what was asked or answered, never what went wrong.
_NOT_KEPT: Final = frozenset(
    ["messages", "input", "inputs", "input_value", "prompt", "content", "reasoning", "reasoning_content", "arguments"]
)
# The same where it stands in text that no longer parses (cut off, or a Python repr): there its end cannot be told.
_QUOTED: Final = re.compile(rf"""(["']|\\")(?:{"|".join(sorted(_NOT_KEPT))})\1\s*:(?!\s*null).*""", re.S)
_LINE: Final = re.compile(r"((?:data|error)\s*:\s*)?([\[{].*)", re.S)


def clean_body(body: bytes, limit: int) -> bytes:
    """At most `limit` bytes, and whole characters."""
    cleaned = _clean_json(body)
    if cleaned is None:
        lines = [_clean_line(line) for line in body[:limit].decode("utf-8", "replace").split("\n")]
        # Once more over line ends: JSON that was cut off, or laid out over several lines.
        cleaned = _withhold("\n".join(lines)).encode()
    return cleaned[:limit].decode("utf-8", "ignore").encode()


def _clean_line(line: str) -> str:
    found = _LINE.fullmatch(line.strip())
    if found is not None and (cleaned := _clean_json(found[2].encode())) is not None:
        return (found[1] or "") + cleaned.decode()
    line = _withhold(line)
    return " ".join(scrub(line[start : start + _MAX_TEXT], _MAX_TEXT) for start in range(0, len(line), _MAX_TEXT))


def _clean_json(data: bytes) -> bytes | None:
    value, _ = parse_json(data)
    return None if value is BROKEN else encode_json(_clean(value, 0))


def _clean(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return WITHHELD
    match value:
        case str():
            return scrub(_withhold(value[:_MAX_TEXT]), _MAX_TEXT)
        case dict():
            return {scrub(name, _MAX_NAME): _clean_field(name, inner, depth) for name, inner in value.items()}
        case list():
            return [_clean(inner, depth + 1) for inner in value]
        case _:
            return value


def _clean_field(name: str, value: object, depth: int) -> object:
    if name.lower() in _NOT_KEPT and value not in (None, "", [], {}):
        return WITHHELD
    return _clean(value, depth + 1)


def _withhold(text: str) -> str:
    return _QUOTED.sub(lambda found: found[0][: found[0].index(":") + 1] + f" {WITHHELD}", text, count=1)
