"""Money as integers: nano-units (10**-9) of a currency, from decimal texts and back, exactly (contract L2).

Never a float: 0.1 has none. A price is in nano-units for a million tokens; an amount is rounded once, half to even.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

NANO: Final = 10**9
MILLION: Final = 10**6
_DECIMAL = re.compile(r"[+-]?\d{1,12}(\.\d{1,18})?", re.ASCII)


def parse_money(text: str) -> int:
    """A decimal text such as `2.50` in nano-units. Raises `ValueError` for other texts, and where a nano-unit is too
    coarse for it."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text!r} is no decimal number such as '2.50'")
    nanos = Decimal(text) * NANO
    if nanos != nanos.to_integral_value():
        raise ValueError(f"{text!r} is finer than nine digits behind the point")
    return int(nanos)


def money_text(nanos: int) -> str:
    """The exact amount as a decimal text, with at least two digits behind the point: `-0.003750000` is `-0.00375`."""
    sign = "-" if nanos < 0 else ""
    whole, part = divmod(abs(nanos), NANO)
    digits = f"{part:09d}".rstrip("0").ljust(2, "0")
    return f"{sign}{whole}.{digits}"


def cost(tokens: int, per_million: int) -> int:
    """What so many tokens cost, in nano-units, at a price in nano-units for a million; a half goes to the even one."""
    return rounded(tokens * per_million)


def rounded(millionths: int) -> int:
    """Millionths of a nano-unit to whole ones, half to even."""
    whole, rest = divmod(millionths, MILLION)
    if 2 * rest > MILLION or (2 * rest == MILLION and whole % 2):
        whole += 1
    return whole
