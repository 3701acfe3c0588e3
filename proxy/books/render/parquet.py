"""A document's table as Parquet, through DuckDB (contract C3, L4). Money is DECIMAL(38, 9) in units of its currency."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import duckdb

from proxy.books.document import Kind, Table
from proxy.books.render.cells import plain

_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.RATIO: "DOUBLE",
    Kind.MONEY: "DECIMAL(38, 9)",
    Kind.DAY: "DATE",
}
_NULL = "\x1f"


def render_parquet(table: Table) -> bytes:
    """One file, written on one thread so that it is the same each time."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        source, target = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        with source.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            for row in table.rows:
                writer.writerow(
                    [
                        _NULL if cell is None else plain(cell, column)
                        for cell, column in zip(row, table.columns, strict=True)
                    ]
                )
        columns = ", ".join(f"'{column.name}': '{_TYPES[column.kind]}'" for column in table.columns)
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute(
                f"COPY (SELECT * FROM read_csv('{source}', header = false, auto_detect = false, delim = ',', "
                f"quote = '\"', escape = '\"', nullstr = '{_NULL}', new_line = '\\n', columns = {{{columns}}})) "
                f"TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
            )
        return target.read_bytes()
