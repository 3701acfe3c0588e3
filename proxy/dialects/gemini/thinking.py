"""How much a Gemini model is told to think, by its name.

In: what was asked, and a model's name as it is sent. Out: `thinkingConfig`, empty where the model is told nothing. From
the third generation on models are told levels, those before it tokens, and those before 2.5 refuse to be told at all.
Names that tell no generation are taken for ones that know tokens. (Google's documentation: "Gemini thinking")
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from proxy.canon.request import Reasoning
from proxy.dialects.base import Losses
from proxy.dialects.effort import budget_of, effort_of

_NAME = "reasoning_effort"
# A name without a number is always the newest.
_GENERATION = re.compile(r"gemini-(?:(?P<major>\d+)(?:\.(?P<minor>\d+))?|.*latest$)")
_NEWEST = (99, 0)
_FIRST_TO_THINK, _THIRD = (2, 5), (3, 0)
_LEVELS = {"none": "minimal", "xhigh": "high", "max": "high"}
_DYNAMIC = -1
# The largest that every model with budgets takes, and what the vendor itself makes of "high"; ours for it is larger.
_MAX_BUDGET, _HIGH_BUDGET = 24576, 32768


@dataclass(frozen=True, slots=True)
class _Range:
    """Budgets in tokens; `is_off` if 0 is one of them."""

    least: int
    most: int
    is_off: bool = True


def is_third(model: str) -> bool:
    """Is it a model of the third generation or later?"""
    generation = _generation_of(model)
    return generation is not None and generation >= _THIRD


def thinking_of(reasoning: Reasoning, model: str, losses: Losses) -> dict[str, object]:
    """Thoughts are shown wherever thinking was asked for."""
    effort, budget = effort_of(reasoning), budget_of(reasoning)
    if not _thinks(model):
        if effort != "none":
            losses.hint(_NAME)
        return {}
    told: dict[str, object] = {}
    if reasoning.budget:
        told["thinkingBudget"] = _within(reasoning.budget, model, losses)
    elif effort is not None and is_third(model):
        told["thinkingLevel"] = _level("none" if budget == 0 else effort, model, losses)
    elif budget is not None:
        if budget > _HIGH_BUDGET:
            losses.hint(_NAME)
        told["thinkingBudget"] = _within(min(budget, _MAX_BUDGET), model, losses)
    elif reasoning.enabled and not is_third(model):
        told["thinkingBudget"] = _DYNAMIC
    if effort != "none" and budget != 0:
        told["includeThoughts"] = True
    return told


def _generation_of(model: str) -> tuple[int, int] | None:
    found = _GENERATION.search(model)
    if found is None:
        return None
    return _NEWEST if found["major"] is None else (int(found["major"]), int(found["minor"] or 0))


def _thinks(model: str) -> bool:
    generation = _generation_of(model)
    if generation is None:
        return "gemma" not in model
    return generation >= (_THIRD if "-image" in model else _FIRST_TO_THINK) or "thinking" in model


def _within(budget: int, model: str, losses: Losses) -> int:
    """The nearest budget that the model takes."""
    known = _range_of(model)
    nearest = min(max(budget, known.least), known.most) if budget or not known.is_off else 0
    if nearest != budget:
        losses.hint(_NAME)
    return nearest


def _range_of(model: str) -> _Range:
    if "-pro" in model:
        return _Range(128, 32768, is_off=False)
    return _Range(512 if "-lite" in model else 1, _MAX_BUDGET)


def _level(effort: str, model: str, losses: Losses) -> str:
    """The nearest level that every model of the third generation knows: none of them can be kept from thinking, and the
    larger ones not be brought down to the least of it."""
    level = _LEVELS.get(effort, effort)
    if level == "minimal" and "-pro" in model:
        level = "low"
    if level != effort:
        losses.hint(_NAME)
    return level
