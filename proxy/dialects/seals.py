"""Seals over reasoning, carried through grammars that know only one vendor's.

A vendor that reasons wants its own seal back with the next turn (Anthropic's `signature`, Gemini's thought signature,
the Responses API's `encrypted_content`), and refuses another's. So a seal in a foreign grammar is written as
`<format>#<seal>`, and a seal without a format is of the grammar's own vendor.
"""

from __future__ import annotations

import re

ANTHROPIC = "anthropic-claude-v1"
GEMINI = "google-gemini-v1"
RESPONSES = "openai-responses-v1"
BEDROCK = "amazon-bedrock-v1"
_FORMAT = re.compile(r"[a-z0-9-]+-v[0-9]+", re.ASCII)


def mark_seal(seal: str, format: str | None, own: str) -> str:
    """The seal as it stands in a grammar whose own seals are of the format `own`."""
    return seal if format is None or format == own else f"{format}#{seal}"


def read_seal(text: str, own: str) -> tuple[str, str]:
    """The seal and its format."""
    format, mark, seal = text.partition("#")
    return (seal, format) if mark and _FORMAT.fullmatch(format) else (text, own)
