"""What must be known of a model before a request of token ids can be held against it (docs/toon.md).

In and out: values, which the registry fills. Never: torch, or a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PositionBase = Literal["rope", "alibi", "learned"]


@dataclass(frozen=True, slots=True)
class Card:
    """`version` is its tokenizer's, `vocab` its number of ids, `context` the most ids it works on at once, `base` what
    its positions are, `pad` its tokenizer's padding, `special` the ids that a text pipeline alone would write, `window`
    the most ids that a moving window may hold, `eos` the ids that end an answer."""

    version: str
    vocab: int
    context: int
    base: PositionBase
    pad: int | None
    special: frozenset[int]
    window: int
    eos: frozenset[int]
