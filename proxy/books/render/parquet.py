"""A document's table as Parquet, through DuckDB (contract C3, L4).

In: a table. Out: one file's bytes, typed: days are DATE, money is DECIMAL(38, 9) in units of its currency, exactly.
A column's type is its kind's, whatever stands in it. Never: on more than one thread, or the bytes would differ.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import orjson

from proxy.books.document import Cell, Column, Kind, Table
from proxy.books.render.cells import plain

_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.RATIO: "DOUBLE",
    Kind.MONEY: "DECIMAL(38, 9)",
    Kind.DAY: "DATE",
}


def render_parquet(table: Table) -> bytes:
    """The rows go through a file of JSON lines, which tells an empty text from none and keeps every sign."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        source, target = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        with source.open("wb") as file:
            for row in table.rows:
                cells = zip(table.columns, row, strict=True)
                file.write(orjson.dumps({column.name: _value(cell, column) for column, cell in cells}) + b"\n")
        columns = {column.name: _TYPES[column.kind] for column in table.columns}
        with duckdb.connect(config={"threads": 1}) as connection:
            rows = connection.read_json(str(source), columns=columns, format="newline_delimited")
            rows.write_parquet(str(target), compression="zstd")
        return target.read_bytes()


def _value(cell: Cell, column: Column) -> Cell:
    """Money and days as texts, which DuckDB reads exactly; JSON's numbers would be floats to it."""
    if column.kind in (Kind.MONEY, Kind.DAY, Kind.TEXT) and cell is not None:
        return plain(cell, column)
    return cell
