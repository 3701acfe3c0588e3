"""A vendor's usage in our vocabulary, whatever its figures hold (contract L2)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proxy.canon.usage import Place, Usage
from proxy.dialects.registry import VENDOR_DIALECTS

pytestmark = pytest.mark.clause("L2", "R1")

#: What a vendor of each family says of 100 tokens in, 90 of them from a cache, and 7 out, 5 of them thoughts.
REPORTS: Mapping[str, Mapping[str, object]] = {
    "openai": {
        **{"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 107},
        "prompt_tokens_details": {"cached_tokens": 90},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
    "gemini": {
        **{"promptTokenCount": 100, "cachedContentTokenCount": 90, "candidatesTokenCount": 2},
        "thoughtsTokenCount": 5,
    },
    "anthropic": {
        **{"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7},
        "output_tokens_details": {"thinking_tokens": 5},
    },
    "bedrock": {"inputTokens": 10, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 30, "outputTokens": 7},
}


@pytest.mark.parametrize("dialect", REPORTS)
def test_what_the_family_counts_apart_is_added(dialect: str) -> None:
    """Where no rule file says anything, the reader's knowledge of its family stands."""
    usage = VENDOR_DIALECTS[dialect].reader({}).usage(REPORTS[dialect])
    assert (usage.input, usage.output) == (100, 7)
    assert usage.placed(None, None) == usage == usage.placed("absent", "absent")


@pytest.mark.parametrize(
    ("dialect", "reasoning", "cache", "told"),
    [
        ("openai", "outside", "inside", (100, 7)),
        ("openai", "inside", "outside", (190, 2)),
        ("gemini", "outside", None, (100, 7)),
        ("gemini", "inside", "outside", (190, 2)),
        ("anthropic", None, "outside", (100, 7)),
        ("anthropic", "outside", "inside", (10, 12)),
        ("bedrock", None, "outside", (100, 7)),
        ("bedrock", "outside", "inside", (10, 7)),
    ],
)
def test_a_rule_file_wins_over_the_family(
    dialect: str, reasoning: Place | None, cache: Place | None, told: tuple[int, int]
) -> None:
    """Nothing is added twice, and what was added wrongly is taken off again."""
    usage = VENDOR_DIALECTS[dialect].reader({}).usage(REPORTS[dialect]).placed(reasoning, cache)
    assert (usage.input, usage.output) == told
    assert usage.placed(reasoning, cache) == usage


def test_what_the_vendor_did_not_say_stays_unsaid() -> None:
    """Parts alone make no figure."""
    assert Usage(None, None, 90, 3, 5).placed("outside", "outside") == Usage(None, None, 90, 3, 5)
