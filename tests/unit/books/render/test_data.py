"""JSON, JSON lines, CSV and Parquet: exact, and harmless to open."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proxy.books.document import Column, Document, Kind, Table
from proxy.books.render.data import render_csv, render_json, render_lines
from proxy.books.render.parquet import render_parquet
from tests.support.documents import HOSTILE, report

pytestmark = pytest.mark.clause("L4")


def test_json_has_exact_integers_and_decimal_texts() -> None:
    """Money in nano-units, and beside it as a person would write it."""
    told = json.loads(render_json(report()))
    assert list(told) == ["report", "title", "facts", "headlines", "tables", "charts", "notes"]
    row = told["tables"]["usage"][1]
    assert (row["cost"], row["cost_text"], row["currency"]) == (1_234_567_891, "1.234567891", "USD")
    assert (row["day"], row["difference"], row["tenant"]) == ("2026-10-02", 107, HOSTILE[1])
    unexplained = told["headlines"]["unexplained"]
    assert (unexplained["value"], unexplained["value_text"], unexplained["currency"], unexplained["tone"]) == (
        *(12_345_678_901, "12.345678901", "USD", "bad"),
    )
    assert told["tables"]["empty"] == []
    assert told["charts"]["by_day"]["series"][1]["values"][8:10] == [9.5 + 8 % 7, None]


def test_json_lines_are_the_rows_of_json() -> None:
    """In the same form, one on a line."""
    document = report()
    lines = render_lines(document.tables[0]).decode().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == json.loads(render_json(document))["tables"]["usage"]
    assert lines[-1] == ""


def test_json_holds_integers_of_any_size() -> None:
    """Nine milliards of a currency are more nano-units than 64 bits hold."""
    table = Table("t", "T", (Column("cost", "Cost", Kind.MONEY, currency="IRR"),), ((10**20 + 1,),))
    told = json.loads(render_json(Document("d", "فروش", (), (), (table,))))
    assert told["tables"]["t"] == [{"cost": 10**20 + 1, "cost_text": "100000000000.000000001", "currency": "IRR"}]
    assert told["title"] == "فروش"


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (Column("b", "B", Kind.MONEY, currency="USD"), {"currency": "USD"}),
        (Column("b", "B", Kind.MONEY, currency="EUR"), {"a_currency": "USD", "b_currency": "EUR"}),
        (Column("currency", "B"), {"a_currency": "USD"}),
    ],
)
def test_a_row_says_the_currency_of_all_its_money(second: Column, expected: dict[str, str]) -> None:
    """One for all where it is one, one for each where they differ; no column is written over."""
    table = Table("t", "T", (Column("a", "A", Kind.MONEY, currency="USD"), second), ((1, None),))
    (row,) = json.loads(render_json(Document("d", "D", (), (), (table,))))["tables"]["t"]
    assert {name: value for name, value in row.items() if "currency" in name and value is not None} == expected


def test_csv_reads_back_and_runs_nothing() -> None:
    """Quotes, line feeds and commas survive; what a spreadsheet would take for a formula does not begin like one."""
    data = render_csv(report().tables[0])
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert [row["tenant"].removeprefix("'") for row in rows[:-1]] == list(HOSTILE)
    assert not any(cell.startswith(("=", "+", "@", "\t")) for row in rows for cell in row.values())
    assert not any(row["tenant"].startswith("-") for row in rows)
    assert (rows[1]["cost"], rows[-1]["cost"], rows[1]["share"]) == ("1.234567891", "", str(107 / 900))
    assert data.count(b"\r\n") == len(rows) + 1


def read(file: Path, data: bytes, query: str) -> list[Any]:
    file.write_bytes(data)
    with duckdb.connect() as connection:
        return connection.execute(query.format(f"'{file}'")).fetchall()


def test_parquet_has_types(tmp_path: Path) -> None:
    """Days are days, money is a decimal, nothing is null; every sign of a text is kept."""
    file, data = tmp_path / "report.parquet", render_parquet(report().tables[0])
    kinds = dict(read(file, data, "SELECT column_name, column_type FROM (DESCRIBE FROM {})"))
    assert (kinds["day"], kinds["cost"], kinds["vendor"], kinds["share"]) == (
        *("DATE", "DECIMAL(38,9)", "BIGINT", "DOUBLE"),
    )
    found = read(file, data, "SELECT tenant, cost, day FROM {}")
    assert [row[0] for row in found[:-1]] == list(HOSTILE)
    assert (str(found[1][1]), found[-1][1], found[-1][2]) == ("1.234567891", None, None)


def test_parquet_has_its_types_without_a_row_and_tells_empty_from_none(tmp_path: Path) -> None:
    """A day without traffic reads like any other; an empty name is not a missing one; money has 38 digits."""
    columns = (Column("name", "Name"), Column("cost", "Cost", Kind.MONEY))
    empty = render_parquet(Table("t", "T", columns, ()))
    described = "SELECT column_type FROM (DESCRIBE FROM {})"
    assert read(tmp_path / "empty.parquet", empty, described) == [("VARCHAR",), ("DECIMAL(38,9)",)]
    some = render_parquet(Table("t", "T", columns, (("", 10**25 + 1), (None, -1), ("a\r\nb\x1f", None))))
    assert read(tmp_path / "some.parquet", some, "FROM {}") == [
        ("", Decimal("10000000000000000.000000001")),
        (None, Decimal("-0.000000001")),
        ("a\r\nb\x1f", None),
    ]
