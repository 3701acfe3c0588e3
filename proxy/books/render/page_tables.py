"""A table on a page: aligned, headed for a screen reader, and told how wide it is in print (contract C3).

In: a table. Out: HTML of which all text is escaped. A column that is empty in every row is left out, and a sparse one
that is nought in every row; sums are in the foot. The first column names the row, and stays in sight where the table is
scrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from rich.cells import cell_len

from proxy.books.document import Cell, Column, Kind, Table
from proxy.books.render.cells import NUMBERS, column_texts, heading, is_nothing, visible
from proxy.books.render.sums import label_place, totals

#: A longer text may be broken over lines.
_LONG: Final = 34
#: How small a table is printed, by its width in letters: on upright paper, and on paper that lies across.
_UPRIGHT: Final = ((135, ""), (153, "small"))
_ACROSS: Final = ((199, ""), (226, "small"), (257, "smaller"))
_SMALLEST: Final = "smallest"
#: Beside its text, a cell in print takes so many letters; a long text is broken to about so many.
_PADDING, _BROKEN = 2, 22


class TableHtml:
    """`rows` are those that are shown; sums are of all. `titled_by` is the id of what names the table."""

    def __init__(self, table: Table, rows: Sequence[tuple[Cell, ...]], titled_by: str, *, exact: bool = False) -> None:
        self._table, self._rows, self._titled_by = table, rows, titled_by
        self._sums = totals(table)
        self._texts = [
            column_texts(
                column, [*(row[place] for row in rows), *(one.cells[place] for one in self._sums)], exact=exact
            )
            for place, column in enumerate(table.columns)
        ]
        self._kept = [place for place in range(len(table.columns)) if self._says_something(place)]
        if (at := label_place(table)) is not None:
            for order, one in enumerate(self._sums, start=len(rows)):
                self._texts[at][order] = one.label

    def _says_something(self, place: int) -> bool:
        if self._table.columns[place].sparse:
            return any(row[place] for row in self._table.rows)
        return any(self._texts[place][: len(self._rows)])

    @property
    def is_empty(self) -> bool:
        return not self._kept

    @property
    def letters(self) -> int:
        """How wide it is."""
        return sum(map(self._letters, self._kept))

    def html(self) -> str:
        heads = "".join(self._head(self._table.columns[place]) for place in self._kept)
        body = "".join(self._row(order) for order in range(len(self._rows)))
        foot = "".join(self._row(len(self._rows) + order) for order in range(len(self._sums)))
        return (
            f'<div class="wide" role="region" tabindex="0" aria-labelledby="{self._titled_by}">'
            f'<table aria-labelledby="{self._titled_by}"><thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody>'
            f"{f'<tfoot>{foot}</tfoot>' if foot else ''}</table></div>"
        )

    def _head(self, column: Column) -> str:
        title = escape(visible(heading(column)))
        if column.about:
            title = f'<abbr title="{escape(visible(column.about))}">{title}</abbr>'
        return f'<th scope="col"{_classes("n" if column.kind in NUMBERS else "")}>{title}</th>'

    def _row(self, order: int) -> str:
        """A row of the table, or behind them one of the sums."""
        is_sum = order >= len(self._rows)
        cells = self._sums[order - len(self._rows)].cells if is_sum else self._rows[order]
        parts = []
        for place in self._kept:
            column, text = self._table.columns[place], self._texts[place][order]
            if column.kind in NUMBERS:
                parts.append(f"<td{_classes('n', 'z' if is_nothing(cells[place]) else '')}>{escape(text)}</td>")
                continue
            looks = _classes("long" if cell_len(text) > _LONG else "", "d" if column.kind is Kind.DAY else "")
            tag = "th" if place == self._kept[0] else "td"
            scope = ' scope="row"' if tag == "th" else ""
            parts.append(f'<{tag}{scope}{looks} dir="auto">{escape(text)}</{tag}>')
        return f"<tr>{''.join(parts)}</tr>\n"

    def _letters(self, place: int) -> int:
        column = self._table.columns[place]
        words = max(map(cell_len, heading(column).split()), default=0)
        longest = max(map(cell_len, self._texts[place]))
        return max(min(words, _BROKEN), _BROKEN if longest > _LONG else longest) + _PADDING


def needs_across(letters: int) -> bool:
    """Is a table of this width too wide for upright paper?"""
    return letters > _UPRIGHT[-1][0]


def print_size(letters: int, *, across: bool) -> str:
    """The class that makes it fit."""
    return next((size for most, size in (_ACROSS if across else _UPRIGHT) if letters <= most), _SMALLEST)


def _classes(*names: str) -> str:
    kept = " ".join(name for name in names if name)
    return f' class="{kept}"' if kept else ""
