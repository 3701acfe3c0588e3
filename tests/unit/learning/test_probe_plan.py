"""The plan of a probe: how many requests, how many tokens, what they cost at most."""

from __future__ import annotations

import pytest

from proxy.dialects.registry import CHAT_DIALECTS
from proxy.errors import ConfigError
from proxy.learning.catalogue import Allowed, catalogue
from proxy.learning.plan import DEAR_PRICE, Price, chosen, make_plan, parse_price
from proxy.metering.tokens import load_counter

pytestmark = pytest.mark.clause("C3")

OPENAI = CHAT_DIALECTS["openai"]


def test_the_cost_is_tokens_times_price() -> None:
    """Input and output apart, for a million; what should be refused is in the most, not in what is expected."""
    probes = [probe for probe in catalogue(Allowed("m")) if probe.name in ("plain", "too-long")]
    plan = make_plan(probes, OPENAI, {}, load_counter(), Price(2, 8))
    plain, long = plan.items
    assert (plain.requests, long.requests) == (1, 3)  # two, and a healthy one behind them
    assert long.most_input > 280_000
    assert (long.expected_input, long.expected_output) == (0, 0)
    assert plain.most_output == 400 > plain.expected_output > 10
    assert plan.expected_cost == (plain.expected_input * 2 + plain.expected_output * 8) / 1e6
    most = (plain.most_input * 12 + long.most_input) * 2 + (400 * 12 + long.most_output) * 8
    assert plan.most_cost == pytest.approx(most / 1e6)  # ten to spare, as dear as the plain one
    assert not plan.is_dear


def test_without_a_price_the_dearest_is_taken() -> None:
    """An upper bound that is named as one."""
    plan = make_plan(catalogue(Allowed("m")), OPENAI, {}, load_counter(), None)
    assert (plan.is_dear, plan.price) == (True, DEAR_PRICE)


def test_a_burst_counts_every_request() -> None:
    """As many as may be sent."""
    plan = make_plan(catalogue(Allowed("m", burst=120)), OPENAI, {}, load_counter(), None)
    burst = plan.items[-1]
    assert (burst.requests, len(burst.probe.asks)) == (120, 120)
    assert burst.most_input == burst.expected_input
    assert burst.most_input % 120 == 0


def test_what_a_family_cannot_say_is_left_out_with_its_reason() -> None:
    """Base models know no tools."""
    plan = make_plan(catalogue(Allowed("m")), CHAT_DIALECTS["completions"], {}, load_counter(), None)
    tool = next(item for item in plan.items if item.probe.name == "tool")
    assert (tool.requests, tool.left_out) == (0, ("a stream with a tool call: completions has no tools",))
    assert tool.probe.asks == ()


@pytest.mark.parametrize(
    ("text", "price"), [("2.50/10", Price(2.5, 10)), ("0/0", Price(0, 0)), ("1/1e1", Price(1, 10))]
)
def test_a_price_is_two_numbers(text: str, price: Price) -> None:
    """In and out."""
    assert parse_price(text) == price


@pytest.mark.parametrize("text", ["3", "a/b", "-1/2", "nan/1", "1/inf", "1/2/3", "", "/"])
def test_what_is_no_price_is_refused(text: str) -> None:
    """With an example of one."""
    with pytest.raises(ValueError, match=r"write dollars for a million tokens in and out, as 2\.50/10"):
        parse_price(text)


def test_probes_are_chosen_by_name() -> None:
    """The plain answer always; the order stays."""
    probes = catalogue(Allowed("m", "key-of-ours", burst=3))
    assert [probe.name for probe in chosen(probes, ["burst", "stream"], [])] == ["plain", "stream", "burst"]
    left = [probe.name for probe in chosen(probes, [], ["plain", "too-long", "burst"])]
    assert "plain" in left
    assert not {"too-long", "burst"} & set(left)
    assert [probe.name for probe in chosen(probes, ["stream"], ["stream"])] == ["plain"]


@pytest.mark.parametrize(
    ("only", "skip", "reason"),
    [
        (["strem"], [], "there is no probe 'strem'; valid are plain, stream"),
        ([], ["brust"], "there is no probe 'brust'"),
        (["moderation"], [], "the probe 'moderation' needs --allow-moderation"),
        (["wrong-key"], [], "the probe 'wrong-key' needs an upstream with a key"),
    ],
)
def test_a_name_that_cannot_be_chosen_is_refused(only: list[str], skip: list[str], reason: str) -> None:
    """A misspelt one with those there are, one that needs leave with how to give it."""
    with pytest.raises(ConfigError, match=reason):
        chosen(catalogue(Allowed("m")), only, skip)
