"""What a token costs: prices by vendor, model, day, tier and length of the prompt.

Values that the price files are read into (`stores.price_files`), and the looking up. A price once found is kept with
the attempt by its `version`, which names its text: another text is another version. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# A vendor or a client may send any name of a model: what was looked up is remembered for so many.
_MAX_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Rates:
    """Nano-units for a million tokens. `input` is for what no cache had."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int


@dataclass(frozen=True, slots=True)
class Price:
    """One model's price from one day on. `since` and `until` (exclusive; None: until the next) are in microseconds.
    `tiers` are by the vendor's service tier; a prompt of more than `long_above` tokens goes by `long` as a whole.
    `max_output` is the longest answer the model can give, in tokens."""

    vendor: str
    model: str
    version: str
    currency: str
    since: int
    until: int | None
    rates: Rates
    tiers: Mapping[str, Rates] = field(default_factory=dict)
    long_above: int | None = None
    long: Rates | None = None
    max_output: int | None = None

    def rates_for(self, tier: str | None, input_tokens: int) -> tuple[Rates, str]:
        """The rates that apply, and the name of the tier: `standard`, `long` or the service tier's."""
        if tier is not None and (found := self.tiers.get(tier.lower())) is not None:
            return found, tier.lower()
        if self.long is not None and self.long_above is not None and input_tokens > self.long_above:
            return self.long, "long"
        return self.rates, "standard"

    @property
    def dearest(self) -> Rates:
        """No token can cost more than this."""
        every = [self.rates, *self.tiers.values(), *([self.long] if self.long is not None else [])]
        return Rates(
            max(max(one.input, one.cache_read, one.cache_write) for one in every),
            max(max(one.output, one.reasoning) for one in every),
            max(one.cache_read for one in every),
            max(one.cache_write for one in every),
            max(one.reasoning for one in every),
        )


@dataclass(frozen=True, slots=True)
class VendorPrices:
    """`exact` by a model's name, `prefixes` by how a name may begin (the longest first); prices by their first day."""

    vendor: str
    exact: Mapping[str, tuple[Price, ...]]
    prefixes: tuple[tuple[str, tuple[Price, ...]], ...] = ()

    def of(self, model: str) -> tuple[Price, ...]:
        found = self.exact.get(model)
        if found is not None:
            return found
        return next((prices for prefix, prices in self.prefixes if model.startswith(prefix)), ())


class PriceBook:
    """All prices in force. `version` is a hash of all texts."""

    def __init__(self, vendors: Mapping[str, VendorPrices], version: str = "") -> None:
        self.vendors, self.version = vendors, version
        self._remembered: dict[tuple[str, str], tuple[Price, ...]] = {}

    def find(self, vendor: str, models: tuple[str | None, ...], at: int) -> Price | None:
        """The price of the first of these names that has one at this moment (microseconds)."""
        for model in models:
            if model is None:
                continue
            for price in reversed(self._of(vendor, model)):
                if price.since <= at:
                    if price.until is None or at < price.until:
                        return price
                    break
        return None

    def _of(self, vendor: str, model: str) -> tuple[Price, ...]:
        key = (vendor, model)
        found = self._remembered.get(key)
        if found is None:
            of_vendor = self.vendors.get(vendor)
            found = of_vendor.of(model) if of_vendor is not None else ()
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = found
        return found
