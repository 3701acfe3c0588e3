"""A vendor's usage in one vocabulary: what it reported, what follows from that, and what it did not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.ending import Ending
from proxy.canon.usage import FIGURES, NormalUsage, Usage
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.metering.normal import End, Recipe, normalise
from proxy.stores.rules import default_rules_dir, load_rules

pytestmark = pytest.mark.clause("L2")

RULES = load_rules(default_rules_dir())
WHOLE = End(Ending.COMPLETED, True, True)
CUT = End(Ending.STREAM_CUT, False, True)
CUT_BEFORE_ANYTHING = End(Ending.TIMEOUT, False, False)


def normal(vendor: str, told: Mapping[str, object] | None, end: End = WHOLE, dialect: str | None = None) -> NormalUsage:
    """By the shipped recipe of this vendor."""
    profile = RULES.profile(vendor)
    ways = profile.ways.usage
    reader = VENDOR_DIALECTS[dialect or profile.dialect].reader({})
    recipe = Recipe(
        ways.scope == "absent", ways.scope == "final", ways.unit == "characters", ways.source == "relay", ways.untrusted
    )
    usage = Usage() if told is None else reader.usage(told).placed(ways.reasoning, ways.cache)
    return normalise(told, usage, recipe, end)


def figures(one: NormalUsage) -> tuple[str, str, int | None, int | None, int | None, int | None, int | None]:
    return one.state, one.told, one.input, one.output, one.cache_read, one.cache_write, one.reasoning


OPENAI = {
    "prompt_tokens": 100,
    "completion_tokens": 30,
    "total_tokens": 130,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 20},
}
START = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 5, "output_tokens": 1}


@pytest.mark.parametrize(
    ("vendor", "told", "end", "expected"),
    [
        pytest.param("openai", OPENAI, WHOLE, ("final", "rrrar", 100, 30, 40, None, 20), id="all reported"),
        pytest.param("openai", OPENAI, CUT, ("final", "rrrar", 100, 30, 40, None, 20), id="came before the cut"),
        pytest.param("openai", None, CUT, ("lost", "aaaaa", *[None] * 5), id="lost by a cut"),
        pytest.param("openai", None, CUT_BEFORE_ANYTHING, ("absent", "aaaaa", *[None] * 5), id="nothing was made"),
        pytest.param("openai", None, WHOLE, ("absent", "aaaaa", *[None] * 5), id="whole, and never sent"),
        pytest.param(
            "anthropic",
            {"message_start": START, "message_delta": {"output_tokens": 33}},
            WHOLE,
            ("final", "drrra", 75, 33, 60, 5, None),
            id="split over two events",
        ),
        pytest.param(
            "anthropic",
            {"message_start": START},
            CUT,
            ("partial", "darra", 75, None, 60, 5, None),
            id="only the first of two events",
        ),
        pytest.param(
            "gemini",
            {"promptTokenCount": 12, "candidatesTokenCount": 7, "thoughtsTokenCount": 50, "totalTokenCount": 69},
            WHOLE,
            ("final", "rdaar", 12, 57, None, None, 50),
            id="reasoning beside the output",
        ),
        pytest.param(
            "gemini",
            {"promptTokenCount": 12, "candidatesTokenCount": 2, "totalTokenCount": 14},
            CUT,
            ("partial", "rraaa", 12, 2, None, None, None),
            id="running figures of a cut stream",
        ),
        pytest.param(
            "xai",
            {
                "prompt_tokens": 12,
                "completion_tokens": 1,
                "total_tokens": 303,
                "completion_tokens_details": {"reasoning_tokens": 290},
            },
            WHOLE,
            ("final", "rdaar", 12, 291, None, None, 290),
            id="reasoning outside of completion",
        ),
        pytest.param(
            "minimax", {"total_tokens": 88}, WHOLE, ("total_only", "aaaaa", *[None] * 5), id="one sum and no parts"
        ),
        pytest.param(
            "openai_compatible",
            {"prompt_tokens": 8, "total_tokens": 20},
            WHOLE,
            ("final", "rdaaa", 8, 12, None, None, None),
            id="output follows from the sum",
        ),
        pytest.param(
            "one_api",
            {"prompt_tokens": 8, "completion_tokens": 12},
            WHOLE,
            ("estimated", "rraaa", 8, 12, None, None, None),
            id="a relay's own guess",
        ),
        pytest.param(
            "openrouter",
            {"prompt_tokens": 8, "completion_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 0}},
            WHOLE,
            ("final", "rraaa", 8, 12, None, None, None),
            id="a figure that is known to be wrong",
        ),
        pytest.param(
            "bedrock",
            {"inputTokens": 3, "outputTokens": 5, "cacheReadInputTokens": 90, "totalTokens": 98},
            WHOLE,
            ("final", "drraa", 93, 5, 90, None, None),
            id="cache beside the input",
        ),
        pytest.param("openai", {"note": "سلام"}, WHOLE, ("absent", "aaaaa", *[None] * 5), id="an object of no figures"),
    ],
)
def test_each_way_of_reporting_is_told_apart(
    vendor: str, told: dict[str, object] | None, end: End, expected: tuple[Any, ...]
) -> None:
    """State, a letter for each figure, and the figures."""
    assert figures(normal(vendor, told, end)) == expected


def test_a_second_scale_is_kept_beside_the_first() -> None:
    """Cohere counts what it processed and what it charges for."""
    told = {
        "billed_units": {"input_tokens": 12, "output_tokens": 9},
        "tokens": {"input_tokens": 507, "output_tokens": 9},
    }
    one = normal("cohere", told)
    assert (one.state, one.input, one.billed_input, one.billed_output) == ("final", 507, 12, 9)


def test_figures_in_characters_are_no_tokens() -> None:
    """They stay verbatim in the row, and fill no figure."""
    one = normalise({"prompt_tokens": 400}, normal_usage_of({"prompt_tokens": 400}), Recipe(in_characters=True), WHOLE)
    assert figures(one) == ("characters", "aaaaa", *[None] * 5)


def normal_usage_of(told: dict[str, object]) -> Any:
    return VENDOR_DIALECTS["openai"].reader({}).usage(told)


NAMES = st.sampled_from(
    [*OPENAI, *START, "inputTokens", "billed_units", "tokens", "message_start", "message_delta", "totalTokenCount"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@given(
    vendor=st.sampled_from(sorted(RULES.vendors)),
    told=st.dictionaries(NAMES, JSON, max_size=6),
    ending=st.sampled_from(list(Ending)),
    finished=st.booleans(),
)
def test_any_object_has_a_letter_for_each_figure(
    vendor: str, told: dict[str, object], ending: Ending, finished: bool
) -> None:
    """Whatever a vendor sends: nothing raises, `a` stands where there is no figure, and none is negative or huge."""
    one = normal(vendor, told, End(ending, finished, True))
    values = [getattr(one, name) for name in FIGURES]
    assert [letter == "a" for letter in one.told] == [value is None for value in values]
    assert all(value is None or 0 <= value < 2**63 for value in (*values, one.total, one.billed_input))
