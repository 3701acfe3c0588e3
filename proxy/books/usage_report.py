"""What was used, by our count and by the vendor's, and what it costs by each (contract L4, C3).

In: a place to read the ledger from and what is asked. Out: a `Document`: totals, a table by the keys that were asked,
and apart from it the attempts that ended early or still run, with what they cost at least and may cost at most. Figures
are compared only over attempts that have both; money is never added over currencies. The same ledger and options give
the same document.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, and_, case, func, literal, or_, select

from proxy.books.document import Cell, Chart, ChartKind, Column, Document, Formula, Headline, Kind, Series, Table
from proxy.books.grouping import cell_of, check_keys, expression
from proxy.books.source import LedgerPlace
from proxy.books.summing import NEWEST, Sums, add_up
from proxy.stores.ledger_rows import COST_COLUMNS
from proxy.stores.schema import attempts

#: Attempts that ended so may be charged for, though their usage never came; those that run have no ending.
_EARLY: Final = ("client_gone", "stream_cut", "timeout", "interrupted", "limit")
_CHARTED: Final = 12


@dataclass(frozen=True, slots=True)
class UsageQuestion:
    """`since` and `until` in microseconds; `filters` by names of columns, each a set of values of which one must hold
    (`model` is the served one, or else the asked). `latest_prices`: by the newest re-pricing where there is one."""

    by: tuple[str, ...]
    since: int | None = None
    until: int | None = None
    zone: str = "UTC"
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    latest_prices: bool = False
    facts: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_keys(self.by)


_USED: Final = (
    *("requests", "counted_input", "counted_output", "counted_reasoning", "reported", "vendor_input", "vendor_output"),
    *("vendor_cache_read", "vendor_cache_write", "vendor_reasoning", "both_input", "both_output"),
    *("vendor_cost", "own_cost", "unpriced"),
)
_OPEN: Final = ("requests", "counted_input", "counted_output", "own_cost", "bound", "unbounded")


def usage_report(place: LedgerPlace, question: UsageQuestion) -> Document:
    """Raises `LedgerUnavailable` if the ledger cannot be read, `ValueError` for keys that there are not."""
    keys = len(question.by)
    asked = (Sums(_used(question), keys + 1), Sums(_early(question), keys + 2))
    all_of_it, some = add_up(place, asked, latest=question.latest_prices)
    used = _merged(all_of_it, question.by, len(_USED))
    early = _merged(some, (*question.by, "ending"), len(_OPEN))
    return Document(
        name="usage",
        title="Usage",
        facts=question.facts,
        headlines=_headlines(used, early),
        tables=(_used_table(question.by, used), _early_table(question.by, early)),
        charts=_charts(question.by, used),
        notes=_notes(used),
    )


# -- what the database is asked ---------------------------------------------------------------------------------------


def _used(question: UsageQuestion) -> Select[Any]:
    columns, costs, base = attempts.c, _costs(question), _base(question)
    final = columns.usage_state == "final"

    def where_final(column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.sum(case((final, column), else_=_number(0)))

    vendor_cost = func.sum(sum((func.coalesce(costs[name], 0) for name in COST_COLUMNS[:4]), start=_number(0)))
    sums = [
        func.count(),
        func.sum(columns.counted_input),
        func.sum(columns.counted_output),
        func.sum(columns.counted_reasoning),
        func.sum(case((final, _number(1)), else_=_number(0))),
        *(where_final(func.coalesce(columns[f"usage_{name}"], 0)) for name in ("input", "output", "cache_read")),
        *(where_final(func.coalesce(columns[f"usage_{name}"], 0)) for name in ("cache_write", "reasoning")),
        where_final(columns.counted_input),
        where_final(columns.counted_output),
        vendor_cost,
        func.sum(func.coalesce(costs["own_cost_input"], 0) + func.coalesce(costs["own_cost_output"], 0)),
        func.sum(case((costs["currency"].is_(None), _number(1)), else_=_number(0))),
    ]
    keys = [*_keys(question), costs["currency"]]
    # order by place would do for PostgreSQL alone; the caller sorts
    return select(*keys, *sums).select_from(base).where(*_conditions(question)).group_by(*keys)


def _early(question: UsageQuestion) -> Select[Any]:
    columns, costs, base = attempts.c, _costs(question), _base(question)
    state = func.coalesce(columns.usage_state, "")
    own = func.coalesce(costs["own_cost_input"], 0) + func.coalesce(costs["own_cost_output"], 0)
    sums = [
        func.count(),
        func.sum(columns.counted_input),
        func.sum(columns.counted_output),
        func.sum(own),
        func.sum(func.coalesce(columns.cost_bound, 0)),
        func.sum(case((columns.cost_bound.is_(None), _number(1)), else_=_number(0))),
    ]
    keys = [*_keys(question), columns.ending, costs["currency"]]
    ended = or_(columns.ending.is_(None), and_(columns.ending.in_(_EARLY), state != "final"))
    return select(*keys, *sums).select_from(base).where(*_conditions(question), ended).group_by(*keys)


def _keys(question: UsageQuestion) -> list[ColumnElement[Any]]:
    return [expression(name, question.zone, question.since, question.until) for name in question.by]


def _number(value: int) -> ColumnElement[int]:
    return literal(value, BigInteger)


def _base(question: UsageQuestion) -> Any:
    if not question.latest_prices:
        return attempts
    return attempts.outerjoin(NEWEST, NEWEST.c.attempt_id == attempts.c.attempt_id)


def _costs(question: UsageQuestion) -> dict[str, ColumnElement[Any]]:
    """By name, those recorded or those of the newest re-pricing."""
    recorded = {name: attempts.c[name] for name in (*COST_COLUMNS, "currency")}
    if not question.latest_prices:
        return dict(recorded)
    again = NEWEST.c
    return {name: case((again.attempt_id.is_(None), column), else_=again[name]) for name, column in recorded.items()}


def _conditions(question: UsageQuestion) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if question.since is not None:
        found.append(attempts.c.started_at >= _number(question.since))
    if question.until is not None:
        found.append(attempts.c.started_at < _number(question.until))
    for name, values in sorted(question.filters.items()):
        found.append(expression(name, question.zone).in_(values))
    return found


# -- from rows to a document ------------------------------------------------------------------------------------------

Row = tuple[Any, ...]


def _merged(rows: Sequence[Row], names: tuple[str, ...], figures: int) -> dict[Row, list[int]]:
    """By the cells that are shown (a week is seven days), and the currency; in their order."""
    sums: dict[Row, list[int]] = defaultdict(lambda: [0] * figures)
    for row in rows:
        keys = tuple(cell_of(name, value) for name, value in zip(names, row[: len(names)], strict=True))
        known = sums[(*keys, row[len(names)])]
        for place, figure in enumerate(row[len(names) + 1 :]):
            known[place] += figure
    return {key: sums[key] for key in sorted(sums, key=_order)}


def _order(key: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, str(value)) for value in key)


_KEY_TITLES: Final = {
    "tenant": "Tenant",
    "vendor": "Vendor",
    "model": "Model",
    "model_alias": "Alias",
    "upstream": "Upstream",
    "credential": "Credential",
    "endpoint": "Endpoint",
    "ending": "Ending",
    "usage_state": "Vendor's usage",
    "hour": "Hour",
    "day": "Day",
    "week": "Week",
    "month": "Month",
}


def _key_columns(by: tuple[str, ...]) -> list[Column]:
    return [Column(name, _KEY_TITLES[name], Kind.DAY if name == "day" else Kind.TEXT) for name in by]


def _used_table(by: tuple[str, ...], used: Mapping[Row, list[int]]) -> Table:
    def tokens(name: str, title: str, about: str = "", *, sparse: bool = False) -> Column:
        return Column(name, title, Kind.INTEGER, total=True, about=about, sparse=sparse)

    def minus(name: str, one: str, other: str) -> Column:
        return Column(name, "Difference", Kind.INTEGER, formula=Formula("minus", (one, other)), total=True)

    columns = (
        *_key_columns(by),
        Column("currency", "Currency"),
        tokens("requests", "Attempts"),
        tokens("counted_input", "Input, counted"),
        tokens("counted_output", "Output, counted", "reasoning included"),
        tokens("counted_reasoning", "Reasoning, counted", sparse=True),
        tokens("reported", "With usage", "attempts whose vendor reported final figures"),
        tokens("vendor_input", "Input, vendor"),
        tokens("vendor_output", "Output, vendor"),
        tokens("vendor_cache_read", "Cache read, vendor", sparse=True),
        tokens("vendor_cache_write", "Cache write, vendor", sparse=True),
        tokens("vendor_reasoning", "Reasoning, vendor", sparse=True),
        tokens("both_input", "Input, counted of those", "our count of the attempts with usage"),
        tokens("both_output", "Output, counted of those"),
        minus("input_difference", "vendor_input", "both_input"),
        minus("output_difference", "vendor_output", "both_output"),
        Column("vendor_cost", "Cost, vendor's figures", Kind.MONEY, currency_column="currency", total=True),
        Column("own_cost", "Cost, our count", Kind.MONEY, currency_column="currency", total=True),
        Column(
            "cost_difference",
            "Difference",
            Kind.MONEY,
            currency_column="currency",
            formula=Formula("minus", ("vendor_cost", "own_cost")),
            total=True,
        ),
        tokens("unpriced", "Without a price", sparse=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for key, figures in used.items():
        one = dict(zip(_USED, figures, strict=True))
        money: list[Cell] = [None, None, None]
        if key[-1] is not None:
            money = [one["vendor_cost"], one["own_cost"], one["vendor_cost"] - one["own_cost"]]
        rows.append(
            (
                *key,
                *(one[name] for name in _USED[:12]),
                one["vendor_input"] - one["both_input"],
                one["vendor_output"] - one["both_output"],
                *money,
                one["unpriced"],
            )
        )
    about = "Differences are over the attempts whose vendor reported final usage."
    return Table("usage", "Usage", columns, rows, totals=True, about=about)


def _early_table(by: tuple[str, ...], early: Mapping[Row, list[int]]) -> Table:
    columns = (
        *_key_columns(by),
        Column("ending", "Ending", about="empty: still open") if "ending" not in by else Column("ended", "Ended"),
        Column("currency", "Currency"),
        Column("requests", "Attempts", Kind.INTEGER, total=True),
        Column("counted_input", "Input, counted", Kind.INTEGER, total=True),
        Column("counted_output", "Output, counted", Kind.INTEGER, total=True),
        Column("at_least", "Costs at least", Kind.MONEY, currency_column="currency", total=True, about="our count"),
        Column(
            "at_most", "Costs at most", Kind.MONEY, currency_column="currency", total=True, about="of those bounded"
        ),
        Column("unbounded", "Without a bound", Kind.INTEGER, total=True, sparse=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for key, figures in early.items():
        one = dict(zip(_OPEN, figures, strict=True))
        money: tuple[Cell, Cell] = (None, None) if key[-1] is None else (one["own_cost"], one["bound"])
        ending = key[-2] if key[-2] is not None else "open"
        rows.append(
            (
                *key[:-2],
                ending,
                key[-1],
                one["requests"],
                one["counted_input"],
                one["counted_output"],
                *money,
                one["unbounded"],
            )
        )
    about = "Attempts that still run, or ended before their vendor said what it charges."
    return Table("open", "Open and ended early", columns, rows, totals=True, about=about)


def _headlines(used: Mapping[Row, list[int]], early: Mapping[Row, list[int]]) -> tuple[Headline, ...]:
    total = [sum(figures[place] for figures in used.values()) for place in range(len(_USED))]
    one = dict(zip(_USED, total, strict=True))
    lines = [
        Headline("requests", "Attempts", one["requests"]),
        Headline("counted_input", "Input tokens, counted", one["counted_input"]),
        Headline("counted_output", "Output tokens, counted", one["counted_output"]),
    ]
    for currency in sorted({key[-1] for key in used if key[-1] is not None}):
        paid = sum(figures[_USED.index("vendor_cost")] for key, figures in used.items() if key[-1] == currency)
        own = sum(figures[_USED.index("own_cost")] for key, figures in used.items() if key[-1] == currency)
        lines.append(Headline(f"vendor_cost_{currency}", "Cost, vendor's figures", paid, Kind.MONEY, currency))
        lines.append(Headline(f"own_cost_{currency}", "Cost, our count", own, Kind.MONEY, currency))
    waiting = sum(figures[0] for figures in early.values())
    lines.append(Headline("open", "Open or ended early", waiting, tone="bad" if waiting else "plain"))
    return tuple(lines)


def _charts(by: tuple[str, ...], used: Mapping[Row, list[int]]) -> tuple[Chart, ...]:
    """Over time where a span of time is asked, else over the first key."""
    if not used or not by:
        return ()
    times = [name for name in by if name in ("hour", "day", "week", "month")]
    place = by.index(times[0]) if times else 0
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    money: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for key, figures in used.items():
        one = dict(zip(_USED, figures, strict=True))
        label = str(key[place]) if key[place] is not None else "(none)"
        for at, name in enumerate(("vendor_input", "vendor_output", "both_input", "both_output")):
            sums[label][at] += one[name]
        if key[-1] is not None:
            money[key[-1]][label][0] += one["vendor_cost"]
            money[key[-1]][label][1] += one["own_cost"]
    labels = sorted(sums) if times else sorted(sums, key=lambda label: (-sum(sums[label]), label))[:_CHARTED]
    kind = ChartKind.LINE if times and len(labels) > 1 else ChartKind.BAR
    charts = [
        Chart(
            f"cost_{currency}",
            f"Cost by {by[place]}",
            kind,
            tuple(labels),
            (
                Series("vendor's figures", tuple(of[label][0] / 1e9 for label in labels)),
                Series("our count", tuple(of[label][1] / 1e9 for label in labels)),
            ),
            currency,
        )
        for currency, of in sorted(money.items())
    ]
    tokens = Chart(
        "tokens",
        f"Tokens by {by[place]}",
        kind,
        tuple(labels),
        (
            Series("vendor", tuple(sums[label][0] + sums[label][1] for label in labels)),
            Series("counted", tuple(sums[label][2] + sums[label][3] for label in labels)),
        ),
        "tokens",
        "over the attempts whose vendor reported final usage",
    )
    return (*charts, tokens)


def _notes(used: Mapping[Row, list[int]]) -> tuple[str, ...]:
    total = [sum(figures[place] for figures in used.values()) for place in range(len(_USED))]
    one = dict(zip(_USED, total, strict=True))
    notes = []
    if one["requests"] > one["reported"]:
        notes.append(
            f"{one['requests'] - one['reported']} of {one['requests']} attempts have no final usage of their vendor."
        )
    if one["unpriced"]:
        notes.append(f"{one['unpriced']} attempts have no price: see `sluice check-prices`.")
    return tuple(notes)
