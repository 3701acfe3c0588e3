"""A tenant's own attempts one by one, for the tenant itself (contracts C3, C5).

In: the live ledger, one tenant and what it asks. Out: its attempts as JSON lines or CSV, by start and id: those of the
database and those that only the journals hold yet, each once. What is the operator's own business is left out, and no
row of another tenant leaves the database. A row at a time, however large the ledger.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from proxy.books.render.cells import harmless
from proxy.books.source import LiveLedger
from proxy.stores.ledger_read import snapshot
from proxy.stores.ledger_rows import COLUMNS, FLAT_COLUMNS, Values, to_c5, to_flat, with_fragments

#: How the operator is set up: which of its upstreams and keys an attempt went by, and which process wrote it down.
NOT_THEIRS: Final = ("upstream", "credential", "writer")
#: A thread that makes rows holds the interpreter's lock for up to 5 ms at a time, and every stream of the process waits
#: that long. So it gives way: after each of so many rows, which are about a millisecond, for as long.
_ROWS_AT_ONCE: Final = 25
_PAUSE_S: Final = 0.0005

_VENDOR, _MODEL, _SERVED = (COLUMNS.index(name) for name in ("vendor", "model", "served_model"))


@dataclass(frozen=True, slots=True)
class AttemptsQuestion:
    """As `UsageQuestion` has it: bounds in microseconds; `filters` for `vendor` and `model` (the served one, or else
    the asked), each a set of values of which one must hold."""

    tenant: str
    since: int | None = None
    until: int | None = None
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def takes(self, values: Values) -> bool:
        served = values[_SERVED]
        told = {"vendor": values[_VENDOR], "model": values[_MODEL] if served is None else served}
        return all(told[name] in wanted for name, wanted in self.filters.items())


def attempt_lines(place: LiveLedger, question: AttemptsQuestion) -> Generator[bytes, None, None]:
    """The objects of the export, without what is not theirs."""
    for values in _rows(place, question):
        row = with_fragments(to_c5(values))
        for name in NOT_THEIRS:
            del row[name]
        yield orjson.dumps(row) + b"\n"


def attempt_csv(place: LiveLedger, question: AttemptsQuestion) -> Generator[bytes, None, None]:
    """A line of names and a line for each attempt (RFC 4180), as the export has it, and safe to open."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    names = [name for name in FLAT_COLUMNS if name not in NOT_THEIRS]
    writer.writerow(names)
    yield _taken(buffer)
    for values in _rows(place, question):
        row = to_flat(values)
        writer.writerow([_cell(row[name]) for name in names])
        yield _taken(buffer)


def _rows(place: LiveLedger, question: AttemptsQuestion) -> Iterator[Values]:
    with snapshot(place.url, place.journal_dir) as ledger:
        for number, values in enumerate(ledger.rows(question.since, question.until, question.tenant), start=1):
            if question.takes(values):
                yield values
            if number % _ROWS_AT_ONCE == 0:
                time.sleep(_PAUSE_S)


def _cell(cell: object) -> object:
    if isinstance(cell, bool):
        return str(cell).lower()
    return harmless(cell) if isinstance(cell, str) else cell


def _taken(buffer: io.StringIO) -> bytes:
    line = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return line
