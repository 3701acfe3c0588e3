"""Where a text holds a secret, in whatever letters a vendor writes it back (contract L3, R1).

In: bytes and a secret. Out: the places of it. Found are the secret as it is and backwards, with characters escaped as
JSON, URLs and HTML do, in hex and in base64 wherever it stands in what was encoded (`user:key`), without regard to
capitals; and parts of it where it is made by chance. Pure.
"""

from __future__ import annotations

import base64
import re
from array import array
from collections.abc import Collection, Iterator
from typing import Final

# Of a key that looks like chance a part of this length is as good as a secret; of one made of words it is a word.
_WINDOW: Final = 10
_CHANCE_LENGTH, _CHANCE_DIGITS = 20, 3
# A byte written as `\u0073`, `%73`, `&#115;` or `&#x73;`. JSON inside JSON doubles the backslash.
_ESCAPE: Final = re.compile(
    rb"\\+u00(?P<json>[0-9a-f]{2})|%(?P<url>[0-9a-f]{2})|&#x0*(?P<hex>[0-9a-f]{2});|&#0*(?P<html>\d{2,3});|\\+(?=/)",
    re.IGNORECASE,
)


def places_of(text: bytes, secrets: Collection[str]) -> Iterator[tuple[int, int]]:
    """Start and end of each, which may lie over each other."""
    forms = [form for secret in secrets for form in forms_of(secret)]
    if not forms:
        return
    lower = text.lower()
    for form in forms:
        yield from _all(lower, form)
    if _ESCAPE.search(lower) is not None:
        plain, starts = _unescaped(lower)
        for form in forms:
            for start, end in _all(plain, form):
                yield starts[start], starts[end]


def forms_of(secret: str) -> frozenset[bytes]:
    """The secret as an answer may write it, in small letters, and parts of it where it is made by chance."""
    raw = secret.encode()
    forms = {raw, secret[::-1].encode(), raw.hex().encode(), *_base64(raw)}
    if len(secret) >= _CHANCE_LENGTH and sum(character.isdigit() for character in secret) >= _CHANCE_DIGITS:
        forms |= {raw[start : start + _WINDOW] for start in range(len(raw) - _WINDOW + 1)}
    return frozenset(form.lower() for form in forms if form)


def _base64(raw: bytes) -> Iterator[bytes]:
    """In both alphabets, behind any number of other bytes; without the characters that its neighbours share."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).rstrip(b"=")
        shared = (before + len(raw)) % 3 != 0
        whole = encoded[(0, 2, 3)[before] : -1 if shared else None]
        yield whole
        yield whole.translate(bytes.maketrans(b"+/", b"-_"))


def _unescaped(text: bytes) -> tuple[bytes, array[int]]:
    """The text with its escapes resolved, and for each byte of it, and for its end, where it starts in `text`."""
    plain, starts, at = bytearray(), array("Q"), 0
    for found in _ESCAPE.finditer(text):
        plain += text[at : found.start()]
        starts.extend(range(at, found.start()))
        if (code := _code(found)) is not None:
            plain += bytes((code,)).lower()
            starts.append(found.start())
        at = found.end()
    plain += text[at:]
    starts.extend(range(at, len(text) + 1))
    return bytes(plain), starts


def _code(found: re.Match[bytes]) -> int | None:
    """None for a backslash that only stands before a slash."""
    if found["html"] is not None:
        return min(int(found["html"]), 255)
    digits = found["json"] or found["url"] or found["hex"]
    return int(digits, 16) if digits is not None else None


def _all(text: bytes, part: bytes) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + 1)
