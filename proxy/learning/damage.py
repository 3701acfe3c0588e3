"""Bodies that no vendor should take: a request broken in one way each (contract R1).

In: a body as a vendor's family writes it. Out: the bytes to send in its place. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proxy.dialects.payload import encode_json

# Where the conversation stands, by family.
_HOLDERS: Final = ("messages", "Messages", "contents", "input", "prompt")


def _holder(body: Mapping[str, object]) -> str:
    return next(name for name in _HOLDERS if name in body)


def cut_short(body: dict[str, object]) -> bytes:
    text = encode_json(body).decode()
    return text[: len(text) // 2].encode()  # whole letters: it is the JSON that is broken


def with_a_comma_too_many(body: dict[str, object]) -> bytes:
    return encode_json(body)[:-1] + b",}"


def words(body: dict[str, object]) -> bytes:
    return "این JSON نیست".encode()


def nothing(body: dict[str, object]) -> bytes:
    return b"{}"


def without_messages(body: dict[str, object]) -> bytes:
    return encode_json({name: value for name, value in body.items() if name != _holder(body)})


def number_for_messages(body: dict[str, object]) -> bytes:
    return encode_json({**body, _holder(body): 42})


def true_for_messages(body: dict[str, object]) -> bytes:
    return encode_json({**body, _holder(body): True})


def words_for_messages(body: dict[str, object]) -> bytes:
    return encode_json({**body, _holder(body): ["سلام", 7]})
