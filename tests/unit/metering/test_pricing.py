"""Money as integers, and an attempt's price by part."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.usage import NormalUsage
from proxy.metering.money import cost, money_text, parse_money
from proxy.metering.prices import Price, PriceBook, Rates, VendorPrices
from proxy.metering.pricing import Costs, Counted, bound, price

pytestmark = pytest.mark.clause("L2")

STANDARD = Rates(2_500_000_000, 10_000_000_000, 250_000_000, 3_125_000_000, 10_000_000_000)
BATCH = Rates(1_250_000_000, 5_000_000_000, 125_000_000, 1_562_500_000, 5_000_000_000)
LONG = Rates(5_000_000_000, 15_000_000_000, 500_000_000, 6_250_000_000, 15_000_000_000)


def model(**fields: object) -> Price:
    known: dict[str, object] = {
        **{"vendor": "acme", "model": "m", "version": "acme/m@2026-01-01#1", "currency": "USD", "since": 0},
        **{"until": None, "rates": STANDARD, "tiers": {"batch": BATCH}, "long_above": 1000, "long": LONG},
    }
    return Price(**(known | fields))  # type: ignore[arg-type]


def final(**figures: int | None) -> NormalUsage:
    return NormalUsage("final", "rrrrr", **figures)


@pytest.mark.parametrize(
    ("text", "nanos"),
    [("2.50", 2_500_000_000), ("0.000000001", 1), ("-3", -3_000_000_000), ("0.1", 100_000_000), ("0", 0)],
)
def test_a_decimal_text_is_exact(text: str, nanos: int) -> None:
    """No float on the way."""
    assert parse_money(text) == nanos
    assert parse_money(money_text(nanos)) == nanos


@pytest.mark.parametrize("text", ["", "1e3", "1,5", "٣", "0.0000000001", "NaN", "1.", ".5", "0x1", "1 000"])
def test_another_text_is_no_money(text: str) -> None:
    """It is refused, and what is finer than a nano-unit too."""
    with pytest.raises(ValueError, match=r"decimal number|nine digits"):
        parse_money(text)


@given(st.integers(-(10**15), 10**15))
def test_an_amount_survives_being_written(nanos: int) -> None:
    """To its last digit."""
    assert parse_money(money_text(nanos)) == nanos


@given(st.integers(0, 10**9), st.integers(0, 10**12))
def test_a_cost_is_rounded_once_half_to_even(tokens: int, per_million: int) -> None:
    """As decimal arithmetic has it."""
    exact = Decimal(tokens) * per_million / 1_000_000
    assert cost(tokens, per_million) == int(exact.quantize(Decimal(1), ROUND_HALF_EVEN))


def test_each_part_has_its_own_price() -> None:
    """Fresh input, what a cache gave and took, output; and our own count beside them."""
    usage = final(input=100, output=20, cache_read=30, cache_write=10)
    assert price(model(), usage, Counted(95, 18), None) == Costs(
        "standard", 60 * 2500, 30 * 250, 10 * 3125, 20 * 10_000, 95 * 2500, 18 * 10_000
    )


@pytest.mark.parametrize("state", ["partial", "total_only", "characters", "estimated", "lost", "absent"])
def test_figures_that_are_not_final_have_no_price(state: str) -> None:
    """Our own count has one all the same."""
    usage = NormalUsage(state, "rraaa", 100, 20)  # type: ignore[arg-type]
    costs = price(model(), usage, Counted(100, 20), None)
    assert (costs.input, costs.cache_read, costs.cache_write, costs.output) == (None, None, None, None)
    assert (costs.own_input, costs.own_output) == (250_000, 200_000)


@pytest.mark.parametrize(
    ("tier", "tokens", "name", "own_input"),
    [
        (None, 1000, "standard", 2500),
        ("BATCH", 5000, "batch", 1250),
        ("flex", 10, "standard", 2500),
        (None, 1001, "long", 5000),
    ],
)
def test_the_tier_and_the_length_of_the_prompt_decide(tier: str | None, tokens: int, name: str, own_input: int) -> None:
    """A service tier by its name, a long prompt as a whole, an unknown tier as usual."""
    costs = price(model(), final(input=tokens, output=1), Counted(1, 0), tier)
    assert (costs.tier, costs.own_input) == (name, own_input)


def test_a_second_scale_is_what_is_charged() -> None:
    """Where the vendor has one."""
    costs = price(model(), final(input=500, output=20, billed_input=12, billed_output=9), Counted(500, 20), None)
    assert (costs.input, costs.cache_read, costs.output) == (12 * 2500, 0, 9 * 10_000)


def test_reasoning_may_have_a_price_of_its_own() -> None:
    """It is a part of the output."""
    rates = Rates(0, 10_000_000_000, 0, 0, 3_000_000_000)
    costs = price(model(rates=rates, long=None), final(input=1, output=20, reasoning=15), Counted(1, 20, 5), None)
    assert (costs.output, costs.own_output) == (5 * 10_000 + 15 * 3_000, 15 * 10_000 + 5 * 3_000)


def test_a_bound_is_above_every_price() -> None:
    """By the dearest rates, bytes for tokens, and the limit that was asked for or the model's own."""
    assert bound(model(), 400, 50) == 400 * 6250 + 50 * 15_000
    assert bound(model(max_output=10), 400, None) == 400 * 6250 + 10 * 15_000
    assert bound(model(), 400, None) is None


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 500), st.sampled_from([None, "batch"]))
def test_no_attempt_costs_more_than_its_bound(asked: int, read: int, output: int, tier: str | None) -> None:
    """Whatever of its prompt came from the cache."""
    read = min(asked, read)
    costs = price(model(), final(input=asked, output=output, cache_read=read), Counted(asked, output), tier)
    most = bound(model(), asked, output)
    parts = (costs.input, costs.cache_read, costs.cache_write, costs.output)
    assert most is not None
    assert sum(part or 0 for part in parts) <= most + 2
    assert costs.own_input + costs.own_output <= most + 2


def test_a_price_is_found_by_name_and_moment() -> None:
    """Exact before the longest prefix; from its first day until the next price or its end."""
    old, new = model(version="old", since=100, until=200), model(version="new", since=200, until=300)
    wide, near = model(version="wide", since=0), model(version="near", since=0)
    book = PriceBook({"acme": VendorPrices("acme", {"m": (old, new)}, (("m-long-", (near,)), ("m-", (wide,))))})

    def found(name: str | None, at: int, *others: str | None) -> str | None:
        one = book.find("acme", (name, *others), at)
        return None if one is None else one.version

    assert [found("m", at) for at in (99, 100, 199, 200, 299, 300)] == [None, "old", "old", "new", "new", None]
    assert [found(name, 5) for name in ("m-x", "m-long-x", "n", None)] == ["wide", "near", None, None]
    assert found("unknown", 150, None, "m") == "old"
    assert book.find("elsewhere", ("m",), 150) is None
