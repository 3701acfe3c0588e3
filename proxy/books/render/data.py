"""A document for programs: JSON and CSV (contract C3, L4).

JSON has every table as a list of objects by the columns' stable names. Money is an integer of nano-units and, under
the name with `_text` behind it, the exact decimal text. CSV (RFC 4180) is one table; its money is the decimal text.
"""

from __future__ import annotations

import csv
import io
from datetime import date

import orjson

from proxy.books.document import Cell, Column, Document, Kind, Table
from proxy.books.render.cells import harmless, plain
from proxy.metering.money import money_text


def render_json(document: Document) -> bytes:
    """One object and a line feed."""
    told = {
        "report": document.name,
        "title": document.title,
        "facts": dict(document.facts),
        "headlines": {
            line.name: {
                "title": line.title,
                "tone": line.tone,
                **_figure("value", line.value, line.kind, line.currency),
            }
            for line in document.headlines
        },
        "tables": {table.name: [_object(table, row) for row in table.rows] for table in document.tables},
        "notes": list(document.notes),
    }
    return orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n"


def render_lines(table: Table) -> bytes:
    """A line of JSON for each row, in the same form."""
    return b"".join(orjson.dumps(_object(table, row)) + b"\n" for row in table.rows)


def _object(table: Table, row: tuple[Cell, ...]) -> dict[str, object]:
    told: dict[str, object] = {}
    for column, cell in zip(table.columns, row, strict=True):
        told |= _figure(column.name, cell, column.kind, column.currency)
    return told


def _figure(name: str, cell: Cell, kind: Kind, currency: str | None) -> dict[str, object]:
    if kind is not Kind.MONEY:
        return {name: cell.isoformat() if isinstance(cell, date) else cell}
    told: dict[str, object] = {name: cell, f"{name}_text": money_text(cell) if isinstance(cell, int) else None}
    return {**told, "currency": currency} if currency is not None else told


def render_csv(table: Table) -> bytes:
    """A line of names, then a line for each row; no totals, which a program would count as a row."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([_csv_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)])
    return out.getvalue().encode()


def _csv_cell(cell: Cell, column: Column) -> str:
    text = plain(cell, column)
    return harmless(text) if column.kind is Kind.TEXT else text
