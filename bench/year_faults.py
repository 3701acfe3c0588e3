"""What goes wrong in a synthetic year, and the truth about it.

In: the names of faults and a seed. Out: what each changes in a day's traffic or its charges, and a record of the truth:
reason, vendor, model, days, requests and tokens (invoice minus ledger). Each stands in a month of its own, so that each
can be looked for by itself; which day of it and which attempts is the seed's to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final

import numpy as np

from bench.year_traffic import COMPLETED, DAY_US, FIRST, Day, Ints

#: Fault: vendor, month. A tokenizer once changed stays changed, and so does a price until the year's end.
FAULTS: Final = {
    "missing_there": ("openai", 2),
    "missing_here": ("anthropic", 3),
    "retried": ("openai", 4),
    "retried_by_id": ("openrouter", 5),
    "missing_there_by_id": ("openrouter", 6),
    "day_edge": ("openai", 7),
    "cached": ("deepseek", 5),
    "time_zone": ("gemini", 8),
    "priced_differently": ("anthropic", 9),
    "counted_differently": ("deepseek", 10),
}
#: The reason that a comparison has to give.
REASONS: Final = {"retried_by_id": "retried", "missing_there_by_id": "missing_there"}
NEW_TOKENIZER: Final = 1.07
NEW_PRICE: Final = (6, 5)  # six fifths
#: The invoice of the odd month is cut into days of this zone.
WRONG_ZONE: Final = "UTC"
EDGE_US: Final = 10 * 60 * 1_000_000


@dataclass(slots=True)
class Truth:
    """One fault as it was made. `days` by the invoice's calendar."""

    fault: str
    vendor: str
    model: str | None
    days: list[date]
    requests: int = 0
    tokens: int = 0

    @property
    def reason(self) -> str:
        return REASONS.get(self.fault, self.fault)


@dataclass(slots=True)
class Charges:
    """What the vendor charges for a day's attempts: `times` each is charged, and on how many days later; `extra` are
    charges of nobody's attempts, as (model, fresh input, cache read, cache write, output)."""

    times: Ints
    later: Ints
    kinds: Ints
    extra: list[tuple[int, int, int, int, int]] = field(default_factory=list)


class Faults:
    """The faults of one year. `truths` is whole when every day has been asked for."""

    def __init__(self, names: frozenset[str], seed: int) -> None:
        unknown = names - FAULTS.keys()
        if unknown:
            raise ValueError(f"{min(unknown)!r} is no fault; there are {', '.join(FAULTS)}")
        self.names, self._seed = names, seed
        chance = np.random.Generator(np.random.PCG64([seed, 77]))
        self._day = {name: date(FIRST.year, month, int(chance.integers(9, 20))) for name, (_, month) in FAULTS.items()}
        self.truths: dict[str, Truth] = {}

    def is_on(self, name: str, vendor: str) -> bool:
        return name in self.names and FAULTS[name][0] == vendor

    def day(self, name: str) -> date:
        return self._day[name]

    def alter_traffic(self, one: Day) -> None:
        """A tokenizer that changed: the vendor's own figures are others, in its answers and on its invoice. And what
        is to be booked on the wrong side of midnight has to begin near it."""
        if self._is_day("day_edge", one):
            late = np.flatnonzero(one.is_sure & (one.model == 0))[-3:]
            one.started[late] = _midnight(one) - np.array([400, 200, 60])[-len(late) :] * 1_000_000
        if self.is_on("counted_differently", one.vendor.name) and one.day >= self._day["counted_differently"]:
            of_model = one.model == 0
            before = one.true[of_model].sum()
            one.true[of_model] = np.rint(one.true[of_model] * NEW_TOKENIZER).astype(np.int64)
            truth = self._truth("counted_differently", one, 0)
            truth.days.append(one.day)
            truth.tokens += int(one.true[of_model].sum() - before)

    def charges(self, one: Day) -> Charges:
        """What the vendor makes of this day."""
        charges = Charges(one.is_charged.astype(np.int64), np.zeros(one.count, np.int64), one.true.copy())
        chance = np.random.Generator(np.random.PCG64([self._seed, one.first]))
        for name in ("missing_there", "missing_there_by_id"):
            if self._is_day(name, one):
                lost = self._some(one, one.is_sure & (one.model == 0), 5, chance)
                charges.times[lost] = 0
                self._note(name, one, lost, -1)
        for name in ("retried", "retried_by_id"):
            if self._is_day(name, one):
                again = self._some(one, one.is_sure & (one.model == 0) & (one.attempt_no > 1), 3, chance)
                charges.times[again] = 2
                self._note(name, one, again, 1)
        if self._is_day("missing_here", one):
            charges.extra.append((1, 250_000, 0, 0, 40_000))
            truth = self._truth("missing_here", one, 1)
            truth.days, truth.requests, truth.tokens = [one.day], 1, 290_000
        if self._is_day("day_edge", one):
            late = np.flatnonzero(one.is_sure & (one.model == 0) & (one.started >= _midnight(one) - EDGE_US))
            charges.later[late] = 1
            self._note("day_edge", one, late, -1)
            self.truths["day_edge"].days.append(one.day + timedelta(days=1))
        if self.is_on("cached", one.vendor.name) and 0 <= (one.day - self._day["cached"]).days < 3:
            moved = one.is_charged & (one.model == 0)
            charges.kinds[moved, 0] += charges.kinds[moved, 1]
            charges.kinds[moved, 1] = 0
            self._truth("cached", one, 0).days.append(one.day)
        return charges

    def price(self, vendor: str, model: int, kind: int, day: date, price: int) -> int:
        """What a token is charged at (nano-units)."""
        if (
            self.is_on("priced_differently", vendor)
            and model == 0
            and kind == 3
            and day >= self._day["priced_differently"]
        ):
            from bench.year_traffic import VENDORS

            of = next(one for one in VENDORS if one.name == vendor)
            truth = self.truths.setdefault(
                "priced_differently", Truth("priced_differently", vendor, of.models[0].served, [])
            )
            if day not in truth.days:
                truth.days.append(day)
            return price * NEW_PRICE[0] // NEW_PRICE[1]
        return price

    def zone(self, vendor: str, zone: str, month: int) -> str:
        """Of the invoice of this month."""
        if self.is_on("time_zone", vendor) and month == FAULTS["time_zone"][1]:
            self.truths["time_zone"] = Truth("time_zone", vendor, None, [])
            return WRONG_ZONE
        return zone

    def _is_day(self, name: str, one: Day) -> bool:
        return self.is_on(name, one.vendor.name) and one.day == self._day[name]

    def _truth(self, name: str, one: Day, model: int) -> Truth:
        made = Truth(name, one.vendor.name, one.vendor.models[model].served, [])
        return self.truths.setdefault(name, made)

    def _note(self, name: str, one: Day, which: Ints, sign: int) -> None:
        truth = self._truth(name, one, 0)
        truth.days = [one.day]
        truth.requests, truth.tokens = sign * len(which), sign * int(one.true[which].sum())

    @staticmethod
    def _some(one: Day, wanted: object, most: int, chance: np.random.Generator) -> Ints:
        """Up to so many of these attempts, one at least: where there is none, any complete one of the model."""
        found = np.flatnonzero(np.asarray(wanted))
        if not len(found):
            found = np.flatnonzero((one.ending == COMPLETED) & (one.model == 0))[:1]
            one.attempt_no[found] = 2
        return np.sort(chance.choice(found, min(most, len(found)), replace=False))


def _midnight(one: Day) -> int:
    """The end of the day, in microseconds."""
    return ((one.day - date(1970, 1, 1)).days + 1) * DAY_US
