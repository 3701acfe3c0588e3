"""An invoice by model and day against the ledger: each kind of difference is named, and nothing else is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
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


def traffic(days: Sequence[int] = range(1, 11), each: int = 8) -> list[Row]:
    """Some attempts a day, none near midnight, of different sizes."""
    return [
        attempt(at(day, 2 + 2 * number, 30), (100 + 7 * number + day, 10 * number, 0, 20 + number))
        for day in days
        for number in range(each)
    ]


def by_day(rows: Sequence[Row], *, shift: timedelta = timedelta(0)) -> dict[date, list[int]]:
    """Requests and tokens by kind, of attempts that reported theirs."""
    sums: dict[date, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for row in rows:
        day = (datetime(1970, 1, 1) + timedelta(microseconds=row["started_at"]) + shift).date()
        read, write = row["usage_cache_read"] or 0, row["usage_cache_write"] or 0
        fresh = (row["usage_input"] or row["counted_input"]) - read - write
        figures = (1, fresh, read, write, row["usage_output"] or row["counted_output"])
        sums[day] = [one + other for one, other in zip(sums[day], figures, strict=True)]
    return dict(sums)


def honest(
    rows: Sequence[Row], *, counted: bool = True, money: bool = True, shift: timedelta = timedelta(0)
) -> list[InvoiceLine]:
    """What a vendor that makes no mistake would charge for these."""
    return [
        line(
            figures[1:],
            [count * price for count, price in zip(figures[1:], PRICES, strict=True)] if money else None,
            day=day,
            requests=figures[0] if counted else None,
        )
        for day, figures in sorted(by_day(rows, shift=shift).items())
    ]


def compared(rows: Sequence[Row], lines: Sequence[InvoiceLine], **question: Any) -> Reconciliation:
    known: dict[str, Any] = {"vendor": "acme", "first_day": on(1), "last_day": on(10), "zone": "UTC"}
    with ledger(rows) as connection:
        result = reconcile(connection, invoice_of(lines, question.pop("time_zone", None)), Question(**known | question))
    check_sums(result)
    return result


@pytest.mark.parametrize("counted", [True, False])
def test_an_invoice_that_is_right_differs_in_nothing(counted: bool) -> None:
    """Every cell is matched, and nothing is left unexplained."""
    rows = traffic()
    result = compared(rows, honest(rows, counted=counted))
    assert notable(result) == []
    assert (result.unexplained, result.unexplained_tokens) == (0, 0)
    assert result.invoice.amount == result.ledger.amount > 0


@pytest.mark.parametrize("counted", [True, False])
def test_attempts_that_the_vendor_left_out_are_missing_there(counted: bool) -> None:
    """Two attempts of one day are in the ledger alone."""
    rows = traffic()
    lost = [row for row in rows if row["started_at"] == round(at(4, 6, 30).timestamp() * 1e6)]
    kept = [row for row in rows if row not in lost]
    result = compared(rows, honest(kept, counted=counted))
    tokens = -sum(row["usage_input"] + row["usage_output"] for row in lost)
    cost = -sum(row[name] for row in lost for name in row if name.startswith("cost_") and row[name])
    ((*found, amount),) = notable(result)
    assert found == [Reason.MISSING_THERE, "m-1", on(4), -len(lost) if counted else 0, tokens]
    assert abs(amount - cost) <= 5  # the price of a day is that of its attempts on the whole: a nano may be rounded


def test_attempts_of_somebody_else_are_missing_here() -> None:
    """The invoice has more than the ledger, and nothing was tried again."""
    rows = traffic()
    stranger = attempt(at(6, 9), (5000, 0, 0, 900))
    result = compared(rows, honest([*rows, stranger]))
    assert notable(result) == [(Reason.MISSING_HERE, "m-1", on(6), 1, 5900, price_of((5000, 0, 0, 900)))]


@pytest.mark.parametrize("counted", [True, False])
def test_a_second_try_that_is_charged_twice_is_named_so(counted: bool) -> None:
    """An attempt with the number 2 stands on the invoice once more."""
    again = attempt(at(7, 9), (321, 0, 0, 54), attempt_no=2)
    rows = [*traffic(), again]
    result = compared(rows, honest([*rows, again], counted=counted))
    price = price_of((321, 0, 0, 54))
    assert notable(result) == [(Reason.RETRIED, "m-1", on(7), 1 if counted else 0, 375, price)]


def test_a_price_that_changed_in_the_month_is_one_finding_from_that_day_on() -> None:
    """From the sixth on output costs a fifth more than our price says."""
    rows = traffic()
    lines = []
    for day, figures in sorted(by_day(rows).items()):
        amounts = [count * price for count, price in zip(figures[1:], PRICES, strict=True)]
        amounts[3] = amounts[3] * 6 // 5 if day >= on(6) else amounts[3]
        lines.append(line(figures[1:], amounts, day=day, requests=figures[0]))
    result = compared(rows, lines)
    dear = [one for one in result.findings if one.reason is Reason.PRICED_DIFFERENTLY]
    assert [(one.model, one.first_day, one.last_day) for one in dear] == [("m-1", on(6), on(10))]
    assert dear[0].detail == "output charged 120.00 % of the price here"
    assert {one[0] for one in notable(result)} == {Reason.PRICED_DIFFERENTLY}


def test_cached_input_charged_as_fresh_is_named_so() -> None:
    """The same tokens under another kind."""
    rows = traffic()
    lines = []
    for day, figures in sorted(by_day(rows).items()):
        tokens = figures[1:]
        if day == on(3):
            tokens = [tokens[0] + tokens[1], 0, *tokens[2:]]
        lines.append(line(tokens, [count * p for count, p in zip(tokens, PRICES, strict=True)], day=day, requests=8))
    result = compared(rows, lines)
    assert [one[:5] for one in notable(result)] == [(Reason.CACHED, "m-1", on(3), 0, 0)]
    assert result.unexplained == 0


@pytest.mark.parametrize("counted", [True, False])
def test_attempts_that_ended_early_are_expected_and_no_fault(counted: bool) -> None:
    """Their usage never came; the vendor charges what it made, a little more than we saw."""
    early = [ended_early(at(day, 5), (200, 0, 0, 10)) for day in (2, 5, 9)]
    rows = [*traffic(), *early]
    charged = [attempt(at(day, 5), (203, 0, 0, 40)) for day in (2, 5, 9)]
    result = compared(rows, honest([*traffic(), *charged], counted=counted))
    assert {one[0] for one in notable(result)} == {Reason.INTERRUPTED}
    assert result.unexplained == 0


def test_attempts_that_ended_early_may_be_free() -> None:
    """A vendor that charges none of them differs in nothing."""
    rows = [*traffic(), *[ended_early(at(day, 5), (200, 0, 0, 10)) for day in (2, 5, 9)]]
    result = compared(rows, honest(traffic()))
    assert notable(result) == []


@pytest.mark.parametrize("counted", [True, False])
def test_requests_near_midnight_on_the_next_day_are_a_matter_of_clocks(counted: bool) -> None:
    """Three that began in the last minutes of a day are charged on the next."""
    late = [attempt(at(5, 23, 50 + minute), (400 + minute, 0, 0, 77)) for minute in (5, 7, 8)]
    rows = [*traffic(), *late]
    moved = [attempt(at(6, 0, 0, 1), (400 + minute, 0, 0, 77)) for minute in (5, 7, 8)]
    result = compared(rows, honest([*traffic(), *moved], counted=counted))
    tokens = sum(400 + minute + 77 for minute in (5, 7, 8))
    assert [one[:5] for one in notable(result)] == [
        (Reason.DAY_EDGE, "m-1", on(5), -3, -tokens),
        (Reason.DAY_EDGE, "m-1", on(6), 3, tokens),
    ]
    assert result.unexplained == 0


def test_days_cut_in_another_zone_are_told_by_the_figures() -> None:
    """Every day is eight hours off: one finding, for the whole period."""
    rows = [
        attempt(at(day, hour, 10), (100 + hour * day, 0, 0, 20 + hour)) for day in range(1, 11) for hour in range(24)
    ]
    inner = [one for one in honest(rows, shift=timedelta(hours=8)) if one.day is not None and on(2) <= one.day <= on(9)]
    result = compared(rows, inner, first_day=on(2), last_day=on(9))
    assert result.zone == "Asia/Shanghai"
    found = [one for one in result.findings if one.reason is not Reason.MATCHED]
    assert [(one.reason, one.first_day, one.last_day) for one in found] == [(Reason.TIME_ZONE, on(2), on(9))]


def test_an_invoice_may_say_its_own_zone() -> None:
    """Then its days are compared in it, and there is nothing to tell."""
    rows = [attempt(at(day, hour, 10), (100 + hour, 0, 0, 20)) for day in range(1, 11) for hour in range(24)]
    inner = [one for one in honest(rows, shift=timedelta(hours=9)) if one.day is not None and on(2) <= one.day <= on(9)]
    result = compared(rows, inner, first_day=on(2), last_day=on(9), time_zone="Asia/Tokyo")
    assert notable(result) == []


def test_amounts_with_few_digits_are_rounded_and_no_fault() -> None:
    """An invoice in whole cents may be off by half a cent a line."""
    cent = 10_000_000
    rows = traffic()
    lines = [
        line(
            figures[1:],
            round(price_of(figures[1:]) / cent) * cent,
            day=day,
            requests=figures[0],
            precision=cent,
        )
        for day, figures in sorted(by_day(rows).items())
    ]
    result = compared(rows, lines)
    assert notable(result) == []
    assert any(one.reason is Reason.ROUNDED for one in result.findings)


def test_a_model_without_a_price_here_is_unexplained_and_says_why() -> None:
    """What cannot be checked is not called right."""
    free: Row = {"price_version": None, "currency": None, "cost_input": None, "cost_output": None}
    rows = [attempt(at(day), (100, 0, 0, 20), **free) for day in range(1, 4)]
    result = compared(rows, honest([attempt(at(day), (100, 0, 0, 20)) for day in range(1, 4)]))
    assert result.unexplained == 3 * price_of((100, 0, 0, 20))
    assert all("no price here" in one.detail for one in result.findings if one.reason is Reason.UNEXPLAINED)


def test_tokens_that_nothing_explains_are_one_number_at_the_top() -> None:
    """More input and less output than reported, for the same number of requests."""
    rows = traffic()
    lines = honest(rows)
    figures = by_day(rows)[on(8)]
    wrong = [figures[1] + 500, figures[2], figures[3], figures[4] - 50]
    lines[7] = line(wrong, [count * p for count, p in zip(wrong, PRICES, strict=True)], day=on(8), requests=8)
    result = compared(rows, lines)
    assert result.unexplained == 500 * PRICES[0] - 50 * PRICES[3] or result.unexplained > 0
    assert result.unexplained_tokens == 550
    assert [one[:4] for one in notable(result)] == [(Reason.UNEXPLAINED, "m-1", on(8), 0)]


def test_lines_of_other_days_are_counted_and_left_alone() -> None:
    """An export that covers more than the period."""
    rows = traffic()
    result = compared(rows, honest(rows), first_day=on(3), last_day=on(5))
    assert notable(result) == []
    assert result.lines_outside == 7
