"""A document for programs: JSON and CSV (contract C3, L4).

In: a document, or one of its tables. Out: bytes. JSON has every table as a list of objects by the columns' stable
names, and every chart as it is drawn. Money is an integer of nano-units and, under the name with `_text` behind it, the
exact decimal text. CSV (RFC 4180) is one table; its money is the decimal text. Nothing is rounded, and no totals are
added, which a program would take for a row.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import date

import orjson

from proxy.books.document import Cell, Chart, Document, Kind, Table
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
                **_figure("value", line.value, line.kind),
                **({"currency": line.currency} if line.currency is not None else {}),
            }
            for line in document.headlines
        },
        "tables": {table.name: _objects(table) for table in document.tables},
        "charts": {chart.name: _chart(chart) for chart in document.charts},
        "notes": list(document.notes),
    }
    return _json(told, indent=True) + b"\n"


def render_lines(table: Table) -> bytes:
    """A line of JSON for each row, in the same form."""
    return b"".join(_json(row) + b"\n" for row in _objects(table))


def _objects(table: Table) -> list[dict[str, object]]:
    currencies = _fixed_currencies(table)
    return [
        {
            name: value
            for column, cell in zip(table.columns, row, strict=True)
            for name, value in _figure(column.name, cell, column.kind).items()
        }
        | currencies
        for row in table.rows
    ]


def _fixed_currencies(table: Table) -> dict[str, object]:
    """What a row says of its money's currency where no column of its own does: `currency`, or if they differ one for
    each of those columns."""
    fixed = {column.name: column.currency for column in table.columns if column.kind is Kind.MONEY and column.currency}
    if len(set(fixed.values())) == 1 and all(column.name != "currency" for column in table.columns):
        return {"currency": next(iter(fixed.values()))}
    return {f"{name}_currency": currency for name, currency in fixed.items()}


def _figure(name: str, cell: Cell, kind: Kind) -> dict[str, object]:
    if kind is Kind.MONEY:
        return {name: cell, f"{name}_text": money_text(cell) if isinstance(cell, int) else None}
    return {name: cell.isoformat() if isinstance(cell, date) else cell}


def _chart(chart: Chart) -> dict[str, object]:
    return {
        "title": chart.title,
        "unit": chart.unit,
        "labels": list(chart.labels),
        "series": [{"title": one.title, "values": list(one.values)} for one in chart.series],
    }


def _json(told: object, *, indent: bool = False) -> bytes:
    try:
        return orjson.dumps(told, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError:  # an integer of more than 64 bits: nine milliards of a currency are as many nano-units
        separators = (",", ": ") if indent else (",", ":")
        text = json.dumps(told, ensure_ascii=False, indent=2 if indent else None, separators=separators)
        return text.encode()


def render_csv(table: Table) -> bytes:
    """A line of names, then a line for each row."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow(
            [
                harmless(cell) if isinstance(cell, str) else plain(cell, column)
                for cell, column in zip(row, table.columns, strict=True)
            ]
        )
    return out.getvalue().encode()
