"""What a vendor sent, with our keys struck out of it to the letter, whatever they look like (contract Q2, L3).

In: a JSON value or a text, and the secrets that were in use. Out: the same without them. A vendor may throw a key back
wherever it may write: in a refusal, a model's name, a usage object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

STRUCK: Final = "***"


def struck(value: object, secrets: Iterable[str]) -> object:
    """The same JSON value or JSON text without the secrets."""
    match value:
        case str():
            return struck_text(value, secrets)
        case bytes():
            for secret in secrets:
                value = value.replace(secret.encode(), STRUCK.encode())
            return value
        case dict():
            return {str(struck(name, secrets)): struck(inner, secrets) for name, inner in value.items()}
        case list():
            return [struck(inner, secrets) for inner in value]
        case _:
            return value


def struck_text(text: str | None, secrets: Iterable[str]) -> str | None:
    if text is None:
        return None
    for secret in secrets:
        text = text.replace(secret, STRUCK)
    return text
