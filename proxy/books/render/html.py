"""A document as one page that needs nothing else: no network, no script, no font (contract C3, L4).

All text is escaped, and a policy in the head forbids everything but the page's own style. It prints on A4 and Letter:
headings of tables are repeated, rows and charts are not cut.
"""

from __future__ import annotations

from html import escape

from proxy.books.document import Chart, Column, Document, Headline, Kind, Table
from proxy.books.render.cells import currency_of, shown, totals
from proxy.books.render.charts import legend, render_chart

#: A page is for reading: all rows are in the other forms.
MOST_ROWS = 2000
_NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.RATIO, Kind.MONEY)

_STYLE = """
:root{--ink:#1a1d21;--soft:#5d6672;--line:#dfe3e8;--paper:#fff;--card:#f6f7f9;--good:#1b7a43;--bad:#b3261e;
--c0:#0b5cad;--c1:#d9730d;--c2:#1b7a43;--c3:#8a3ffc;--c4:#9a6b00;--c5:#5d6672}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#9aa4b0;--line:#343a42;--paper:#15181c;--card:#1e2228;
--good:#5fd38d;--bad:#ff8a80;--c0:#6cb2ff;--c1:#ffb066;--c2:#5fd38d;--c3:#c9a7ff;--c4:#e6c15c;--c5:#9aa4b0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:40px 28px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:18px;margin:44px 0 4px}
dl.facts{display:flex;flex-wrap:wrap;gap:2px 22px;margin:0 0 26px;color:var(--soft);font-size:13.5px}
dl.facts div{display:flex;gap:6px}dl.facts dt::after{content:":"}dl.facts dd{margin:0;color:var(--ink)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(168px,1fr));gap:12px;margin:0 0 12px;padding:0}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 16px;list-style:none;
min-width:0}
.card b{display:block;font-size:19px;font-weight:600;line-height:1.25;overflow-wrap:anywhere}
.card span{color:var(--soft);font-size:13px}
.card.good{border-left:4px solid var(--good)}.card.bad{border-left:4px solid var(--bad)}
.card.good b{color:var(--good)}.card.bad b{color:var(--bad)}
p.about{margin:0 0 10px;color:var(--soft);font-size:13.5px}
.wide{overflow-x:auto;border-top:1px solid var(--line)}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:6px 10px;text-align:start;vertical-align:top;border-bottom:1px solid var(--line);white-space:nowrap}
td.long{white-space:normal;min-width:220px;max-width:420px;overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600;white-space:normal;vertical-align:bottom}
.n{text-align:end}
tfoot td{font-weight:600;border-bottom:0;border-top:2px solid var(--line)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:20px 28px;margin:30px 0 0}
figure{margin:0;break-inside:avoid;min-width:0}figcaption{font-weight:600;margin:0 0 6px}
figure svg{display:block;width:100%;height:auto}
.grid{stroke:var(--line);stroke-width:1}.base{stroke:var(--soft)}
.tick,.unit{fill:var(--soft);font-size:11.5px}
polyline{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:4px 0 0;padding:0;font-size:13px;
color:var(--soft)}
.legend li{display:flex;align-items:center;gap:7px}.legend svg{width:24px;height:10px}.legend line{stroke-width:2.4}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}
.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}
ul.notes{margin:36px 0 0;padding:14px 18px 14px 34px;background:var(--card);border-radius:8px;color:var(--soft)}
@media (max-width:640px){main{padding:24px 16px 40px}h1{font-size:23px}}
@page{size:A4;margin:14mm}
@media print{:root{--ink:#000;--soft:#444;--line:#bbb;--paper:#fff;--card:#fff}
body{font-size:10.5px}main{max-width:none;padding:0}.wide{overflow:visible}table{font-size:8.5px}th,td{padding:3px 5px}
th,td,td.long{white-space:normal;min-width:0}td.long{overflow-wrap:anywhere}
th.n,td.n{white-space:nowrap}thead{display:table-header-group}
tr,.card{break-inside:avoid}abbr{text-decoration:none}tfoot{display:table-row-group}
h2{break-after:avoid;margin-top:22px}.card b{font-size:14px}.charts{grid-template-columns:1fr 1fr}}
"""


def render_html(document: Document) -> str:
    """The page."""
    charts = "".join(_figure(chart, number) for number, chart in enumerate(document.charts))
    notes = "".join(f'<li dir="auto">{escape(note)}</li>' for note in document.notes)
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(document.title)}</title><style>{_STYLE}</style></head><body><main>",
            f'<h1 dir="auto">{escape(document.title)}</h1>',
            _facts(document),
            f'<ul class="cards">{"".join(map(_card, document.headlines))}</ul>' if document.headlines else "",
            f'<div class="charts">{charts}</div>' if charts else "",
            *map(_table, document.tables),
            f'<ul class="notes">{notes}</ul>' if notes else "",
            "</main></body></html>\n",
        ]
    )


def _facts(document: Document) -> str:
    items = "".join(
        f'<div><dt>{escape(label)}</dt><dd dir="auto">{escape(text)}</dd></div>' for label, text in document.facts
    )
    return f'<dl class="facts">{items}</dl>'


def _card(line: Headline) -> str:
    value = shown(line.value, Column(line.name, line.title, line.kind), line.currency)
    tone = {"good": " good", "bad": " bad"}.get(line.tone, "")
    return f'<li class="card{tone}"><span>{escape(line.title)}</span><b>{escape(value) or "&ndash;"}</b></li>'


def _figure(chart: Chart, number: int) -> str:
    return (
        f"<figure><figcaption>{escape(chart.title)}</figcaption>{render_chart(chart, number)}{legend(chart)}</figure>"
    )


def _table(table: Table) -> str:
    kept = [place for place in range(len(table.columns)) if any(row[place] is not None for row in table.rows)]
    about = f'<p class="about">{escape(table.about)}</p>' if table.about else ""
    heading = f"<section><h2>{escape(table.title)}</h2>{about}"
    if not kept:
        return f'{heading}<p class="about">Nothing.</p></section>'
    heads = "".join(
        f"<th{_class(table.columns[place])} scope=col>{_title(table.columns[place])}</th>" for place in kept
    )
    rows = "".join(
        "<tr>"
        + "".join(
            _cell(
                shown(row[place], table.columns[place], currency_of(table, row, table.columns[place])),
                table.columns[place],
            )
            for place in kept
        )
        + "</tr>"
        for row in table.rows[:MOST_ROWS]
    )
    sums = "".join(
        "<tr>"
        + "".join(
            _cell(
                shown(cells[place], table.columns[place], table.columns[place].currency or currency),
                table.columns[place],
            )
            for place in kept
        )
        + "</tr>"
        for currency, cells in totals(table)
    )
    left = len(table.rows) - MOST_ROWS
    more = f'<p class="about">… and {left:,} more rows: all are in CSV, XLSX and JSON.</p>' if left > 0 else ""
    foot = f"<tfoot>{sums}</tfoot>" if sums else ""
    return (
        f'{heading}<div class="wide" tabindex=0><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>{foot}'
        f"</table></div>{more}</section>"
    )


def _class(column: Column) -> str:
    return ' class="n"' if column.kind in _NUMBERS else ""


def _title(column: Column) -> str:
    return (
        f'<abbr title="{escape(column.about)}">{escape(column.title)}</abbr>' if column.about else escape(column.title)
    )


#: A longer text may be broken over lines.
_LONG = 34


def _cell(text: str, column: Column) -> str:
    if column.kind in _NUMBERS:
        return f'<td class="n">{escape(text)}</td>'
    is_long = ' class="long"' if len(text) > _LONG else ""
    return f'<td{is_long} dir="auto">{escape(text)}</td>'
