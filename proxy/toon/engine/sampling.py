"""From logits to ids: greedy or by chance, with what the model itself thought of them.

In: logits [rows, vocab] of one step, and what each row asked for. Out: per row an id and its log probabilities, or None
where no id is possible (NaN, or nothing allowed). The chance of a row comes from its seed and the number of the id
alone, so that an answer does not depend on who else is in the batch, nor on whether the row was preempted. Never: keeps
state.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from proxy.toon.engine.job import IdLogprob

#: Ids looked at first for top_p: seldom are more needed, and sorting a whole vocabulary costs 20 times as much.
_FIRST: Final = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """`number`: how many ids of this answer there are. `allowed`: a bool for each id of the vocabulary, or all."""

    temperature: float
    top_p: float
    seed: int
    number: int
    logprobs: int | None
    allowed: Tensor | None


@dataclass(frozen=True, slots=True)
class Chosen:
    id: int
    logprob: IdLogprob | None


def choose(logits: Tensor, asked: Sequence[Asked]) -> list[Chosen | None]:
    """Overwrites `logits` where a row may not choose freely."""
    opinions = _opinions(logits, asked)
    for row, one in enumerate(asked):
        if one.allowed is not None:
            logits[row].masked_fill_(~one.allowed.to(logits.device), -math.inf)
    best, likeliest = logits.max(dim=1)
    ids: list[int] = likeliest.tolist()
    possible = [math.isfinite(value) for value in best.tolist()]
    drawing = [row for row, one in enumerate(asked) if one.temperature > 0 and possible[row]]
    if drawing:
        for row, drawn in zip(
            drawing, _drawn(logits[drawing], best[drawing], [asked[row] for row in drawing]), strict=True
        ):
            ids[row] = drawn
    return [
        Chosen(one, _told(opinions.get(row), asked[row].logprobs, one)) if possible[row] else None
        for row, one in enumerate(ids)
    ]


def uniform(seed: int, number: int) -> float:
    """The chance of the id with this number, in [0, 1): of seed and number alone, on every machine the same."""
    digest = hashlib.blake2b(struct.pack("<QQ", seed, number), digest_size=8).digest()
    return float((int.from_bytes(digest, "little") >> 11) * 2.0**-53)


def _opinions(logits: Tensor, asked: Sequence[Asked]) -> dict[int, Tensor]:
    rows = [row for row, one in enumerate(asked) if one.logprobs is not None]
    return dict(zip(rows, logits[rows].log_softmax(dim=1), strict=True)) if rows else {}


def _told(opinion: Tensor | None, alternatives: int | None, chosen: int) -> IdLogprob | None:
    if opinion is None:
        return None
    values, ids = opinion.topk(min(alternatives or 0, len(opinion)))
    top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return IdLogprob(chosen, opinion[chosen].item(), top)


def _drawn(logits: Tensor, best: Tensor, asked: Sequence[Asked]) -> list[int]:
    """An id for each row: where the sum of weights, in the order of ids or (top_p) of weights, passes the chance."""
    heat = torch.tensor([[one.temperature] for one in asked], device=logits.device, dtype=logits.dtype)
    chance = torch.tensor([[uniform(one.seed, one.number)] for one in asked], device=logits.device, dtype=torch.float64)
    weights = ((logits - best[:, None]) / heat).exp_()
    ids = [0] * len(asked)
    whole = [row for row, one in enumerate(asked) if one.top_p >= 1]
    if whole:
        sums = weights[whole].cumsum(dim=1, dtype=torch.float64)
        for row, drawn in zip(whole, _passed(sums, chance[whole]).tolist(), strict=True):
            ids[row] = drawn
    for row, one in enumerate(asked):
        if one.top_p < 1:
            ids[row] = _of_nucleus(weights[row], one.top_p, chance[row])
    return ids


def _passed(sums: Tensor, chance: Tensor) -> Tensor:
    """The index where each row's sums pass its part of the total; by rounding that can be none: then the last that adds
    anything."""
    total = sums[:, -1:].contiguous()
    last = torch.searchsorted(sums, total)
    return torch.minimum(torch.searchsorted(sums, total * chance, right=True), last)[:, 0]


def _of_nucleus(weights: Tensor, top_p: float, chance: Tensor) -> int:
    """From the fewest likeliest ids whose weights reach `top_p` of all."""
    reach = weights.sum(dtype=torch.float64) * top_p
    values, order = weights.topk(min(_FIRST, len(weights)))
    sums = values.cumsum(dim=0, dtype=torch.float64)
    if sums[-1] < reach:
        values, order = weights.sort(descending=True)
        sums = values.cumsum(dim=0, dtype=torch.float64)
    kept = int(torch.searchsorted(sums, reach.reshape(1)).clamp_(max=len(sums) - 1)) + 1
    sums = sums[:kept]
    return int(order[_passed(sums[None], chance[None])])
