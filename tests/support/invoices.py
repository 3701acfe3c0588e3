"""Invoices that were read, added up for a comparison with what was added up by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from proxy.books.invoice import Invoice

SAMPLES = Path(__file__).resolve().parents[1] / "unit" / "books" / "invoices" / "data"


@dataclass(frozen=True)
class Sums:
    """Tokens and nano-units by kind, requests, and the number of lines; of an invoice as a whole."""

    tokens: dict[str, int]
    amounts: dict[str, int]
    requests: int
    lines: int
    models: tuple[str, ...]
    currencies: tuple[str, ...]


def sums(invoice: Invoice) -> Sums:
    """Reads its lines."""
    tokens: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    lines = list(invoice.lines)
    for line in lines:
        for part in line.parts:
            if part.tokens is not None:
                tokens[part.kind.value] += part.tokens
            if part.amount is not None:
                amounts[part.kind.value] += part.amount
    return Sums(
        dict(tokens),
        dict(amounts),
        sum(line.requests or 0 for line in lines),
        len(lines),
        tuple(sorted({line.model for line in lines if line.model is not None})),
        tuple(sorted({line.currency for line in lines if line.currency is not None})),
    )
