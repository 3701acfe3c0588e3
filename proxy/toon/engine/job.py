"""What an engine is asked and what it answers: values that cross from the event loop to its thread and back.

In: a plan of the ids and their places, and how to sample. Out: pieces of the answer, in order, or one failure. Never:
anything that another thread may change, but for a ticket's `is_cancelled`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from proxy.toon.engine.constraint import Constraint
    from proxy.toon.model.plan import Plan

Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Job:
    """`stop_ids` are all that end the answer, the model's own end included. `logprobs`: how many alternatives to name
    beside each id, or None. A `constraint` moves on as ids are made: it belongs to one job."""

    plan: Plan
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop_ids: frozenset[int] = frozenset()
    logprobs: int | None = None
    constraint: Constraint | None = None


@dataclass(eq=False, slots=True)
class Ticket:
    """One job at one engine; itself and nothing else is equal to it. Cancelling sets a flag that the engine sees."""

    number: int
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class IdLogprob:
    """The model's own opinion, before temperature, top_p or constraint; `top` are the likeliest, best first."""

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """New ids of one answer; `index` ids came before them. The last piece has a `finish`, and `stop_id` names the id
    that stopped it, which is not among the ids. `cached_ids` of the prompt were not run again."""

    ids: list[int]
    index: int
    logprobs: list[IdLogprob] | None = None
    finish: Finish | None = None
    stop_id: int | None = None
    cached_ids: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """The last thing that is heard of a job whose answer cannot go on. `code`: `engine_failed`, `out_of_memory`,
    `invalid_logits`, `constraint_failed`, `engine_stopped`."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class EngineState:
    """A look at an engine: what it holds now, and what it has done since it started (names that end in `total`).
    `is_alive`: its thread runs, so that it can serve."""

    is_alive: bool
    running: int
    waiting: int
    blocks: int
    free_blocks: int
    cached_blocks: int
    ids_per_second: float
    steps_total: int
    prompt_ids_total: int
    cached_ids_total: int
    completion_ids_total: int
    finished_total: int
    cancelled_total: int
    failed_total: int
    preempted_total: int

    def figures(self) -> dict[str, float]:
        return {name: float(getattr(self, name)) for name in self.__slots__}
