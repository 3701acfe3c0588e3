"""A document for a terminal, or as plain text (contract C3, L4).

In: a document, and how wide the terminal is. Out: text. A table that is too wide is folded, then cut into bands that
repeat its leading columns, and only where these leave no room shown a row at a time: no figure is ever cut off. Never:
lets a sign act that a client put into a name, or tells by colour alone.
"""

from __future__ import annotations

import io

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from proxy.books.document import Document, Kind, Table
from proxy.books.render.cells import (
    NUMBERS,
    column_texts,
    currency_of,
    heading,
    headline_texts,
    visible,
)
from proxy.books.render.sums import label_place, totals

_TONES = {"good": "green", "bad": "bold red"}
_WORDS = {"good": "in order", "bad": "needs a look"}
#: A terminal is for looking; all rows are in the other forms.
MOST_ROWS = 500
_BESIDE_TERMINAL = 160
#: Between two columns; one of them is the box's own.
_GAP = 2
#: A rule below the headings and one above the sums.
_RULES = box.Box("    \n    \n ── \n    \n ── \n    \n    \n    \n")
#: A text may be folded down to this many cells, a heading to its longest word.
_FOLDED = 22
#: More pieces than these are harder to read than a row at a time.
_MOST_BANDS = 6


def render_text(document: Document, *, width: int | None = None, colour: bool = False, exact: bool = False) -> str:
    """Plain text unless `colour`; `width` in cells; `exact` shows money to the last nano-unit."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or _BESIDE_TERMINAL,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
        _environ={},  # or COLUMNS and NO_COLOR would decide about a file too
    )
    console.print(f"[bold]{_safe(document.title)}[/bold]")
    for label, text in document.facts:
        console.print(f"  [dim]{_safe(label)}:[/dim] {_safe(text)}")
    _headlines(console, document, exact)
    for table in document.tables:
        console.print()
        _TableText(console, table, exact).write()
    if document.notes:
        console.print()
    for note in document.notes:
        console.print(f"* {_safe(note)}")
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().split("\n")[:-1])


def _safe(text: str) -> str:
    return escape(visible(text))


def _headlines(console: Console, document: Document, exact: bool) -> None:
    if not document.headlines:
        return
    console.print()
    figures = headline_texts(document.headlines, exact=exact)
    rows = [(visible(line.title), text, line.tone) for line, text in zip(document.headlines, figures, strict=True)]
    titles, values = (max(cell_len(row[place]) for row in rows) for place in (0, 1))
    for title, value, tone in rows:
        style = _TONES.get(tone, "bold")
        word = f"  [{style}]{_WORDS[tone]}[/{style}]" if tone in _WORDS else ""
        left, right = " " * (titles - cell_len(title)), " " * (values - cell_len(value))
        console.print(f"  {escape(title)}{left}  {right}[{style}]{escape(value)}[/{style}]{word}", soft_wrap=True)


class _TableText:
    """One table: its texts by column, the last of them the totals'."""

    def __init__(self, console: Console, table: Table, exact: bool) -> None:
        self._console, self._table = console, table
        self._rows = table.rows[:MOST_ROWS]
        self._sums = totals(table)
        self._label = label_place(table)
        self._texts = [
            column_texts(
                column, [*(row[place] for row in self._rows), *(one.cells[place] for one in self._sums)], exact=exact
            )
            for place, column in enumerate(table.columns)
        ]
        self._kept = [place for place in range(len(table.columns)) if any(self._texts[place][: len(self._rows)])]
        for order, one in enumerate(self._sums, start=len(self._rows)):
            if self._label is not None:
                self._texts[self._label][order] = one.label

    def write(self) -> None:
        print_ = self._console.print
        print_(f"[bold]{_safe(self._table.title)}[/bold]")
        if self._table.about:
            print_(f"[dim]{_safe(self._table.about)}[/dim]")
        if not self._kept:
            print_("  (nothing)")
            return
        bands = self._bands()
        for order, band in enumerate(bands):
            if order:
                print_()
            self._grid(band)
        if not bands:
            self._records()
        if len(self._table.rows) > MOST_ROWS:
            more = len(self._table.rows) - MOST_ROWS
            print_(f"  … and {more:,} more rows: all are in --format csv, xlsx and json")

    # -- how wide ----------------------------------------------------------------------------------------------------

    def _widths(self) -> tuple[dict[int, int], dict[int, int]]:
        """What each column would like, and the least that it can be read in."""
        natural, least = {}, {}
        for place in self._kept:
            column = self._table.columns[place]
            words = max(map(cell_len, heading(column).split()), default=0)
            natural[place] = max(words, *map(cell_len, self._texts[place]))
            least[place] = natural[place] if column.kind in NUMBERS else min(natural[place], _FOLDED)
        return natural, least

    def _bands(self) -> list[dict[int, int]]:
        """Columns and their widths, for one piece of the table after the other. None at all: only row by row."""
        room = self._console.width
        natural, least = self._widths()
        if (fitted := _fitted(natural, least, room)) is not None:
            return [fitted]
        keys = {place: least[place] for place in self._keys()}
        bands: list[dict[int, int]] = []
        for place in self._kept:
            if place in keys:
                continue
            if bands and _total({**bands[-1], place: least[place]}) <= room:
                bands[-1][place] = least[place]
            else:
                bands.append({**keys, place: least[place]})
        return bands if len(bands) <= _MOST_BANDS and all(_total(band) <= room for band in bands) else []

    def _keys(self) -> list[int]:
        """The columns that say which row it is: those before the first number."""
        is_key = [self._table.columns[place].kind not in NUMBERS for place in self._kept]
        return self._kept[: is_key.index(False)] if False in is_key else []

    # -- and then written ---------------------------------------------------------------------------------------------

    def _grid(self, widths: dict[int, int]) -> None:
        shape = RichTable(box=_RULES, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False, header_style="bold")
        for place, width in widths.items():
            column = self._table.columns[place]
            shape.add_column(
                escape(heading(column)),
                justify="right" if column.kind in NUMBERS else "left",
                vertical="top",
                width=width,
                overflow="fold",
            )
        for order in range(len(self._rows)):
            last = order == len(self._rows) - 1
            shape.add_row(
                *(escape(self._texts[place][order]) for place in widths), end_section=last and bool(self._sums)
            )
        for order in range(len(self._rows), len(self._rows) + len(self._sums)):
            shape.add_row(*(escape(self._texts[place][order]) for place in widths), style="bold")
        self._console.print(shape)

    def _records(self) -> None:
        """A row as some lines, where the terminal is too narrow for a line each."""
        table, titles = self._table, [column.title for column in self._table.columns]
        width = max(cell_len(titles[place]) for place in self._kept)
        for order in range(len(self._rows) + len(self._sums)):
            is_sum = order >= len(self._rows)
            cells = self._sums[order - len(self._rows)].cells if is_sum else self._rows[order]
            self._console.print(f"  [dim]{'-' * 8}[/dim]")
            for place in self._kept:
                text = self._texts[place][order]
                if not text:
                    continue
                column = table.columns[place]
                if column.kind is Kind.MONEY and (currency := currency_of(table, cells, column)) is not None:
                    text = f"{text} {currency}"
                title = f"{titles[place]}{' ' * (width - cell_len(titles[place]))}"
                self._console.print(f"  {escape(title)}  {escape(text)}", soft_wrap=True)


def _fitted(natural: dict[int, int], least: dict[int, int], room: int) -> dict[int, int] | None:
    """All columns side by side, the widest texts folded first, and none below what can be read."""
    fitted = dict(natural)
    while _total(fitted) > room:
        places = [place for place in fitted if fitted[place] > least[place]]
        if not places:
            return None
        fitted[max(places, key=fitted.__getitem__)] -= 1
    return fitted


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)
