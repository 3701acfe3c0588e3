"""Why a day of the invoice differs from that day of the ledger: tokens first, then money (contract C3).

In: one model's cells of both sides, what may be expected of attempts without usage, and the attempts that could be
meant (those near midnight, those that were tried again). Out: entries whose requests, tokens and amounts add up to
invoice minus ledger, to the last token and nano. An explanation is taken only where the figures bear it out; what none
bears out is told as unexplained. sans-I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import combinations

from proxy.books.finding import Reason
from proxy.books.invoice import PartKind
from proxy.books.reconciling.by_request import ratio_word
from proxy.books.reconciling.entries import Entry
from proxy.books.reconciling.expectation import Expected
from proxy.books.reconciling.figures import (
    CACHE_READ,
    CACHE_WRITE,
    INPUT,
    KINDS,
    OUTPUT,
    Figures,
    InvoiceCell,
    LedgerCell,
    Tokens,
    added,
)

#: Of more attempts than these no set is looked for that adds up exactly.
_MOST_TRIED = 14
_NOTHING: Tokens = (0, 0, 0, 0)

#: What a token of each kind costs here, in nano-units; None: no price.
Prices = tuple[Fraction | None, Fraction | None, Fraction | None, Fraction | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """Invoice minus ledger of one cell, in tokens. `requests` is None where the invoice counts none."""

    requests: int | None
    tokens: Tokens


@dataclass(slots=True)
class Cell:
    """One model on one day, with all that is needed to explain it. `says_tokens`: does the invoice? Where it does not,
    its tokens are taken for those expected and all that differs is money. `says_money`: has it any amount at all?"""

    group: str
    day: date
    ledger: LedgerCell
    invoice: InvoiceCell
    expected: Expected
    says_tokens: bool
    says_money: bool
    prices: Prices
    tried_again: Sequence[Figures] = ()

    def over(self) -> Difference:
        """What is on the invoice beyond the sure and the expected."""
        expected, sure = self.expected, self.ledger.sure
        requests = None
        if self.invoice.requests is not None:
            requests = self.invoice.requests - sure.requests - expected.requests
            if 0 < requests <= expected.hidden:
                requests = 0
        if not self.says_tokens:
            return Difference(requests, _NOTHING)
        theirs = self.their_tokens()
        return Difference(requests, added(added(theirs, sure.tokens, -1), expected.tokens, -1))

    def their_tokens(self) -> Tokens:
        if not self.says_tokens:
            return added(self.ledger.sure.tokens, self.expected.tokens)
        told = self.invoice.tokens
        one, two, three, four = (told.get(kind, 0) for kind in KINDS)
        return one, two, three, four

    def usual(self, requests: int) -> Tokens:
        """The tokens of so many attempts such as the day's are."""
        sure = self.ledger.sure
        one, two, three, four = (
            round(Fraction(figure * requests, sure.requests)) if sure.requests else 0 for figure in sure.tokens
        )
        return one, two, three, four

    def entry(self, reason: Reason, requests: int, tokens: Tokens, detail: str, amount: int = 0) -> Entry:
        return Entry(reason, self.group, self.day, requests, tokens, amount, detail, tuple(self.invoice.places))

    def within_slack(self, tokens: Tokens) -> bool:
        figures = added(tokens, self.from_cache(tokens), -1)
        return all(abs(figure) <= slack for figure, slack in zip(figures, self.expected.slack, strict=True))

    def from_cache(self, over: Tokens) -> Tokens:
        """What of the input of attempts that ended early came from a cache or went into one, which nobody told us: as
        fresh input it was expected."""
        most = self.expected.tokens[INPUT] + self.expected.slack[INPUT]
        read, written = over[CACHE_READ], over[CACHE_WRITE]
        if read < 0 or written < 0 or read + written > most:
            return _NOTHING
        return -read - written, read, written, 0


def explain_tokens(cell: Cell, moved: Sequence[Entry]) -> list[Entry]:
    """Entries whose tokens add up to invoice minus ledger. `moved` are those of the days' edges, found before."""
    found = list(moved)
    over = cell.over()
    requests, tokens = over.requests, over.tokens
    for entry in moved:
        tokens = added(tokens, entry.tokens, -1)
        requests = None if requests is None else requests - entry.requests
    if not cell.says_tokens:
        return found + _expected_entries(cell, _NOTHING)
    moved_kinds = cell.from_cache(tokens)
    tokens = added(tokens, moved_kinds, -1)
    tokens, cached = _take_cached(cell, tokens)
    found += cached
    if requests is None:
        named, rest = _without_requests(cell, tokens)
    elif requests:
        named, rest = _with_requests(cell, requests, tokens)
    else:
        named, rest = [], tokens
    found += named
    if not cell.within_slack(rest):
        found.append(cell.entry(Reason.UNEXPLAINED, 0, rest, "other tokens than the answers reported"))
        rest = _NOTHING
    return found + _expected_entries(cell, added(rest, moved_kinds))


def _expected_entries(cell: Cell, rest: Tokens) -> list[Entry]:
    """What was to be expected, with the little that was left over."""
    ledger, wanted = cell.ledger, cell.expected
    told = ledger.told_nothing
    early = wanted.requests - told.requests
    found = []
    if told.requests and not early and not ledger.unseen.requests:
        # our own count of these stands in the ledger's sum already
        found.append(cell.entry(Reason.ESTIMATED, 0, added(added(wanted.tokens, told.tokens, -1), rest), _ESTIMATED))
        return found
    if told.requests:
        share = added(wanted.tokens, _early_tokens(cell), -1)
        found.append(cell.entry(Reason.ESTIMATED, 0, added(share, told.tokens, -1), _ESTIMATED))
    tokens = added(_early_tokens(cell), rest)
    hidden = 0
    if cell.invoice.requests is not None:
        beyond = cell.invoice.requests - ledger.sure.requests - wanted.requests
        hidden = beyond if 0 < beyond <= wanted.hidden else 0
    if early or any(tokens) or hidden:
        found.append(cell.entry(Reason.INTERRUPTED, early + hidden, tokens, _EARLY))
    return found


_ESTIMATED = "the answers tell no usage: our own count stands in"
_EARLY = "ended early, and charged"


def _early_tokens(cell: Cell) -> Tokens:
    """The expected tokens less those of complete attempts, in the same scale."""
    told = cell.ledger.told_nothing
    whole = told.tokens[INPUT] + cell.ledger.early.tokens[INPUT], told.tokens[OUTPUT] + cell.ledger.early.tokens[OUTPUT]
    if cell.expected.requests == told.requests:
        return _NOTHING
    if not told.requests:
        return cell.expected.tokens
    parts = [0, 0, 0, 0]
    for place, total in ((INPUT, whole[0]), (OUTPUT, whole[1])):
        if total:
            parts[place] = cell.expected.tokens[place] * cell.ledger.early.tokens[place] // total
    return parts[0], parts[1], parts[2], parts[3]


def _take_cached(cell: Cell, over: Tokens) -> tuple[Tokens, list[Entry]]:
    """Input that is on the invoice under another kind than the answers said."""
    moved, moved_write = over[CACHE_READ], over[CACHE_WRITE]
    fresh = over[INPUT] + moved + moved_write
    if not (moved or moved_write) or abs(fresh) > cell.expected.slack[INPUT] or moved * over[INPUT] > 0:
        return over, []
    tokens = (-moved - moved_write, moved, moved_write, 0)
    detail = (
        "charged as fresh input, the answers said cached"
        if moved + moved_write < 0
        else ("charged as cached, the answers said fresh input")
    )
    return added(over, tokens, -1), [cell.entry(Reason.CACHED, 0, tokens, detail)]


def _with_requests(cell: Cell, requests: int, over: Tokens) -> tuple[list[Entry], Tokens]:
    """Requests too few or too many by the invoice's own count."""
    if requests < 0:
        if not _may_be_of(-requests, [-figure for figure in over], cell):
            return [cell.entry(Reason.UNEXPLAINED, requests, over, "fewer requests, and not fewer tokens")], _NOTHING
        usual = cell.usual(requests)
        rest = added(over, usual, -1)
        if 2 * abs(sum(rest)) > abs(sum(usual)) and cell.within_slack(rest):
            # so many attempts are seldom so small or so large: what the early ones differ by is in here as well
            return [cell.entry(Reason.MISSING_THERE, requests, usual, _MISSING_THERE)], rest
        return [cell.entry(Reason.MISSING_THERE, requests, over, _MISSING_THERE)], _NOTHING
    if requests <= len(cell.tried_again) and _some_add_up(cell, over, requests):
        return [cell.entry(Reason.RETRIED, requests, over, _RETRIED)], _NOTHING
    return [cell.entry(Reason.MISSING_HERE, requests, over, _MISSING_HERE)], _NOTHING


def _may_be_of(count: int, tokens: Sequence[int], cell: Cell) -> bool:
    """May so many attempts have had these tokens? None of them negative beyond the slack."""
    slack = cell.expected.slack
    return count > 0 and all(figure >= -slack[place] for place, figure in enumerate(tokens))


def _without_requests(cell: Cell, over: Tokens) -> tuple[list[Entry], Tokens]:
    """The invoice counts no requests: what is over in all kinds of tokens is a request too many, and so on."""
    if cell.within_slack(over):
        return [], over
    slack = cell.expected.slack
    if all(figure <= slack[place] for place, figure in enumerate(over)):
        return [cell.entry(Reason.MISSING_THERE, 0, over, _MISSING_THERE)], _NOTHING
    if all(figure >= -slack[place] for place, figure in enumerate(over)):
        if cell.tried_again and _some_add_up(cell, over, None):
            return [cell.entry(Reason.RETRIED, 0, over, _RETRIED)], _NOTHING
        return [cell.entry(Reason.MISSING_HERE, 0, over, _MISSING_HERE)], _NOTHING
    return [], over


_MISSING_THERE = "attempts that the invoice leaves out"
_MISSING_HERE = "charged, and no attempt of ours"
_RETRIED = "attempts that were tried again, charged once more"


def _some_add_up(cell: Cell, over: Tokens, count: int | None) -> bool:
    """Do some of the attempts that were tried again (`count` of them, if that is known) have just these tokens? Of many
    only the bounds are looked at."""
    again = cell.tried_again
    counts = range(1, len(again) + 1) if count is None else (count,)
    if len(again) <= _MOST_TRIED:
        return any(
            cell.within_slack(added(over, _tokens(chosen), -1))
            for size in counts
            for chosen in combinations(again, size)
        )
    totals = sorted(one.total for one in again)
    total, slack = sum(over), sum(cell.expected.slack)
    return any(sum(totals[:size]) - slack <= total <= sum(totals[-size:]) + slack for size in counts)


def _tokens(chosen: Sequence[Figures]) -> Tokens:
    total = _NOTHING
    for one in chosen:
        total = added(total, one.tokens)
    return total


# -- days' edges ------------------------------------------------------------------------------------------------------


def edge_entries(
    before: Cell | None, after: Cell | None, last: Sequence[Figures], first: Sequence[Figures]
) -> tuple[Entry | None, Entry | None]:
    """Requests that the invoice has on the other side of midnight, between two days of one model (None: outside of the
    period). `last` are the attempts that began just before midnight, the latest first; `first` those just after it.
    Only a set of attempts whose figures are just what is missing on one side and over on the other is taken."""
    for near, there, here in ((last, after, before), (first, before, after)):
        moved = _moved(here, there, near)
        if moved is None:
            continue
        detail = "began before midnight, charged on the next day"
        if near is first:
            detail = "began after midnight, charged on the day before"
        less = None
        more = None
        if here is not None:
            less = here.entry(Reason.DAY_EDGE, -moved.requests, added(_NOTHING, moved.tokens, -1), detail)
        if there is not None:
            more = there.entry(Reason.DAY_EDGE, moved.requests, moved.tokens, detail)
        return (less, more) if here is before else (more, less)
    return None, None


def _moved(here: Cell | None, there: Cell | None, near: Sequence[Figures]) -> Figures | None:
    """The attempts of `here` that are charged `there`."""
    missing = here.over() if here is not None else None
    extra = there.over() if there is not None else None
    if not _is_out(here, missing) and not _is_out(there, extra):
        return None
    total = Figures()
    for attempt in near:
        total = total + attempt
        if _fits(here, missing, total, -1) and _fits(there, extra, total, 1):
            return total
    return None


def _is_out(cell: Cell | None, over: Difference | None) -> bool:
    if cell is None or over is None or not cell.says_tokens:
        return False
    return bool(over.requests) or not cell.within_slack(over.tokens)


def _fits(cell: Cell | None, over: Difference | None, moved: Figures, sign: int) -> bool:
    """Would the cell be right without them? On the far side of the period's end nobody knows."""
    if cell is None or over is None:
        return True
    if over.requests is not None and over.requests != sign * moved.requests:
        return False
    return cell.within_slack(added(over.tokens, moved.tokens, -sign))


# -- money ------------------------------------------------------------------------------------------------------------


def explain_money(cell: Cell, entries: Sequence[Entry]) -> list[Entry]:
    """The entries with the price of their tokens, and what is left between invoice and price. The amounts add up to
    invoice minus ledger."""
    if not cell.says_money:
        return list(entries)
    ledger_cost = sum(cell.ledger.sure.cost) + sum(cell.ledger.told_nothing.cost)
    difference = cell.invoice.amount - ledger_cost
    if not cell.ledger.attempts and not cell.says_tokens:
        return [cell.entry(Reason.MISSING_HERE, 0, _NOTHING, _MISSING_HERE, difference)]
    their_tokens = cell.their_tokens()
    unpriced = any(count and cell.prices[place] is None for place, count in enumerate(their_tokens))
    if unpriced or cell.ledger.uncosted:
        detail = "no price here: see `sluice check-prices`"
        return [*entries, cell.entry(Reason.UNEXPLAINED, 0, _NOTHING, detail, difference)]
    priced = [_priced(entry, cell.prices) for entry in entries]
    left = difference - sum(entry.amount for entry in priced)
    if not left:
        return priced
    if abs(left) <= _rounding(cell):
        return [*priced, cell.entry(Reason.ROUNDED, 0, _NOTHING, "digits that were not written", left)]
    return [*priced, *_priced_differently(cell, their_tokens, left)]


def _rounding(cell: Cell) -> int:
    """What the invoice does not write, and a half nano for each part of each row that we rounded."""
    invoice = cell.invoice
    return invoice.rounding + 2 * cell.ledger.attempts + 4 * max(invoice.lines, 1)


def _priced(entry: Entry, prices: Prices) -> Entry:
    amount = sum((tokens * (prices[place] or 0) for place, tokens in enumerate(entry.tokens)), start=Fraction(0))
    return Entry(
        entry.reason, entry.group, entry.day, entry.requests, entry.tokens, round(amount), entry.detail, entry.places
    )


def _priced_differently(cell: Cell, their_tokens: Tokens, left: int) -> list[Entry]:
    """By kind where the invoice has an amount for each, else as a whole."""
    amounts = cell.invoice.amounts
    if PartKind.ALL in amounts:
        wanted = sum(
            (tokens * (cell.prices[place] or 0) for place, tokens in enumerate(their_tokens)), start=Fraction(0)
        )
        detail = f"charged {ratio_word(cell.invoice.amount, round(wanted))} of the price here"
        return [cell.entry(Reason.PRICED_DIFFERENTLY, 0, _NOTHING, detail, left)]
    found: list[Entry] = []
    for place, kind in enumerate(KINDS):
        wanted_kind = round(their_tokens[place] * (cell.prices[place] or Fraction(0)))
        off = amounts.get(kind, 0) - wanted_kind
        if abs(off) > _rounding(cell):
            detail = f"{kind} charged {ratio_word(amounts.get(kind, 0), wanted_kind)} of the price here"
            found.append(cell.entry(Reason.PRICED_DIFFERENTLY, 0, _NOTHING, detail, off))
            left -= off
    if left:
        reason = Reason.ROUNDED if abs(left) <= _rounding(cell) else Reason.UNEXPLAINED
        found.append(cell.entry(reason, 0, _NOTHING, "digits that were not written", left))
    return found
