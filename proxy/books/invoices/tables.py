"""The rows of a CSV export, with the places they stand at.

In: a `Source` and the columns that it must have. Out: each row's cells by their column. The heading need not be the
first line: consoles write a few lines of `name,value` above it, which then count as columns of every row. Never: a
file in memory; it is read as it is asked for.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.books.invoices.files import Source

_DELIMITERS: Final = ",;\t|"
#: Lines among which a heading is looked for. Google's cost table has some ten above it.
_LINES_ABOVE: Final = 40
csv.field_size_limit(16 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class Heading:
    """`line` is its number, from 1; `above` what the lines before it say."""

    names: tuple[str, ...]
    line: int
    delimiter: str
    above: Mapping[str, str] = field(default_factory=dict)


def find_heading(head: str, accepts: Callable[[Collection[str]], bool], delimiter: str | None = None) -> Heading | None:
    """The first line of the file's beginning whose cells are accepted as column names."""
    above: dict[str, str] = {}
    for at, line in enumerate(_lines(head)[:_LINES_ABOVE], start=1):
        used = delimiter or _delimiter(line)
        names = _cells(line, used)
        if accepts(set(names)):
            return Heading(tuple(names), at, used, above)
        if len(names) >= 2 and names[0] and names[1]:
            above.setdefault(names[0].rstrip(":"), names[1])
    return None


def first_columns(head: str, delimiter: str | None = None) -> Sequence[str]:
    """What seems to be the heading, for showing it."""
    line = next((line for line in _lines(head) if line.strip()), "")
    return _cells(line, delimiter or _delimiter(line))


def rows(source: Source, heading: Heading) -> Iterator[tuple[str, dict[str, str]]]:
    """The place and the cells by their column, of each row below the heading. Empty rows are passed over."""
    names = heading.names
    with source.text() as file:
        reader = csv.reader(file, delimiter=heading.delimiter)
        try:
            for cells in reader:
                if reader.line_num <= heading.line or not any(cell.strip() for cell in cells):
                    continue
                if len(cells) > len(names) and any(cell.strip() for cell in cells[len(names) :]):
                    reason = f"has {len(cells)} cells, and the heading {len(names)}: is a delimiter not quoted?"
                    raise source.fail(f":{reader.line_num}", reason)
                found = dict(zip(names, cells, strict=False))
                yield f"{source.name}:{reader.line_num}", {**heading.above, **found} if heading.above else found
        except csv.Error as error:
            raise source.fail(f":{reader.line_num}", f"is no CSV: {error}") from error
        except UnicodeError as error:
            raise source.fail("", f"is not UTF-8 text: {error}; save it as CSV (UTF-8)") from error


def _lines(head: str) -> list[str]:
    return head.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:  # a line that is no CSV is no heading
        return []


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=lambda one: (line.count(one), -_DELIMITERS.index(one)))
