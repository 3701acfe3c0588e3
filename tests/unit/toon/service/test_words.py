"""Ids as text that may go: whole characters, and nothing of a stop word."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.toon.service.words import Words
from proxy.toon.text import TextDecoder, Vocabulary

#: One id per byte.
BYTES = Vocabulary([bytes([one]) for one in range(256)], frozenset())


def said(text: str, stop: Sequence[str]) -> tuple[list[str], bool]:
    """What leaves, id by id, and whether a stop word came."""
    words = Words(TextDecoder(BYTES), stop)
    pieces = []
    for one in text.encode():
        pieces.append(words.feed([one]))
        if words.stopped:
            return pieces, True
    return [*pieces, words.finish()], words.stopped


@pytest.mark.parametrize(
    ("text", "stop", "left"),
    [
        ("سلام دنیا", ["دن"], "سلام "),
        ("你好，世界。", ["世界"], "你好，"),
        ("a👩‍👩‍👧b", ["👧"], "a👩‍👩‍"),
        ("aab", ["ab"], "a"),
        ("abab", ["bab", "abab"], ""),
        ("नमस्ते", ["x"], "नमस्ते"),
        ("text", [], "text"),
        ("text", [""], "text"),
    ],
)
def test_a_stop_word_and_all_behind_it_are_not_said(text: str, stop: list[str], left: str) -> None:
    pieces, stopped = said(text, stop)
    assert "".join(pieces) == left
    assert stopped == (left != text)


def test_what_may_begin_a_stop_word_waits() -> None:
    """And is let go once it does not go on."""
    pieces, _ = said("xENx", ["END"])
    assert pieces == ["x", "", "", "ENx", ""]


@given(st.text(alphabet="abس世", max_size=30), st.lists(st.text(alphabet="abس世", min_size=1, max_size=4), max_size=3))
def test_however_it_comes_the_first_stop_word_ends_it(text: str, stop: list[str]) -> None:
    """As if the whole text had been searched for whichever of them is whole first."""
    ends = [(at + len(word), at) for word in stop if (at := text.find(word)) >= 0]
    first = min(ends, default=None)
    pieces, stopped = said(text, stop)
    assert stopped == (first is not None)
    if first is None:
        assert "".join(pieces) == text
    else:
        assert text.startswith("".join(pieces))
        assert len("".join(pieces)) == min(at for end, at in ends if end == first[0])
