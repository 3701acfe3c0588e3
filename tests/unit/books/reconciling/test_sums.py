"""Whatever stands on an invoice: its differences add up, nothing fails, and the same is told twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.books.finding import Reason
from proxy.books.invoice import InvoiceLine, Part, PartKind
from proxy.books.reconciling.document import reconcile_document
from proxy.books.reconciling.engine import reconcile
from proxy.books.reconciling.result import Question, Reconciliation
from tests.support.books import at, attempt, check_sums, ended_early, invoice_of, ledger, line, notable, on, price_of

pytestmark = pytest.mark.clause("C3", "L4")

TOKENS = st.tuples(*[st.integers(0, 5_000)] * 4)
STATES = st.sampled_from(["final", "lost", "absent", "unseen", "open", "failed"])


def made(state: str, moment: Any, tokens: tuple[int, int, int, int], **fields: Any) -> dict[str, Any]:
    """An attempt in each state that a ledger can have."""
    match state:
        case "lost":
            return ended_early(moment, tokens, **fields)
        case "absent":
            return ended_early(moment, tokens, ending="completed", usage_state="absent", **fields)
        case "unseen":
            none = {"counted_input": 0, "counted_output": 0, "own_cost_input": None, "own_cost_output": None}
            return ended_early(moment, tokens, ending="interrupted", tokenizer=None, **none, **fields)
        case "open":
            return ended_early(moment, tokens, ending=None, ended_at=None, closed_by=None, tokenizer=None, **fields)
        case "failed":
            return ended_early(moment, tokens, ending="vendor_error", **fields)
        case _:
            return attempt(moment, tokens, **fields)


@st.composite
def books(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[InvoiceLine]]:
    rows = [
        made(
            draw(STATES),
            at(draw(st.integers(1, 6)), draw(st.integers(0, 23)), draw(st.integers(0, 59))),
            draw(TOKENS),
            model=(name := draw(st.sampled_from(["m-1", "模型"]))),
            served_model=name,
            attempt_no=draw(st.integers(1, 2)),
        )
        for _ in range(draw(st.integers(0, 12)))
    ]
    by_id, counted, has_money = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    lines = []
    for _ in range(draw(st.integers(0, 10))):
        fields: dict[str, Any] = {
            "day": on(draw(st.integers(1, 6))),
            "requests": draw(st.integers(0, 5)) if counted else None,
        }
        if by_id and rows:
            chosen = draw(st.sampled_from(rows))
            fields |= {"request_id": draw(st.sampled_from([chosen["vendor_response_id"], "gen-nobody"])), "requests": 1}
        tokens = draw(TOKENS)
        amount = draw(st.sampled_from([price_of(tokens), price_of(tokens) + 7, 0, 10**9])) if has_money else None
        lines.append(line(tokens, amount, model=draw(st.sampled_from(["m-1", "模型", "other"])), **fields))
    return rows, lines


def compared(rows: list[dict[str, Any]], lines: list[InvoiceLine], **question: Any) -> Reconciliation:
    known: dict[str, Any] = {"vendor": "acme", "first_day": on(1), "last_day": on(6), "zone": "UTC"}
    with ledger(rows) as connection:
        return reconcile(connection, invoice_of(lines), Question(**known | question))


@settings(max_examples=40)
@given(books())
def test_the_reasons_always_add_up(both: tuple[list[dict[str, Any]], list[InvoiceLine]]) -> None:
    """To the last token and nano-unit, in money, tokens and requests; and a second time it says the same."""
    rows, lines = both
    result = compared(rows, lines)
    check_sums(result)
    assert compared(rows, lines) == result
    document = reconcile_document(result)
    bridge = next(table for table in document.tables if table.name == "bridge")
    assert result.currency is None or sum(row[3] for row in bridge.rows) == result.invoice.amount - result.ledger.amount  # type: ignore[misc]


def test_a_vendor_that_tells_no_usage_is_estimated() -> None:
    """Our own count stands in, within a twentieth."""
    rows = [made("absent", at(day), (1000, 0, 0, 100)) for day in (1, 2, 3)]
    lines = [line((1010, 0, 0, 102), price_of((1010, 0, 0, 102)), day=on(day), requests=1) for day in (1, 2, 3)]
    result = compared(rows, lines)
    check_sums(result)
    assert {one[0] for one in notable(result)} == {Reason.ESTIMATED}
    assert result.unexplained == 0


def test_an_invoice_of_money_alone_is_compared_by_price() -> None:
    """A model that costs twice as much from one day on."""
    rows = [attempt(at(day, hour), (100, 0, 0, 20)) for day in range(1, 7) for hour in (3, 9)]
    paid = 2 * price_of((100, 0, 0, 20))
    lines = [line(None, paid * (2 if day >= 4 else 1), day=on(day)) for day in range(1, 7)]
    result = compared(rows, lines)
    check_sums(result)
    found = [one for one in result.findings if one.reason is not Reason.MATCHED]
    assert [(one.reason, one.first_day, one.last_day, one.amount) for one in found] == [
        (Reason.PRICED_DIFFERENTLY, on(4), on(6), 3 * paid)
    ]
    assert found[0].detail == "charged 200.00 % of the price here"


def test_attempts_in_another_currency_are_not_compared_with_the_invoice() -> None:
    """It says how many, and that nothing is known of their price."""
    rows = [attempt(at(1), currency="EUR"), attempt(at(2))]
    lines = [line((100, 0, 0, 20), price_of((100, 0, 0, 20)), day=on(day), requests=1) for day in (1, 2)]
    result = compared(rows, lines)
    assert result.other_currencies == (("EUR", 1),)
    assert [one[:3] for one in notable(result)] == [(Reason.UNEXPLAINED, "m-1", on(1))]
    assert "priced in EUR" in " ".join(reconcile_document(result).notes)


def test_an_attempt_that_a_dead_process_left_may_be_charged() -> None:
    """Nobody knows its tokens; they are within what its request and its limit allow."""
    rows = [*(attempt(at(1, hour)) for hour in (3, 9)), made("unseen", at(1, 5), (400, 0, 0, 50))]
    charged = (200 + 390, 0, 0, 40 + 44)
    lines = [line(charged, price_of(charged), day=on(1), requests=3)]
    result = compared(rows, lines)
    check_sums(result)
    assert [one[:4] for one in notable(result)] == [(Reason.INTERRUPTED, "m-1", on(1), 1)]


def test_a_fee_and_an_unknown_model_are_told_apart() -> None:
    """A search is no tokens; a model that nobody asked for is missing here, with what it cost."""
    rows = [attempt(at(1))]
    fee = InvoiceLine("i:9", (Part(PartKind.OTHER, None, 10**7),), None, at(1) + timedelta(hours=1), currency="USD")
    own = line((100, 0, 0, 20), price_of((100, 0, 0, 20)), day=on(1), requests=1)
    strange = line(None, 5 * 10**9, model="nobody-asked", day=on(1))
    result = compared(rows, [own, fee, strange])
    check_sums(result)
    assert [(one[0], one[5]) for one in notable(result)] == [(Reason.MISSING_HERE, 5 * 10**9), (Reason.OTHER, 10**7)]
