"""Cells as texts: numbers with separators, money exactly, shares in percent; and cells that no spreadsheet runs.

In: a cell and its column. Out: text. Money is in nano-units and is written without a float.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from proxy.books.document import Cell, Column, Kind, Table
from proxy.metering.money import money_text

#: A cell that begins with one of these is a formula to a spreadsheet that reads CSV.
_FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")


def shown(cell: Cell, column: Column, currency: str | None = None) -> str:
    """For a person: `1,234,567`, `12.50 USD`, `4.2 %`, `2026-10-05`; nothing for None."""
    if cell is None:
        return ""
    match column.kind:
        case Kind.INTEGER if isinstance(cell, int):
            return f"{cell:,}"
        case Kind.MONEY if isinstance(cell, int):
            return f"{short_money(cell)} {currency}" if currency else short_money(cell)
        case Kind.RATIO if isinstance(cell, int | float):
            return f"{100 * cell:.2f} %"
        case Kind.NUMBER if isinstance(cell, int | float):
            return f"{cell:,.4g}" if abs(cell) < 1000 else f"{cell:,.1f}"
        case _:
            return str(cell)


def grouped_money(nanos: int) -> str:
    """Exact, with separators: `1,234.50`."""
    text = money_text(nanos)
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, part = digits.partition(".")
    return f"{sign}{int(whole):,}.{part}"


#: Digits behind the point that a person is shown; less than the last of them is shown exactly. JSON, CSV, Parquet and
#: the spreadsheet have all of them.
_SHOWN_DIGITS = 4


def short_money(nanos: int) -> str:
    """`1,234.5679`; `0.00` for nothing, `0.000000045` for what would round to it."""
    unit = 10 ** (9 - _SHOWN_DIGITS)
    if 0 < abs(nanos) < unit:
        return grouped_money(nanos)
    whole, rest = divmod(nanos, unit)
    if 2 * rest > unit or (2 * rest == unit and whole % 2):
        whole += 1
    return grouped_money(whole * unit)


def plain(cell: Cell, column: Column) -> str:
    """For a program that reads text: no separators, money as an exact decimal, nothing for None."""
    if cell is None:
        return ""
    if column.kind is Kind.MONEY and isinstance(cell, int):
        return money_text(cell)
    if isinstance(cell, bool):
        return str(cell).lower()
    return cell.isoformat() if isinstance(cell, date) else str(cell)


def harmless(text: str) -> str:
    """A text that a spreadsheet does not take for a formula: with an apostrophe before it where it would."""
    return f"'{text}" if text.startswith(_FORMULA_MARKS) else text


def currency_of(table: Table, row: Sequence[Cell], column: Column) -> str | None:
    """The currency of a money cell: its column's, or that of its row."""
    if column.currency is not None or column.currency_column is None:
        return column.currency
    for place, other in enumerate(table.columns):
        if other.name == column.currency_column:
            value = row[place]
            return None if value is None else str(value)
    return None


def currencies(table: Table) -> list[str | None]:
    """Those that stand in the table's rows, in order; one None where all money is of one or none."""
    names = {column.currency_column for column in table.columns if column.currency_column is not None}
    places = [place for place, column in enumerate(table.columns) if column.name in names]
    if not places:
        return [None]
    found = {row[places[0]] for row in table.rows}
    return [str(one) for one in sorted(str(value) for value in found if value is not None)] or [None]


def totals(table: Table) -> list[tuple[str | None, tuple[Cell, ...]]]:
    """The last rows of a table that asks for them: one for each currency, in which only its money is added; counts are
    added over all rows, in the first."""
    if not table.totals or not table.rows:
        return []
    rows = []
    for order, currency in enumerate(currencies(table)):
        cells: list[Cell] = []
        for place, column in enumerate(table.columns):
            is_money = column.kind is Kind.MONEY
            if not column.total or (order and not is_money):
                cells.append(currency if column.name == _currency_name(table) else None)
                continue
            cells.append(
                sum(
                    value
                    for row in table.rows
                    if isinstance(value := row[place], int)
                    and (not is_money or column.currency_column is None or currency_of(table, row, column) == currency)
                )
            )
        rows.append((currency, tuple(cells)))
    return rows


def _currency_name(table: Table) -> str | None:
    return next((column.currency_column for column in table.columns if column.currency_column is not None), None)
