"""One choice's tails and their deadlines (contract W3)."""

from __future__ import annotations

import pytest

from proxy.pipeline.choice import Choice
from proxy.wire.hold import Boundary

pytestmark = pytest.mark.clause("W3")


def choice() -> Choice:
    return Choice(0, Boundary.GRAPHEME, "5eed", None)


def test_each_field_holds_its_own_tail_from_the_moment_it_came() -> None:
    """A tail that grows keeps its moment; one that begins anew gets a new one."""
    one = choice()
    assert [one.hold("content", text, now) for text, now in (("می", 1.0), ("\u200c", 2.0), ("ر", 3.0))] == [
        "م",
        "",
        "ی\u200c",
    ]
    assert one.hold(0, "é", 4.0) == "é"
    assert one.held_since == {"content": 3.0}
    assert one.open

    one.hold("reasoning", "👩", 5.0)
    one.hold("reasoning", "\u200d", 6.0)
    assert one.held_since == {"content": 3.0, "reasoning": 5.0}
    assert one.hold("content", "x", 7.0) == "رx"
    assert one.held_since == {"reasoning": 5.0}


def test_a_half_waits_without_a_deadline_where_halves_are_not_released() -> None:
    """The joined text must not depend on the clock: the other half may come an hour later."""
    one = choice()
    assert one.hold("content", "x👩\ud83d", 1.0) == "x"
    assert one.release("content", halves=False) == "👩"
    assert (one.held_since, one.open) == ({}, True)
    assert one.hold("content", "\ude00!", 9.0) == "😀!"

    one.hold("content", "\ud83d", 10.0)
    assert one.release("content", halves=True) == "\ufffd"
    assert not one.open


def test_what_passes_is_what_hold_would_return_whole() -> None:
    """Asked before the bytes are let through."""
    one = choice()
    assert [one.passes("content", text) for text in ("Hello", "你好", "é", "می", "👩", "\ud83d", "")] == [True] * 3 + [
        False
    ] * 3 + [True]
    one.hold("content", "می", 0.0)
    assert not one.passes("content", "Hello")
    assert one.passes("reasoning", "Hello")


@pytest.mark.clause("W4")
def test_log_probabilities_of_held_texts_are_joined() -> None:
    """Lists go on, other fields stand as last said, what is no object is dropped."""
    one = choice()
    last = {"content": [3], "refusal": None}
    assert one.take_logprobs(last) is last
    one.logprobs = [{"content": [1], "refusal": None}, "x", {"content": [2]}]
    first = one.logprobs[0]

    assert one.take_logprobs(last) == {"content": [1, 2, 3], "refusal": None}
    assert first == {"content": [1], "refusal": None}, "the vendor's own object is left as it was"
    assert one.take_logprobs(None) is None
