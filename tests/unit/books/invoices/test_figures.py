"""Figures as vendors and spreadsheets write them become exact values, or a `ValueError` that says why not."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.books.invoices.figures import day, moment, money, number, tokens, whole

pytestmark = pytest.mark.clause("C3")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("12", "12"),
        ("1,234.5", "1234.5"),
        ("1,234,567", "1234567"),
        ("1.5e-05", "0.000015"),
        ("7.5E-3", "0.0075"),
        ("(3.20)", "-3.20"),
        ("$4", "4"),
        ("-$4.00", "-4"),
        ("\u2212€ 4", "-4"),
        ("1\u202f234", "1234"),
        (".5", "0.5"),
        ("+2.", "2"),
        (17, "17"),
        (Decimal("0.1"), "0.1"),
    ],
)
def test_numbers(written: object, meant: str) -> None:
    """Groups, signs, currencies, exponents; nothing passes through a float."""
    assert number(written) == Decimal(meant)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("1.234,56", "1234.56"), ("0,5", "0.5"), ("1.234.567", "1234567"), ("12", "12"), ("0.5", "0.5")],
)
def test_a_decimal_comma_has_to_be_said(written: str, meant: str) -> None:
    """With it points group; without it a comma that groups nothing is a mistake that names the remedy."""
    assert number(written, decimal_comma=True) == Decimal(meant)
    if written == "0,5":
        with pytest.raises(ValueError, match="decimal_comma: true"):
            number(written)


@pytest.mark.parametrize(
    "written",
    [
        *("", "-", "abc", "1_000", "NaN", "Infinity", "1e999", "0x10", "١٢", "1,23,4", "--1", "1e-99999", "9" * 500),
        *(True, None, 1.5, [], Decimal("NaN"), Decimal("1e-1000"), Decimal("1e999999"), 10**30),
    ],
)
def test_what_is_no_number(written: object) -> None:
    """Neither a guess nor another exception."""
    with pytest.raises(ValueError, match="is no number"):
        number(written)


def test_money_is_rounded_once_half_to_even() -> None:
    """To nano-units; what an amount was written with tells how much rounding there may be."""
    assert money("0.0000000005") == (0, 1)
    assert money("0.0000000015") == (2, 1)
    assert money("-0.0000000015") == (-2, 1)
    assert money("0.000828688000000049999999999999999999") == (828_688, 1)
    assert money("12.34") == (12_340_000_000, 10_000_000)
    assert money("123.45", Decimal("0.01")) == (1_234_500_000, 100_000)
    assert money("5") == (5_000_000_000, 1_000_000_000)


def test_tokens_in_units_are_whole() -> None:
    """A thousandth of a thousand is one token; a count has no parts and is not negative."""
    assert tokens("12.345", 1_000) == 12_345
    assert tokens("0.0000015", 1_000_000) == 2
    assert tokens("-1", 1_000) == -1_000
    assert whole("4,096", "amount") == 4_096
    for wrong in ("1.5", "-3"):
        with pytest.raises(ValueError, match=r"amount is '.*', and must be a whole number"):
            whole(wrong, "amount")


def test_moments() -> None:
    """Offsets are kept; what says no zone is of the one that was given."""
    noon = datetime(2026, 10, 5, 12, tzinfo=UTC)
    for written in ("2026-10-05T12:00:00Z", "2026-10-05 12:00:00 UTC", 1_791_201_600, "2026-10-05 15:30:00+03:30"):
        assert moment(written) == noon
    assert moment("2026-10-05 15:30", "Asia/Tehran") == noon
    assert moment("1791201600500", form="unix_ms") == noon + timedelta(milliseconds=500)
    assert moment("05.10.2026 14:00", "Europe/Berlin", "%d.%m.%Y %H:%M") == noon
    assert moment("2026-10-05T20:00:00+08:00").tzinfo == timezone(timedelta(hours=8))
    for wrong in ("yesterday", "", -5, 10**18, True, "0001-01-01T00:00:00Z", None):
        with pytest.raises(ValueError, match="is no moment"):
            moment(wrong)


def test_days() -> None:
    """ISO, American, without separators, the day of a moment, or as the mapping says."""
    for written in ("2026-10-05", "10/05/2026", "10/5/2026", "20261005", "2026/10/05", "2026-10-05T23:00:00+08:00"):
        assert day(written) == date(2026, 10, 5)
    assert day("05.10.2026", "%d.%m.%Y") == date(2026, 10, 5)
    for wrong in ("2026105", "31/12/2026", "2026-13-01", "", None):
        with pytest.raises(ValueError, match="is no day"):
            day(wrong)


@given(st.one_of(st.text(max_size=40), st.integers(), st.decimals(), st.none(), st.booleans()))
def test_anything_is_a_figure_or_a_value_error(written: object) -> None:
    """No other exception leaves."""
    for read in (number, tokens, money, moment, day):
        with suppress(ValueError):
            read(written)


@given(st.integers(-(10**15), 10**15), st.integers(0, 9))
def test_money_that_a_nano_holds_is_exact(amount: int, digits: int) -> None:
    """However it is written."""
    nanos = amount * 10 ** (9 - digits)
    assert money(f"{Decimal(amount).scaleb(-digits):f}")[0] == nanos
    assert money(f"{Decimal(amount).scaleb(-digits):E}")[0] == nanos
