"""A document as a spreadsheet: its formulas give its values, its texts do nothing."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import openpyxl
import pytest
from openpyxl.workbook import Workbook

from proxy.books.document import Cell, Column, Document, Formula, Headline, Kind, Table
from proxy.books.render.sheet_names import SheetNames, cell_text, cut
from proxy.books.render.xlsx import TooLarge, render_xlsx
from tests.support.documents import HOSTILE, report
from tests.support.sheets import Sheet

pytestmark = pytest.mark.clause("L4")


def books(document: Document) -> tuple[Workbook, Workbook]:
    """With formulas, and with the values written beside them."""
    data = render_xlsx(document)
    return openpyxl.load_workbook(io.BytesIO(data)), openpyxl.load_workbook(io.BytesIO(data), data_only=True)


def formulas(document: Document) -> list[str]:
    """All of the workbook; each is computed, and gives the value that is written beside it."""
    found = []
    book, cached = books(document)
    for name in book.sheetnames:
        sheet = Sheet(book[name])
        for row in book[name].iter_rows():
            for cell in row:
                if cell.data_type != "f":
                    continue
                found.append(str(cell.value))
                computed, beside = sheet.value(cell.coordinate), cached[name][cell.coordinate].value
                told = f"{name}!{cell.coordinate} {cell.value}"
                if "/" in found[-1] and beside is not None:
                    assert computed == pytest.approx(beside, rel=1e-14), told
                else:
                    assert computed == beside or (computed, beside) == ("", None), told
    return found


def test_a_spreadsheet_computes_what_stands_in_it() -> None:
    """Every formula gives the value beside it, sums and differences exactly; there are some of each kind."""
    found = formulas(report())
    assert len(found) > 3 * len(HOSTILE)
    assert {"=D3-E3", '=IF(E3=0,"",F3/E3)', "=ROUND(H3+I3,9)"} <= set(found)
    last = len(report().tables[0].rows) + 1
    assert f"=SUM(D2:D{last})" in found
    assert f"=ROUND(SUMIF(C2:C{last},C{last + 3},H2:H{last}),9)" in found


def test_what_is_not_known_stays_empty() -> None:
    """A formula would make nought of it; only a division by nought has its formula and no value."""
    book, cached = books(report())
    last = len(report().tables[0].rows) + 1
    assert book["Usage"][f"J{last}"].value is None
    assert book["Usage"][f"G{last}"].value == f'=IF(E{last}=0,"",F{last}/E{last})'
    assert cached["Usage"][f"G{last}"].value is None


@pytest.mark.parametrize("amounts", [(100_000_000, 200_000_000), (1, 999_999_999_999_999), (-3, 999_999_999_999_998)])
def test_money_is_exact_below_a_million(amounts: tuple[int, int]) -> None:
    """0.1 + 0.2 is 0.3, and equal amounts differ by nought, for a spreadsheet's floats are rounded to the nano-unit."""
    one, other = amounts
    columns = (
        Column("a", "A", Kind.MONEY, currency="USD", total=True),
        Column("b", "B", Kind.MONEY, currency="USD", total=True),
        Column("sum", "S", Kind.MONEY, currency="USD", formula=Formula("plus", ("a", "b")), total=True),
        Column("gap", "G", Kind.MONEY, currency="USD", formula=Formula("minus", ("sum", "a")), total=True),
        Column("share", "H", Kind.RATIO, formula=Formula("over", ("sum", "sum"))),
        Column("more", "M", Kind.NUMBER, formula=Formula("plus", ("share", "share"))),
    )
    rows: tuple[tuple[Cell, ...], ...] = ((one, other, one + other, other, 1.0, 2.0),)
    document = Document("d", "D", (), (), (Table("t", "T", columns, rows, totals=True),))
    assert "=N(E2)+N(E2)" in formulas(document)
    _, cached = books(document)
    assert [cell.value for cell in cached["T"][2]][:4] == [value / 1e9 for value in rows[0][:4]]  # type: ignore[operator]


def test_a_text_is_never_a_formula_or_a_link_in_a_spreadsheet() -> None:
    """Whatever a client called its model: as the text that it is, but for controls, which are pictures."""
    data = render_xlsx(report())
    book = openpyxl.load_workbook(io.BytesIO(data))
    sheet = book["Usage"]
    cells = [sheet.cell(place + 2, 1) for place in range(len(HOSTILE))]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.value for cell in cells] == [text.replace("\x1b", "␛").replace("\x00", "␀") for text in HOSTILE]
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert not any("hyperlink" in name.lower() or "external" in name.lower() for name in names)


def test_a_sheet_is_made_for_reading_and_printing() -> None:
    """Headings stay in sight and on each page, rows can be filtered, a page is as wide as the sheet, days are days."""
    book, _ = books(report())
    sheet = book["Usage"]
    assert sheet.freeze_panes == "B2"
    assert sheet.print_title_rows == "$1:$1"
    assert sheet.auto_filter.ref == f"A1:J{len(report().tables[0].rows) + 1}"
    assert (sheet.page_setup.orientation, sheet.page_setup.fitToHeight) == ("landscape", 0)
    assert sheet["B2"].is_date
    assert sheet["H2"].number_format == "#,##0.00#######"
    assert sheet["D1"].comment is not None
    assert [cell.value for cell in book["Summary"][6]] == ["Unexplained", 12.345678901, "USD", "needs a look"]
    assert book["Summary"]["A1"].value == report().title


def test_figures_that_are_none_are_told_as_a_spreadsheet_does() -> None:
    """What is no number, or has no end, is an error's sign; a headline may be empty or a word."""
    table = Table("t", "T", (Column("n", "N", Kind.NUMBER), Column("b", "B")), ((float("nan"), True), (1.5, None)))
    lines = (Headline("a", "A", None), Headline("b", "B", "بله", Kind.TEXT))
    book, _ = books(Document("d", "D", (), lines, (table,)))
    assert [cell.value for cell in book["T"]["A"]] == ["N", "=#NUM!", 1.5]
    assert book["T"]["B2"].value is True
    assert [cell.value for cell in book["Summary"]["B"]][-2:] == [None, "بله"]


def test_a_table_larger_than_a_sheet_is_refused_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what to do instead; one row less is written."""
    document = report()
    rows = len(document.tables[0].rows)
    monkeypatch.setattr("proxy.books.render.xlsx.MOST_ROWS", rows - 1)
    with pytest.raises(TooLarge, match="take csv or parquet"):
        render_xlsx(document)
    monkeypatch.setattr("proxy.books.render.xlsx.MOST_ROWS", rows)
    render_xlsx(document)


def test_an_unknown_operator_is_a_mistake_of_ours() -> None:
    """It names those that there are."""
    column = Column("n", "N", Kind.INTEGER, formula=Formula("times", ("n", "n")))
    with pytest.raises(ValueError, match="plus, minus and over"):
        render_xlsx(Document("d", "D", (), (), (Table("t", "T", (column,), ((1,),)),)))


def test_sheets_have_names_that_a_spreadsheet_takes() -> None:
    """At most 31 units, none of the forbidden signs, no two alike, none that is reserved."""
    names = SheetNames()
    titles = ["Usage", "USAGE", "a/b:c*d?[e]'", "", "History", "x" * 40, "x" * 41, "商" * 40, "🚀" * 20, "\x00\ud800"]
    free = [names.free(title) for title in titles]
    assert len({name.casefold() for name in free}) == len(titles)
    for name in free:
        assert name
        assert len(name.encode("utf-16-le")) // 2 <= 31
        assert not set("[]:*?/\\'\x00") & set(name)
    assert (free[1], free[3], free[4]) == ("USAGE (2)", "Sheet", "History (2)")
    document = replace(report(), tables=tuple(Table(f"t{n}", "Usage", (Column("a", "A"),), ()) for n in range(3)))
    assert books(document)[0].sheetnames == ["Summary", "Usage", "Usage (2)", "Usage (3)"]


@pytest.mark.parametrize(("units", "text"), [(5, "12345"), (4, "123…"), (6, "12345")])
def test_a_text_is_cut_at_its_limit_and_says_so(units: int, text: str) -> None:
    """Limit-1, limit, limit+1; and never inside a sign that is two units."""
    assert cut("12345", units) == text
    assert cut("🚀🚀🚀", 5) == "🚀🚀…"
    assert cut("🚀🚀🚀", 6) == "🚀🚀🚀"
    assert len(cell_text("x" * 32_768)) == 32_767
    assert cell_text("a\ufffe\uffffb") == "a��b"
