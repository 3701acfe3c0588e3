"""What is counted, and counting in parts."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.metering import meter
from proxy.metering.meter import INLINE_CHARS, INLINE_WIDE_CHARS, RunningCount, count_parts, is_short
from proxy.metering.tokens import load_counter

WORDS = [
    "hello",
    "it's",
    "سلام",
    "می‌خواهم",
    "你好",
    "。",
    "नमस्ते",
    "안녕",
    "👩‍👧",
    "42",
    " ",
    "  ",
    "\n",
    ",",
    "/",
    "(",
    "\r\n",
]


@pytest.mark.parametrize(
    ("pieces", "short"),
    [
        (["a" * (INLINE_CHARS - 1)], True),
        (["a" * (INLINE_CHARS - 1), "b"], True),
        (["a" * INLINE_CHARS, "b"], False),
        (["آ" * (INLINE_WIDE_CHARS - 1)], True),
        (["آ" * INLINE_WIDE_CHARS], True),
        (["آ" * INLINE_WIDE_CHARS, "b"], False),
        ([], True),
        (["\U000323b0"], False),  # newer than the fast counter's tables: the slow one counts, in a thread
    ],
)
def test_short_texts_are_counted_inline(pieces: list[str], short: bool) -> None:
    """The limit stands at 8,000 characters of ASCII, and lower where each character may be a token or more."""
    assert is_short(pieces) is short


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=120), st.integers(1, 40))
def test_a_text_counted_in_parts_has_the_count_of_the_whole(pieces: list[str], part: int) -> None:
    """Folding a growing text at any time leaves its total as it is."""
    counter = load_counter()
    running = RunningCount(counter)
    for number, piece in enumerate(pieces):
        running.add(piece)
        if number % part == 0:
            running.fold()
    assert running.total() == counter.count("".join(pieces))


def test_a_cut_after_any_letter_and_before_any_break_changes_no_count() -> None:
    """For every letter of Unicode and every break, both sides of the cut count what they counted together."""
    counter = load_counter()
    letters = [letter for letter in map(chr, range(sys.maxunicode)) if letter.isalpha()]
    breaks = sorted(meter._BREAKS)
    for number, letter in enumerate(letters):
        mark = breaks[number % len(breaks)]
        left, right = f"1 .{letter}", f"{mark}sا"
        assert counter.count(left + right) == counter.count(left) + counter.count(right), (letter, mark)


@pytest.mark.parametrize(
    "text", ["x" * 300, "你" * 300, "a b " * 100, "سلام، " * 60, ""], ids=["x", "zh", "en", "fa", "none"]
)
def test_a_long_text_is_counted_in_parts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text over the size of a part, with or without a place to cut, has its own count; a part is not much longer."""
    monkeypatch.setattr(meter, "PART_CHARS", 50)
    seen: list[int] = []

    class Watched:
        name = version = "watched"

        def count(self, text: str) -> int:
            seen.append(len(text))
            return load_counter().count(text)

    assert count_parts(Watched(), [text]) == load_counter().count(text)
    if " " in text:
        assert max(seen) <= 100
