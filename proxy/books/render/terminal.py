"""A document for a terminal (contract C3)."""

from __future__ import annotations

import io

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from proxy.books.document import Column, Document, Kind, Table
from proxy.books.render.cells import currency_of, shown, totals

_NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.RATIO, Kind.MONEY)
_TONES = {"good": "green", "bad": "bold red", "plain": "bold"}
#: What is told of a tone where there is no colour.
_MARKS = {"good": "ok", "bad": "!!", "plain": ""}
#: A terminal is for looking; all rows are in the other forms.
MOST_ROWS = 500


def render_text(document: Document, *, width: int | None = None, colour: bool = False) -> str:
    """Plain text unless `colour`. Tables wider than the terminal are shown a row at a time."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or 120,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
    )
    console.print(f"[bold]{escape(document.title)}[/bold]")
    for label, text in document.facts:
        console.print(f"  {escape(label)}: {escape(text)}")
    if document.headlines:
        console.print()
    for line in document.headlines:
        column = Column(line.name, line.title, line.kind, currency=line.currency)
        value = shown(line.value, column, line.currency)
        mark = f" {_MARKS[line.tone]}" if _MARKS[line.tone] else ""
        tone = _TONES[line.tone]
        console.print(f"  {escape(line.title):<32} [{tone}]{escape(value)}[/{tone}]{mark}")
    for table in document.tables:
        console.print()
        _table(console, table)
    for note in document.notes:
        console.print(f"\n{escape(note)}")
    return out.getvalue()


def _table(console: Console, table: Table) -> None:
    console.print(f"[bold]{escape(table.title)}[/bold]")
    if not table.rows:
        console.print("  (nothing)")
        return
    rows = [
        [shown(cell, column, currency_of(table, row, column)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows[:MOST_ROWS]
    ]
    sums = [
        [shown(cell, column, column.currency or currency) for cell, column in zip(cells, table.columns, strict=True)]
        for currency, cells in totals(table)
    ]
    kept = [place for place in range(len(table.columns)) if any(row[place] for row in rows)]
    widths = [max(len(table.columns[place].title), *(len(row[place]) for row in (*rows, *sums))) for place in kept]
    if sum(widths) + 2 * len(widths) > console.width:
        _records(console, table, rows, sums, kept)
        return
    shape = RichTable(box=box.SIMPLE, show_edge=False, pad_edge=False, show_footer=False)
    for place in kept:
        column = table.columns[place]
        is_number = column.kind in _NUMBERS
        shape.add_column(escape(column.title), justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        shape.add_row(*(escape(row[place]) for place in kept))
    if sums:
        shape.add_section()
    for row in sums:
        shape.add_row(*(f"[bold]{escape(row[place])}[/bold]" if row[place] else "" for place in kept))
    console.print(shape)
    _rest(console, table)


def _records(console: Console, table: Table, rows: list[list[str]], sums: list[list[str]], kept: list[int]) -> None:
    """A row as some lines, where the terminal is too narrow for a line each."""
    title_width = max(len(table.columns[place].title) for place in kept)
    for name, some in (("", rows), ("all together", sums)):
        for row in some:
            console.print(f"  [dim]{'-' * 8}[/dim] {name}")
            for place in kept:
                if row[place]:
                    title = table.columns[place].title
                    console.print(f"  {escape(title):<{title_width}}  {escape(row[place])}", soft_wrap=True)
    _rest(console, table)


def _rest(console: Console, table: Table) -> None:
    if len(table.rows) > MOST_ROWS:
        console.print(f"  … and {len(table.rows) - MOST_ROWS:,} more rows: all are in --format csv, xlsx and json")
