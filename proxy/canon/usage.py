"""Our own count of a request and its answer (contract L2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """Our own count by the shared tokenizer, in tokens."""

    input: int = 0
    output: int = 0
