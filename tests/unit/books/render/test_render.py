"""A document in each of its forms: exact, harmless, and the same bytes every time."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import openpyxl
import pytest

from proxy.books.document import Column, Kind, Table
from proxy.books.render.cells import grouped_money, short_money, shown, totals
from proxy.books.render.charts import render_chart, ticks
from proxy.books.render.data import render_csv, render_json
from proxy.books.render.html import render_html
from proxy.books.render.parquet import render_parquet
from proxy.books.render.terminal import render_text
from proxy.books.render.xlsx import render_xlsx
from tests.support.documents import HOSTILE, report

pytestmark = pytest.mark.clause("L4")


@pytest.mark.parametrize(
    "render",
    [
        render_json,
        lambda document: render_csv(document.tables[0]),
        lambda document: render_parquet(document.tables[0]),
        render_xlsx,
        render_html,
        render_text,
    ],
)
def test_one_document_is_always_the_same_bytes(render: Any) -> None:
    """Made twice, from two documents that are equal."""
    assert render(report()) == render(report())


def test_json_has_exact_integers_and_decimal_texts() -> None:
    """Money in nano-units, and beside it as a person would write it."""
    told = json.loads(render_json(report()))
    row = told["tables"]["usage"][1]
    assert (row["cost"], row["cost_text"], row["currency"]) == (1_234_567_891, "1.234567891", "USD")
    assert (row["day"], row["difference"], row["tenant"]) == ("2026-10-02", 107, HOSTILE[1])
    assert told["headlines"]["unexplained"]["value_text"] == "12.345678901"
    assert told["tables"]["empty"] == []


def test_csv_reads_back_and_runs_nothing() -> None:
    """Quotes, line feeds and commas survive; what a spreadsheet would take for a formula does not begin like one."""
    rows = list(csv.DictReader(io.StringIO(render_csv(report().tables[0]).decode(), newline="")))
    assert [row["tenant"].removeprefix("'") for row in rows[:-1]] == list(HOSTILE)
    assert not any(cell.startswith(("=", "+", "@", "\t")) for row in rows for cell in row.values())
    assert not any(row["tenant"].startswith("-") for row in rows)
    assert (rows[1]["cost"], rows[-1]["cost"], rows[1]["share"]) == ("1.234567891", "", str(107 / 900))


def test_parquet_has_types(tmp_path: Path) -> None:
    """Days are days, money is a decimal, nothing is null."""
    file = tmp_path / "report.parquet"
    file.write_bytes(render_parquet(report().tables[0]))
    with duckdb.connect() as connection:
        kinds = dict(connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM '{file}')").fetchall())
        found = connection.execute(f"SELECT tenant, cost, day FROM '{file}'").fetchall()
    assert (kinds["day"], kinds["cost"], kinds["vendor"], kinds["share"]) == (
        "DATE",
        "DECIMAL(38,9)",
        "BIGINT",
        "DOUBLE",
    )
    assert [row[0] for row in found[:-1]] == list(HOSTILE)
    assert (str(found[1][1]), found[-1][1], found[-1][2]) == ("1.234567891", None, None)


# -- the spreadsheet --------------------------------------------------------------------------------------------------


class Sheet:
    """Computes a sheet's formulas from its numbers: the few that we write."""

    def __init__(self, sheet: Any) -> None:
        self._sheet = sheet

    def value(self, cell: str) -> Any:
        raw = self._sheet[cell].value
        return self.compute(raw) if isinstance(raw, str) and raw.startswith("=") else raw

    def number(self, cell: str) -> float:
        value = self.value(cell)
        return float(value) if isinstance(value, int | float) else 0.0

    def compute(self, formula: str) -> Any:
        if found := re.fullmatch(r'=IF\(N\((\w+)\)=0,"",(\w+)/(\w+)\)', formula):
            return self.number(found[2]) / self.number(found[3]) if self.number(found[1]) else ""
        if found := re.fullmatch(r"=SUM\((\w+):(\w+)\)", formula):
            return sum(self.number(cell.coordinate) for (cell,) in self._sheet[f"{found[1]}:{found[2]}"])
        if found := re.fullmatch(r'=SUMIF\((\w+):(\w+),"(\w+)",(\w+):(\w+)\)', formula):
            keys, cells = self._sheet[f"{found[1]}:{found[2]}"], self._sheet[f"{found[4]}:{found[5]}"]
            pairs = zip(keys, cells, strict=True)
            return sum(self.number(cell.coordinate) for (key,), (cell,) in pairs if key.value == found[3])
        terms = re.findall(r"([=+-])N\((\w+)\)", formula)
        assert "".join(f"{sign}N({cell})" for sign, cell in terms) == formula, formula
        return sum((-1 if sign == "-" else 1) * self.number(cell) for sign, cell in terms)


def test_a_spreadsheet_computes_what_stands_in_it() -> None:
    """Every formula gives the value that is written beside it; there are some of each kind."""
    data = render_xlsx(report())
    formulas = openpyxl.load_workbook(io.BytesIO(data))["Usage"]
    cached = openpyxl.load_workbook(io.BytesIO(data), data_only=True)["Usage"]
    sheet = Sheet(formulas)
    seen = set()
    for row in formulas.iter_rows():
        for cell in row:
            if isinstance(cell.value, str) and cell.data_type == "f":
                seen.add(re.sub(r"[^A-Z(]+", "", cell.value)[:6])
                assert sheet.compute(cell.value) == pytest.approx(cached[cell.coordinate].value, abs=1e-9), cell.value
    assert len(seen) >= 4


def test_a_text_is_never_a_formula_or_a_link_in_a_spreadsheet() -> None:
    """Whatever a client called its model; and sheets have names that a spreadsheet takes."""
    data = render_xlsx(report())
    book = openpyxl.load_workbook(io.BytesIO(data))
    sheet = book["Usage"]
    assert [sheet.cell(place + 2, 1).value for place in range(len(HOSTILE))] == list(HOSTILE)
    assert all(sheet.cell(place + 2, 1).data_type == "s" for place in range(len(HOSTILE)))
    assert not any("hyperlink" in name.lower() for name in zipfile.ZipFile(io.BytesIO(data)).namelist())
    assert len(set(name.lower() for name in book.sheetnames)) == 4
    assert all(len(name) <= 31 and not set("[]:*?/\\") & set(name) for name in book.sheetnames)
    assert sheet.freeze_panes == "A2"


def test_a_table_larger_than_a_sheet_is_refused_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what to do instead."""
    monkeypatch.setattr("proxy.books.render.xlsx.MOST_ROWS", 5)
    with pytest.raises(ValueError, match="take csv or parquet"):
        render_xlsx(report())


# -- cells and totals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nanos", "exact", "short"),
    [
        (0, "0.00", "0.00"),
        (1_234_567_890_123, "1,234.567890123", "1,234.5679"),
        (-1_500_000_000, "-1.50", "-1.50"),
        (45, "0.000000045", "0.000000045"),
        (100_050_000, "0.10005", "0.10"),
        (99_999_999_999, "99.999999999", "100.00"),
    ],
)
def test_money_is_exact_or_short(nanos: int, exact: str, short: str) -> None:
    """Half a ten-thousandth goes to the even one; what would vanish is shown exactly."""
    assert (grouped_money(nanos), short_money(nanos)) == (exact, short)
    assert shown(nanos, Column("c", "C", Kind.MONEY), "USD") == f"{short} USD"


def test_money_of_two_currencies_is_never_added() -> None:
    """A row of totals for each, in which counts stand once."""
    table = report().tables[0]
    rows = totals(table)
    assert [currency for currency, _ in rows] == ["EUR", "USD"]
    for currency, cells in rows:
        cost = sum(row[7] for row in table.rows if row[2] == currency)  # type: ignore[misc]
        assert cells[7] == cost
    assert rows[0][1][3] == sum(row[3] for row in table.rows)  # type: ignore[misc]
    assert rows[1][1][3] is None


def test_a_table_without_rows_has_no_totals() -> None:
    """There is nothing to add."""
    assert totals(Table("t", "T", (Column("n", "N", Kind.INTEGER, total=True),), (), totals=True)) == []


# -- terminal and page ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_terminal_gets_plain_text_that_fits_or_records(width: int) -> None:
    """No colour where none is asked; a tone is told by a mark too; markup of a client is text."""
    text = render_text(report(), width=width)
    assert "\x1b" not in text
    assert "12.3457 USD !!" in text
    assert "<script>alert(1)</script>" in text
    assert "(nothing)" in text
    assert "\x1b" in render_text(report(), width=width, colour=True)


def test_a_page_holds_no_markup_of_a_client_and_asks_for_nothing() -> None:
    """Everything is escaped; no script, no address, no font; a policy forbids them besides."""
    page = render_html(report())
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)=|url\(|@import""", page)
    assert page.count('<svg viewBox="0 0 720') == 3
    assert 'dir="auto"' in page


def test_a_chart_is_well_formed_and_says_what_it_shows() -> None:
    """As XML, with a title and a description; a gap is a gap."""
    charts = report().charts
    for number, chart in enumerate(charts):
        drawn = ElementTree.fromstring(render_chart(chart, number).replace("&nbsp;", " "))
        assert drawn.find("title") is not None
        assert drawn.find("desc") is not None
    lines = ElementTree.fromstring(render_chart(charts[0], 0)).findall("polyline")
    assert len(lines) == 3  # one line, and one in two runs


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (0, 1), (-5, 20), (0.0001, 0.0004), (17, 43), (-3e9, 2e12), (0, 7), (99, 101)]
)
def test_ticks_are_round_and_hold_all_values(low: float, high: float) -> None:
    """Nought among them, a handful, evenly apart."""
    found = ticks(low, high)
    assert found[0] <= min(low, 0)
    assert found[-1] >= max(high, 0)
    assert 0 in found
    assert 2 <= len(found) <= 9
    steps = {round(b - a, 12) for a, b in pairwise(found)}
    assert max(steps) == pytest.approx(min(steps))
