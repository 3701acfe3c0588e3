"""Which model an invoice means."""

from __future__ import annotations

import pytest

from proxy.books.reconciling.names import groups

pytestmark = pytest.mark.clause("C3")


@pytest.mark.parametrize(
    ("served", "invoice"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("gpt-4o-2024-08-06", "GPT-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o-0806"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "Claude3.5Sonnet"),
        ("us.meta.llama3-1-70b-instruct-v1:0", "Llama3.1-70B-Instruct"),
        ("meta-llama/llama-3.3-70b-instruct", "llama-3.3-70b-instruct"),
        ("gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_one_model_in_two_ways_of_writing_is_one(served: str, invoice: str) -> None:
    """Makers, regions, dates, capitals and points make no other model."""
    assert groups([(served, "alias")], [invoice, "something-else"]) == {(served, "alias"): invoice}


def test_the_exact_name_goes_first_and_two_meanings_mean_none() -> None:
    """Two editions on one invoice: each its own; what could be either is neither."""
    pairs = [("gpt-4o-2024-08-06", "a"), ("gpt-4o-2024-11-20", "a"), ("gpt-4o-2025-01-01", "a"), ("模型-七", "b")]
    assert groups(pairs, ["gpt-4o-2024-08-06", "gpt-4o-2024-11-20"]) == {
        pairs[0]: "gpt-4o-2024-08-06",
        pairs[1]: "gpt-4o-2024-11-20",
        pairs[2]: "gpt-4o-2025-01-01",
        pairs[3]: "模型-七",
    }


def test_the_name_that_was_asked_for_will_do() -> None:
    """Where the served one is unknown to the invoice."""
    assert groups([("served-x", "gpt-4o")], ["gpt-4o"]) == {("served-x", "gpt-4o"): "gpt-4o"}
