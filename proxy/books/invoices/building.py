"""A line of an invoice put together from a row, and the problems of many rows told at once.

In: what a format finds in one row. Out: `InvoiceLine`s, or one `InvoiceError` that lists the first problems with their
places. A format's reader raises `ValueError` for one row; here it becomes a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from proxy.books.invoice import InvoiceLine, Part, PartKind
from proxy.books.invoices.figures import whole
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
                problems.append((file, f"reading stopped after {MOST_PROBLEMS} problems; there may be more"))
                raise InvoiceError(file, tuple(problems)) from error
    if problems:
        raise InvoiceError(file, tuple(problems))


@dataclass(slots=True)
class Parts:
    """The parts of one line."""

    found: list[Part] = field(default_factory=list)

    def add(self, kind: PartKind, count: object, what: str) -> None:
        """A part of a count that may be empty; `what` is what the export calls it. One that says nothing is none."""
        if not is_empty(count):
            self.found.append(Part(kind, whole(count, what)))

    def add_money(self, kind: PartKind, nanos: int, count: int | None = None) -> None:
        self.found.append(Part(kind, count, nanos))


def without_fees(line: InvoiceLine) -> Iterator[InvoiceLine]:
    """The line, and behind it one of what is no tokens: a request's price is then compared with that of its tokens."""
    fees = tuple(part for part in line.parts if part.kind is PartKind.OTHER)
    rest = tuple(part for part in line.parts if part.kind is not PartKind.OTHER)
    if line.request_id is None or not fees or not rest:
        yield line
        return
    yield replace(line, parts=rest)
    yield replace(line, parts=fees, request_id=None, requests=None)


def is_empty(cell: object) -> bool:
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
