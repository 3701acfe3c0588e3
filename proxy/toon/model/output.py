"""From what the last layer gives to logits, for the ids that are wanted alone: a vocabulary is wide.

In: [B, T, hidden]. Out: [B, vocab] or [B, T, vocab], single precision, or double where the model is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear


@dataclass(frozen=True, slots=True)
class Output:
    head: Tensor

    def of(self, x: Tensor, wanted: Tensor | None, norm: Callable[[Tensor], Tensor]) -> Tensor:
        if wanted is not None:
            x = x[:, 0] if x.shape[1] == 1 else x[torch.arange(len(x), device=x.device), wanted]
        logits = linear(norm(x), self.head)
        return logits if logits.dtype == torch.float64 else logits.float()
