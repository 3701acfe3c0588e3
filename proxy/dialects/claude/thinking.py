"""How much Claude is told to think, and what it then refuses beside it.

In: what was asked, and the situation: the model, the token limit, whether a tool call is forced, whether the
conversation lets it think. Out: the fields `thinking` and `output_config`. Reports what cannot be said.

Older models take a budget of at least 1024 tokens and less than `max_tokens`; with it they refuse a forced tool call,
and a turn of tools whose assistant message does not begin with its own sealed thinking, which is missing wherever
another vendor spoke it. Newer models decide for themselves, up to an effort. (Anthropic's documentation: thinking)
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.canon.request import Reasoning
from proxy.dialects.base import Losses
from proxy.dialects.claude.models import Model
from proxy.dialects.effort import budget_of, effort_of

_NAME = "reasoning_effort"
_LEAST_BUDGET = 1024
_UNSAID_BUDGET = 16384
_EFFORTS = {"minimal": "low"}  # where its words are not the vendor's own


@dataclass(frozen=True, slots=True)
class Situation:
    """`form` is how the model is told; `may_begin`: an older model can think in this conversation; `alone`: an effort
    was said in this family's own words, where it switches nothing on."""

    model: Model
    form: str
    max_tokens: int
    is_forced: bool
    may_begin: bool
    alone: bool


def thinking_of(reasoning: Reasoning | None, at: Situation, losses: Losses) -> dict[str, object]:
    """The body's fields about thinking; none where the model's own habit is what was asked."""
    if reasoning is None:
        return _off(at) if at.is_forced else {}
    if effort_of(reasoning) == "none":
        return _switched_off(at, losses)
    if at.is_forced:
        losses.hint(_NAME)
        return _off(at)
    if at.form == "adaptive":
        return _adaptive(reasoning, at, losses)
    if at.form == "budget":
        return _budgeted(reasoning, at, losses)
    losses.hint(_NAME)
    return {}


def _off(at: Situation) -> dict[str, object]:
    """Not to think, said only to models that would think unasked."""
    return {"thinking": {"type": "disabled"}} if at.model.thinks_unasked and not at.model.always_thinks else {}


def _switched_off(at: Situation, losses: Losses) -> dict[str, object]:
    if not at.model.always_thinks:
        return _off(at)
    losses.hint(_NAME)
    return {"output_config": {"effort": "low"}}


def _adaptive(reasoning: Reasoning, at: Situation, losses: Losses) -> dict[str, object]:
    effort = effort_of(reasoning)
    effort = _EFFORTS.get(effort, effort) if effort is not None else None
    if effort == "xhigh" and not at.model.takes_extra_effort:
        losses.hint(_NAME)
        effort = "high"
    told: dict[str, object] = {"output_config": {"effort": effort}} if effort is not None else {}
    if not at.alone:
        # Without its text an answer would be silent for as long as it thinks, and look stalled.
        told["thinking"] = {"type": "adaptive", "display": "summarized"}
    return told


def _budgeted(reasoning: Reasoning, at: Situation, losses: Losses) -> dict[str, object]:
    budget = budget_of(reasoning) if reasoning.budget is not None or reasoning.effort is not None else _UNSAID_BUDGET
    assert budget is not None, "asked only where something was said"
    if reasoning.budget is None:
        budget = min(budget, at.max_tokens * 3 // 4)  # the answer needs room of its own
    budget = max(_LEAST_BUDGET, min(budget, at.max_tokens - 1))
    if budget >= at.max_tokens or not at.may_begin:
        losses.hint(_NAME)
        return {}
    if budget != (reasoning.budget or budget):
        losses.hint(_NAME)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}
