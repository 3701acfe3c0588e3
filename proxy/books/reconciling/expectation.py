"""What a vendor may charge for attempts whose usage never came, and how sure that is.

In: cells of both sides. Out: for each cell the figures to be expected beyond what the answers reported, with a slack.
Our own count stands in, scaled by how this vendor's figures stand to it where both are known; whether the vendor
charges for attempts that ended early at all is read off the whole invoice. sans-I/O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from proxy.books.reconciling.cells import Key
from proxy.books.reconciling.figures import INPUT, OUTPUT, InvoiceCell, LedgerCell, Tokens, added

#: An estimate of an attempt's input may be off by this share and so many tokens, of its output by that: the vendor goes
#: on writing for a while when nobody listens.
_INPUT_SLACK = (0.05, 30)
_OUTPUT_SLACK = (0.35, 200)
_TOLD_NOTHING_SLACK = 0.05


@dataclass(frozen=True, slots=True)
class Scale:
    """How a vendor's figures of one model stand to our count."""

    input: float = 1.0
    output: float = 1.0


@dataclass(frozen=True, slots=True)
class Expected:
    """Beyond the sure figures: `requests` at least and `hidden` more at most; `tokens` give or take `slack`."""

    requests: int = 0
    hidden: int = 0
    tokens: Tokens = (0, 0, 0, 0)
    slack: Tokens = (0, 0, 0, 0)


def charges_early(ledger: Mapping[Key, LedgerCell], invoice: Mapping[Key, InvoiceCell]) -> bool:
    """Does this vendor charge for attempts that ended early? The nearer of both answers, over the cells that tell."""
    charged = free = 0
    for key, cell in ledger.items():
        theirs = invoice.get(key)
        if not cell.early.requests or theirs is None:
            continue
        if theirs.requests is not None:
            over, whole = theirs.requests - cell.sure.requests, cell.early.requests
        elif theirs.tokens:
            over, whole = sum(theirs.tokens.values()) - cell.sure.total, cell.early.total
        else:
            continue
        charged += abs(over - whole) < abs(over)
        free += abs(over - whole) > abs(over)
    return charged >= free


def expected(cell: LedgerCell, scale: Scale, *, early: bool) -> Expected:
    """What this cell's invoice may say beyond the sure figures."""
    told = cell.told_nothing
    requests, tokens, slack = told.requests, scaled(told.tokens, scale), [0, 0, 0, 0]
    for place in (INPUT, OUTPUT):
        slack[place] += round(_TOLD_NOTHING_SLACK * tokens[place])
    if early and (count := cell.early.requests):
        ended = scaled(cell.early.tokens, scale)
        requests, tokens = requests + count, added(tokens, ended)
        slack[INPUT] += round(_INPUT_SLACK[0] * ended[INPUT]) + _INPUT_SLACK[1] * count
        slack[OUTPUT] += round(_OUTPUT_SLACK[0] * ended[OUTPUT]) + _OUTPUT_SLACK[1] * count
    for place in (INPUT, OUTPUT):  # of these only a bound is known
        slack[place] += cell.unseen.tokens[place]
    return Expected(requests, cell.unseen.requests, tokens, (slack[0], slack[1], slack[2], slack[3]))


def scaled(tokens: Tokens, scale: Scale) -> Tokens:
    return (round(tokens[0] * scale.input), tokens[1], tokens[2], round(tokens[3] * scale.output))


def scales(counted: Mapping[str, tuple[int, int, int, int]]) -> dict[str, Scale]:
    """By model, of (vendor's input, our input, vendor's output, our output) over attempts that have both."""
    found: dict[str, Scale] = defaultdict(Scale)
    for group, (their_input, our_input, their_output, our_output) in counted.items():
        found[group] = Scale(
            their_input / our_input if our_input else 1.0, their_output / our_output if our_output else 1.0
        )
    return found
