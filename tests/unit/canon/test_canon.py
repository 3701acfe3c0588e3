"""The canonical values: words that logs, rows and clients rely on, and the one empty mapping."""

from __future__ import annotations

import pytest

from proxy.canon.chunk import NOTHING, Chunk, Delta, ToolFragment
from proxy.canon.ending import TIMEOUTS, Ending, Stop
from proxy.canon.verdict import ErrorClass


@pytest.mark.clause("C5")
def test_the_endings_are_those_of_the_contract() -> None:
    """Their values stand in rows and exports."""
    assert [str(ending) for ending in Ending] == [
        "completed",
        "vendor_error",
        "stream_cut",
        "timeout",
        "client_gone",
        "limit",
        "interrupted",
    ]


@pytest.mark.clause("E")
def test_the_classes_are_the_five_and_the_callers_own() -> None:
    """Their values are `error.type`."""
    assert {error_class.value for error_class in ErrorClass} == {
        "auth_failure",
        "rate_limited",
        "content_blocked",
        "upstream_timeout",
        "model_unavailable",
        "invalid_request",
    }


@pytest.mark.clause("C4", "W6")
def test_each_deadline_has_a_code_of_its_own() -> None:
    """Five deadlines, five codes, none of them that of a cut."""
    assert {stop.value for stop in TIMEOUTS} == {
        "connect_timeout",
        "first_byte_timeout",
        "stall_timeout",
        "idle_timeout",
        "total_timeout",
    }
    assert len({stop.value for stop in Stop}) == len(Stop)


def test_nothing_stays_empty() -> None:
    """It is shared by everything without unknown fields, so nobody may write into it."""
    with pytest.raises(TypeError):
        NOTHING["x"] = 1  # type: ignore[index]  # that it cannot be written is what is tested
    assert (Delta(0, {}).extra, Chunk([]).extra, ToolFragment(0, "a", "f", "").extra) == (NOTHING, NOTHING, NOTHING)
    assert NOTHING == {}
