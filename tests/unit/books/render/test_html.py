"""A document as a page, before a browser has seen it (`tests/integration/test_report_pages.py` opens one)."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from proxy.books.document import Column, Document, Headline, Kind, Table
from proxy.books.render.html import MOST_ROWS, render_html
from proxy.books.render.page_tables import needs_across, print_size
from tests.support.documents import report

pytestmark = pytest.mark.clause("L4")

_VOID = ("meta", "path", "circle", "line", "rect", "polyline")


class Tree(HTMLParser):
    """Elements open and close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.kinds: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag


def bare(*tables: Table, headlines: tuple[Headline, ...] = ()) -> Document:
    return Document("d", "D", (), headlines, tables)


def test_a_kind_of_tokens_that_nobody_used_has_no_column() -> None:
    """A sparse column is left out where it is nought or empty in every row, not where one row has something; any other
    column of noughts stays, for a nought may be the answer."""
    columns = (
        Column("model", "Model"),
        Column("a", "Never used", Kind.INTEGER, total=True, sparse=True),
        Column("b", "Once used", Kind.INTEGER, total=True, sparse=True),
        Column("c", "Difference", Kind.INTEGER, total=True),
    )
    page = render_html(bare(Table("t", "T", columns, [("m-1", 0, 0, 0), ("m-2", None, 3, 0)], totals=True)))
    assert "Never used" not in page
    assert "Once used" in page
    assert "Difference" in page


def test_a_page_is_well_formed_and_runs_nothing() -> None:
    """Everything is closed; no script, link, form, frame or handler; no address is asked for."""
    page = render_html(report())
    tree = Tree(page)
    assert tree.open == []
    assert not tree.kinds & {"script", "link", "a", "img", "form", "iframe", "object", "base", "foreignobject"}
    assert not {name for name in tree.attributes if name.startswith("on")} | tree.attributes & {"src", "href", "style"}
    assert not re.search(r"""url\((?!#)|@import|https?://(?!example\.test)""", page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_policy_allows_this_style_and_nothing_else() -> None:
    """By its hash, so that none can be slipped in."""
    page = render_html(report())
    style = page.partition("<style>")[2].partition("</style>")[0]
    seal = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"content=\"default-src 'none'; style-src 'sha256-{seal}'; base-uri 'none'; form-action 'none'\"" in page
    assert page.count("<style") == 1


def test_a_tone_is_a_word_too() -> None:
    """For those who do not see its colour; a card may say more, and an empty figure is a dash."""
    lines = (
        Headline("a", "A", 5_000_000_000, Kind.MONEY, "USD", "bad", "of <all>"),
        Headline("b", "B", None, tone="good"),
        Headline("c", "C", "x", Kind.TEXT),
    )
    page = render_html(bare(headlines=lines))
    cards = re.findall(r'<li class="(card[^"]*)">(.*?)</li>', page)
    assert [kinds for kinds, _ in cards] == ["card bad first", "card good", "card"]
    assert '5.00 <span class="unit">USD</span>' in cards[0][1]
    assert "needs a look" in cards[0][1]
    assert "of &lt;all&gt;" in cards[0][1]
    assert "&ndash;" in cards[1][1]
    assert "in order" in cards[1][1]
    assert "tone" not in cards[2][1]


def test_a_long_table_is_shown_in_part_and_says_so() -> None:
    """A page is for reading; sums are of all rows."""
    columns = (Column("name", "Name"), Column("n", "N", Kind.INTEGER, total=True))
    rows = [(f"n{number}", 1) for number in range(MOST_ROWS + 1)]
    page = render_html(bare(Table("t", "T", columns, rows, totals=True)))
    assert page.count("<tr>") == 1 + MOST_ROWS + 1
    assert "… and 1 more rows" in page
    assert f'<td class="n">{MOST_ROWS + 1:,}</td>' in page
    assert "more rows" not in render_html(bare(Table("t", "T", columns, rows[:-1])))


def test_columns_without_a_value_are_left_out() -> None:
    """And a table without any says that it is empty."""
    columns = (Column("a", "First"), Column("b", "Second"), Column("c", "Third", Kind.MONEY, about='said "so"'))
    page = render_html(bare(Table("t", "T", columns, (("x", None, 5), ("y", "", None)))))
    assert "Second" not in page
    assert '<abbr title="said &quot;so&quot;">Third</abbr>' in page
    assert "Nothing." in render_html(bare(Table("t", "T", columns, ((None, None, None),))))


def test_exact_shows_every_digit() -> None:
    """Where it is asked."""
    assert "12.3457" in render_html(report())
    assert "12.345678901" in render_html(report(), exact=True)


def test_a_wide_table_turns_the_paper() -> None:
    """And is printed small enough to fit; a narrow one stays upright and large."""
    columns = tuple(Column(f"c{number}", f"Column {number}", Kind.INTEGER) for number in range(25))
    wide = Table("t", "T", columns, ((1_234_567,) * 25,))
    assert '<body class="across">' in render_html(bare(wide))
    narrow = render_html(bare(replace(wide, columns=columns[:4], rows=((1, 2, 3, 4),))))
    assert "<body><main>" in narrow
    assert "<section><h2" in narrow
    sizes = [print_size(letters, across=True) for letters in (100, 199, 200, 226, 227, 257, 258)]
    assert sizes == ["", "", "small", "small", "smaller", "smaller", "smallest"]
    assert [needs_across(letters) for letters in (135, 153, 154)] == [False, False, True]
    assert [print_size(letters, across=False) for letters in (135, 136, 153)] == ["", "small", "small"]
