"""One id more for each row: from what the model said to what the caller hears.

In: rows, and the logits that say what follows each. Out: for each row a piece or a failure, and its ids grown. A row
that cannot go on fails alone. Never: looks at slots, or at other rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from proxy.toon.engine.constraint import ConstraintBroken
from proxy.toon.engine.job import Failure, Finish, Piece
from proxy.toon.engine.rows import Row
from proxy.toon.engine.sampling import Asked, Chosen, choose

_NO_NUMBER = Failure("invalid_logits", "What the model said of this request's next id is no number.")


def written(rows: Sequence[Row], logits: Tensor) -> list[Piece | Failure]:
    asked = [_asked(row) for row in rows]
    going = [at for at, one in enumerate(asked) if isinstance(one, Asked)]
    said = logits if len(going) == len(rows) else logits[going]
    choices = choose(said, [one for one in asked if isinstance(one, Asked)]) if going else []
    told: list[Piece | Failure] = [one if isinstance(one, Failure) else _NO_NUMBER for one in asked]
    for at, choice in zip(going, choices, strict=True):
        if choice is not None:
            told[at] = _taken(rows[at], choice)
    return told


def _asked(row: Row) -> Asked | Failure:
    job = row.job
    try:
        allowed = None if job.constraint is None else job.constraint.allowed()
    except ConstraintBroken as error:
        return Failure("constraint_failed", str(error))
    return Asked(job.temperature, job.top_p, job.seed, row.made, job.logprobs, allowed)


def _taken(row: Row, choice: Chosen) -> Piece | Failure:
    job, index, cached = row.job, row.made, row.cached_ids or 0
    logprobs = None if choice.logprob is None else [choice.logprob]
    if choice.id in job.stop_ids:
        return Piece([], index, None, "stop", choice.id, cached)
    finish: Finish | None = None
    if job.constraint is not None:
        try:
            job.constraint.take(choice.id)
        except ConstraintBroken as error:
            return Failure("constraint_failed", str(error))
        finish = "stop" if job.constraint.is_complete else None
    row.ids.append(choice.id)
    if finish is None and row.made >= job.max_tokens:
        finish = "length"
    return Piece([choice.id], index, logprobs, finish, None, cached)
