"""What a vendor's invoice says, in one form for all of them (contract C3, reconciling).

In: what a reader found in a vendor's export. Out: values that can be compared with the ledger. Tokens are integers,
money is in nano-units (10**-9) of a currency. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum


class PartKind(StrEnum):
    """What a part of a line is for. The token kinds are disjoint: `INPUT` leaves out what a cache gave and took.
    `OUTPUT` includes reasoning. `ALL`: one amount for the whole line. `OTHER`: what is no tokens (a search)."""

    INPUT = "input"
    CACHE_READ = "cache_read"
    CACHE_WRITE = "cache_write"
    OUTPUT = "output"
    ALL = "all"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Part:
    """`tokens` and `amount` (nano-units); None: the line does not say."""

    kind: PartKind
    tokens: int | None = None
    amount: int | None = None


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """One line. `place` is where it stands (`usage.csv:17`, `usage.json/data/3/results/0`). A line is of a moment `at`
    (aware; a request's), of a span from `at` to `until` (a bucket), or of a `day` by the invoice's own calendar where
    that is all it says. `request_id` is the vendor's own id of a request or a response. `requests` is how many it is
    for, None if it does not say; `precision` the value of the last digit that its amounts are written with."""

    place: str
    parts: tuple[Part, ...]
    model: str | None = None
    at: datetime | None = None
    until: datetime | None = None
    day: date | None = None
    request_id: str | None = None
    requests: int | None = None
    currency: str | None = None
    tier: str | None = None
    precision: int | None = None


@dataclass(frozen=True, slots=True)
class Invoice:
    """An export as a whole. `form` names the format it was read as; `time_zone` is the IANA name of the zone that its
    days are cut in (None: not known, the vendor's rule file says); `says_tokens`, `says_money` and `says_requests` are
    what its lines have at all. `lines` may be read once."""

    form: str
    lines: Iterable[InvoiceLine]
    time_zone: str | None
    says_tokens: bool
    says_money: bool
    says_requests: bool

    def in_zone(self, zone: str) -> Invoice:
        """The same, with its days cut in this zone."""
        return replace(self, time_zone=zone)
