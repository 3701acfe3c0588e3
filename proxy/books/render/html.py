"""A document as one page that needs nothing else: no network, no script, no font (contract C3, L4).

In: a document. Out: the page's text. All text is escaped, and a policy in the head forbids everything but the page's
own style, by its hash. It prints on A4 and Letter, wide tables across; headings of tables are repeated on each page,
and rows and charts are not cut.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from html import escape
from typing import Final

from proxy.books.document import Cell, Chart, Column, Document, Headline, Kind, Table
from proxy.books.render.cells import headline_texts, visible
from proxy.books.render.charts import legend, render_chart
from proxy.books.render.page_style import STYLE
from proxy.books.render.page_tables import TableHtml, needs_across, print_size

#: A page is for reading: all rows are in the other forms.
MOST_ROWS: Final = 2000
_WORDS: Final = {"good": "in order", "bad": "needs a look"}


def render_html(document: Document, *, exact: bool = False) -> str:
    """The page; `exact` shows money to the last nano-unit."""
    grids = [
        TableHtml(table, table.rows[:MOST_ROWS], f"h{number}", exact=exact)
        for number, table in enumerate(document.tables)
    ]
    # one table that is too wide turns all paper, or each turn would leave half a page empty
    across = any(needs_across(grid.letters) for grid in grids)
    charts = "".join(_figure(chart, number) for number, chart in enumerate(document.charts))
    texts = headline_texts(document.headlines, exact=exact)
    cards = "".join(map(_card, document.headlines, texts, range(len(texts))))
    notes = "".join(f'<li dir="auto">{_safe(note)}</li>' for note in document.notes)
    seal = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{seal}'; base-uri 'none'; form-action 'none'"
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">',
            f"<title>{_safe(document.title)}</title><style>{STYLE}</style></head>\n",
            '<body class="across"><main>\n' if across else "<body><main>\n",
            f'<h1 dir="auto">{_safe(document.title)}</h1>\n',
            _facts(document),
            f'<ul class="cards">{cards}</ul>\n' if cards else "",
            f'<div class="charts">{charts}</div>\n' if charts else "",
            *(
                _section(grid, table, number, across)
                for number, (table, grid) in enumerate(zip(document.tables, grids, strict=True))
            ),
            f'<ul class="notes">{notes}</ul>\n' if notes else "",
            "</main></body></html>\n",
        ]
    )


def _safe(text: str) -> str:
    return escape(visible(text))


def _facts(document: Document) -> str:
    items = "".join(
        f'<div><dt>{_safe(label)}</dt><dd dir="auto">{_safe(text)}</dd></div>' for label, text in document.facts
    )
    return f'<dl class="facts">{items}</dl>\n' if items else ""


def _card(line: Headline, figure: str, order: int) -> str:
    if line.currency and figure.endswith(f" {line.currency}"):
        figure = (
            f'{_safe(figure.removesuffix(line.currency).rstrip())} <span class="unit">{_safe(line.currency)}</span>'
        )
    else:
        figure = _safe(figure) or "&ndash;"
    words = [
        *([f'<span class="tone">{_WORDS[line.tone]}</span>'] if line.tone in _WORDS else []),
        *([f'<span class="more" dir="auto">{_safe(line.about)}</span>'] if line.about else []),
    ]
    kinds = " ".join(["card", *([line.tone] if line.tone in _WORDS else []), *([] if order else ["first"])])
    return (
        f'<li class="{kinds}"><span class="label" dir="auto">{_safe(line.title)}</span>'
        f'<span class="figure">{figure}</span><span class="foot">{"".join(words)}</span></li>'
    )


def _figure(chart: Chart, number: int) -> str:
    """The drawing and, for those who cannot see it or want the figures, what it is drawn from."""
    series = (Column(f"s{place}", one.title, Kind.NUMBER) for place, one in enumerate(chart.series))
    rows: list[tuple[Cell, ...]] = list(zip(chart.labels, *(one.values for one in chart.series), strict=True))
    figures = TableHtml(Table(chart.name, chart.title, (Column("label", ""), *series), rows), rows, f"f{number}").html()
    about = f'<p class="about" dir="auto">{_safe(chart.about)}</p>' if chart.about else ""
    return (
        f'<figure><figcaption id="f{number}" dir="auto">{_safe(chart.title)}</figcaption>{about}'
        f"{render_chart(chart, number)}{legend(chart, number)}"
        f"<details><summary>Figures</summary>{figures}</details></figure>\n"
    )


def _section(grid: TableHtml, table: Table, number: int, across: bool) -> str:
    about = f'<p class="about" dir="auto">{_safe(table.about)}</p>' if table.about else ""
    head = f'<h2 id="h{number}" dir="auto">{_safe(table.title)}</h2>{about}'
    if grid.is_empty:
        return f'<section>{head}<p class="about">Nothing.</p></section>\n'
    left = len(table.rows) - MOST_ROWS
    more = f'<p class="about">… and {left:,} more rows: all are in CSV, XLSX and JSON.</p>' if left > 0 else ""
    size = print_size(grid.letters, across=across)
    look = f' class="{size}"' if size else ""
    return f"<section{look}>{head}{grid.html()}{more}</section>\n"
