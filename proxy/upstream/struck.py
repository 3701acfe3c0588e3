"""What a vendor sent, with our key struck out of it: for the ledger's row, where vendors' words stand verbatim (L3)."""

from __future__ import annotations

from typing import Final

STRUCK: Final = "***"


def struck(value: object, secret: str) -> object:
    """The same JSON value or JSON text without the secret."""
    match value:
        case str():
            return struck_text(value, secret)
        case bytes():
            return value.replace(secret.encode(), STRUCK.encode())
        case dict():
            return {str(struck(name, secret)): struck(inner, secret) for name, inner in value.items()}
        case list():
            return [struck(inner, secret) for inner in value]
        case _:
            return value


def struck_text(text: str | None, secret: str) -> str | None:
    return text.replace(secret, STRUCK) if text is not None else None
