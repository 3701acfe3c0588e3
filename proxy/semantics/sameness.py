"""Do two answers say the same? Ids and moments differ from one answer to the next, and say nothing.

In: what was seen of an answer. Out: a short hash that is equal for answers which differ in ids and moments alone, so
that one is kept of many (contract E), and a second look at an unchanged vendor changes nothing (contract R1).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

_WORD: Final = re.compile(r"[\w:.-]{8,}", re.ASCII)
_ID_CHARS, _ID_DIGITS = 16, 4
#: Headers that say what went wrong, by their names: `x-amzn-errortype`, `x-ms-error-code`, `x-acme-reason`.
TELLING_HEADER: Final = re.compile(r"(?<![a-z])(err(or|no)?|code|reason|fault|exception|denied)(?![a-z])|error-?type")


def fingerprint(
    vendor: str, status: int | None, phase: str, body: bytes, headers: Iterable[tuple[str, str]] = ()
) -> str:
    """16 hex digits. Of the headers those count that say what went wrong."""
    telling = sorted(f"{name}: {value}\n" for name, value in headers if TELLING_HEADER.search(name))
    told = without_ids("".join(telling) + body.decode("utf-8", "replace"))
    return hashlib.sha256(f"{vendor}\n{status}\n{phase}\n{told}".encode()).hexdigest()[:16]


def without_ids(text: str) -> str:
    """The text with `#` for each long word of letters and digits, and for each long number or moment."""
    return _WORD.sub(_without_id, text)


def _without_id(word: re.Match[str]) -> str:
    text = word[0]
    is_id = len(text) >= _ID_CHARS and sum(character.isdigit() for character in text) >= _ID_DIGITS
    is_moment = not any(character.isalpha() for character in text)
    return "#" if is_id or is_moment else text
