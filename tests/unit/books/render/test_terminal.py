"""A document for a terminal: whole at any width, and nothing in it acts."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from proxy.books.document import Cell, Column, Document, Headline, Kind, Table
from proxy.books.render.terminal import MOST_ROWS, render_text
from tests.support.documents import report

pytestmark = pytest.mark.clause("L4")


def bare(*tables: Table) -> Document:
    return Document("d", "D", (), (), tables)


WIDE = Table(
    "t",
    "T",
    (
        Column("model", "Model"),
        *(Column(f"n{number}", f"Tokens of kind {number}", Kind.INTEGER, total=True) for number in range(10)),
        Column("cost", "Cost", Kind.MONEY, currency="USD", total=True),
    ),
    (("gpt-4o-mini-2024-07-18", *range(1_000_000, 1_000_010), 1_500_000_000), ("商店", *range(10), 1)),
    totals=True,
)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 160, 200])
def test_no_figure_is_lost_at_any_width(width: int) -> None:
    """Side by side, in bands or row by row; and no line of a table is wider than the terminal where there is room."""
    text = render_text(bare(WIDE), width=width)
    for figure in (*(f"{number:,}" for number in range(1_000_000, 1_000_010)), "1.5000", "<0.0001"):
        assert re.search(rf"(?<![\d,]){re.escape(figure)}(?![\d,])", text), figure
    assert "gpt-4o-mini-2024-07-18" in text.replace("\n", "") or width == 20
    if width >= 80:
        assert max(map(cell_len, text.split("\n"))) <= width


def test_bands_repeat_the_columns_that_name_the_row() -> None:
    """So that each piece can be read alone."""
    text = render_text(bare(WIDE), width=80)
    assert text.count("Model") == text.count("Total") >= 2
    assert text.count("gpt-4o-mini-2024-07-18") == text.count("Model")


def test_a_terminal_that_is_too_narrow_gets_a_row_at_a_time() -> None:
    """With the currency beside each amount."""
    text = render_text(bare(WIDE), width=24)
    assert "-" * 8 in text
    assert re.search(r"Cost +1\.5000 USD", text)
    many = render_text(report(), width=24)
    assert re.search(r"Cost +1\.2346 USD", many)
    assert re.search(r"Cost +3\.7037 EUR", many)
    assert re.search(r"Tenant +Total EUR", many)


def test_figures_are_aligned_and_sums_below_a_rule() -> None:
    """To the right, under their headings; letters to the left; the wide signs of Chinese counted as two."""
    columns = (Column("name", "Name"), Column("n", "N", Kind.INTEGER, total=True))
    text = render_text(bare(Table("t", "T", columns, (("商店", 5), ("فروشگاه", 12_000)), totals=True)), width=80)
    assert text.split("\n")[3:] == [
        "Name          N",
        "───────────────",
        "商店          5",
        "فروشگاه  12,000",
        "───────────────",
        "Total    12,005",
        "",
    ]


def test_headlines_stand_at_the_top_with_their_tone_in_words() -> None:
    """Not by colour alone, which a file or a reader may not have."""
    lines = render_text(report(), width=100).split("\n")
    assert lines[4:7] == [
        "  Unexplained    12.3457 USD  needs a look",
        "  Attempts         1,234,567  in order",
        "  Without usage       4.21 %",
    ]
    assert "12.345678901 USD" in render_text(report(), width=100, exact=True)


def test_nothing_that_a_client_wrote_acts() -> None:
    """No escape, no markup, no turned direction; colour only where it is asked, and then only ours."""
    text = render_text(report(), width=100)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert "␛[31mred" in text
    coloured = render_text(report(), width=100, colour=True)
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured).split() == text.split()
    markup = bare(Table("t", "[bold]T[/bold]", (Column("a", "[red]A"),), (("[blink]x[/] :smile:",),)))
    assert "[bold]T[/bold]\n[red]A\n" in render_text(markup, width=100)
    assert "[blink]x[/] :smile:" in render_text(markup, width=100)


def test_a_terminal_is_for_looking() -> None:
    """Of many rows the first are shown; the others are told to be in other forms."""
    rows: list[tuple[Cell, ...]] = [(number,) for number in range(MOST_ROWS + 1)]
    table = Table("t", "T", (Column("n", "N", Kind.INTEGER, total=True),), rows, totals=True)
    text = render_text(bare(table))
    assert "… and 1 more rows" in text
    assert f"{sum(range(MOST_ROWS + 1)):,}" in text
    assert "(nothing)" in render_text(bare(Table("t", "T", (Column("n", "N"),), ((None,),))))


def test_texts_alone_are_folded() -> None:
    """A table without figures has no columns to repeat."""
    table = Table("t", "T", (Column("a", "A"), Column("b", "B")), (("word " * 30, "x" * 90),))
    text = render_text(bare(table), width=60)
    assert max(map(cell_len, text.split("\n"))) <= 60
    assert text.count("word") == 30
    assert text.count("x") == 90


def test_notes_stand_at_the_end() -> None:
    """Each begins with a star."""
    document = Document("d", "D", (), (Headline("a", "A", 1),), (), (), ("One.", "二。"))
    assert render_text(document).split("\n")[-3:] == ["* One.", "* 二。", ""]
