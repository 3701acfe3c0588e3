"""Rotary positions: an id's queries and keys are turned by its position.

In: a model's configuration, then integers. Out: cosines and sines. Angles are double precision until their cosine is
taken: at position 10^7 single precision would turn a neighbour's angle by up to a radian. Never: a position that was
not given, so that offsets and strides mean what they say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from proxy.toon.model.weights import UnsupportedModel

Turns = tuple[Tensor, Tensor]


def frequencies(parameters: Mapping[str, object], head_dim: int) -> Tensor:
    """[head_dim / 2], in radians by position, from `rope_parameters`."""
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    if parameters.get("partial_rotary_factor", 1.0) != 1.0:
        raise UnsupportedModel("a rotary embedding of a part of each head is not supported")
    base = _number(parameters, "rope_theta")
    plain = base ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    if kind == "default":
        return plain
    if kind == "linear":
        return plain / _number(parameters, "factor")
    if kind == "llama3":
        return _llama3(plain, parameters)
    raise UnsupportedModel(f"rotary positions of the type `{kind}` are not supported: default, linear and llama3 are")


def _llama3(plain: Tensor, parameters: Mapping[str, object]) -> Tensor:
    """Llama 3.1: long waves are stretched by `factor`, short ones stay, and those between go over smoothly."""
    factor, low, high, trained = (
        _number(parameters, name)
        for name in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    )
    if high <= low:
        raise UnsupportedModel(f"the rotary positions' `high_freq_factor` {high} is not above `low_freq_factor` {low}")
    turns = trained * plain / (2 * math.pi)  # of each wave, in the context of the training
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * (kept + (1 - kept) / factor)


def _number(parameters: Mapping[str, object], name: str) -> float:
    value = parameters.get(name)
    if not isinstance(value, int | float) or value <= 0:
        raise UnsupportedModel(f"the rotary positions' `{name}` is {value!r}")
    return float(value)


def turns_of(positions: Tensor, by_position: Tensor, dtype: torch.dtype) -> Turns:
    """For positions [B, T], what `turned` wants: two tensors of [B, T, 1, head_dim]."""
    angles = (positions[..., None].to(torch.float64) * by_position)[:, :, None]
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def turned(x: Tensor, turns: Turns) -> Tensor:
    """[B, T, heads, head_dim]: halves are the two coordinates of a plane, as Hugging Face checkpoints have it. (Of four
    ways this one was the fastest, by a tenth to a half.)"""
    first, second = x.chunk(2, -1)
    return torch.addcmul(x * turns[0], torch.cat((second, first), -1), turns[1])
