"""Figures of an export as they are written: decimal texts, tokens, money, moments.

In: a text or a JSON value. Out: exact values. Raises `ValueError` that says what is wrong; never a float, and never a
guess: a comma may group thousands, or stand for a decimal point where the mapping says so.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from proxy.metering.money import NANO

_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_MOST = Decimal(2**62)
_DAYS = ("%Y-%m-%d", "%m/%d/%Y", "%Y%m%d", "%Y/%m/%d")


def number(value: object, decimal_comma: bool = False) -> Decimal:
    """A number as text (`1,234.5`, `1.5e-05`, `(3.20)`, `$ 4`) or JSON."""
    if isinstance(value, bool) or value is None:
        raise ValueError(f"{value!r} is no number")
    if isinstance(value, int | Decimal):
        found = Decimal(value)
    else:
        text = str(value).strip().replace("\u00a0", "").replace("\u202f", "")
        is_negative = text.startswith("(") and text.endswith(")")
        text = text.strip("()").lstrip("$€£¥").strip()
        if decimal_comma:
            text = text.replace(".", "").replace(",", ".")
        elif _GROUPED.fullmatch(text):
            text = text.replace(",", "")
        if not text.isascii():
            raise ValueError(f"{value!r} is no number")
        try:
            found = Decimal(text)
        except InvalidOperation:
            raise ValueError(f"{value!r} is no number") from None
        found = -found if is_negative else found
    if not found.is_finite() or abs(found) > _MOST:
        raise ValueError(f"{value!r} is no number that an invoice can have")
    return found


def tokens(value: object, unit: int = 1, decimal_comma: bool = False) -> int:
    """Whole tokens, of a quantity in units of `unit`. What is not whole is rounded: vendors write `12.345` units of
    a thousand with fewer digits than that takes."""
    return int((number(value, decimal_comma) * unit).quantize(Decimal(1), ROUND_HALF_EVEN))


def money(value: object, scale: Decimal = Decimal(1), decimal_comma: bool = False) -> tuple[int, int]:
    """Nano-units, and the value of the last digit that was written. `scale` is what one of the written units is worth
    (0.01 where they are cents)."""
    amount = number(value, decimal_comma)
    nanos = amount * scale * NANO
    exponent = amount.as_tuple().exponent
    digit = Decimal(1).scaleb(exponent if isinstance(exponent, int) and exponent < 0 else 0) * scale * NANO
    return int(nanos.quantize(Decimal(1), ROUND_HALF_EVEN)), max(1, int(digit))


def moment(value: object, zone: str | None = None) -> datetime:
    """An aware moment: RFC 3339, `2026-10-05 12:00:00 UTC`, or unix seconds. Without a zone of its own it is of `zone`,
    or UTC."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return datetime.fromtimestamp(int(value), UTC)
    text = str(value).strip().removesuffix(" UTC")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{value!r} is no moment such as 2026-10-05T12:00:00Z") from None
    if found.tzinfo is not None:
        return found
    return found.replace(tzinfo=UTC if zone is None else ZoneInfo(zone))


def day(value: object, form: str | None = None) -> date:
    """A day, as most write it or by a `strptime` form."""
    text = str(value).strip()
    forms = _DAYS if form is None else (form,)
    for one in forms:
        try:
            return datetime.strptime(text, one).date()
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(text.removesuffix(" UTC")).date()
    except ValueError:
        raise ValueError(f"{value!r} is no day such as 2026-10-05") from None
