"""What a comparison of invoice and ledger came to, one finding for each thing that differs and why (contract C3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Reason(StrEnum):
    """Why invoice and ledger differ, or that they do not."""

    MATCHED = "matched"
    #: On the invoice, and no attempt of ours.
    MISSING_HERE = "missing_here"
    #: Attempts of ours that the invoice leaves out.
    MISSING_THERE = "missing_there"
    #: The same tokens at another price than ours.
    PRICED_DIFFERENTLY = "priced_differently"
    #: Less than the digits that the invoice is written with.
    ROUNDED = "rounded"
    #: The same tokens, another part of them read from or written to a cache.
    CACHED = "cached"
    #: Attempts that ended early and whose usage never came: the vendor charges what it made.
    INTERRUPTED = "interrupted"
    #: One request charged more than once.
    RETRIED = "retried"
    #: A request booked on the day before or after.
    DAY_EDGE = "day_edge"
    #: The whole invoice is cut into days in another zone than the vendor's rule file says.
    TIME_ZONE = "time_zone"
    #: The vendor's tokens for the same text changed: its tokenizer did.
    COUNTED_DIFFERENTLY = "counted_differently"
    #: The vendor reports no usage in its answers: our count stands in for it.
    ESTIMATED = "estimated"
    #: What is no tokens.
    OTHER = "other"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Finding:
    """One explained difference, of a model (None: all) over days (inclusive, by the invoice's calendar). `requests`,
    `tokens` and `amount` (nano-units) are invoice minus ledger. `detail` is a sentence for a person; `places` are some
    of the lines and attempts it rests on."""

    reason: Reason
    model: str | None
    first_day: date
    last_day: date
    requests: int
    tokens: int
    amount: int
    currency: str | None
    detail: str
    places: tuple[str, ...] = ()
