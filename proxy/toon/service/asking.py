"""From a TOON request to a job of an engine: planned and, where a schema binds it, compiled; off the event loop.

In: a request that `parse_toon` let through, and the model that serves it. Out: a `Job`, or the caller's mistake. Used
by both routes: a chat is a request whose ids its template made.
"""

from __future__ import annotations

import random

from msgspec import UNSET

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import ResponseFormat, ToonRequest
from proxy.toon.engine.constraint import Constraint, UnenforceableSchema
from proxy.toon.engine.job import Job
from proxy.toon.model.plan import plan
from proxy.toon.service.models import ServedModel


def make_job(request: ToonRequest, model: ServedModel) -> Job | BadRequest:
    """Work of a millisecond or many: call it in a thread."""
    planned = plan(request, model.card, model.tokenizer.texts)
    if isinstance(planned, BadRequest):
        return planned
    constraint: Constraint | None = None
    if request.response_format is not UNSET:
        try:
            constraint = _constraint(request.response_format, model)
        except UnenforceableSchema as error:
            message = f"The schema cannot be enforced: {error}"
            return BadRequest("unsupported_schema", message, "/response_format/json_schema/schema")
    return Job(
        plan=planned,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        seed=random.getrandbits(63) if request.seed is UNSET else request.seed,
        stop_ids=frozenset(request.stop_ids) | model.card.eos,
        logprobs=None if request.logprobs is UNSET else request.logprobs,
        constraint=constraint,
    )


def _constraint(asked: ResponseFormat, model: ServedModel) -> Constraint | None:
    if asked.type == "text":
        return None
    schema: object = {"type": "object"}
    if asked.json_schema is not UNSET and asked.type == "json_schema":
        schema = asked.json_schema["schema"]
    return model.grammar.constraint(schema)
