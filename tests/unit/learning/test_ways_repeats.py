"""Texts in pieces that say again what was said: found, and told once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.learning.ways_repeats import increments_of, mode_of

PIECES = st.lists(
    st.sampled_from(["س", "لا", "م", " ", "你", "好", "क्ष", "👩", "\u200d", "👧", "ab", "."]), min_size=2, max_size=12
)


def numbered(texts: list[str]) -> list[tuple[int, str]]:
    return list(enumerate(texts, start=1))


@pytest.mark.clause("R1")
@given(PIECES)
def test_what_each_event_repeats_is_told_once(texts: list[str]) -> None:
    """The increments are the text, each at the event that brought it."""
    told = [*texts, " پایان."]
    so_far = ["".join(told[:count]) for count in range(1, len(told) + 1)]
    assert mode_of(numbered(so_far)) == "cumulative"
    assert increments_of(numbered(so_far)) == numbered(told)


@pytest.mark.clause("R1")
@given(PIECES, st.integers(1, 3))
def test_what_the_last_events_repeat_is_told_once(texts: list[str], times: int) -> None:
    """Once, twice or more often."""
    told = [*texts, " پایان."]
    assert mode_of(numbered([*told, *["".join(told)] * times])) == "final_repeat"
    assert increments_of(numbered([*told, *["".join(told)] * times])) == numbered(told)


@pytest.mark.clause("W3")
@pytest.mark.parametrize("half", ["\ufffd", "\ud83d", "\ufffd\ufffd"])
def test_half_a_character_that_is_said_otherwise_later_is_not_told(half: str) -> None:
    """A tokenizer's half of a character stands at the end of one event, the whole of it in the next."""
    pieces = numbered(["سلام", f"سلام {half}", "سلام 😀 دنیا", "سلام 😀 دنیا!"])
    assert mode_of(pieces) == "cumulative"
    assert "".join(text for _, text in increments_of(pieces)) == "سلام 😀 دنیا!"


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    "texts",
    [
        ["ha", "haha"],
        ["no", "no"],
        ["不", "不", "不"],
        ["سلام دنیا"],
        ["", ""],
        [],
    ],
)
def test_short_texts_show_nothing(texts: list[str]) -> None:
    """And are left as they are."""
    assert mode_of(numbered(texts)) == "not shown"
    assert increments_of(numbered(texts)) == numbered(texts)
