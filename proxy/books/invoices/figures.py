"""Figures of an export as they are written: decimal texts, tokens, money, moments.

In: a text or a JSON value. Out: exact values. Raises `ValueError` that says what is wrong, and nothing else; never a
float, and never a guess: a comma may group thousands, or stand for a decimal point where the mapping says so.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Final
from zoneinfo import ZoneInfo

from proxy.metering.money import NANO

_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_GROUPED_BY_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_MOST: Final = Decimal(2**62)
#: Digits behind the point that are still a figure: exporters print sums of floats with some twenty.
_FINEST: Final = 60
_MOST_LETTERS: Final = 200
_EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)
_DAYS = (
    (re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)", re.ASCII)),
    (re.compile(r"(?P<year>\d{4})/(?P<month>\d\d?)/(?P<day>\d\d?)", re.ASCII)),
    (re.compile(r"(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{4})", re.ASCII)),
    (re.compile(r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)", re.ASCII)),
)


def number(value: object, decimal_comma: bool = False) -> Decimal:
    """A number as text (`1,234.5`, `1.5e-05`, `(3.20)`, `$4`, `-€4`) or JSON."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError(f"{_shown(value)} is no number")
    found = _written(value, decimal_comma) if isinstance(value, str) else Decimal(value)
    if not found.is_finite() or found.copy_abs() > _MOST or _fineness(found) > _FINEST:
        raise ValueError(f"{_shown(value)} is no number that an invoice can have")
    return found


def _written(value: str, decimal_comma: bool) -> Decimal:
    text = value.strip().replace("\u00a0", "").replace("\u202f", "").replace("\u2212", "-")
    is_negative = text.startswith("(") and text.endswith(")")
    if is_negative:
        text = text[1:-1].strip()
    text = re.sub(r"^([+-]?)\s*[$€£¥₹]\s*", r"\1", text)
    if decimal_comma:
        if _GROUPED_BY_POINTS.fullmatch(text):
            text = text.replace(".", "")
        text = text.replace(",", ".")
    elif _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if len(text) > _MOST_LETTERS or not _PLAIN.fullmatch(text):
        hint = ": is the comma its decimal point? Say `decimal_comma: true` in a mapping" if "," in text else ""
        raise ValueError(f"{_shown(value)} is no number{hint}")
    try:
        found = _EXACT.create_decimal(text)
    except InvalidOperation:
        raise ValueError(f"{_shown(value)} is no number that an invoice can have") from None
    return -found if is_negative else found


def _fineness(found: Decimal) -> int:
    exponent = found.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _shown(value: object) -> str:
    text = repr(str(value)) if isinstance(value, int | Decimal) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _whole(exact: Decimal) -> int:
    return int(exact.to_integral_value(ROUND_HALF_EVEN, _EXACT))


def whole(value: object, what: str, decimal_comma: bool = False) -> int:
    """A count, which has no parts and is not less than nought."""
    found = number(value, decimal_comma)
    if found != _whole(found) or found < 0:
        raise ValueError(f"{what} is {_shown(value)}, and must be a whole number that is not negative")
    return int(found)


def tokens(value: object, unit: int = 1, decimal_comma: bool = False) -> int:
    """Whole tokens, of a quantity in units of `unit`. What is not whole is rounded: vendors write `12.345` units of
    a thousand with fewer digits than that takes. Less than nought where something is given back."""
    return _whole(_EXACT.multiply(number(value, decimal_comma), Decimal(unit)))


def money(value: object, scale: Decimal = Decimal(1), decimal_comma: bool = False) -> tuple[int, int]:
    """Nano-units, rounded half to even, and the value of the last digit that was written. `scale` is what one of the
    written units is worth (0.01 where they are cents)."""
    amount = number(value, decimal_comma)
    nanos = _EXACT.multiply(_EXACT.multiply(amount, scale), Decimal(NANO))
    digit = _EXACT.multiply(_EXACT.multiply(Decimal(1).scaleb(-max(0, _fineness(amount))), scale), Decimal(NANO))
    return _whole(nanos), max(1, int(digit))


def moment(value: object, zone: str | None = None, form: str | None = None) -> datetime:
    """An aware moment: RFC 3339, `2026-10-05 12:00:00 UTC`, unix seconds as a JSON number, or by `form`: `unix`,
    `unix_ms`, or one of `strptime`. Without a zone of its own it is of `zone`, or UTC."""
    if form in ("unix", "unix_ms") or (isinstance(value, int | Decimal) and not isinstance(value, bool)):
        return _since_1970(number(value), 1000 if form == "unix_ms" else 1, value)
    text = str(value).strip()
    try:
        if form is not None:
            found = datetime.strptime(text, form)
        else:
            found = datetime.fromisoformat(text.removesuffix("UTC").strip())
    except ValueError:
        wanted = "2026-10-05T12:00:00Z" if form is None else form
        raise ValueError(f"{_shown(value)} is no moment such as {wanted}") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC if zone is None else ZoneInfo(zone))
    if not 1970 < found.year < 9999:
        raise ValueError(f"{_shown(value)} is no moment that an invoice can have")
    return found


def _since_1970(count: Decimal, unit: int, value: object) -> datetime:
    micros = _whole(_EXACT.divide(_EXACT.multiply(count, Decimal(1_000_000)), Decimal(unit)))
    if not 0 <= micros < 32_503_680_000_000_000:  # the year 3000
        raise ValueError(f"{_shown(value)} is no moment in seconds since 1970")
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)


def day(value: object, form: str | None = None) -> date:
    """A day: `2026-10-05`, `10/05/2026` (month first), `20261005`, or by a `strptime` form. Of a moment its own day."""
    text = str(value).strip()
    try:
        if form is not None:
            return datetime.strptime(text, form).date()
        for one in _DAYS:
            if (found := one.fullmatch(text)) is not None:
                return date(int(found["year"]), int(found["month"]), int(found["day"]))
        return datetime.fromisoformat(text.removesuffix("UTC").strip()).date()
    except ValueError:
        wanted = "2026-10-05" if form is None else form
        raise ValueError(f"{_shown(value)} is no day such as {wanted}") from None
