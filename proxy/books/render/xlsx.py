"""A document as a spreadsheet whose formulas a spreadsheet can recompute (contract C3, L4).

A sheet for the summary and one for each table. Computed columns and totals are formulas, their values written beside
them for viewers that do not compute. Money is a number in units of its currency: a spreadsheet keeps 15 digits, which
is exact to the nano-unit below a million. Texts are never formulas or links, whatever a client called its model.
"""

from __future__ import annotations

import io
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import xlsxwriter  # type: ignore[import-untyped]
from xlsxwriter.utility import xl_rowcol_to_cell  # type: ignore[import-untyped]

from proxy.books.document import Cell, Column, Document, Kind, Table
from proxy.books.render.cells import currencies, shown, totals
from proxy.metering.money import NANO

#: What a sheet can hold, its heading and some totals besides.
MOST_ROWS = 1_048_000
_FORBIDDEN = re.compile(r"[\[\]:*?/\\']")
_NAME_LENGTH = 31
_MADE = datetime(2000, 1, 1)  # the same each time
_WIDEST, _NARROWEST = 44, 9


def render_xlsx(document: Document) -> bytes:
    """The workbook. Raises `ValueError` for a table that no sheet can hold."""
    out = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = xlsxwriter.Workbook(out, options)
    book.set_properties({"title": document.title, "created": _MADE})
    book.set_calc_mode("auto")
    _Book(book).write(document)
    book.close()
    return out.getvalue()


class _Book:
    def __init__(self, book: Any) -> None:
        self._book = book
        self._formats: dict[tuple[object, ...], Any] = {}
        self._names: set[str] = set()

    def write(self, document: Document) -> None:
        self._summary(document)
        for table in document.tables:
            if len(table.rows) > MOST_ROWS:
                raise ValueError(
                    f"{table.title}: {len(table.rows):,} rows are more than a sheet can hold; take csv or parquet, or "
                    "group by less"
                )
            self._table(table)

    def _format(self, **wanted: object) -> Any:
        key = tuple(sorted(wanted.items()))
        if key not in self._formats:
            self._formats[key] = self._book.add_format({"font_name": "Calibri", "font_size": 11, **wanted})
        return self._formats[key]

    def _sheet(self, title: str) -> Any:
        plain = _FORBIDDEN.sub(" ", title)[:_NAME_LENGTH].strip() or "Sheet"
        name, number = plain, 1
        while name.lower() in self._names:
            number += 1
            name = f"{plain[: _NAME_LENGTH - 4]} ({number})"
        self._names.add(name.lower())
        sheet = self._book.add_worksheet(name)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.set_footer("&C&P / &N")
        return sheet

    def _summary(self, document: Document) -> None:
        sheet = self._sheet("Summary")
        sheet.set_column(0, 0, 34)
        sheet.set_column(1, 1, 24)
        sheet.set_column(2, 2, 60)
        sheet.write_string(0, 0, document.title, self._format(bold=True, font_size=16))
        row = 2
        for label, text in document.facts:
            sheet.write_string(row, 0, label, self._format(font_color="#666666"))
            sheet.write_string(row, 1, text)
            row += 1
        row += 1
        for line in document.headlines:
            sheet.write_string(row, 0, line.title)
            column = Column(line.name, line.title, line.kind, currency=line.currency)
            self._cell(sheet, row, 1, line.value, column, line.currency, bold=True)
            row += 1
        row += 1
        for note in document.notes:
            sheet.write_string(row, 0, note, self._format(italic=True))
            row += 1

    def _table(self, table: Table) -> None:
        sheet = self._sheet(table.title)
        head = self._format(bold=True, bottom=1, text_wrap=True, valign="top")
        for place, column in enumerate(table.columns):
            sheet.write_string(0, place, column.title, head)
            if column.about:
                sheet.write_comment(0, place, column.about, {"author": ""})
            sheet.set_column(place, place, _width(table, place))
        for number, row in enumerate(table.rows, start=1):
            for place, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
                formula = _formula(table, column, number)
                if formula is not None and cell is not None:
                    sheet.write_formula(number, place, formula, self._number(column), _value(cell, column))
                else:
                    self._cell(sheet, number, place, cell, column)
        self._totals(sheet, table)
        sheet.freeze_panes(1, 0)
        sheet.repeat_rows(0)
        if table.rows:
            sheet.autofilter(0, 0, len(table.rows), len(table.columns) - 1)

    def _totals(self, sheet: Any, table: Table) -> None:
        many = currencies(table)
        for order, (currency, cells) in enumerate(totals(table)):
            number = len(table.rows) + 2 + order
            sheet.write_string(number, 0, "Total" if currency is None else f"Total {currency}", self._format(bold=True))
            for place, (cell, column) in enumerate(zip(cells, table.columns, strict=True)):
                if not column.total or cell is None:
                    continue
                formula = _sum(table, place, column, currency if many != [None] else None)
                sheet.write_formula(number, place, formula, self._number(column, bold=True), _value(cell, column))

    def _cell(
        self,
        sheet: Any,
        row: int,
        place: int,
        cell: Cell,
        column: Column,
        currency: str | None = None,
        *,
        bold: bool = False,
    ) -> None:
        if cell is None:
            return
        if isinstance(cell, bool):
            sheet.write_boolean(row, place, cell)
        elif isinstance(cell, date):
            sheet.write_datetime(row, place, datetime(cell.year, cell.month, cell.day), self._number(column, bold=bold))
        elif isinstance(cell, int | float):
            sheet.write_number(row, place, _value(cell, column), self._number(column, currency, bold=bold))
        else:
            sheet.write_string(row, place, cell[:32_767], self._format(bold=True) if bold else None)

    def _number(self, column: Column, currency: str | None = None, *, bold: bool = False) -> Any:
        formats = {
            Kind.INTEGER: "#,##0",
            Kind.NUMBER: "#,##0.0000",
            Kind.RATIO: "0.00%",
            Kind.MONEY: "#,##0.00####" + (f' "{currency}"' if currency else ""),
            Kind.DAY: "yyyy-mm-dd",
        }
        return self._format(num_format=formats.get(column.kind, "General"), **({"bold": True} if bold else {}))


def _value(cell: Cell, column: Column) -> float | int:
    """A spreadsheet's number."""
    assert isinstance(cell, int | float), "only numbers have a value"
    if column.kind is Kind.MONEY and isinstance(cell, int):
        return float(Decimal(cell) / NANO)
    return cell


def _formula(table: Table, column: Column, row: int) -> str | None:
    if column.formula is None:
        return None
    names = [one.name for one in table.columns]
    cells = [xl_rowcol_to_cell(row, names.index(name)) for name in column.formula.columns]
    match column.formula.operator:
        case "plus":
            return "=" + "+".join(f"N({cell})" for cell in cells)
        case "minus":
            return "=" + "-".join(f"N({cell})" for cell in cells)
        case "over":
            return f'=IF(N({cells[1]})=0,"",{cells[0]}/{cells[1]})'
        case other:
            raise ValueError(f"{other!r} is no formula")


def _sum(table: Table, place: int, column: Column, currency: str | None) -> str:
    first, last = xl_rowcol_to_cell(1, place), xl_rowcol_to_cell(len(table.rows), place)
    if column.kind is Kind.MONEY and column.currency_column is not None and currency is not None:
        names = [one.name for one in table.columns]
        at = names.index(column.currency_column)
        begin, end = xl_rowcol_to_cell(1, at), xl_rowcol_to_cell(len(table.rows), at)
        return f'=SUMIF({begin}:{end},"{currency}",{first}:{last})'
    return f"=SUM({first}:{last})"


def _width(table: Table, place: int) -> int:
    column = table.columns[place]
    longest = max((len(shown(row[place], column)) for row in table.rows[:500]), default=0)
    words = max(map(len, column.title.split()), default=0)
    return max(_NARROWEST, min(_WIDEST, max(longest, words) + 3))
