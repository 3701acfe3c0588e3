"""ALiBi: the further away an id stands, the less it counts, for each head by its own slope.

In: positions. Out: what is to be added to the scores. A distance is that of the positions, in both directions alike: an
offset changes nothing, and a stride of 2 doubles it.
"""

from __future__ import annotations

import torch
from torch import Tensor


def slopes(heads: int, bias_max: float) -> Tensor:
    """A geometric row down to 2^-bias_max, MPT's way where the heads are no power of two: of the next power's slopes
    every second one, then the others, as many as there are heads."""
    whole = 1 << (heads - 1).bit_length()
    row = torch.exp2(-torch.arange(1, whole + 1, dtype=torch.float64) * (bias_max / whole))
    return row if whole == heads else torch.cat((row[1::2], row[::2]))[:heads]


def distances(positions: Tensor, key_positions: Tensor, of_heads: Tensor, mask: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, heads, T, S], with minus infinity where `mask` is False. What is seen stays finite, however far away."""
    apart = (positions[:, None, :, None] - key_positions[:, None, None, :]).abs().to(of_heads.dtype)
    bias = (apart * -of_heads[:, None, None]).clamp_min(torch.finfo(dtype).min).to(dtype)
    return bias.masked_fill(~mask, float("-inf"))
