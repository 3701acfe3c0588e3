"""The weights of a model by the names that they have in a checkpoint, each taken once.

In: tensors by name. Out: the same, as a decoder wants them. What a family's decoder does not take, it does not
understand: a model with anything left over is refused rather than run without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from proxy.errors import SluiceError


class UnsupportedModel(SluiceError):
    """A model that would be run wrongly, or not at all, and why."""


class Linear(NamedTuple):
    """`weight` is [out, in]."""

    weight: Tensor
    bias: Tensor | None


class Norm(NamedTuple):
    weight: Tensor
    bias: Tensor | None


#: Linears over the same input. Joined, they are one; apart, their outputs are.
Parts = tuple[Linear, ...]


class Weights:
    """`device` is where they go as they are taken. `join`: those over one input are copied into one, which runs a few
    percent faster and takes fewer calls; not joined, they stay those of the model, and what trains it is seen."""

    def __init__(self, named: Mapping[str, Tensor], device: torch.device | None = None, *, join: bool = False) -> None:
        self._named, self._device, self._join = dict(named), device, join

    def take(self, name: str) -> Tensor:
        if (tensor := self.find(name)) is None:
            raise UnsupportedModel(f"the weights hold no `{name}`")
        return tensor

    def find(self, name: str) -> Tensor | None:
        tensor = self._named.pop(name, None)
        if tensor is None:
            return None
        if not tensor.is_floating_point():
            raise UnsupportedModel(f"`{name}` is {tensor.dtype}: packed weights are not taken")
        return tensor if self._device is None else tensor.detach().to(self._device)

    def linear(self, name: str) -> Linear:
        return Linear(self.take(f"{name}.weight"), self.find(f"{name}.bias"))

    def turned(self, name: str) -> Linear:
        """One whose weight the checkpoint has as [in, out]."""
        return Linear(self.take(f"{name}.weight").t(), self.find(f"{name}.bias"))

    def parts(self, *names: str) -> Parts:
        apart = tuple(self.linear(name) for name in names)
        return (_joined(apart),) if self._join else apart

    def norm(self, name: str) -> Norm:
        return Norm(self.take(f"{name}.weight"), self.find(f"{name}.bias"))

    def ends(self, embedding: str, head: str) -> tuple[Tensor, Tensor]:
        """The weight that ids are looked up in and the one that gives logits; one and the same where they are tied."""
        own = self._named.get(head)
        if own is not None and own is not self._named.get(embedding):
            return self.take(embedding), self.take(head)
        self._named.pop(head, None)
        tied = self.take(embedding)
        return tied, tied

    def finish(self) -> None:
        """Nothing may be left."""
        if self._named:
            names = ", ".join(sorted(self._named)[:3])
            raise UnsupportedModel(f"{len(self._named)} weights are not understood, among them {names}")


def _joined(parts: Sequence[Linear]) -> Linear:
    weight = torch.cat([part.weight for part in parts])
    if all(part.bias is None for part in parts):
        return Linear(weight, None)
    biases = [part.weight.new_zeros(len(part.weight)) if part.bias is None else part.bias for part in parts]
    return Linear(weight, torch.cat(biases))


def project(x: Tensor, parts: Parts) -> Tensor:
    """The outputs side by side."""
    if len(parts) == 1:
        return functional.linear(x, parts[0].weight, parts[0].bias)
    return torch.cat([functional.linear(x, part.weight, part.bias) for part in parts], -1)
