"""A vendor's usage in one vocabulary: what it reported, what follows from that, and what it did not say."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.usage import FIGURES, NormalUsage, Usage, UsageState
from proxy.metering.normal import End, Recipe, normalise

pytestmark = pytest.mark.clause("L2")

PLAIN = Recipe()
WHOLE = End(is_whole=True)
SETTLED = End(is_whole=False, is_settled=True)
CUT = End(is_whole=False)
REFUSED = End(is_whole=False, is_owed=False)
BOTH = Usage(100, 30, total=130)


def figures(one: NormalUsage) -> tuple[int | None, ...]:
    return tuple(getattr(one, name) for name in FIGURES)


@pytest.mark.parametrize(
    ("usage", "recipe", "end", "state"),
    [
        pytest.param(BOTH, PLAIN, WHOLE, "final", id="it counts"),
        pytest.param(BOTH, PLAIN, SETTLED, "final", id="it came with the finish, and then the stream was cut"),
        pytest.param(BOTH, PLAIN, CUT, "partial", id="running figures of a cut stream"),
        pytest.param(Usage(75, None, is_final=False), PLAIN, WHOLE, "partial", id="only the first of two events"),
        pytest.param(Usage(75, None), PLAIN, WHOLE, "partial", id="the output was never said"),
        pytest.param(Usage(None, 7), PLAIN, WHOLE, "partial", id="the input was never said"),
        pytest.param(Usage(total=88), PLAIN, WHOLE, "total_only", id="one sum and no parts"),
        pytest.param(Usage(total=88), PLAIN, CUT, "partial", id="one sum so far"),
        pytest.param(BOTH, Recipe(in_characters=True), WHOLE, "characters", id="characters"),
        pytest.param(BOTH, Recipe(in_characters=True), CUT, "characters", id="characters so far"),
        pytest.param(BOTH, Recipe(by_relay=True), WHOLE, "estimated", id="a relay's own guess"),
        pytest.param(Usage(total=88), Recipe(by_relay=True), WHOLE, "estimated", id="a relay's guess of the sum"),
        pytest.param(BOTH, Recipe(by_relay=True), CUT, "partial", id="a relay's guess so far"),
        pytest.param(None, PLAIN, CUT, "lost", id="lost by a cut"),
        pytest.param(None, PLAIN, SETTLED, "lost", id="lost behind the finish"),
        pytest.param(None, PLAIN, WHOLE, "absent", id="whole, and never sent"),
        pytest.param(None, PLAIN, REFUSED, "absent", id="nothing was made"),
        pytest.param(None, Recipe(never=True), CUT, "absent", id="cut, and never sent"),
        pytest.param(BOTH, Recipe(never=True), WHOLE, "final", id="sent against all expectation"),
        pytest.param(Usage(), PLAIN, WHOLE, "absent", id="an object of no figures"),
        pytest.param(Usage(), PLAIN, CUT, "lost", id="an object of no figures so far"),
    ],
)
def test_what_became_of_the_report(usage: Usage | None, recipe: Recipe, end: End, state: UsageState) -> None:
    """Each state has one cause, and what came early is never taken for what counts."""
    assert normalise(usage, recipe, end).state == state


@pytest.mark.parametrize(
    ("usage", "told", "expected"),
    [
        pytest.param(Usage(100, 30, 40, 5, 20), "rrrrr", (100, 30, 40, 5, 20), id="all reported"),
        pytest.param(Usage(75, 33, 60, 5, cache_added=65), "drrra", (75, 33, 60, 5, None), id="a cache beside"),
        pytest.param(
            Usage(12, 57, None, None, 50, reasoning_added=50), "rdaar", (12, 57, None, None, 50), id="thoughts"
        ),
        pytest.param(Usage(8, None, total=20), "rdaaa", (8, 12, None, None, None), id="output out of the sum"),
        pytest.param(Usage(None, 12, total=20), "draaa", (8, 12, None, None, None), id="input out of the sum"),
        pytest.param(Usage(8, None, total=7), "raaaa", (8, None, None, None, None), id="a sum that cannot be"),
        pytest.param(Usage(5, 7, derived=frozenset({"output"})), "rdaaa", (5, 7, None, None, None), id="by its reader"),
        pytest.param(Usage(0, 0, 0), "rrraa", (0, 0, 0, None, None), id="nothing is a figure"),
        pytest.param(Usage(2**63, 2**63 - 1), "araaa", (None, 2**63 - 1, None, None, None), id="too large to keep"),
        pytest.param(Usage(-1, 3), "araaa", (None, 3, None, None, None), id="less than nothing"),
    ],
)
def test_each_figure_says_where_it_is_from(usage: Usage, told: str, expected: tuple[int | None, ...]) -> None:
    """`r` as the vendor wrote it, `d` reckoned from nothing but its own figures, `a` where there is none."""
    one = normalise(usage, PLAIN, WHOLE)
    assert (one.told, figures(one)) == (told, expected)


@pytest.mark.parametrize(
    ("usage", "untrusted", "told"),
    [
        pytest.param(Usage(8, 12, reasoning=0), {"reasoning"}, "rraaa", id="inside of the output"),
        pytest.param(Usage(8, 12, reasoning=5, reasoning_added=5), {"reasoning"}, "raaaa", id="added to the output"),
        pytest.param(Usage(20, 12, 8, 4, cache_added=12), {"cache_read"}, "arara", id="added to the input"),
        pytest.param(Usage(20, 12, 8, cache_added=8), {"cache_write"}, "drraa", id="not there to be added"),
        pytest.param(Usage(20, 12, 8, 4), {"cache_read", "cache_write"}, "rraaa", id="inside of the input"),
        pytest.param(Usage(8, 12, total=20), {"output"}, "raaaa", id="not even out of the sum"),
    ],
)
def test_a_figure_that_is_known_to_be_wrong_is_none(usage: Usage, untrusted: set[str], told: str) -> None:
    """Nor is a sum that it is a part of."""
    assert normalise(usage, Recipe(untrusted=frozenset(untrusted)), WHOLE).told == told


def test_a_second_scale_is_kept_beside_the_first() -> None:
    """What a vendor charges for is not what it says it processed."""
    one = normalise(Usage(507, 16, billed_input=12, billed_output=14), PLAIN, WHOLE)
    assert (one.state, one.input, one.output, one.billed_input, one.billed_output) == ("final", 507, 16, 12, 14)


def test_figures_in_characters_are_no_tokens() -> None:
    """They fill no figure: the vendor's own object has them."""
    told = normalise(Usage(400, 80, 10, 0, 5, total=480), Recipe(in_characters=True), WHOLE)
    assert told == NormalUsage("characters")


NUMBERS = st.none() | st.integers(-5, 5) | st.integers(-(2**70), 2**70)
USAGES = st.builds(
    Usage,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    cache_added=st.integers(0, 3),
    reasoning_added=st.integers(0, 3),
    derived=st.sets(st.sampled_from(FIGURES)).map(frozenset),
    billed_input=NUMBERS,
    billed_output=NUMBERS,
    total=NUMBERS,
    is_final=st.booleans(),
)
RECIPES = st.builds(
    Recipe, st.booleans(), st.booleans(), st.booleans(), st.sets(st.sampled_from(FIGURES)).map(frozenset)
)


@given(usage=st.none() | USAGES, recipe=RECIPES, end=st.builds(End, st.booleans(), st.booleans(), st.booleans()))
def test_whatever_a_vendor_says_its_figures_are_sound(usage: Usage | None, recipe: Recipe, end: End) -> None:
    """`a` exactly where there is no figure; none is negative or too large; `final` has both that are paid for."""
    one = normalise(usage, recipe, end)

    assert [letter == "a" for letter in one.told] == [value is None for value in figures(one)]
    values = (*figures(one), one.total, one.billed_input, one.billed_output)
    assert all(value is None or 0 <= value < 2**63 for value in values)
    assert one.state != "final" or None not in (one.input, one.output)
    if one.state in ("total_only", "characters", "lost", "absent"):
        assert (one.input, one.output) == (None, None)


def test_what_counts_is_only_what_came_last() -> None:
    """No recipe makes a figure of a cut stream final, and none makes one up where nothing came."""
    for never, in_characters, by_relay in product((True, False), repeat=3):
        recipe = Recipe(never, in_characters, by_relay)
        assert normalise(BOTH, recipe, CUT).state in ("partial", "characters")
        assert figures(normalise(None, recipe, CUT)) == (None,) * 5
