"""A document as a spreadsheet whose formulas a spreadsheet can recompute (contract C3, L4).

In: a document. Out: a workbook's bytes: a sheet for the summary and one for each table. Computed columns and sums are
formulas, their values written beside them for viewers that do not compute. Money is a number in units of its currency.
A spreadsheet keeps 15 digits: that is exact to the nano-unit below a million, and money's formulas are rounded there,
so that what is equal differs by nought. Never: makes a formula or a link of a text, whatever a client called its model.
"""

from __future__ import annotations

import io
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import xlsxwriter  # type: ignore[import-untyped]

from proxy.books.document import Cell, Column, Document, Headline, Kind, Table
from proxy.books.render.cells import NUMBERS, column_texts, heading
from proxy.books.render.formulas import row_formula, sum_formula
from proxy.books.render.sheet_names import SheetNames, cell_text
from proxy.books.render.sums import Total, label_place, totals
from proxy.metering.money import NANO

#: What a sheet can hold, its heading and some sums besides.
MOST_ROWS: Final = 1_048_000
_MADE: Final = datetime(2000, 1, 1)  # the same each time
_WIDEST, _NARROWEST = 46, 9
_A4: Final = 9
_NUMBERS: Final = {
    Kind.INTEGER: "#,##0",
    Kind.NUMBER: "#,##0.0000",
    Kind.RATIO: "0.00%",
    Kind.MONEY: "#,##0.00#######",
    Kind.DAY: "yyyy-mm-dd",
}
_WORDS: Final = {"good": "in order", "bad": "needs a look"}
_TONES: Final = {"good": "#1B7A43", "bad": "#B3261E"}


class TooLarge(ValueError):
    """A table that no sheet can hold; the text says what to do instead."""


def render_xlsx(document: Document) -> bytes:
    """The workbook. Raises `TooLarge`."""
    for table in document.tables:
        if len(table.rows) > MOST_ROWS:
            raise TooLarge(
                f"{table.title}: {len(table.rows):,} rows are more than a sheet can hold; take csv or parquet, or "
                "group by less"
            )
    out = io.BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
    }
    book = xlsxwriter.Workbook(out, options)
    book.set_properties({"title": cell_text(document.title), "created": _MADE})
    book.set_calc_mode("auto")
    _Book(book).write(document)
    book.close()
    return out.getvalue()


class _Book:
    def __init__(self, book: Any) -> None:
        self._book = book
        self._formats: dict[tuple[object, ...], Any] = {}
        self._names = SheetNames()

    def write(self, document: Document) -> None:
        self._summary(document)
        for table in document.tables:
            self._table(table)

    def _format(self, **wanted: object) -> Any:
        key = tuple(sorted(wanted.items()))
        if key not in self._formats:
            self._formats[key] = self._book.add_format({"font_name": "Calibri", "font_size": 11, **wanted})
        return self._formats[key]

    def _sheet(self, title: str) -> Any:
        sheet = self._book.add_worksheet(self._names.free(title))
        sheet.set_landscape()
        sheet.set_paper(_A4)
        sheet.fit_to_pages(1, 0)  # one page wide, as many as it takes
        sheet.set_margins(left=0.5, right=0.5, top=0.6, bottom=0.7)
        sheet.set_footer("&L&A&R&P / &N")
        return sheet

    # -- the summary --------------------------------------------------------------------------------------------------

    def _summary(self, document: Document) -> None:
        sheet = self._sheet("Summary")
        sheet.hide_gridlines(2)
        sheet.set_column(0, 0, 34)
        sheet.set_column(1, 1, 26)
        sheet.set_column(2, 3, 16)
        soft, note = self._format(font_color="#5D6672"), self._format(italic=True)
        sheet.write_string(0, 0, cell_text(document.title), self._format(bold=True, font_size=16))
        row = 2
        for label, text in document.facts:
            sheet.write_string(row, 0, cell_text(label), soft)
            sheet.write_string(row, 1, cell_text(text), self._format())
            row += 1
        row += 1
        for line in document.headlines:
            self._headline(sheet, row, line)
            row += 1
        row += 1
        for text in document.notes:
            sheet.write_string(row, 0, cell_text(text), note)
            row += 1

    def _headline(self, sheet: Any, row: int, line: Headline) -> None:
        column = Column(line.name, line.title, line.kind, currency=line.currency)
        sheet.write_string(row, 0, cell_text(line.title), self._format())
        self._cell(sheet, row, 1, line.value, column, bold=True, font_size=12)
        if line.currency is not None:
            sheet.write_string(row, 2, cell_text(line.currency), self._format())
        if line.tone in _WORDS:
            sheet.write_string(row, 3, _WORDS[line.tone], self._format(bold=True, font_color=_TONES[line.tone]))

    # -- a table ------------------------------------------------------------------------------------------------------

    def _table(self, table: Table) -> None:
        sheet, sums = self._sheet(table.title), totals(table)
        for place, column in enumerate(table.columns):
            align = "right" if column.kind in NUMBERS else "left"
            head = self._format(bold=True, bottom=1, text_wrap=True, valign="bottom", align=align, bg_color="#F1F3F5")
            sheet.write_string(0, place, cell_text(heading(column)), head)
            if column.about:
                sheet.write_comment(0, place, cell_text(column.about), {"author": ""})
            sheet.set_column(place, place, _width(table, place, sums))
        for number, row in enumerate(table.rows, start=1):
            for place, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
                self._cell(sheet, number, place, cell, column, row_formula(table, column, row, number))
        self._totals(sheet, table, sums)
        sheet.freeze_panes(1, 1)
        sheet.repeat_rows(0)
        if table.rows:
            sheet.autofilter(0, 0, len(table.rows), len(table.columns) - 1)

    def _totals(self, sheet: Any, table: Table, sums: tuple[Total, ...]) -> None:
        at = label_place(table)
        for order, total in enumerate(sums):
            number = len(table.rows) + 2 + order  # an empty row between, or a filter would take the sums for rows
            for place, (cell, column) in enumerate(zip(total.cells, table.columns, strict=True)):
                self._cell(sheet, number, place, cell, column, sum_formula(table, column, total, number), bold=True)
            if at is not None:
                sheet.write_string(number, at, total.label, self._format(bold=True))

    def _cell(
        self, sheet: Any, row: int, place: int, cell: Cell, column: Column, formula: str | None = None, **look: object
    ) -> None:
        """A value, or a formula with its value: that of a division by nought is an empty text."""
        if formula is not None:
            value = "" if cell is None else _value(cell, column)
            sheet.write_formula(row, place, formula, self._look(column, look), value)
        elif isinstance(cell, bool):
            sheet.write_boolean(row, place, cell, self._format(**look))
        elif isinstance(cell, date):
            sheet.write_datetime(row, place, datetime(cell.year, cell.month, cell.day), self._look(column, look))
        elif isinstance(cell, int | float):
            sheet.write_number(row, place, _value(cell, column), self._look(column, look))
        elif cell is not None:
            sheet.write_string(row, place, cell_text(cell), self._format(**look))

    def _look(self, column: Column, look: dict[str, object]) -> Any:
        align = {"align": "left"} if column.kind is Kind.DAY else {}
        return self._format(num_format=_NUMBERS.get(column.kind, "General"), **align, **look)


def _value(cell: Cell, column: Column) -> float | int:
    """A spreadsheet's number."""
    assert isinstance(cell, int | float), f"{column.name}: only a number has a value, and {cell!r} is none"
    if column.kind is Kind.MONEY and isinstance(cell, int):
        return float(Decimal(cell) / NANO)
    return cell


def _width(table: Table, place: int, sums: tuple[Total, ...]) -> int:
    """In characters, by the first rows and the longest word of the heading."""
    column = table.columns[place]
    some = [*(row[place] for row in table.rows[:500]), *(total.cells[place] for total in sums)]
    longest = max(map(len, column_texts(column, some, exact=True)), default=0)
    words = max(map(len, heading(column).split()), default=0)
    return max(_NARROWEST, min(_WIDEST, max(longest, words) + 3))
