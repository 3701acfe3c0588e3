"""The last rows of a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.books.document import Column, Formula, Kind, Table
from proxy.books.render.sums import label_place, totals
from tests.support.documents import report

pytestmark = pytest.mark.clause("L4")


def test_money_of_two_currencies_is_never_added() -> None:
    """Counts of all rows, without money; then a row for each currency, of its rows alone."""
    table = report().tables[0]
    everything, *each = totals(table)
    assert [one.label for one in (everything, *each)] == ["Total", "Total EUR", "Total USD"]
    assert everything.cells[3] == sum(row[3] for row in table.rows)  # type: ignore[misc]
    assert everything.cells[7] is None
    for one in each:
        rows = [row for row in table.rows if row[2] == one.currency]
        assert one.cells[2] == one.currency
        assert one.cells[7] == sum(row[7] for row in rows)  # type: ignore[misc]
        assert one.cells[3] == sum(row[3] for row in rows)  # type: ignore[misc]


def test_a_share_of_sums_is_of_the_sums() -> None:
    """Not the sum of shares; and nothing where there is nothing to divide by."""
    table = report().tables[0]
    for one in totals(table):
        assert one.cells[6] == one.cells[5] / one.cells[4]  # type: ignore[operator]
    first = replace(table, rows=table.rows[:1])
    assert [one.cells[6] for one in totals(first)] == [None]


def test_one_currency_is_one_total_with_its_money() -> None:
    """Rows without a currency have no money to add."""
    table = report().tables[0]
    euros = replace(table, rows=[row for row in table.rows if row[2] != "USD"])
    (total,) = totals(euros)
    assert (total.label, total.currency, total.cells[2]) == ("Total", None, "EUR")
    assert total.cells[7] == sum(row[7] or 0 for row in euros.rows)  # type: ignore[misc]
    assert total.cells[3] == sum(row[3] for row in euros.rows)  # type: ignore[misc]


def test_money_of_a_fixed_currency_has_one_total() -> None:
    """Beside figures that are no integers."""
    columns = (
        Column("n", "N", Kind.NUMBER, total=True),
        Column("cost", "Cost", Kind.MONEY, currency="CNY", total=True),
        Column("name", "Name"),
    )
    table = Table("t", "T", columns, ((0.1, 5, "商店"), (0.2, 7, None), (None, None, "x")), totals=True)
    (total,) = totals(table)
    assert total.cells[0] == pytest.approx(0.3)
    assert total.cells[1:] == (12, None)
    assert label_place(table) == 2


def test_nothing_to_add_has_no_totals() -> None:
    """No rows, or none asked for."""
    column = Column("n", "N", Kind.INTEGER, total=True, formula=Formula("plus", ("n",)))
    assert totals(Table("t", "T", (column,), (), totals=True)) == ()
    assert totals(Table("t", "T", (column,), ((1,),))) == ()
    assert label_place(Table("t", "T", (column,), ((1,),))) is None
