"""The last rows of a table: its sums, never over two currencies (contract L4).

In: a table that asks for totals. Out: its last rows: one, or where its money is of several currencies, one for each
with that currency's rows, after one that counts all rows and adds no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from proxy.books.document import Cell, Column, Kind, Table
from proxy.books.render.cells import place_of


@dataclass(frozen=True, slots=True)
class Total:
    """`label` is for the first column that is free; `currency` None goes for all rows of the table."""

    label: str
    currency: str | None
    cells: tuple[Cell, ...]


def totals(table: Table) -> tuple[Total, ...]:
    """Nothing for a table without rows. A share of two sums is of those sums."""
    if not table.totals or not table.rows:
        return ()
    name = currency_name(table)
    if name is None:
        return (Total("Total", None, _sums(table, table.rows, with_money=True)),)
    at = place_of(table, name)
    currencies = sorted({str(row[at]) for row in table.rows if row[at] is not None})
    if len(currencies) < 2:
        cells = list(_sums(table, table.rows, with_money=bool(currencies)))
        cells[at] = currencies[0] if currencies else None
        return (Total("Total", None, tuple(cells)),)
    rows = [Total("Total", None, _sums(table, table.rows, with_money=False))]
    for currency in currencies:
        cells = list(_sums(table, [row for row in table.rows if row[at] == currency], with_money=True))
        cells[at] = currency
        rows.append(Total(f"Total {currency}", currency, tuple(cells)))
    return tuple(rows)


def label_place(table: Table) -> int | None:
    """The column that says which sum it is: the first text that is no currency."""
    name = currency_name(table)
    return next(
        (
            place
            for place, column in enumerate(table.columns)
            if column.kind in (Kind.TEXT, Kind.DAY) and column.name != name and not column.total
        ),
        None,
    )


def currency_name(table: Table) -> str | None:
    """The column that names the currency of each row's money, if it is not the same for all."""
    return next((column.currency_column for column in table.columns if column.currency_column is not None), None)


def is_share_of_sums(table: Table, column: Column) -> bool:
    """May a total row have this column's formula, because it has what that divides?"""
    formula = column.formula
    return (
        formula is not None
        and formula.operator == "over"
        and not column.total
        and all(table.columns[place_of(table, name)].total for name in formula.columns)
    )


def _sums(table: Table, rows: Sequence[tuple[Cell, ...]], *, with_money: bool) -> tuple[Cell, ...]:
    cells: list[Cell] = [
        _sum([row[place] for row in rows]) if column.total and (with_money or column.currency_column is None) else None
        for place, column in enumerate(table.columns)
    ]
    for place, column in enumerate(table.columns):
        if column.formula is not None and is_share_of_sums(table, column):
            above, below = (cells[place_of(table, name)] for name in column.formula.columns)
            if isinstance(above, int | float) and isinstance(below, int | float) and below:
                cells[place] = above / below
    return tuple(cells)


def _sum(cells: Sequence[Cell]) -> Cell:
    values = [cell for cell in cells if isinstance(cell, int | float) and not isinstance(cell, bool)]
    if any(isinstance(value, float) for value in values):
        return fsum(values)
    return sum(values)
