"""What a probe will send, and what that may cost at most, before anything is sent.

In: the probes, the upstream's grammar, a counter, a price. Out: a `Plan`, a line per probe. Tokens are ours, which are
no vendor's, so the figures are estimates; money is the most that it can be if every answer runs to its bound and every
request that should be refused is answered all the same. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from proxy.dialects.base import VendorDialect, Ways
from proxy.dialects.openai.send import countable
from proxy.errors import ConfigError
from proxy.learning.catalogue import NAMES
from proxy.learning.probes import Ask, Kind, Probe, unaskable
from proxy.metering.prompt import count_prompt
from proxy.metering.tokens import TokenCounter

#: So many requests beside the plan may go out where a limit answers: the same again, or one to see whether it is over.
SPARE: Final = 10
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float


#: The price where nobody names one: that of the dearest models in wide use. An upper bound, not a price.
DEAR_PRICE: Final = Price(15.0, 75.0)


@dataclass(frozen=True, slots=True)
class Item:
    """One probe in the plan. `requests` may be sent at most, of which one is healthy where refusals are asked for;
    `expected_*` tokens are what is paid if the vendor answers what it should and refuses what it should, `most_*` if it
    answers everything at full length. `left_out`: asks that this grammar cannot express, with the reason."""

    probe: Probe
    requests: int
    expected_input: int
    expected_output: int
    most_input: int
    most_output: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    items: tuple[Item, ...]
    price: Price
    is_dear: bool

    @property
    def requests(self) -> int:
        return sum(item.requests for item in self.items)

    @property
    def expected_cost(self) -> float:
        return sum(self.cost(item.expected_input, item.expected_output) for item in self.items)

    @property
    def most_cost(self) -> float:
        """With the spare requests and the healthy ones, each as dear as the plain answer: what a limit refuses is
        free."""
        healthy = SPARE + sum(is_doubted(item.probe) for item in self.items)
        spare = sum(self.cost(item.most_input, item.most_output) for item in self.items[:1]) * healthy
        return spare + sum(self.cost(item.most_input, item.most_output) for item in self.items)

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """In US dollars."""
        return (input_tokens * self.price.input + output_tokens * self.price.output) / _MILLION


def is_doubted(probe: Probe) -> bool:
    """Is a healthy request sent behind its refusals, to see that it was the mistake that was refused?"""
    return probe.kind is Kind.REFUSAL and not probe.burst


def parse_price(text: str) -> Price:
    """`IN/OUT`, dollars for a million tokens: `2.50/10`. Raises ValueError with what is wrong."""
    left, slash, right = text.partition("/")
    try:
        price = Price(float(left), float(right))
    except ValueError:
        price = Price(-1, -1)
    if not slash or not (0 <= price.input < _MILLION and 0 <= price.output < _MILLION):
        raise ValueError(f"{text!r} is no price: write dollars for a million tokens in and out, as 2.50/10")
    return price


def chosen(probes: Sequence[Probe], only: Collection[str], skip: Collection[str]) -> tuple[Probe, ...]:
    """The probes that `--only` and `--skip` leave; the plain answer always comes first, for nothing else says whether
    the key works. Raises ConfigError for a name that is none, or one that needs leave which was not given."""
    offered = {probe.name for probe in probes}
    for name in (*only, *skip):
        if name not in NAMES:
            raise ConfigError("--only, --skip", None, f"there is no probe {name!r}; valid are {', '.join(NAMES)}")
    for name in only:
        if name not in offered:
            raise ConfigError("--only", None, f"the probe {name!r} {_NEEDS.get(name, 'cannot be asked here')}")
    wanted = {name for name in only or offered if name not in skip} | {"plain"}
    return tuple(probe for probe in probes if probe.name in wanted)


_NEEDS: Final = {
    "moderation": "needs --allow-moderation",
    "burst": "needs --allow-burst N",
    "wrong-key": "needs an upstream with a key",
    "no-key": "needs an upstream with a key",
}


def make_plan(
    probes: Iterable[Probe], dialect: VendorDialect, ways: Ways, counter: TokenCounter, price: Price | None
) -> Plan:
    """Asks that the grammar cannot express are left out of the plan and of the probes in it."""
    items = tuple(_item(probe, dialect, ways, counter) for probe in probes)
    return Plan(items, price or DEAR_PRICE, price is None)


def _item(probe: Probe, dialect: VendorDialect, ways: Ways, counter: TokenCounter) -> Item:
    asks, left_out = [], []
    for ask in probe.asks[:1] if probe.burst else probe.asks:  # those of a burst are alike
        if (reason := unaskable(ask, dialect, ways)) is not None:
            left_out.append(f"{ask.odd}: {reason}")
        else:
            asks.append(ask)
    times = len(probe.asks) if probe.burst else 1
    inputs = sum(_input(ask, counter) for ask in asks) * times
    outputs = sum(ask.request.max_tokens or 0 for ask in asks) * times
    # A refusal is free; so is a burst, as far as it is refused, but how far that is nobody knows.
    is_paid = probe.kind is not Kind.REFUSAL or probe.burst
    expected = sum(_expected(ask, counter) for ask in asks) * times
    return Item(
        replace(probe, asks=tuple(asks) * times),
        len(asks) * times + bool(asks and is_doubted(probe)),
        inputs if is_paid else 0,
        expected if is_paid else 0,
        inputs,
        outputs,
        tuple(left_out),
    )


def _input(ask: Ask, counter: TokenCounter) -> int:
    return count_prompt(counter, countable(ask.request))


def _expected(ask: Ask, counter: TokenCounter) -> int:
    return counter.count(ask.expected) if ask.expected else ask.request.max_tokens or 0
