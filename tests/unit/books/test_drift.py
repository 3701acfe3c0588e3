"""The vendor's tokens against ours: lines, days of a change and attempts that stand out, out of rows of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from proxy.books.drift import Drift, counted_differently, find_drift
from proxy.books.finding import Reason
from proxy.books.period import parse_period
from proxy.books.source import insert_rows
from tests.support.books import attempt, ledger, values_of

pytestmark = pytest.mark.clause("C3")

Row = dict[str, Any]
FIRST = date(2026, 3, 1)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


@contextmanager
def attempts(rows: Sequence[Row], scratch: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with ledger([]) as connection:
        insert_rows(connection, [values_of(row) for row in rows], scratch)
        yield connection


def drifts_of(rows: Sequence[Row], scratch: Path, zone: str = "UTC") -> list[Drift]:
    with attempts(rows, scratch) as connection:
        return find_drift(connection, zone)


def row(moment: datetime, counted: tuple[int, int], reported: tuple[int, int], **fields: Any) -> Row:
    """Input and output, as we counted them and as the vendor reported them."""
    made = attempt(moment, (reported[0], 0, 0, reported[1]))
    return made | {"counted_input": counted[0], "counted_output": counted[1]} | fields


def traffic(
    seed: int,
    days: int = 30,
    each: int = 30,
    scale: tuple[float, float] = (1.18, 1.15),
    offset: int = 12,
    noise: float = 0.008,
    since: int | None = None,
    factor: float = 1.0,
    **fields: Any,
) -> list[Row]:
    """Texts of all lengths. The vendor counts by `scale` and `offset`, and from day `since` on `factor` times that."""
    chance = Random(seed)
    rows = []
    for number in range(days):
        more = factor if since is not None and number >= since else 1.0
        for _ in range(each):
            moment = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number, seconds=chance.randrange(86_400))
            asked, made = round(min(chance.lognormvariate(6.6, 1), 90_000)), round(chance.lognormvariate(5.2, 0.9))
            told = (
                round((asked * scale[0] * (1 + chance.gauss(0, noise)) + offset) * more),
                round(made * scale[1] * (1 + chance.gauss(0, noise)) * more),
            )
            rows.append(row(moment, (asked, made), told, **fields))
    return rows


def both(drifts: list[Drift]) -> tuple[Drift, Drift]:
    """Of one model: its input, its output."""
    assert [one.side for one in drifts] == ["input", "output"]
    return drifts[0], drifts[1]


# -- the line ---------------------------------------------------------------------------------------------------------


def test_the_line_is_the_vendors(scratch: Path) -> None:
    """Slope and offset of each side come out as the vendor made them, and nothing else is said."""
    asked, made = both(drifts_of(traffic(1), scratch))
    assert (asked.vendor, asked.model, asked.counter) == ("acme", "m-1", "o200k_base")
    assert asked.fit.slope == pytest.approx(1.18, rel=0.005)
    assert asked.fit.offset == pytest.approx(12, abs=3)
    assert made.fit.slope == pytest.approx(1.15, rel=0.005)
    assert made.fit.offset == pytest.approx(0, abs=1)
    assert asked.fit.looseness < 0.02
    assert not (asked.changes or asked.outliers or made.changes or made.outliers)
    assert sum(day.attempts for day in asked.days) == asked.attempts


def test_vendors_and_models_have_a_line_each(scratch: Path) -> None:
    """By the name under which it was served, in the order of vendor, model and side."""
    rows = [
        *traffic(1, 8, vendor="千帆", served_model="模型-一", scale=(0.7, 0.7)),
        *traffic(2, 8, vendor="acme", served_model=None, model="نمونه", scale=(1.3, 1.3)),
        *traffic(3, 8, vendor="acme", served_model="m-2", scale=(1.0, 1.0)),
    ]
    found = drifts_of(rows, scratch)
    assert [(one.vendor, one.model, one.side) for one in found] == [
        *(("acme", "m-2", side) for side in ("input", "output")),
        *(("acme", "نمونه", side) for side in ("input", "output")),
        *(("千帆", "模型-一", side) for side in ("input", "output")),
    ]
    assert [round(one.fit.slope, 1) for one in found] == [1.0, 1.0, 1.3, 1.3, 0.7, 0.7]


def test_odd_attempts_do_not_move_the_line(scratch: Path) -> None:
    """A fifth of all prompts are pictures that we do not count as the vendor does."""
    rows = traffic(4, scale=(1.0, 1.0), offset=0)
    for one in rows[::5]:
        one["usage_input"] += 1500
    asked, _ = both(drifts_of(rows, scratch))
    assert asked.fit.slope == pytest.approx(1, abs=0.03)
    assert asked.changes == ()


@pytest.mark.parametrize("state", ["partial", "total_only", "characters", "estimated", "lost", "absent", None])
def test_only_final_figures_are_compared(state: str | None, scratch: Path) -> None:
    """Half a report says nothing about a tokenizer, nor does another's guess."""
    rows = traffic(5, 10)
    strange = [one | {"attempt_id": f"x-{one['attempt_id']}", "usage_input": 7, "usage_state": state} for one in rows]
    assert drifts_of([*rows, *strange], scratch) == drifts_of(rows, scratch)


def test_a_ledger_without_figures_has_no_drift(scratch: Path) -> None:
    """None at all, and only such as say nothing."""
    assert drifts_of([], scratch) == []
    assert drifts_of(traffic(6, 5, usage_state="lost"), scratch) == []
    short = [row(datetime(2026, 3, 1, 12, tzinfo=UTC), (9, 39), (900, 900)) for _ in range(20)]
    assert drifts_of(short, scratch) == []


def test_few_attempts_have_no_line(scratch: Path) -> None:
    """And it says so."""
    one, _ = both(drifts_of([row(datetime(2026, 3, 1, 12, tzinfo=UTC), (100, 100), (120, 110))], scratch))
    assert (one.fit.is_shown, one.fit.verdict, one.changes, one.outliers) == (False, "not enough data", (), ())


# -- reasoning --------------------------------------------------------------------------------------------------------


def test_reasoning_that_is_hidden_is_left_out(scratch: Path) -> None:
    """The vendor tells thousands of tokens that we never saw, or of which we saw a summary: the answer agrees."""
    chance = Random(7)
    rows = traffic(7, scale=(1.0, 1.0), offset=0)
    for number, one in enumerate(rows):
        thought, summary = chance.randrange(4000), chance.randrange(200) if number % 2 else 0
        one["usage_reasoning"] = thought
        one["usage_output"] += thought
        one["counted_reasoning"] = summary
        one["counted_output"] += summary
    _, made = both(drifts_of(rows, scratch))
    assert made.fit.verdict == "agrees"
    assert (made.changes, made.outliers) == ((), ())


def test_reasoning_that_the_vendor_does_not_tell_apart_is_compared_with_ours(scratch: Path) -> None:
    """Its output holds what we saw of both."""
    rows = traffic(8, scale=(1.0, 1.0), offset=0)
    for one in rows:
        one["counted_reasoning"] = one["counted_output"] // 2
    _, made = both(drifts_of(rows, scratch))
    assert made.fit.verdict == "agrees"


# -- changes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_quarter_without_change_has_none(seed: int, scratch: Path) -> None:
    """Of a busy model and of one that is hardly used, whose days differ."""
    rows = [*traffic(seed, 90, 20), *traffic(seed + 50, 90, 6, served_model="m-2", noise=0.06)]
    assert [one.changes for one in drifts_of(rows, scratch)] == [()] * 4


@pytest.mark.parametrize(("seed", "since"), [(11, 3), (12, 9), (13, 15), (14, 22), (15, 27)])
def test_a_change_of_three_per_cent_is_found_on_its_day(seed: int, since: int, scratch: Path) -> None:
    """On both sides; the line is of the days since then."""
    asked, made = both(drifts_of(traffic(seed, since=since, factor=1.03), scratch))
    for one, slope in ((asked, 1.18), (made, 1.15)):
        (change,) = one.changes
        assert change.day == FIRST + timedelta(days=since)
        assert change.after / change.before == pytest.approx(1.03, abs=0.006)
        assert one.fit.slope == pytest.approx(slope * 1.03, rel=0.012)


def test_longer_texts_are_no_change(scratch: Path) -> None:
    """The vendor adds 300 tokens to each prompt, and from one day on prompts are four times as long: a smaller share is
    added, yet the vendor counts as it did."""
    chance = Random(16)
    rows = []
    for number in range(30):
        for _ in range(30):
            moment = datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(days=number)
            asked = round(chance.lognormvariate(5.5 if number < 15 else 6.9, 0.5))
            rows.append(row(moment, (asked, 100), (round(1.1 * asked * (1 + chance.gauss(0, 0.005))) + 300, 100)))
    asked_, _ = both(drifts_of(rows, scratch))
    assert asked_.changes == ()
    assert asked_.fit.offset == pytest.approx(300, abs=5)


def test_another_tokenizer_of_ours_begins_another_series(scratch: Path) -> None:
    """It is we who changed. Another program that counts by the same vocabulary is no other tokenizer."""
    new = traffic(17, 30, tokenizer="o300k_base/cafe0123/tiktoken-0.13", count_formula="prompt-2", scale=(1.0, 1.0))
    rows = [
        *traffic(18, 10, tokenizer="o200k_base/446a9538/tiktoken-0.12", count_formula="prompt-1"),
        *traffic(19, 20, tokenizer="o200k_base/446a9538/tiktoken-0.13", count_formula="prompt-1"),
        *new,
    ]
    found = drifts_of(rows, scratch)
    assert [(one.side, one.counter) for one in found] == [
        ("input", "o200k_base/446a9538 prompt-1"),
        ("input", "o300k_base/cafe0123 prompt-2"),
        ("output", "o200k_base/446a9538 prompt-1"),
        ("output", "o300k_base/cafe0123 prompt-2"),
    ]
    assert [one.changes for one in found] == [()] * 4


def test_days_are_of_the_zone(scratch: Path) -> None:
    """The vendor changed at its own midnight, in the night in which its clocks had not yet changed."""
    midnight = datetime(2026, 3, 20, 7, tzinfo=UTC)  # summer time in California since the 8th
    rows = traffic(20)
    for one in rows:
        if one["started_at"] >= midnight.timestamp() * 1_000_000:
            one["usage_input"] = round(one["usage_input"] * 1.07)
    asked, _ = both(drifts_of(rows, scratch, "America/Los_Angeles"))
    assert [change.day for change in asked.changes] == [date(2026, 3, 20)]
    assert {day.day for day in asked.days} == {date(2026, 2, 28) + timedelta(days=number) for number in range(31)}


# -- attempts that stand out ------------------------------------------------------------------------------------------


def test_outliers_are_named(scratch: Path) -> None:
    """The farthest first, each side's own, with both figures and the day."""
    rows = traffic(21)
    rows[100] |= {"attempt_id": "عجیب", "counted_input": 1000, "usage_input": 3000}
    rows[200] |= {"attempt_id": "奇怪", "counted_input": 1000, "usage_input": 600}
    rows[300] |= {"attempt_id": "अजीब", "counted_output": 500, "usage_output": 5000}
    asked, made = both(drifts_of(rows, scratch))
    assert [(one.attempt_id, one.counted, one.reported) for one in asked.outliers] == [
        ("عجیب", 1000, 3000),
        ("奇怪", 1000, 600),
    ]
    assert asked.outliers[0].deviations > asked.outliers[1].deviations > 12
    assert [(one.attempt_id, one.day) for one in made.outliers] == [("अजीब", FIRST + timedelta(days=10))]


def test_outliers_before_a_change_are_held_against_the_line_of_their_days(scratch: Path) -> None:
    """And no attempt stands out for being of the old days."""
    rows = traffic(22, since=15, factor=1.5)
    rows[10] |= {"attempt_id": "old", "counted_input": 1000, "usage_input": round(1000 * 1.18 * 1.5)}
    rows[700] |= {"attempt_id": "new", "counted_input": 1000, "usage_input": round(1000 * 1.18)}
    asked, made = both(drifts_of(rows, scratch))
    assert sorted(one.attempt_id for one in asked.outliers) == ["new", "old"]
    assert made.outliers == ()


def test_a_steep_line_has_no_more_outliers_than_a_flat_one(scratch: Path) -> None:
    """What is left over is a share of the vendor's figure, not of ours, where it counts four times as much."""
    rows = traffic(23, scale=(4.0, 0.25), noise=0.02)
    asked, made = both(drifts_of(rows, scratch))
    assert (asked.outliers, made.outliers) == ((), ())
    rows[5] |= {"attempt_id": "low", "counted_output": 4000, "usage_output": 2000}
    _, made = both(drifts_of(rows, scratch))
    assert [one.attempt_id for one in made.outliers] == ["low"]


def test_twenty_outliers_are_enough(scratch: Path) -> None:
    """The farthest of them."""
    rows = traffic(24)
    for number in range(40):
        rows[number * 20] |= {
            "attempt_id": f"far-{number:02d}",
            "counted_input": 1000,
            "usage_input": 4000 + 10 * number,
        }
    asked, _ = both(drifts_of(rows, scratch))
    assert [one.attempt_id for one in asked.outliers] == [f"far-{number:02d}" for number in range(39, 19, -1)]


# -- the same each time -----------------------------------------------------------------------------------------------


@pytest.mark.clause("L4")
def test_the_order_of_rows_does_not_matter(scratch: Path) -> None:
    """Even where a day has more attempts than are looked at: which ones is up to their ids alone."""
    rows = traffic(25, 7, 900, since=4, factor=1.05)
    found = drifts_of(rows, scratch)
    Random(1).shuffle(rows)
    assert drifts_of(rows, scratch) == found
    assert [change.day for one in found for change in one.changes] == [FIRST + timedelta(days=4)] * 2
    assert found[0].days[0].attempts > 800  # sums are of all, whatever levels are of


def test_a_connection_can_be_asked_twice(scratch: Path) -> None:
    """In another zone as well; nothing of the first answer is in the second."""
    rows = traffic(26, 10)
    with attempts(rows, scratch) as connection:
        once = find_drift(connection)
        assert find_drift(connection, "Asia/Kolkata") != once
        assert find_drift(connection) == once


# -- as findings ------------------------------------------------------------------------------------------------------


def test_a_change_within_the_period_is_a_finding(scratch: Path) -> None:
    """One for both sides, of the days that lie in the period, with what they came to and without money."""
    rows = traffic(27, since=10, factor=1.07)
    found = drifts_of(rows, scratch)
    span = parse_period("2026-03-01..2026-03-20", "UTC")
    (one,) = counted_differently(found, span.since, span.until, "UTC")
    assert (one.reason, one.model, one.first_day, one.last_day) == (
        Reason.COUNTED_DIFFERENTLY,
        "m-1",
        date(2026, 3, 11),
        date(2026, 3, 20),
    )
    assert (one.requests, one.amount, one.currency) == (0, 0, None)
    within = [row for row in rows if span.since + 10 * 86_400_000_000 <= row["started_at"] < span.until]
    more = sum(row["usage_input"] + row["usage_output"] for row in within) * (1 - 1 / 1.07)
    assert one.tokens == pytest.approx(more, rel=0.06)
    assert one.detail.startswith("input: 1.1")
    assert "; output: 1.1" in one.detail
    for other in ("2026-02", "2026-03-12..2026-03-20", "2026-03-01..2026-03-10"):
        span = parse_period(other, "UTC")
        assert counted_differently(found, span.since, span.until, "UTC") == []


def test_a_change_ends_where_the_next_begins(scratch: Path) -> None:
    """There and back is two findings, with no day in both, and the second takes off what the first put on."""
    rows = traffic(28, 36, since=12, factor=1.08)
    for one in rows:
        if one["started_at"] >= datetime(2026, 3, 25, tzinfo=UTC).timestamp() * 1_000_000:
            one |= {"usage_input": round(one["usage_input"] / 1.08), "usage_output": round(one["usage_output"] / 1.08)}
    span = parse_period("2026", "UTC")
    first, second = counted_differently(drifts_of(rows, scratch), span.since, span.until, "UTC")
    assert (first.first_day, first.last_day) == (date(2026, 3, 13), date(2026, 3, 24))
    assert (second.first_day, second.last_day) == (date(2026, 3, 25), date(2026, 4, 5))
    assert second.tokens < 0 < first.tokens
