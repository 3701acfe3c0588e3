"""Every vendor's recipe of usage: what its object becomes, in each of its dialects (contract L2; facts of vendors).

A vendor or a dialect that is added without a line here fails; a recipe that says something else than before, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.canon.usage import FIGURES, NormalUsage
from tests.support.pipelines import shipped_rules
from tests.support.usage import CUT, WHOLE, line_of, normal_by

pytestmark = pytest.mark.clause("L2", "R1")

Told = dict[str, Any]
CHAT: Final[Told] = {"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130}
CACHED: Final[Told] = {"prompt_tokens_details": {"cached_tokens": 40}}
THOUGHT: Final[Told] = {"completion_tokens_details": {"reasoning_tokens": 20}}
MESSAGES: Final[Told] = {
    "message_start": {"input_tokens": 35, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 5}
    | {"output_tokens": 1},
    "message_delta": {"output_tokens": 30},
}
RESPONSES: Final[Told] = {
    **{"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40}},
    **{"output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 130},
}


def _names(told: Mapping[str, Any]) -> set[str]:
    """Of the object and of all in it."""
    return set(told).union(*(_names(value) for value in told.values() if isinstance(value, dict)))


#: What each family's object becomes where the vendor counts for itself.
FAMILIES: Final[Mapping[str, tuple[Told, str]]] = {
    "openai": (CHAT | CACHED, "final rrraa 100/30 40/- - =130 -/-"),
    "completions": (CHAT, "final rraaa 100/30 -/- - =130 -/-"),
    "responses": (RESPONSES, "final rrrar 100/30 40/- 20 =130 -/-"),
    "anthropic": (MESSAGES, "final drrra 100/30 60/5 - =- -/-"),
    "gemini": (
        {"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 10, "thoughtsTokenCount": 20}
        | {"totalTokenCount": 130},
        "final rdrar 100/30 40/- 20 =130 -/-",
    ),
    "bedrock": (
        {"inputTokens": 35, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 5, "outputTokens": 30}
        | {"totalTokens": 130},
        "final drrra 100/30 60/5 - =130 -/-",
    ),
    "cohere": (
        {
            "billed_units": {"input_tokens": 12, "output_tokens": 28},
            "tokens": {"input_tokens": 100, "output_tokens": 30},
        },
        "final rraaa 100/30 -/- - =- 12/28",
    ),
    "dashscope": (
        {"input_tokens": 100, "output_tokens": 30, "total_tokens": 130}
        | {"prompt_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 20}},
        "final rrrar 100/30 40/- 20 =130 -/-",
    ),
    "baidu": ({"prompt_tokens": 100, "total_tokens": 130}, "final rdaaa 100/30 -/- - =130 -/-"),
    "hunyuan": (
        {"PromptTokens": 100, "CompletionTokens": 30, "TotalTokens": 130},
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "minimax_pro": ({"total_tokens": 130}, "total_only aaaaa -/- -/- - =130 -/-"),
    "ollama": ({"prompt_eval_count": 100, "eval_count": 30}, "final rraaa 100/30 -/- - =- -/-"),
}
FAMILIES_OF: Final = {"vertex": "gemini"}
#: Whose figures a relay makes up where its own upstream gave none.
RELAYS: Final = {"one_api", "new_api"}

PAIRS: Final = [(name, dialect) for name, vendor in shipped_rules().vendors.items() for dialect in vendor.dialects]


@pytest.mark.parametrize(("vendor", "dialect"), PAIRS)
def test_every_vendor_tells_what_its_family_tells(vendor: str, dialect: str) -> None:
    """In each of its dialects; a relay's figures are estimates in all of them."""
    told, expected = FAMILIES[FAMILIES_OF.get(dialect, dialect)]
    if vendor in RELAYS:
        expected = expected.replace("final", "estimated")
    assert line_of(normal_by(vendor, told, dialect=dialect)) == expected


#: What is odd about one vendor, by its facts.
ODD: Final[Mapping[str, tuple[str, Told | None, str]]] = {
    "openai: a plain answer of today": (
        "openai",
        CHAT
        | {"prompt_tokens_details": {"cached_tokens": 40, "audio_tokens": 0}}
        | {"completion_tokens_details": {"reasoning_tokens": 20, "accepted_prediction_tokens": 0}},
        "final rrrar 100/30 40/- 20 =130 -/-",
    ),
    "azure_openai: a top-level figure that counts nothing is not read": (
        "azure_openai",
        CHAT | {"reasoning_tokens": 0},
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "azure_openai: its filter stopped the answer": ("azure_openai", None, "absent aaaaa -/- -/- - =- -/-"),
    "anthropic: a plain answer": (
        "anthropic",
        {"input_tokens": 35, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 5, "output_tokens": 30},
        "final drrra 100/30 60/5 - =- -/-",
    ),
    "anthropic: the last event restates the input": (
        "anthropic",
        {"message_start": {"input_tokens": 43, "output_tokens": 1}}
        | {"message_delta": {"input_tokens": 61, "output_tokens": 8}},
        "final rraaa 61/8 -/- - =- -/-",
    ),
    "anthropic: only the first event, whose output is none": (
        "anthropic",
        {"message_start": {"input_tokens": 35, "cache_read_input_tokens": 65, "output_tokens": 1}},
        "partial daraa 100/- 65/- - =- -/-",
    ),
    "gemini: before the first token": (
        "gemini",
        {"promptTokenCount": 23, "totalTokenCount": 23},
        "final rdaaa 23/0 -/- - =23 -/-",
    ),
    "gemini: what its own tools put into the prompt": (
        "gemini",
        {"promptTokenCount": 20, "toolUsePromptTokenCount": 80, "candidatesTokenCount": 30, "totalTokenCount": 130},
        "final draaa 100/30 -/- - =130 -/-",
    ),
    "vertex: an object of no figures": ("vertex", {"trafficType": "ON_DEMAND"}, "absent aaaaa -/- -/- - =- -/-"),
    "bedrock: no cache": (
        "bedrock",
        {"inputTokens": 19, "outputTokens": 14, "totalTokens": 33, "cacheReadInputTokens": 0},
        "final rrraa 19/14 0/- - =33 -/-",
    ),
    "cohere: only what it charges for": (
        "cohere",
        {"billed_units": {"input_tokens": 12, "output_tokens": 28}},
        "final ddaaa 12/28 -/- - =- 12/28",
    ),
    "cohere: as numbers with a point": (
        "cohere",
        {"billed_units": {"input_tokens": 20.0, "output_tokens": 28.0}}
        | {"tokens": {"input_tokens": 700.0, "output_tokens": 33.0}, "cached_tokens": 384},
        "final rrraa 700/33 384/- - =- 20/28",
    ),
    "groq: times beside the counts": (
        "groq",
        {"queue_time": 0.037, **CHAT, "total_time": 0.1},
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "openrouter: it says 0 where a model did reason": (
        "openrouter",
        CHAT | CACHED | {"completion_tokens_details": {"reasoning_tokens": 0}, "cost": 8.9e-06},
        "final rrraa 100/30 40/- - =130 -/-",
    ),
    "deepseek: its own names of the cache": (
        "deepseek",
        CHAT | THOUGHT | {"prompt_cache_hit_tokens": 40, "prompt_cache_miss_tokens": 60},
        "final rrrar 100/30 40/- 20 =130 -/-",
    ),
    "moonshot: cached tokens beside the others": (
        "moonshot",
        CHAT | THOUGHT | {"cached_tokens": 40},
        "final rrrar 100/30 40/- 20 =130 -/-",
    ),
    "dashscope: pictures": (
        "dashscope",
        {"input_tokens": 310, "output_tokens": 5, "total_tokens": 315, "image_tokens": 290},
        "final rraaa 310/5 -/- - =315 -/-",
    ),
    "baidu_qianfan_v1: the completion is there": (
        "baidu_qianfan_v1",
        CHAT,
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "minimax: characters beside the tokens": (
        "minimax",
        CHAT | {"total_characters": 0},
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "minimax: a sum alone": ("minimax", {"total_tokens": 130}, "total_only aaaaa -/- -/- - =130 -/-"),
    "spark: as text": (
        "spark",
        {"prompt_tokens": "100", "completion_tokens": "30", "total_tokens": "130"},
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "xai: reasoning beside the completion": (
        "xai",
        {"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 303}
        | {"completion_tokens_details": {"reasoning_tokens": 290}},
        "final rdaar 12/291 -/- 290 =303 -/-",
    ),
    "xai: the same where it says no sum": (
        "xai",
        {"prompt_tokens": 12, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 290}},
        "final rdaar 12/291 -/- 290 =- -/-",
    ),
    "perplexity: searches beside the counts": (
        "perplexity",
        CHAT | {"citation_tokens": 900, "num_search_queries": 3, "search_context_size": "low"},
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "ollama: a cached prompt is not counted": ("ollama", {"eval_count": 30}, "partial araaa -/30 -/- - =- -/-"),
    "sglang: parts that are null": (
        "sglang",
        CHAT | {"prompt_tokens_details": None, "reasoning_tokens": 0},
        "final rraaa 100/30 -/- - =130 -/-",
    ),
    "one_api: zeros that it may have put there": (
        "one_api",
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        "estimated rraaa 0/0 -/- - =0 -/-",
    ),
    "openai_compatible: the completion is missing": (
        "openai_compatible",
        {"prompt_tokens": 8, "total_tokens": 20},
        "final rdaaa 8/12 -/- - =20 -/-",
    ),
    "openai_compatible: less than nothing": (
        "openai_compatible",
        {"prompt_tokens": -1, "completion_tokens": -1, "total_tokens": -1},
        "absent aaaaa -/- -/- - =- -/-",
    ),
    "openai_compatible: more than any database keeps": (
        "openai_compatible",
        {"prompt_tokens": 10**30, "completion_tokens": 30, "total_tokens": 10**30},
        "partial araaa -/30 -/- - =- -/-",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_what_is_odd_about_a_vendor_is_told_apart(case: str) -> None:
    """By the shipped recipe, of a whole answer."""
    vendor, told, expected = ODD[case]
    assert line_of(normal_by(vendor, told)) == expected


@pytest.mark.parametrize(("vendor", "dialect"), PAIRS)
def test_the_same_figures_of_a_cut_answer_do_not_count(vendor: str, dialect: str) -> None:
    """Whoever reports, and however: a stream that was cut has no last report. Without any, it is lost."""
    told, _ = FAMILIES[FAMILIES_OF.get(dialect, dialect)]
    assert normal_by(vendor, told, CUT, dialect).state == "partial"
    assert normal_by(vendor, None, CUT, dialect).state == "lost"


@pytest.mark.parametrize(
    ("dialect", "told", "expected"),
    [
        ("openai.embeddings", {"prompt_tokens": 9, "total_tokens": 9}, "final rdaaa 9/0 -/- - =9 -/-"),
        ("openai.embeddings", {"total_tokens": 9}, "final ddaaa 9/0 -/- - =9 -/-"),
        ("cohere.embeddings", {"input_tokens": 9}, "final rdaaa 9/0 -/- - =- -/-"),
        ("gemini.embeddings", {"promptTokenCount": 9}, "final rdaaa 9/0 -/- - =- -/-"),
        ("ollama.embeddings", {"prompt_eval_count": 9}, "final rdaaa 9/0 -/- - =- -/-"),
        ("dashscope.embeddings", {"total_tokens": 9}, "final ddaaa 9/0 -/- - =9 -/-"),
    ],
)
def test_embeddings_have_no_output(dialect: str, told: Told, expected: str) -> None:
    """Vectors are no tokens, so a sum is the input."""
    assert line_of(normal_by("openai_compatible", told, dialect=dialect)) == expected


NAMES: Final = sorted(
    {name for told, _ in FAMILIES.values() for name in _names(told)}
    | {"cached_tokens", "reasoning_tokens", "toolUsePromptTokenCount", "prompt_cache_hit_tokens", "note"}
)
LEAVES: Final = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.sampled_from([10**30, -1, 2**63, 1e300, -2.0, 12.0, 1.5, float("nan"), float("inf")])
    | st.sampled_from(["", "12", "-3", "1e5", "9" * 40, "\u06f1\u06f2", "\u96f6", "twelve"])
)
JSON: Final = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)


@given(pair=st.sampled_from(PAIRS), told=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=7))
@example(("anthropic", "anthropic"), {"message_start": 7, "message_delta": {"output_tokens": 30}})
@example(("cohere", "cohere"), {"tokens": [], "billed_units": "12"})
def test_no_object_breaks_a_recipe(pair: tuple[str, str], told: dict[str, Any]) -> None:
    """Whatever stands where figures should be: a letter for each figure, and none that no vendor can have meant."""
    vendor, dialect = pair
    for end in (WHOLE, CUT):
        one = normal_by(vendor, told, end, dialect)
        assert [letter == "a" for letter in one.told] == [figure is None for figure in figures_of(one)]
        values = (*figures_of(one), one.total, one.billed_input, one.billed_output)
        assert all(value is None or 0 <= value < 2**63 for value in values)
        assert end is WHOLE or one.state in ("partial", "lost")


def figures_of(one: NormalUsage) -> list[int | None]:
    return [getattr(one, name) for name in FIGURES]
