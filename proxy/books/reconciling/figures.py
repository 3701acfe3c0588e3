"""Requests, tokens and money that can be added and taken away: the arithmetic of reconciling.

Values only. Tokens stand in the order of `KINDS`, which are disjoint; money is in nano-units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from proxy.books.invoice import PartKind

#: The kinds of tokens that are charged each at its own price.
KINDS = (PartKind.INPUT, PartKind.CACHE_READ, PartKind.CACHE_WRITE, PartKind.OUTPUT)
INPUT, CACHE_READ, CACHE_WRITE, OUTPUT = range(len(KINDS))
_NONE = (0, 0, 0, 0)

Tokens = tuple[int, int, int, int]


def added(one: Tokens, other: Tokens, sign: int = 1) -> Tokens:
    return (
        one[0] + sign * other[0],
        one[1] + sign * other[1],
        one[2] + sign * other[2],
        one[3] + sign * other[3],
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """Some attempts together: how many, their tokens and what those cost, by kind."""

    requests: int = 0
    tokens: Tokens = _NONE
    cost: Tokens = _NONE

    def __add__(self, other: Figures) -> Figures:
        return Figures(self.requests + other.requests, added(self.tokens, other.tokens), added(self.cost, other.cost))

    @property
    def total(self) -> int:
        return sum(self.tokens)


def summed(figures: Iterable[Figures]) -> Figures:
    total = Figures()
    for one in figures:
        total = total + one
    return total


@dataclass(slots=True)
class LedgerCell:
    """What the ledger says of one model on one day.

    `sure` reported their usage. `early` ended early and never did: their tokens are our own count, as far as anything
    came. `told_nothing` are complete, of a vendor that reports no usage. `unseen` are attempts of which only their size
    is known: open ones and those of a process that died; their tokens are bounds. `failed` were refused. `uncosted` of
    the sure ones have no price."""

    sure: Figures = field(default_factory=Figures)
    early: Figures = field(default_factory=Figures)
    told_nothing: Figures = field(default_factory=Figures)
    unseen: Figures = field(default_factory=Figures)
    failed: int = 0
    uncosted: int = 0

    @property
    def attempts(self) -> int:
        return self.sure.requests + self.early.requests + self.told_nothing.requests + self.unseen.requests


@dataclass(slots=True)
class InvoiceCell:
    """What the invoice says of one model on one day. `requests` is None where it does not count them. `amounts` may
    have `PartKind.ALL` for lines with one amount for everything. `rounding` is how far its written digits may be off,
    in nano-units; `places` are the first of its lines."""

    requests: int | None = None
    tokens: dict[PartKind, int] = field(default_factory=dict)
    amounts: dict[PartKind, int] = field(default_factory=dict)
    rounding: int = 0
    lines: int = 0
    places: list[str] = field(default_factory=list)

    @property
    def amount(self) -> int:
        return sum(self.amounts.values())
