"""Every type, scope and custom mask against a definition in plain Python, id by id, as docs/toon.md has it."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.toon.model.masks import Part, Sight, View


@st.composite
def views(draw: st.DrawFn) -> View:
    """Of up to nine ids, with what no request combines too."""
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5).filter(any))
    count = sum(lengths)
    parts = tuple(Part(length, draw(st.booleans())) for length in lengths)
    marks = st.lists(st.integers(0, count - 1), max_size=2, unique=True).map(lambda some: tuple(sorted(some)))
    return View(
        count=count,
        most=count + draw(st.integers(1, 4)),
        looks_ahead=draw(st.booleans()),
        back=draw(st.none() | st.integers(1, 6)),
        around=draw(st.none() | st.integers(1, 6)),
        parts=parts,
        by_part=draw(st.booleans()),
        cited=draw(marks),
        hidden=draw(marks),
    )


def sees(view: View, at: int, other: int) -> bool:
    if at == other:
        return True
    if other in view.hidden:
        return False
    if other in view.cited:
        return True
    return _by_type(view, at, other) and _by_scope(view, at, other)


def _by_type(view: View, at: int, other: int) -> bool:
    if at >= view.count:
        return other < at
    if view.back is not None and other <= at and _apart(view, at, other) >= view.back:
        return False
    return other < at or (view.looks_ahead and other < view.count and view.back is None)


def _by_scope(view: View, at: int, other: int) -> bool:
    is_system = other < view.count and view.parts[_part(view, other)].is_system
    allowed = True
    if view.around is not None:
        is_first = other - sum(one < other for one in view.hidden) < 4
        allowed = _apart(view, at, other) < view.around or is_first or is_system
    if view.by_part and at < view.count:
        last = max(number for number, part in enumerate(view.parts) if part.length)
        of_mine = other < view.count and _part(view, at) == _part(view, other)
        allowed = allowed and (of_mine or is_system or _part(view, at) == last)
    return allowed


def _part(view: View, at: int) -> int:
    return next(number for number, stop in enumerate(accumulate(part.length for part in view.parts)) if at < stop)


def _apart(view: View, at: int, other: int) -> int:
    low, high = sorted((at, other))
    return high - low - sum(low <= one < high for one in view.hidden)


@given(views(), st.data())
def test_rows_are_what_the_definition_says_id_by_id(view: View, data: st.DataObject) -> None:
    if view.looks_ahead and view.back is not None:  # no request asks for both
        return
    start = data.draw(st.integers(0, view.most - 1))
    stop = data.draw(st.integers(start + 1, view.most))
    width = data.draw(st.integers(stop, view.most + 2))
    expected = [[sees(view, at, other) for other in range(width)] for at in range(start, stop)]
    assert Sight(view).rows(start, stop, width).tolist() == expected


@given(views())
def test_a_sight_that_needs_no_mask_is_plain_causal(view: View) -> None:
    sight = Sight(view)
    is_causal = all(sees(view, at, other) == (other <= at) for at in range(view.most) for other in range(view.most))
    assert is_causal or sight.needs_mask


@given(views())
def test_ids_behind_the_unbroken_ones_see_nothing_behind_them(view: View) -> None:
    sight = Sight(view)
    rows = sight.rows(0, view.most, view.most)
    assert not rows[sight.unbroken :].triu(sight.unbroken + 1).any()
    assert sight.is_prefix_stable == (sight.unbroken == 0)


@pytest.mark.parametrize(
    "view",
    [
        View(5, 9),
        View(1, 9, looks_ahead=True),
        View(5, 9, back=5),
        View(5, 9, around=9),
        View(5, 9, parts=(Part(5, False),), by_part=True),
        View(5, 9, parts=(Part(2, True), Part(3, False)), by_part=True),
        View(5, 9, parts=(Part(2, False), Part(3, False), Part(0, False)), around=20),
    ],
)
def test_what_narrows_nothing_needs_no_mask(view: View) -> None:
    assert (Sight(view).needs_mask, Sight(view).key, Sight(view).is_prefix_stable) == (False, b"", True)


def test_sights_that_differ_have_keys_that_differ_and_equal_ones_share_theirs() -> None:
    parts = (Part(2, True), Part(2, False), Part(1, False))
    kinds = [View(5, 9, back=2), View(5, 9, back=3), View(5, 9, around=3), View(5, 9, parts=parts, around=3)]
    kinds += [View(5, 9, parts=parts, by_part=True), View(5, 9, hidden=(1,)), View(5, 9)]
    assert len({Sight(view).key for view in kinds}) == len(kinds)
    assert Sight(View(5, 9, back=2)).key == Sight(View(6, 12, back=2)).key


def test_prefixes_are_stable_unless_somebody_looks_ahead() -> None:
    assert Sight(View(5, 9, back=2)).is_prefix_stable
    assert not Sight(View(5, 9, looks_ahead=True)).is_prefix_stable
    cites = Sight(View(5, 9, cited=(1, 3)))
    assert (cites.is_prefix_stable, cites.unbroken) == (False, 4)
