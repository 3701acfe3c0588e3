"""A decoder small enough to be read, in double precision, and answers worked out the slow way to hold an engine to.

In: a seed, jobs. Out: logits, the ids of an answer. The slow way runs everything again for each id, with the whole mask
and no keys or values kept, so it shares nothing with an engine but the decoder.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from proxy.toon.engine.core import Core, Told
from proxy.toon.engine.job import Failure, Job, Piece, Ticket
from proxy.toon.engine.rows import Row
from proxy.toon.engine.sampling import Asked, choose
from proxy.toon.engine.scheduler import Limits
from proxy.toon.model.masks import Sight
from proxy.toon.model.plan import Plan
from proxy.toon.model.step import Decoder, KeyValues, Shape, Step

VOCAB = 97


class ToyDecoder:
    """Two layers of attention with rotary positions, two query heads for each of two heads of keys."""

    def __init__(self, seed: int = 0, context: int = 2048, vocab: int = VOCAB) -> None:
        made = torch.Generator().manual_seed(seed)
        self.shape = Shape(layers=2, kv_heads=2, head_dim=8, vocab=vocab, context=context, base="rope")
        self.device, self.dtype = torch.device("cpu"), torch.float64
        self.calls: list[tuple[int, int]] = []
        self.error: Exception | None = None
        self.poison: int | None = None
        self._embedding = _drawn(made, vocab, 32)
        self._layers = [
            (_drawn(made, 32, 64) / 6, _drawn(made, 32, 32) / 3, _drawn(made, 32, 32) / 3) for _ in range(2)
        ]
        self._head = _drawn(made, 32, vocab)

    def run(self, step: Step, kv: KeyValues) -> Tensor:
        """`error` is raised once; a row whose last id is `poison` gets no numbers."""
        self.calls.append((step.ids.shape[0], step.ids.shape[1]))
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        hidden = self._embedding[step.ids]
        if self.poison is not None:
            hidden[step.ids == self.poison] = math.nan
        for at, (first, second, third) in enumerate(self._layers):
            hidden = hidden + self._attend(at, _normal(hidden) @ first, step, kv) @ second
            hidden = hidden + torch.tanh(_normal(hidden) @ third)
        if step.wanted is None:
            return _normal(hidden) @ self._head
        return _normal(hidden[torch.arange(len(hidden)), step.wanted]) @ self._head

    def _attend(self, layer: int, mixed: Tensor, step: Step, kv: KeyValues) -> Tensor:
        rows, new = step.ids.shape
        query, key, value = torch.split(mixed, [32, 16, 16], dim=-1)
        query = _turned(query.view(rows, new, 4, 8), step.positions).transpose(1, 2)
        key = _turned(key.view(rows, new, 2, 8), step.positions).transpose(1, 2)
        keys, values = kv.append(layer, key, value.view(rows, new, 2, 8).transpose(1, 2))
        scores = query @ keys.repeat_interleave(2, dim=1).transpose(2, 3)
        if step.mask is not None:
            assert step.mask.any(-1).all(), "every row of a mask sees something"
            scores = scores.masked_fill(~step.mask, -math.inf)
        elif new > 1:
            assert keys.shape[2] == new
            scores = scores.masked_fill(~torch.ones(new, new, dtype=torch.bool).tril(), -math.inf)
        seen = scores.softmax(-1) @ values.repeat_interleave(2, dim=1)
        return seen.transpose(1, 2).reshape(rows, new, 32)


def _drawn(made: torch.Generator, rows: int, columns: int) -> Tensor:
    return torch.randn((rows, columns), generator=made, dtype=torch.float64)


def _normal(hidden: Tensor) -> Tensor:
    return hidden * hidden.square().sum(-1, keepdim=True).rsqrt() * 4


def _turned(heads: Tensor, positions: Tensor) -> Tensor:
    angle = positions[..., None, None] / (10 ** torch.arange(4, dtype=torch.float64))
    one, other = heads[..., :4], heads[..., 4:]
    return torch.cat([one * angle.cos() - other * angle.sin(), one * angle.sin() + other * angle.cos()], dim=-1)


@dataclass(frozen=True)
class ToySight:
    """`window` ids up to itself, all of the prompt if `is_open`, nothing of `hidden`."""

    prompt: int
    window: int = 10**9
    is_open: bool = False
    hidden: frozenset[int] = frozenset()

    @property
    def needs_mask(self) -> bool:
        return self != ToySight(self.prompt)

    @property
    def is_prefix_stable(self) -> bool:
        return not self.is_open

    @property
    def unbroken(self) -> int:
        return self.prompt if self.is_open else 0

    @property
    def key(self) -> bytes:
        return repr((self.window, sorted(self.hidden))).encode()

    def rows(self, start: int, stop: int, width: int) -> Tensor:
        at, columns = torch.arange(start, stop)[:, None], torch.arange(width)[None]
        seen = (columns <= at) & (columns > at - self.window)
        if self.is_open:
            seen |= (at < self.prompt) & (columns < self.prompt)
        seen &= torch.tensor([column not in self.hidden for column in range(width)])
        return seen | ((columns == at) & torch.tensor([row in self.hidden for row in range(start, stop)])[:, None])


def toy_job(
    ids: Sequence[int],
    max_tokens: int = 12,
    *,
    sight: ToySight | None = None,
    offset: int = 0,
    stride: int = 1,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
    stop_ids: Iterable[int] = (),
    logprobs: int | None = None,
) -> Job:
    after = offset + stride * len(ids)
    plan = Plan(
        ids=list(ids),
        positions=list(range(offset, after, stride)),
        sight=cast(Sight, sight or ToySight(len(ids))),
        next_position=after,
        stride=stride,
        first_offset=after,
        label_stride=stride,
        truncated=0,
    )
    return Job(plan, max_tokens, temperature, top_p, seed, frozenset(stop_ids), logprobs)


class _Kept:
    """Nothing is kept."""

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k, v


def slowly(decoder: Decoder, job: Job) -> list[int]:
    """The answer's ids, all run again for each."""
    ids, plan, prompt = list(job.plan.ids), job.plan, len(job.plan.ids)
    while len(ids) - prompt < job.max_tokens:
        made = range(plan.next_position, plan.next_position + plan.stride * (len(ids) - prompt), plan.stride)
        step = Step(
            ids=torch.tensor([ids]),
            positions=torch.tensor([[*plan.positions, *made]]),
            mask=plan.sight.rows(0, len(ids), len(ids))[None, None],
            wanted=torch.tensor([len(ids) - 1]),
        )
        asked = Asked(job.temperature, job.top_p, job.seed, len(ids) - prompt, None, None)
        chosen = choose(decoder.run(step, _Kept()), [asked])[0]
        assert chosen is not None
        if chosen.id in job.stop_ids:
            break
        ids.append(chosen.id)
    return ids[prompt:]


def opinion(decoder: Decoder, ids: list[int]) -> Tensor:
    """Log probabilities of what follows these ids, which stand at 0, 1, 2 ..."""
    step = Step(torch.tensor([ids]), torch.arange(len(ids))[None], wanted=torch.tensor([len(ids) - 1]))
    return decoder.run(step, _Kept())[0].log_softmax(-1)


@dataclass
class Heard:
    """What an engine told, by ticket: `deliver` for it. A piece out of order or behind the last is an error."""

    ids: dict[Ticket, list[int]] = field(default_factory=dict)
    pieces: dict[Ticket, list[Piece]] = field(default_factory=dict)
    ends: dict[Ticket, Piece | Failure] = field(default_factory=dict)

    def deliver(self, told: Told) -> None:
        for ticket, item in told:
            assert ticket not in self.ends, "something came behind the end"
            if isinstance(item, Piece):
                ids = self.ids.setdefault(ticket, [])
                assert item.index == len(ids), "pieces follow each other"
                ids += item.ids
                self.pieces.setdefault(ticket, []).append(item)
            if isinstance(item, Failure) or item.finish is not None:
                self.ends[ticket] = item


class Bench:
    """A `Core` that is stepped by hand."""

    def __init__(self, decoder: Decoder, limits: Limits | None = None, *, is_caching: bool = False) -> None:
        self.heard = Heard()
        self.limits = limits or Limits(blocks=4096)
        self.core = Core(decoder, self.heard.deliver, self.limits, is_caching=is_caching)
        self._count = 0

    def ask(self, job: Job) -> Ticket:
        ticket = Ticket(self._count)
        self._count += 1
        self.core.waiting.append(Row(ticket, job))
        return ticket

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.core.step()
            assert self.core.memory.used <= self.limits.blocks, "the budget holds after each step"

    def finish(self) -> None:
        for _ in range(5000):
            if not self.core.has_work:
                return
            self.step()
        raise AssertionError("it never ends")

    def answers(self, jobs: Sequence[Job]) -> list[list[int]]:
        """All asked at once."""
        tickets = [self.ask(job) for job in jobs]
        self.finish()
        return [self.heard.ids[ticket] for ticket in tickets]
