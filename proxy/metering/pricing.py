"""An attempt's price, by the vendor's own figures and by our count (contract L2).

In: a price, the vendor's usage in one vocabulary, our count. Out: nano-units by part, each rounded once. A vendor's
figures are priced only where they are final: a partial sum or a relay's guess is no invoice. Never: a float.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.canon.usage import NormalUsage
from proxy.metering.money import rounded
from proxy.metering.prices import Price, Rates


@dataclass(frozen=True, slots=True)
class Counted:
    """Our own count; `reasoning` is a part of `output`."""

    input: int
    output: int
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Costs:
    """Nano-units of the price's currency. None: the vendor's figures are not final."""

    tier: str
    input: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    own_input: int
    own_output: int


def price(by: Price, usage: NormalUsage, counted: Counted, tier: str | None) -> Costs:
    """What the attempt costs. A second scale that the vendor charges by goes before its figures."""
    is_final = usage.state == "final" and usage.input is not None and usage.output is not None
    asked = usage.input if is_final and usage.input is not None else counted.input
    rates, name = by.rates_for(tier, asked)
    own_input = rounded(counted.input * rates.input)
    own_output = _output(rates, counted.output, counted.reasoning)
    if not is_final or usage.input is None or usage.output is None:
        return Costs(name, None, None, None, None, own_input, own_output)
    read, written = usage.cache_read or 0, usage.cache_write or 0
    fresh = max(0, usage.input - read - written)
    if usage.billed_input is not None:
        fresh, read, written = usage.billed_input, 0, 0
    output = usage.output if usage.billed_output is None else usage.billed_output
    return Costs(
        name,
        rounded(fresh * rates.input),
        rounded(read * rates.cache_read),
        rounded(written * rates.cache_write),
        _output(rates, output, usage.reasoning or 0),
        own_input,
        own_output,
    )


def _output(rates: Rates, output: int, reasoning: int) -> int:
    thought = min(reasoning, output)
    return rounded((output - thought) * rates.output + thought * rates.reasoning)


def bound(by: Price, request_bytes: int, max_output: int | None) -> int | None:
    """The most that an attempt can cost whatever becomes of it: no token of the prompt is shorter than a byte of the
    request, and no answer longer than was asked for or the model can give. None where nobody set a limit. What a
    request only points at (an image by its address) is not in its bytes, and not in here."""
    longest = max_output if max_output is not None else by.max_output
    if longest is None:
        return None
    dearest = by.dearest
    return rounded(request_bytes * dearest.input + longest * dearest.output)
