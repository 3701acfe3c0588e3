"""A report with everything a renderer has to cope with: scripts of both directions, hostile names, two currencies."""

from __future__ import annotations

from datetime import date
from typing import Final

from proxy.books.document import Cell, Chart, ChartKind, Column, Document, Formula, Headline, Kind, Series, Table

#: What clients have called their models and tenants.
HOSTILE: Final = (
    "<script>alert(1)</script>",
    '=HYPERLINK("http://example.test","click")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "http://example.test/",
    "فروشگاهِ تهران",
    "商店，上海\n第二行",
    'a"quoted", and, commas',
    "👩🏽‍🚀 e\u0301",
    "x" * 300,
    "\x1b[31mred\u202e_x0041_\x00",
    "'quoted",
)


def report() -> Document:
    columns = (
        Column("tenant", "Tenant"),
        Column("day", "Day", Kind.DAY),
        Column("currency", "Currency"),
        Column("vendor", "Tokens, vendor", Kind.INTEGER, total=True, about="as the vendor reported"),
        Column("counted", "Tokens, counted", Kind.INTEGER, total=True),
        Column("difference", "Difference", Kind.INTEGER, formula=Formula("minus", ("vendor", "counted")), total=True),
        Column("share", "Share", Kind.RATIO, formula=Formula("over", ("difference", "counted"))),
        Column("cost", "Cost", Kind.MONEY, currency_column="currency", total=True),
        Column("fee", "Fee", Kind.MONEY, currency_column="currency", total=True),
        Column("whole", "Whole", Kind.MONEY, currency_column="currency", formula=Formula("plus", ("cost", "fee"))),
    )
    rows: list[tuple[Cell, ...]] = []
    for place, name in enumerate(HOSTILE):
        vendor, counted = 1000 * place + 7, 900 * place
        difference = vendor - counted
        cost, fee = 1_234_567_890 * place + 1, 5_000_000
        share = difference / counted if counted else None
        currency = "EUR" if place % 3 == 0 else "USD"
        day = date(2026, 10, 1 + place)
        rows.append((name, day, currency, vendor, counted, difference, share, cost, fee, cost + fee))
    rows.append(("nobody", None, None, 0, 0, 0, None, None, None, None))
    days = tuple(f"2026-10-{day:02d}" for day in range(1, 32))
    line = Chart(
        "by_day",
        "Cost by day",
        ChartKind.LINE,
        days,
        (
            Series("invoice", tuple(10.0 + day % 7 for day in range(31))),
            Series("دفتر", tuple(None if day == 9 else 9.5 + day % 7 for day in range(31))),
        ),
        "USD",
    )
    bars = Chart(
        "by_reason",
        "What lies between",
        ChartKind.BAR,
        ("missing there", "商店", "<b>"),
        (Series("difference", (-3.5, 12.25, 0.0)),),
        "USD",
    )
    stacked = Chart(
        "by_kind",
        "By kind",
        ChartKind.STACKED,
        ("input", "output"),
        (Series("ours", (5, 6)), Series("theirs", (-2, 9))),
        "tokens",
    )
    return Document(
        "usage",
        "Usage of <everybody> & فروشگاه",
        (("period", "2026-10-01 to 2026-10-31"), ("tenant", HOSTILE[0])),
        (
            Headline("unexplained", "Unexplained", 12_345_678_901, Kind.MONEY, "USD", "bad"),
            Headline("requests", "Attempts", 1_234_567, tone="good"),
            Headline("share", "Without usage", 0.0421, Kind.RATIO),
        ),
        (
            Table("usage", "Usage", columns, rows, totals=True, about="Differences are over both."),
            Table("empty", "Nothing/to: see?", (Column("a", "A"),), ()),
            Table("usage2", "Usage", (Column("a", "A"), Column("n", "N", Kind.NUMBER)), (("x", 1.5),)),
        ),
        (line, bars, stacked),
        ("12 attempts have no price: see `sluice check-prices`.", HOSTILE[6]),
    )
