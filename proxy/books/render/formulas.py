"""What a spreadsheet computes: a document's formulas and sums in its words (contract L4).

In: a table and where its cells stand: headings in the first row, the first column in A. Out: formulas, or None where a
cell is to be what the document says. Money is rounded to the nano-unit in each, for a spreadsheet adds floats.
"""

from __future__ import annotations

from xlsxwriter.utility import xl_rowcol_to_cell  # type: ignore[import-untyped]

from proxy.books.document import Cell, Column, Kind, Table
from proxy.books.render.cells import place_of
from proxy.books.render.sums import Total, currency_name, is_share_of_sums


def row_formula(table: Table, column: Column, row: tuple[Cell, ...], number: int) -> str | None:
    """Of a cell in `number` (from 0), whose row has these values. None, too, where the document does not know the
    value and the formula would make one up."""
    if column.formula is None:
        return None
    cell, names = row[place_of(table, column.name)], column.formula.columns
    if cell is None and not (column.formula.operator == "over" and not row[place_of(table, names[1])]):
        return None
    return _formula(table, column, number)


def sum_formula(table: Table, column: Column, total: Total, number: int) -> str | None:
    """Of a cell in the row of a total."""
    if is_share_of_sums(table, column):
        return _formula(table, column, number)
    place = place_of(table, column.name)
    if not column.total or total.cells[place] is None:
        return None
    if total.currency is None:
        return _rounded(f"SUM({_span(table, place)})", column)
    name = currency_name(table)
    assert name is not None, "a total of one currency has a column that names it"
    at = place_of(table, name)
    # the criterion is the cell of the total's own row that names its currency
    return _rounded(f"SUMIF({_span(table, at)},{xl_rowcol_to_cell(number, at)},{_span(table, place)})", column)


def _formula(table: Table, column: Column, number: int) -> str:
    assert column.formula is not None, column
    cells = [_operand(table, name, number) for name in column.formula.columns]
    match column.formula.operator:
        case "plus":
            return _rounded("+".join(cells), column)
        case "minus":
            return _rounded("-".join(cells), column)
        case "over":
            above, below = cells
            return f'=IF({below}=0,"",{above}/{below})'
        case other:
            raise ValueError(f"{other!r} is no formula; there are plus, minus and over")


def _operand(table: Table, name: str, number: int) -> str:
    """A cell; an empty one is nought to a spreadsheet, but the empty text of a division is an error in arithmetic."""
    place = place_of(table, name)
    cell, formula = xl_rowcol_to_cell(number, place), table.columns[place].formula
    return f"N({cell})" if formula is not None and formula.operator == "over" else str(cell)


def _span(table: Table, place: int) -> str:
    return f"{xl_rowcol_to_cell(1, place)}:{xl_rowcol_to_cell(len(table.rows), place)}"


def _rounded(formula: str, column: Column) -> str:
    return f"=ROUND({formula},9)" if column.kind is Kind.MONEY else f"={formula}"
