"""Reasoning and its seals: no text is lost, none said twice, and each seal ends the text that it is over."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from proxy.dialects import sealing
from proxy.dialects.sealing import Sealing

Told = list[tuple[str, str | None, int | None]]


def sealed(text: str, seal: str = "s", **more: object) -> dict[str, object]:
    return {"type": "reasoning.text", "text": text, "signature": seal, **more}


def told(*deltas: Mapping[str, object], is_whole: bool = False) -> Told:
    """(text, seal, how many letters that is over) of each piece, in order."""
    order = Sealing()
    pieces = [piece for delta in deltas for piece in order.order(delta, is_whole=is_whole)]
    return [
        (piece.text, None if (d := piece.detail) is None else str(d.get("signature") or d.get("data")), piece.over)
        for piece in pieces
    ]


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_text_is_cut_where_its_seals_are(is_whole: bool) -> None:
    """What stands before, between and behind sealed pieces has no seal, and is told."""
    delta = {"reasoning_content": "آ思考bفکرc", "reasoning_details": [sealed("思考", "1"), sealed("فکر", "2")]}

    assert told(delta, is_whole=is_whole) == [
        ("آ", None, None),
        ("思考", "1", 2),
        ("b", None, None),
        ("فکر", "2", 3),
        ("c", None, None),
    ]


def test_a_seal_may_come_before_the_end_of_its_text() -> None:
    """The tail that is held back comes later; the seal says that it is missing."""
    assert told(
        {"reasoning_content": "سلا"}, {"reasoning_content": "م ح", "reasoning_details": [sealed("سلام حال")]}
    ) == [("سلا", None, None), ("م ح", "s", 8)]


def test_details_in_pieces_are_one_detail() -> None:
    """Bit by bit under one index, or without any; two indexes do not mix."""
    assert told(
        {"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 3}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "zzz", "index": 4}]},
        {"reasoning": "b", "reasoning_details": [sealed("b", index=3)]},
        {"reasoning": "c", "reasoning_details": [{"type": "reasoning.text", "text": "c"}]},
        {"reasoning_details": [sealed("")]},
    ) == [("a", None, None), ("b", "s", 2), ("c", None, None), ("", "s", 1)]


def test_a_text_under_two_names_is_told_once() -> None:
    """Also where the tails of both come apart."""
    assert told({"reasoning_content": "a", "reasoning": "a"}, {"reasoning_content": "b"}, {"reasoning": "b"}) == [
        ("a", None, None),
        ("b", None, None),
    ]


def test_seals_without_a_text() -> None:
    """A signature ends what there is; encrypted reasoning beside it is a piece of its own."""
    secret = {"type": "reasoning.encrypted", "data": "zip"}
    assert told({"reasoning_content": "a", "reasoning_details": [sealed("")]}) == [("a", "s", None)]
    assert told({"reasoning_content": "a", "reasoning_details": [secret]}) == [("a", "zip", 0)]
    assert told({"reasoning_content": "a", "reasoning_details": [secret, sealed("a")]}) == [
        ("", "zip", 0),
        ("a", "s", 1),
    ]


def test_a_whole_answer_may_say_its_reasoning_in_the_details_alone() -> None:
    """Then that is its text; of a stream's delta it is what was said before."""
    delta = {"reasoning_details": [{"type": "reasoning.text", "text": "x"}, sealed("y", index=1)]}

    assert told(delta, is_whole=True) == [("x", None, None), ("y", "s", 1)]
    assert told(delta) == [("", "s", 1)]


def test_letters_that_were_cut_in_two_count_once() -> None:
    """Two halves of a pair are one letter when they go out."""
    assert told({"reasoning_content": "😀", "reasoning_details": [sealed("\ud83d\ude00")]}) == [("😀", "s", 1)]


@pytest.mark.clause("W7")
@pytest.mark.parametrize(("most", "over"), [(66, 2), (65, 2), (64, 1)])
def test_what_waits_for_a_seal_is_bounded(monkeypatch: pytest.MonkeyPatch, most: int, over: int) -> None:
    """A vendor may never send one: then its details are not kept, and a later seal is over what it says itself."""
    monkeypatch.setattr(sealing, "_MOST", most)
    assert (
        told(
            {"reasoning": "a", "reasoning_details": [{"text": "a", "index": 0}]},
            {"reasoning": "b", "reasoning_details": [sealed("b", index=0)]},
        )[-1][2]
        == over
    )


def test_anything_may_come() -> None:
    """Wrong types are passed over."""
    assert told({"reasoning_content": 7, "reasoning_details": "x"}, {"reasoning_details": [1, None, {"text": 5}]}) == []
