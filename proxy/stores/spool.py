"""Rows on their way into DuckDB: a CSV file, which it reads on all its threads, and a row at a time only slowly.

In: rows of a table of the ledger's schema. Out: the file, and the SQL that reads it with the table's types.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import BigInteger, Boolean, Table

# No text in a row is this: the ledger keeps no lone control character that a vendor could have meant.
_NULL = "\x1f"
_KINDS = {BigInteger: "BIGINT", Boolean: "BOOLEAN"}


def _types(table: Table, names: Iterable[str]) -> dict[str, str]:
    """DuckDB's types of these columns."""
    return {name: _KINDS.get(type(table.c[name].type), "VARCHAR") for name in names}


def columns_sql(table: Table, names: Iterable[str]) -> str:
    """The columns as `CREATE TABLE` wants them."""
    return ", ".join(f"{name} {kind}" for name, kind in _types(table, names).items())


def write_spool(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Raises `OSError`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(_cells(rows))


def _cells(rows: Iterable[Sequence[object]]) -> Iterator[list[object]]:
    for row in rows:
        yield [_NULL if cell is None else cell for cell in row]


def read_sql(path: Path, table: Table, names: Iterable[str], more: Mapping[str, str] = MappingProxyType({})) -> str:
    """A relation for `FROM`: the rows that `write_spool` wrote, with columns of these names, and behind them `more`:
    names and types of DuckDB."""
    kinds = _types(table, names) | dict(more)
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in kinds.items())
    return (
        f"read_csv('{quoted(path)}', header = false, auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
        f"nullstr = '{_NULL}', new_line = '\\n', max_line_size = 16777216, columns = {{{columns}}})"
    )


def quoted(path: Path) -> str:
    """A path within single quotes of SQL."""
    return str(path).replace("'", "''")
