"""A line of an invoice put together from a row, and the problems of many rows told at once.

In: what a format finds in one row. Out: `InvoiceLine`s, or one `InvoiceError` that lists the first problems with their
places. A format's reader raises `ValueError` for one row; here it becomes a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from proxy.books.invoice import InvoiceLine, Part, PartKind
from proxy.books.invoices.figures import money, tokens
from proxy.errors import InvoiceError

MOST_PROBLEMS = 20
Row = TypeVar("Row")


def lines_of(
    file: str, rows: Iterable[tuple[str, Row]], read: Callable[[str, Row], Iterable[InvoiceLine]]
) -> Iterator[InvoiceLine]:
    """The lines of all rows. Raises `InvoiceError` at the end, or as soon as there are too many problems to list."""
    problems: list[tuple[str, str]] = []
    for place, row in rows:
        try:
            yield from read(place, row)
        except ValueError as error:
            problems.append((place, str(error)))
            if len(problems) >= MOST_PROBLEMS:
                raise InvoiceError(file, tuple(problems)) from error
    if problems:
        raise InvoiceError(file, tuple(problems))


@dataclass(slots=True)
class Parts:
    """The parts of one line."""

    found: list[Part] = field(default_factory=list)
    precision: int | None = None

    def add(self, kind: PartKind, count: object = None, amount: object = None, *, unit: int = 1) -> None:
        """A part, of cells that may be empty; one that says nothing is none."""
        said = None if _is_empty(count) else tokens(count, unit)
        paid: int | None = None
        if not _is_empty(amount):
            paid, digit = money(amount)
            self.precision = digit if self.precision is None else max(self.precision, digit)
        if said is not None or paid is not None:
            self.found.append(Part(kind, said, paid))

    def add_money(self, kind: PartKind, nanos: int, digit: int, count: int | None = None) -> None:
        self.found.append(Part(kind, count, nanos))
        self.precision = digit if self.precision is None else max(self.precision, digit)


def _is_empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def cell(row: Mapping[str, str], *names: str) -> str | None:
    """The first of these columns that the file has and the row fills."""
    for name in names:
        value = row.get(name)
        if value is not None and value.strip():
            return value.strip()
    return None


def needed(row: Mapping[str, str], *names: str) -> str:
    value = cell(row, *names)
    if value is None:
        raise ValueError(f"the column {' or '.join(names)} is empty")
    return value
