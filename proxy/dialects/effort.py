"""How much to think: words of some vendors, numbers of tokens of others, and the way between them.

The steps are ours, and the same both ways, so that a request that goes there and back says what it said.
"""

from __future__ import annotations

from proxy.canon.request import Reasoning

_BUDGETS = {"none": 0, "minimal": 1024, "low": 4096, "medium": 16384, "high": 32768, "xhigh": 49152, "max": 63999}


def effort_of(reasoning: Reasoning) -> str | None:
    """The word: as said, or for the budget, or for being switched off; None where nothing was said that it can say."""
    if reasoning.effort is not None:
        return reasoning.effort
    if reasoning.budget is not None:
        return next(word for word, tokens in _BUDGETS.items() if reasoning.budget <= tokens or word == "max")
    return "none" if reasoning.enabled is False else None


def budget_of(reasoning: Reasoning) -> int | None:
    """The budget in tokens: as said, or for the word (0 is none at all); None where only `enabled` was said."""
    if reasoning.budget is not None:
        return reasoning.budget
    if reasoning.effort is not None:
        return _BUDGETS.get(reasoning.effort, _BUDGETS["medium"])
    return 0 if reasoning.enabled is False else None
