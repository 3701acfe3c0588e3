"""What a decoder is asked and what it answers: one call over new ids of several rows, each at its own place.

In: ids, positions, and who may be seen, as tensors. Out: logits. A decoder holds weights and nothing of a request; keys
and values of ids that were run before are kept by whoever calls. Never: a choice of ids, or a shift of positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from proxy.toon.card import PositionBase


class KeyValues(Protocol):
    """The keys and values of the rows of one call, layer by layer."""

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Takes those of the new ids, [B, kv_heads, T, head_dim], and returns all that the rows have, with S for T."""


@dataclass(slots=True)
class Step:
    """One call. `ids` and `positions` are [B, T] int64.

    `mask` is [B, 1, T, S] bool, True where an id may be seen; every row of it must see something. None: plain causal
    among the new ids, which then are all there are (S == T), or, for one new id (T == 1), everything is seen.
    `key_positions`, [B, S] int64, is where each of the seen stands: ALiBi alone looks at it, and takes `positions` for
    it where it is None and S == T. `wanted`, [B] int64, is the index in T whose logits are wanted; None for all.
    """

    ids: Tensor
    positions: Tensor
    mask: Tensor | None = None
    key_positions: Tensor | None = None
    wanted: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """`context`: the most ids at once, and for `learned` the number of positions."""

    layers: int
    kv_heads: int
    head_dim: int
    vocab: int
    context: int
    base: PositionBase


class Decoder(Protocol):
    @property
    def shape(self) -> Shape: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def dtype(self) -> torch.dtype: ...

    def run(self, step: Step, kv: KeyValues) -> Tensor:
        """Logits, [B, vocab] where some are wanted and [B, T, vocab] else; float32, or float64 where the model is."""
