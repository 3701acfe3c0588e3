"""Cells as texts: for a person, aligned by their column and safe to look at; for a program, exact and safe to open.

In: cells and their columns. Out: texts. Money is in nano-units and is never a float on its way. What a client called
its model or tenant stays what it is, but for signs that would act: on a terminal, or as a formula (contract L4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

from proxy.books.document import Cell, Column, Headline, Kind, Table
from proxy.metering.money import NANO, money_text

NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.RATIO, Kind.MONEY)

#: A cell that begins with one of these is a formula to a spreadsheet that reads CSV; the wide ones are, where Japanese
#: or Chinese is set. The apostrophe is here so that one in front can always be taken away again.
_ACTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "'")
#: Controls, which a terminal obeys; the Unicode signs that turn the direction of all that follows; what is no character
#: in XML. The joiners of Persian, Hindi and emoji are none of these.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def visible(text: str) -> str:
    """A text without signs that act instead of being seen: `\\x1b` becomes `␛`, a line feed `␊`, U+202E `\\u202e`."""
    return _INVISIBLE.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"


def harmless(text: str) -> str:
    """A text that a spreadsheet does not take for a formula: with an apostrophe in front where it would. Whoever takes
    one leading apostrophe away has the text again."""
    return f"'{text}" if text.startswith(_ACTS) else text


def plain(cell: Cell, column: Column) -> str:
    """For a program that reads text: no separators, money as an exact decimal, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if column.kind is Kind.MONEY and isinstance(cell, int):
        return money_text(cell)
    return cell.isoformat() if isinstance(cell, date) else str(cell)


def heading(column: Column) -> str:
    """What stands over the column: `Cost (USD)` where all of it is of one currency."""
    return f"{column.title} ({column.currency})" if column.currency and column.kind is Kind.MONEY else column.title


def column_texts(column: Column, cells: Sequence[Cell], *, exact: bool = False) -> list[str]:
    """All cells of a column for a person, with as many digits behind the point each, so that they stand aligned."""
    digits = _digits(column, cells, exact=exact)
    return [_shown(cell, column, digits) for cell in cells]


def headline_texts(lines: Sequence[Headline], *, exact: bool = False) -> list[str]:
    """Single figures, money with its currency; those of one kind and currency have as many digits behind the point."""
    texts = [""] * len(lines)
    for kind, currency in sorted({(line.kind, line.currency or "") for line in lines}):
        places = [place for place, line in enumerate(lines) if (line.kind, line.currency or "") == (kind, currency)]
        cells = [lines[place].value for place in places]
        for place, text in zip(places, column_texts(Column("", "", kind), cells, exact=exact), strict=True):
            texts[place] = f"{text} {currency}" if text and currency and kind is Kind.MONEY else text
    return texts


def is_nothing(cell: Cell) -> bool:
    """Is it a nought, which need not catch the eye?"""
    return isinstance(cell, int | float) and not isinstance(cell, bool) and cell == 0


def _shown(cell: Cell, column: Column, digits: int) -> str:
    if cell is None:
        return ""
    match column.kind:
        case Kind.MONEY if isinstance(cell, int):
            return _money(cell, digits)
        case Kind.RATIO if isinstance(cell, int | float):
            return f"{100 * cell:,.{digits}f} %"
        case Kind.INTEGER | Kind.NUMBER if isinstance(cell, int | float) and not isinstance(cell, bool):
            return (
                f"{cell:,.{digits}f}" if isinstance(cell, float) else f"{cell:,}{'.' + '0' * digits if digits else ''}"
            )
        case _:
            return visible(plain(cell, column))


#: From this many units of a currency on, so many digits are shown; what is less than a hundredth has all nine. JSON,
#: CSV, Parquet and the spreadsheet always have all.
_MONEY_DIGITS = ((10_000, 2), (1, 4), (0.01, 6))
_NUMBER_DIGITS = ((1000, 1), (10, 2), (0, 4))


def _digits(column: Column, cells: Iterable[Cell], *, exact: bool) -> int:
    values = [abs(cell) for cell in cells if isinstance(cell, int | float) and not isinstance(cell, bool)]
    largest = max(values, default=0)
    match column.kind:
        case Kind.MONEY:
            needed = max(
                (len(money_text(value).partition(".")[2]) for value in values if isinstance(value, int)), default=2
            )
            usual = next((digits for limit, digits in _MONEY_DIGITS if largest >= limit * NANO), 9)
            return needed if exact else min(needed, usual)
        case Kind.RATIO:
            return 2
        case Kind.NUMBER:
            if all(value == int(value) for value in values if value == value and value not in _ENDLESS):
                return 0
            return next(digits for limit, digits in _NUMBER_DIGITS if largest >= limit or not limit)
        case _:
            return 0


_ENDLESS = (float("inf"), float("-inf"))


def _money(nanos: int, digits: int) -> str:
    """Rounded half to even; what would vanish is `<0.0001`, never a nought."""
    unit = 10 ** (9 - digits)
    whole, rest = divmod(nanos, unit)
    if 2 * rest > unit or (2 * rest == unit and whole % 2):
        whole += 1
    if nanos and not whole:
        return f"{'<' if nanos > 0 else '>-'}{_grouped(unit, digits)}"
    return f"{'-' if whole < 0 else ''}{_grouped(abs(whole) * unit, digits)}"


def _grouped(nanos: int, digits: int) -> str:
    whole, part = divmod(nanos, NANO)
    return f"{whole:,}.{f'{part:09d}'[:digits]}"


def currency_of(table: Table, row: Sequence[Cell], column: Column) -> str | None:
    """The currency of a money cell: its column's, or that of its row."""
    if column.currency is not None or column.currency_column is None:
        return column.currency
    value = row[place_of(table, column.currency_column)]
    return None if value is None else str(value)


def place_of(table: Table, name: str) -> int:
    """Where the column of this name stands."""
    return next(place for place, column in enumerate(table.columns) if column.name == name)
