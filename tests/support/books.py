"""Small ledgers and invoices for tests of the books: made in a line each, compared in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from itertools import count
from typing import Any, Final

import duckdb

from proxy.books.finding import Reason
from proxy.books.invoice import Invoice, InvoiceLine, Part, PartKind
from proxy.books.reconciling.entries import Entry
from proxy.books.reconciling.result import Reconciliation
from proxy.stores.ledger_rows import COLUMNS, Values
from proxy.stores.schema import attempts

MICROS: Final = 1_000_000
#: Nano-units a token, in the order of the kinds.
PRICES: Final = (2_500, 250, 3_000, 10_000)
_numbers = count(1)


def attempt(moment: datetime, tokens: Sequence[int] = (100, 0, 0, 20), **fields: Any) -> dict[str, Any]:
    """A complete attempt whose vendor reported `tokens` (fresh input, cache read, cache write, output), priced by
    `PRICES`. Our own count is the same."""
    number = next(_numbers)
    fresh, read, write, output = tokens
    started = round(moment.timestamp() * MICROS)
    costs = [figure * price for figure, price in zip(tokens, PRICES, strict=True)]
    known: dict[str, Any] = {
        **dict.fromkeys(COLUMNS),
        **{"attempt_id": f"a-{number:08d}", "request_id": f"r-{number}", "trace_id": "t", "attempt_no": 1},
        **{"tenant": "فروشگاه", "endpoint": "/v1/chat/completions", "streamed": True, "started_at": started},
        **{"upstream": "main", "vendor": "acme", "model_alias": "m", "model": "m-1", "served_model": "m-1"},
        **{"writer": "w", "ended_at": started + 2 * MICROS, "ending": "completed", "finish_inferred": False},
        **{"request_bytes": 4 * (fresh + read + write), "max_output": 4096, "price_version": "acme/1"},
        **{"currency": "USD", "tokenizer": "o200k_base", "counted_reasoning": 0, "closed_by": "writer"},
        **{"counted_input": fresh + read + write, "counted_output": output, "delivered_output": output},
        **{"bytes_in": 0, "bytes_out": 0, "events_in": 0, "events_out": 0, "vendor_response_id": f"gen-{number}"},
        **{"usage_state": "final", "usage_told": "rrrra", "usage_input": fresh + read + write},
        **{"usage_output": output, "usage_cache_read": read, "usage_cache_write": write},
        **{"cost_input": costs[0], "cost_cache_read": costs[1], "cost_cache_write": costs[2]},
        **{"cost_output": costs[3], "own_cost_input": (fresh + read + write) * PRICES[0]},
        "own_cost_output": output * PRICES[3],
    }
    return known | fields


def ended_early(moment: datetime, tokens: Sequence[int] = (100, 0, 0, 5), **fields: Any) -> dict[str, Any]:
    """One whose client left before its usage came."""
    lost: dict[str, Any] = {
        **dict.fromkeys(("usage_input", "usage_output", "usage_cache_read", "usage_cache_write")),
        **dict.fromkeys(("cost_input", "cost_cache_read", "cost_cache_write", "cost_output")),
        **{"usage_state": "lost", "usage_told": "aaaaa", "ending": "client_gone"},
    }
    return attempt(moment, tokens, **(lost | fields))


def values_of(row: dict[str, Any]) -> Values:
    return tuple(row[name] for name in COLUMNS)


@contextmanager
def ledger(rows: Iterable[dict[str, Any]]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the relation `attempts` that holds these rows."""
    kinds = {"BOOLEAN": "BOOLEAN", "BIGINT": "BIGINT"}
    columns = ", ".join(f"{name} {kinds.get(str(attempts.c[name].type), 'VARCHAR')}" for name in COLUMNS)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE attempts ({columns})")
        every = [values_of(row) for row in rows]
        if every:
            connection.executemany(f"INSERT INTO attempts VALUES ({', '.join('?' * len(COLUMNS))})", every)
        yield connection


def line(
    tokens: Sequence[int | None] | None,
    amount: int | Sequence[int | None] | None = None,
    *,
    model: str | None = "m-1",
    **fields: Any,
) -> InvoiceLine:
    """A line of an invoice: tokens by kind (None: not said), and one amount for all of them or one for each kind."""
    kinds = (PartKind.INPUT, PartKind.CACHE_READ, PartKind.CACHE_WRITE, PartKind.OUTPUT)
    parts: list[Part] = []
    by_kind: Sequence[int | None] = amount if isinstance(amount, Sequence) else (None,) * len(kinds)
    for place, kind in enumerate(kinds):
        said = None if tokens is None else tokens[place]
        if said is not None or by_kind[place] is not None:
            parts.append(Part(kind, said, by_kind[place]))
    if isinstance(amount, int):
        parts.append(Part(PartKind.ALL, None, amount))
    number = next(_numbers)
    known: dict[str, Any] = {"place": f"invoice.csv:{number}", "currency": None if amount is None else "USD"}
    return InvoiceLine(parts=tuple(parts), model=model, **(known | fields))


def invoice_of(lines: Sequence[InvoiceLine], time_zone: str | None = "UTC") -> Invoice:
    parts = [part for one in lines for part in one.parts]
    return Invoice(
        form="test",
        lines=lines,
        time_zone=time_zone,
        says_tokens=any(part.tokens is not None for part in parts),
        says_money=any(part.amount is not None for part in parts),
        says_requests=any(one.requests is not None for one in lines),
    )


def at(day: int, hour: int = 12, minute: int = 0, second: int = 0) -> datetime:
    """A moment of October 2026."""
    return datetime(2026, 10, day, hour, minute, second, tzinfo=UTC)


def on(day: int) -> date:
    return date(2026, 10, day)


def price_of(tokens: Sequence[int]) -> int:
    return sum(figure * price for figure, price in zip(tokens, PRICES, strict=True))


def notable(result: Reconciliation) -> list[tuple[Reason, str, date, int, int, int]]:
    """The entries that are no matter of course: reason, model, day, requests, tokens, amount."""
    dull = (Reason.MATCHED, Reason.ROUNDED)
    return sorted(
        (one.reason, one.group, one.day, one.requests, sum(one.tokens), one.amount)
        for one in result.entries
        if one.reason not in dull
    )


def check_sums(result: Reconciliation) -> None:
    """The entries of every reason add up to invoice minus ledger: tokens, money, and requests where they are told."""
    if result.currency is not None:
        assert sum(one.amount for one in result.entries) == result.invoice.amount - result.ledger.amount
    if result.invoice.tokens:
        assert sum(map(_tokens, result.entries)) == result.invoice.tokens - result.ledger.tokens
    if result.invoice.requests is not None:
        assert sum(one.requests for one in result.entries) == result.invoice.requests - (result.ledger.requests or 0)


def _tokens(entry: Entry) -> int:
    return sum(entry.tokens)
