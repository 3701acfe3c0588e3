"""An invoice with a line for each request: joined by id, and each line and attempt that differs is named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from proxy.books.finding import Reason
from proxy.books.invoice import InvoiceLine
from proxy.books.reconciling.engine import reconcile
from proxy.books.reconciling.result import Question, Reconciliation
from tests.support.books import (
    PRICES,
    at,
    attempt,
    check_sums,
    ended_early,
    invoice_of,
    ledger,
    line,
    notable,
    on,
    price_of,
)

pytestmark = pytest.mark.clause("C3")

Row = dict[str, Any]


def tokens_of(row: Row) -> tuple[int, int, int, int]:
    read, write = row["usage_cache_read"], row["usage_cache_write"]
    return row["usage_input"] - read - write, read, write, row["usage_output"]


def line_of(row: Row, **fields: Any) -> InvoiceLine:
    tokens = tokens_of(row)
    moment = at(1) + timedelta(microseconds=row["started_at"] - round(at(1).timestamp() * 1e6))
    known: dict[str, Any] = {"at": moment, "request_id": row["vendor_response_id"], "amount": price_of(tokens)}
    return line(tokens, **(known | fields))


def traffic() -> list[Row]:
    return [attempt(at(day, hour), (100 + hour, 7, 0, 20 + day)) for day in range(1, 6) for hour in (3, 9, 15, 21)]


def compared(rows: Sequence[Row], lines: Sequence[InvoiceLine], **question: Any) -> Reconciliation:
    known: dict[str, Any] = {"vendor": "acme", "first_day": on(1), "last_day": on(5), "zone": "UTC"}
    with ledger(rows) as connection:
        result = reconcile(connection, invoice_of(lines, None), Question(**known | question))
    check_sums(result)
    return result


def test_lines_that_agree_are_matched() -> None:
    """Each by its response's id."""
    rows = traffic()
    result = compared(rows, list(map(line_of, rows)))
    assert notable(result) == []
    assert result.matched_requests == len(rows)


def test_a_requests_own_id_joins_as_well() -> None:
    """Vendors that name requests and not responses."""
    rows = [row | {"vendor_request_id": f"req-{place}"} for place, row in enumerate(traffic())]
    result = compared(rows, [line_of(row, request_id=row["vendor_request_id"]) for row in rows])
    assert notable(result) == []
    assert result.matched_requests == len(rows)


def test_each_odd_line_and_attempt_is_named() -> None:
    """One left out, one of somebody else, one charged twice, one dearer, one from the cache, one cut: all in one."""
    rows = traffic()
    lines = list(map(line_of, rows))
    lost = rows[2]
    lines[2] = line((900, 0, 0, 90), price_of((900, 0, 0, 90)), at=at(1, 4), request_id="gen-stranger")
    lines.append(line_of(rows[5]))
    dear = tokens_of(rows[9])
    lines[9] = line_of(rows[9], amount=2 * price_of(dear))
    fresh, read, write, output = tokens_of(rows[13])
    uncached = (fresh + read, 0, write, output)
    lines[13] = line(uncached, price_of(uncached), at=at(4, 9), request_id=rows[13]["vendor_response_id"])
    cut = ended_early(at(5, 5), (50, 0, 0, 3))
    lines.append(line((51, 0, 0, 30), price_of((51, 0, 0, 30)), at=at(5, 5), request_id=cut["vendor_response_id"]))
    result = compared([*rows, cut], lines)
    again = tokens_of(rows[5])
    assert notable(result) == [
        (Reason.CACHED, "m-1", on(4), 0, 0, 7 * (PRICES[0] - PRICES[1])),
        (Reason.INTERRUPTED, "m-1", on(5), 1, 81, price_of((51, 0, 0, 30))),
        (Reason.MISSING_HERE, "m-1", on(1), 1, 990, price_of((900, 0, 0, 90))),
        (Reason.MISSING_THERE, "m-1", on(1), -1, -sum(tokens_of(lost)), -price_of(tokens_of(lost))),
        (Reason.PRICED_DIFFERENTLY, "m-1", on(3), 0, 0, price_of(dear)),
        (Reason.RETRIED, "m-1", on(2), 1, sum(again), price_of(again)),
    ]
    assert result.unexplained == 0


def test_other_tokens_than_reported_are_unexplained() -> None:
    """The answer said one figure and the invoice another."""
    rows = traffic()
    lines = list(map(line_of, rows))
    fresh, read, write, output = tokens_of(rows[0])
    lines[0] = line_of(rows[0])
    lines[0] = line(
        (fresh, read, write, output + 9),
        price_of((fresh, read, write, output + 9)),
        at=at(1, 3),
        request_id=rows[0]["vendor_response_id"],
    )
    result = compared(rows, lines)
    assert notable(result) == [(Reason.UNEXPLAINED, "m-1", on(1), 0, 9, 9 * PRICES[3])]
    assert (result.unexplained, result.unexplained_tokens) == (9 * PRICES[3], 9)


def test_an_attempt_at_the_very_end_may_be_on_the_next_invoice() -> None:
    """It is not called missing; nor is one of the day before, whose line is on this one."""
    late = attempt(at(5, 23, 55), (10, 0, 0, 1))
    early = attempt(at(1, 0, 0) - timedelta(minutes=3), (30, 0, 0, 3))
    rows = [early, *traffic(), late]
    lines = [*map(line_of, traffic_lines(rows)), line_of(early, at=at(1, 0, 1))]
    result = compared(rows, lines)
    assert notable(result) == [(Reason.DAY_EDGE, "m-1", on(5), -1, -11, -price_of((10, 0, 0, 1)))]


def traffic_lines(rows: Sequence[Row]) -> list[Row]:
    return list(rows[1:-1])


def test_an_attempt_that_failed_or_ended_early_need_not_be_charged() -> None:
    """No line for it is no finding."""
    rows = traffic()
    failed = ended_early(at(2, 4), ending="vendor_error")
    result = compared([*rows, failed, ended_early(at(3, 4))], list(map(line_of, rows)))
    assert notable(result) == []


def test_ids_that_mean_nothing_here_are_no_reason_to_say_all_is_missing() -> None:
    """Where not one is known, models and days are compared instead."""
    rows = traffic()
    lines = [line_of(row, request_id=f"internal-{place}", requests=1) for place, row in enumerate(rows)]
    result = compared(rows, lines)
    assert notable(result) == []
    assert result.matched_requests == 0


def test_fees_are_told_apart() -> None:
    """A search has no tokens and is nobody's mistake."""
    from proxy.books.invoice import Part, PartKind

    rows = traffic()
    fee = InvoiceLine("invoice.csv:99", (Part(PartKind.OTHER, None, 5_000_000),), "m-1", at(2), currency="USD")
    result = compared(rows, [*map(line_of, rows), fee])
    assert notable(result) == [(Reason.OTHER, "m-1", on(2), 0, 0, 5_000_000)]


def test_an_invoice_in_two_currencies_is_refused() -> None:
    """They cannot be added up."""
    rows = traffic()
    lines = [line_of(rows[0]), line_of(rows[1], currency="EUR")]
    with pytest.raises(ValueError, match="EUR, USD"):
        compared(rows, lines)
