"""The line through a vendor's figures and our counts: what it says, and when it says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.metering.fit import Fit, fit_line

COUNTS = (3, 17, 40, 88, 131, 260)


@pytest.mark.clause("L2")
@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        ([(count, count) for count in COUNTS], "agrees"),
        ([(count, count + 1.4) for count in COUNTS], "agrees"),
        ([(count, 1.02 * count) for count in COUNTS], "agrees"),
        ([(count, count + 7) for count in COUNTS], "scale 1.00 + 7"),
        ([(count, round(1.31 * count + 7)) for count in COUNTS], "scale 1.31 + 7"),
        ([(count, 0.75 * count - 2) for count in COUNTS], "scale 0.75 - 2"),
        ([(40, 41), (41, 40), (42, 300), (70, 2), (90, 1000), (95, 1)], "no straight line"),
        ([], "not enough data"),
        ([(10, 20), (90, 180)], "not enough data"),
        ([(10, 20), (12, 24), (14, 28), (16, 32)], "not enough data"),
        ([(50, 50)] * 9, "not enough data"),
    ],
)
def test_the_verdict_is_in_plain_words(points: list[tuple[float, float]], verdict: str) -> None:
    """It agrees, has a scale and an offset, is no line, or the points are too few or too close."""
    assert fit_line(points).verdict == verdict


@pytest.mark.clause("L2")
@given(
    slope=st.floats(0.2, 4),
    offset=st.floats(-20, 60),
    wild=st.tuples(st.integers(0, len(COUNTS) - 1), st.floats(0, 5000)),
)
def test_one_wild_figure_moves_nothing(slope: float, offset: float, wild: tuple[int, float]) -> None:
    """Slope and offset are those of the other points."""
    points = [(float(count), slope * count + offset) for count in COUNTS]
    points[wild[0]] = (points[wild[0]][0], wild[1])
    fit = fit_line(points)
    assert fit.slope == pytest.approx(slope, rel=0.05, abs=0.02)
    assert fit.offset == pytest.approx(offset, abs=0.05 * slope * max(COUNTS) + 0.5)


@pytest.mark.clause("L2")
def test_what_is_left_over_is_told() -> None:
    """The residual is in tokens, the looseness a share of the figure."""
    assert fit_line([(10, 12), (50, 48), (90, 92), (130, 128)]).residual == pytest.approx(2, abs=0.5)
    assert fit_line([(10, 10), (50, 50), (90, 90)]) == Fit(3, True, 1.0, 0.0, 0.0, 0.0, "agrees")
