"""In which zone an invoice is cut into days, told by its figures (contract C3: clock skew, time zones).

In: the ledger by half hours and the invoice by days. Out: the zone that fits far better than the one that was taken for
granted, or None. A zone is named by a place where one fits, for then its summer time is right too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from proxy.books.reconciling.cells import Days, Key, Slot
from proxy.books.reconciling.figures import InvoiceCell

#: Where vendors and their customers keep books, the likely ones first; then whole offsets.
_PLACES = (
    *("UTC", "America/Los_Angeles", "Asia/Shanghai", "America/New_York", "Europe/London", "Europe/Berlin"),
    *("Asia/Tokyo", "Asia/Kolkata", "Asia/Seoul", "Asia/Singapore", "Australia/Sydney", "America/Sao_Paulo"),
)
# The sign of these names is the other way round: Etc/GMT+8 is eight hours behind.
_OFFSETS = tuple(f"Etc/GMT{offset:+d}" for offset in range(-14, 13) if offset)
#: A smaller share that lies on other days is no sign of another zone, and another zone has to take half of it away.
_MISFIT = 0.01
_CURE = 0.5
_MISFIT_OF_A_DAY = 0.002
_FEWEST_DAYS = 4


@dataclass(frozen=True, slots=True)
class _Days:
    """The days that a zone can be judged by. The first and the last are cut by the period and not by the zone alone:
    they would count against every zone."""

    first: date
    last: date
    theirs: Mapping[Key, int]
    ours: tuple[tuple[str, int, int], ...]

    def left(self, zone: str) -> dict[Key, int]:
        """Invoice minus ledger, with days of this zone."""
        days = Days(zone)
        left: dict[Key, int] = defaultdict(int)
        for group, slot, amount in self.ours:
            day = days.of(slot)
            if self.first < day < self.last:
                left[(group, day)] -= amount
        for key, amount in self.theirs.items():
            left[key] += amount
        return left

    def misfit(self, zone: str) -> int:
        """How much lies on another day than the invoice says."""
        return sum(map(abs, self.left(zone).values()))

    def is_wrong_throughout(self, zone: str) -> bool:
        """Are most days off? A fault of one night is no matter of zones."""
        wrong = {key for key, over in self.left(zone).items() if abs(over) > _MISFIT_OF_A_DAY * self.theirs.get(key, 0)}
        return 2 * len(wrong) > len(self.theirs)


def better_zone(
    slots: list[Slot], invoice: Mapping[Key, InvoiceCell], zone: str, first_day: date, last_day: date
) -> str | None:
    """The zone that this invoice is cut in, if it is clearly another than `zone`."""
    if (last_day - first_day).days + 1 < _FEWEST_DAYS:
        return None
    says_tokens = any(cell.tokens for cell in invoice.values())
    theirs = {
        key: sum(cell.tokens.values()) if says_tokens else cell.amount
        for key, cell in invoice.items()
        if first_day < key[1] < last_day
    }
    ours: dict[tuple[str, int], int] = defaultdict(int)
    for slot in slots:
        if slot.state in ("sure", "told_nothing"):
            figures = slot.figures
            ours[(slot.group, slot.slot)] += figures.total if says_tokens else sum(figures.cost)
    days = _Days(first_day, last_day, theirs, tuple((group, slot, amount) for (group, slot), amount in ours.items()))
    assumed = days.misfit(zone)
    if assumed <= _MISFIT * sum(theirs.values()) or not days.is_wrong_throughout(zone):
        return None
    others = [other for other in (*_PLACES, *_OFFSETS) if other != zone]
    best, place = min((days.misfit(other), place) for place, other in enumerate(others))
    return others[place] if best <= _CURE * assumed else None
