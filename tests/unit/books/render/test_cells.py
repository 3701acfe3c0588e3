"""Cells as texts: aligned, exact where that is asked, and without signs that act."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.books.document import Cell, Column, Headline, Kind
from proxy.books.render.cells import column_texts, harmless, heading, headline_texts, visible
from tests.support.documents import HOSTILE

pytestmark = pytest.mark.clause("L4")

MONEY = Column("cost", "Cost", Kind.MONEY)


@pytest.mark.parametrize(
    ("nanos", "usual", "exact"),
    [
        ([0], ["0.00"], ["0.00"]),
        ([1_234_567_890_123], ["1,234.5679"], ["1,234.567890123"]),
        ([12_345_678_901_234], ["12,345.68"], ["12,345.678901234"]),
        ([-1_500_000_000], ["-1.50"], ["-1.50"]),
        ([45], ["0.000000045"], ["0.000000045"]),
        ([100_050_000], ["0.10005"], ["0.10005"]),
        ([99_999_999_999], ["100.0000"], ["99.999999999"]),
        ([1_000_050_000, 1_000_150_000], ["1.0000", "1.0002"], ["1.00005", "1.00015"]),
        ([-1_000_050_000], ["-1.0000"], ["-1.00005"]),
        ([2_000_000_000, 3, -3, 0], ["2.0000", "<0.0001", ">-0.0001", "0.0000"], None),
        ([2_000_000_000, None, 500_000_000], ["2.00", "", "0.50"], ["2.00", "", "0.50"]),
    ],
)
def test_money_of_a_column_has_as_many_digits_everywhere(
    nanos: list[Cell], usual: list[str], exact: list[str] | None
) -> None:
    """By the largest of it, half a digit to the even one; what would vanish is told to be there."""
    assert column_texts(MONEY, nanos) == usual
    if exact is not None:
        assert column_texts(MONEY, nanos, exact=True) == exact


@given(st.lists(st.integers(-(10**22), 10**22), min_size=1, max_size=8))
def test_exact_money_reads_back(nanos: list[int]) -> None:
    """No digit is lost, and all have as many behind the point."""
    texts = column_texts(MONEY, list(nanos), exact=True)
    assert len({len(text.partition(".")[2]) for text in texts}) == 1
    for text, value in zip(texts, nanos, strict=True):
        whole, _, part = text.replace(",", "").lstrip("-").partition(".")
        assert (-1 if text.startswith("-") else 1) * (int(whole) * 10**9 + int(part.ljust(9, "0"))) == value


@pytest.mark.parametrize(
    ("kind", "cells", "texts"),
    [
        (Kind.INTEGER, [1_234_567, -5, None, 0], ["1,234,567", "-5", "", "0"]),
        (Kind.NUMBER, [1.18, 0.9409, 1], ["1.1800", "0.9409", "1.0000"]),
        (Kind.NUMBER, [11.94, -0.05], ["11.94", "-0.05"]),
        (Kind.NUMBER, [12_345.678, 1.0], ["12,345.7", "1.0"]),
        (Kind.NUMBER, [3.0, 4], ["3", "4"]),
        (Kind.NUMBER, [float("nan"), float("inf"), 2.5], ["nan", "inf", "2.5000"]),
        (Kind.RATIO, [0.0421, -1.5, 0, None], ["4.21 %", "-150.00 %", "0.00 %", ""]),
        (Kind.TEXT, ["فروشگاه", True, None], ["فروشگاه", "true", ""]),
    ],
)
def test_figures_of_a_column_are_aligned(kind: Kind, cells: list[Cell], texts: list[str]) -> None:
    """Separators between thousands, as many digits behind the point in each."""
    assert column_texts(Column("c", "C", kind), cells) == texts


def test_a_figure_alone_and_a_heading_name_the_currency() -> None:
    """Headlines beside their figures, which are aligned; a column of one currency at its head."""
    lines = [
        Headline("invoice", "Invoice", 2_500_000_000, Kind.MONEY, "CNY"),
        Headline("difference", "Difference", 72_556_000, Kind.MONEY, "CNY"),
        Headline("none", "None", None, Kind.MONEY, "CNY"),
        Headline("other", "Other", 72_556_000, Kind.MONEY, "USD"),
        Headline("requests", "Attempts", 1_000, currency="CNY"),
    ]
    assert headline_texts(lines) == ["2.5000 CNY", "0.0726 CNY", "", "0.072556 USD", "1,000"]
    assert headline_texts(lines, exact=True)[0] == "2.500000 CNY"
    assert heading(Column("cost", "Cost", Kind.MONEY, currency="CNY")) == "Cost (CNY)"
    assert heading(MONEY) == "Cost"


def test_signs_that_act_are_seen_instead() -> None:
    """Escapes, line feeds and turned directions; joiners, accents and letters of any script stay."""
    assert visible("\x1b[31m\r\n\x7f\x9b\u202e\u2028") == "␛[31m␍␊␡\\u009b\\u202e\\u2028"
    for text in ("می‌خواهم", "क्‍ष", "👩🏽‍🚀", "e\u0301", "商店", "‏שלום"):
        assert visible(text) == text


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x", "'x"]
)
def test_what_a_spreadsheet_would_run_is_led_by_an_apostrophe(text: str) -> None:
    """The wide signs of Chinese and Japanese too; without that apostrophe it is the text again."""
    assert harmless(text) == f"'{text}"


@given(st.one_of(st.text(), st.sampled_from(HOSTILE)))
def test_an_apostrophe_can_always_be_taken_away(text: str) -> None:
    """Whatever the text."""
    assert harmless(text).removeprefix("'") == text
