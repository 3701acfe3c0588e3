"""A report before it has a form: headline, tables and charts, for a terminal, a program, a spreadsheet or a page (L4).

In: figures. Out: values that a renderer writes. A cell is a plain value: `str`, `int`, `float`, `date`, `bool` or None.
Money is an `int` in nano-units of the column's currency (or of the currency that stands in the same row). Nothing here
knows the time, so that the same figures make the same document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

Cell = str | int | float | date | bool | None


class Kind(StrEnum):
    """What a column holds. `RATIO` is a share of one (0.05 is shown as 5 %); `MONEY` is nano-units."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    RATIO = "ratio"
    MONEY = "money"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Formula:
    """How a spreadsheet computes a cell from others of its row: `plus`, `minus` and `over` (division; empty where the
    second is 0 or empty) of the columns named. Cells that are empty count as 0 in `plus` and `minus`."""

    operator: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is the stable one (JSON, CSV, Parquet), `title` what a person reads. `currency` goes for all cells of a
    money column, `currency_column` names the column that says it row by row. `total`: does a sum of it mean something?
    `sparse`: a page leaves it out where it is nought in every row.
    Every row's cell is given whether or not there is a `formula`, and is what the formula gives."""

    name: str
    title: str
    kind: Kind = Kind.TEXT
    currency: str | None = None
    currency_column: str | None = None
    formula: Formula | None = None
    total: bool = False
    about: str = ""
    sparse: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """`totals` asks for a last row with the sums of the columns that have `total`; where money is of several
    currencies, for one that counts all rows, and one for each. A quotient of two summed columns is that of the sums."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    totals: bool = False
    about: str = ""


class ChartKind(StrEnum):
    LINE = "line"
    BAR = "bar"
    STACKED = "stacked"


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one colour. `values` stand over the chart's `labels`; None is a gap."""

    title: str
    values: tuple[float | int | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """`kind` of drawing over `labels` (days, models, tenants). `unit` stands at the axis (`tokens`, `USD`, `share`)."""

    name: str
    title: str
    kind: ChartKind
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    unit: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure at the top: `tone` is `good`, `bad` or `plain`."""

    name: str
    title: str
    value: Cell
    kind: Kind = Kind.INTEGER
    currency: str | None = None
    tone: str = "plain"
    about: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report. `name` is the stable one (`usage`, `reconcile`, `drift`); `facts` are label and text: the period,
    what was asked, what it was read from. `notes` are whole sentences for the reader. The first table is the one that
    forms with room for one only (CSV, Parquet) write."""

    name: str
    title: str
    facts: tuple[tuple[str, str], ...]
    headlines: tuple[Headline, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
