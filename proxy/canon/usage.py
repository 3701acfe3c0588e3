"""Usage in OpenAI's terms (contract W4): prompt includes cached, completion includes reasoning. And our own count."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """A vendor's figures after normalising, in tokens; None where the vendor did not say."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """Our own count by the shared tokenizer, in tokens."""

    input: int = 0
    output: int = 0
