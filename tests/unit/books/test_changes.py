"""Days on which a level changed: found where it did, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from random import Random

import pytest

from proxy.books.changes import Change, Day, changes_in

pytestmark = pytest.mark.clause("C3")

FIRST = date(2026, 1, 1)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def series(ratios: Sequence[float], first: int = 0) -> list[Day]:
    return [Day(day(first + at), 50, round(1000 * ratio), 1000, ratio) for at, ratio in enumerate(ratios)]


def steps(seed: int, count: int, noise: float, *changes: tuple[int, float]) -> list[float]:
    """A level of 1.1 that is multiplied on the days of `changes`; each day differs by `noise` of it."""
    chance = Random(seed)
    ratios, level = [], 1.1
    for number in range(count):
        for at, factor in changes:
            level *= factor if at == number else 1
        ratios.append(level * (1 + chance.gauss(0, noise)))
    return ratios


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.01, 0.05])
def test_a_year_without_change_has_none(noise: float) -> None:
    """However much its days differ, over many seeds."""
    for seed in range(12):
        assert changes_in(series(steps(seed, 365, noise))) == []


@pytest.mark.parametrize(("count", "allowed"), [(6, 4), (7, 4), (10, 4), (31, 0)])
def test_a_short_period_is_hardly_ever_taken_for_a_change(count: int, allowed: int) -> None:
    """Few days can be alike by chance: that is a change in less than four of a thousand such periods."""
    assert sum(bool(changes_in(series(steps(seed, count, 0.03)))) for seed in range(1000)) <= allowed


@pytest.mark.parametrize("weekend", [0.97, 1.005, 1.05, 1.3])
def test_weekends_are_no_change(weekend: float) -> None:
    """Wherever in the week the period begins and ends."""
    for count in (7, 9, 14, 31, 120):
        for first in range(7):
            ratios = [
                ratio * (weekend if day(first + at).weekday() >= 5 else 1)
                for at, ratio in enumerate(steps(first, count, 0.001))
            ]
            assert changes_in(series(ratios, first)) == []


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.002, 0.003, 0.01])
def test_a_level_that_creeps_is_no_change(noise: float) -> None:
    """One part in twenty more in four months, a little each day."""
    for seed in range(20):
        ratios = [ratio * (1 + 0.05 * at / 120) for at, ratio in enumerate(steps(seed, 120, noise))]
        assert changes_in(series(ratios)) == []


def test_two_odd_days_are_no_change() -> None:
    """Not in the middle and not at the end: who tried something with the model is not its tokenizer."""
    ratios = steps(1, 60, 0.001)
    for at in (0, 1, 20, 21, 58, 59):
        ratios[at] *= 1.5
    assert changes_in(series(ratios)) == []


@pytest.mark.parametrize("factor", [0.97, 1.03, 1.07, 1.5])
def test_a_change_is_found_on_its_day(factor: float) -> None:
    """On each day of a month that has three on either side, and on any of a year."""
    for at in range(3, 29):
        (found,) = changes_in(series(steps(at, 31, 0.002, (at, factor))))
        assert found.day == day(at)
        assert found.before == pytest.approx(1.1, rel=0.004)
        assert found.after / found.before == pytest.approx(factor, rel=0.006)
    for at in (3, 40, 181, 300, 362):
        assert [one.day for one in changes_in(series(steps(at, 365, 0.004, (at, factor))))] == [day(at)]


def test_a_change_of_less_than_three_days_or_one_per_cent_is_not_told() -> None:
    """The first may be a long weekend, the second is within what languages do."""
    assert changes_in(series(steps(4, 31, 0.0005, (29, 1.07)))) == []
    assert changes_in(series(steps(4, 31, 0.0005, (15, 1.008)))) == []


def test_several_changes_are_each_found() -> None:
    """There, and back again, and further."""
    found = changes_in(series(steps(9, 200, 0.002, (30, 1.07), (90, 1 / 1.07), (150, 0.9))))
    assert [one.day for one in found] == [day(30), day(90), day(150)]
    assert [one.after for one in found] == pytest.approx([1.177, 1.1, 0.99], rel=0.002)
    assert [one.before for one in found[1:]] == [one.after for one in found[:-1]]


def test_days_that_are_missing_do_not_matter() -> None:
    """A shop that is closed at weekends: the change is on the first day that was seen after it."""
    days = [one for one in series(steps(3, 60, 0.001, (30, 1.05))) if one.day.weekday() < 5]
    assert day(30).weekday() == 5
    assert [one.day for one in changes_in(days)] == [day(32)]


def test_exact_ratios_have_no_noise_to_divide_by() -> None:
    """A vendor that counts exactly as we do, and one that begins to count twice."""
    assert changes_in(series([1.0] * 20)) == []
    assert changes_in(series([1.0] * 10 + [2.0] * 10)) == [Change(day(10), 1.0, 2.0)]
    assert changes_in(series([0.0] * 10 + [1.0] * 10)) == [Change(day(10), 0.0, 1.0)]


@pytest.mark.parametrize("count", range(6))
def test_too_few_days_have_no_change(count: int) -> None:
    """Not even none at all."""
    assert changes_in(series([1.0, 1.0, 1.0, 2.0, 2.0, 2.0][:count])) == []
