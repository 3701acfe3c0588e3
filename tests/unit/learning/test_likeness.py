"""Guessing the meaning of a new answer from the known ones: how often it is right where it says that it is sure."""

from __future__ import annotations

import pytest

from proxy.canon.verdict import ErrorClass
from proxy.learning.likeness import group_alike
from tests.support.learning import answer, shipped_corpus

UNKNOWN = ErrorClass.INVALID_REQUEST


@pytest.mark.clause("R1")
def test_a_guess_about_a_vendor_that_nobody_knows_is_right_where_it_is_sure() -> None:
    """Each vendor's recorded answers, judged by those of all others: at least 96 % of the sure guesses are right, and
    more than a fifth are sure."""
    corpus = shipped_corpus()
    sure = [
        (guess.error_class in known.wanted)
        for known in corpus.known
        if (guess := corpus.guess(known, but=known.observation.vendor)) is not None and guess.sure
    ]
    assert len(sure) > 0.2 * len(corpus.known)
    assert sum(sure) / len(sure) >= 0.96


@pytest.mark.clause("R1")
def test_a_guess_names_its_example_and_the_words_that_both_say() -> None:
    corpus = shipped_corpus()
    guess = corpus.guess(answer(400, {"fault": {"msg": "Your account balance is insufficient, recharge"}}, UNKNOWN))
    assert guess is not None
    assert guess.error_class is ErrorClass.AUTH_FAILURE
    assert guess.nearest.startswith("recordings/") and guess.nearest in guess.reason
    assert "balance" in guess.reason or "insufficient" in guess.reason


@pytest.mark.clause("R1")
def test_what_is_like_nothing_is_not_sure() -> None:
    corpus = shipped_corpus()
    guess = corpus.guess(answer(400, {"fault": {"msg": "Quixotic marmalade zeppelin"}}, UNKNOWN))
    assert guess is None or not guess.sure


@pytest.mark.clause("R1")
def test_a_status_alone_is_never_enough_to_be_sure() -> None:
    """What several vendors say with the same bare status has several meanings."""
    guess = shipped_corpus().guess(answer(200, "", UNKNOWN))
    assert guess is None or not guess.sure


def test_answers_that_say_the_same_in_other_words_are_one_group() -> None:
    corpus = shipped_corpus()
    first = answer(400, {"code": "ZX-1", "message": "The comet ledger ran dry for account a81"}, UNKNOWN)
    second = answer(400, {"code": "ZX-1", "message": "The comet ledger ran dry for account b92"}, UNKNOWN)
    other = answer(400, {"code": "QQ-7", "message": "ماه پنهان است"}, UNKNOWN)
    assert group_alike(corpus, [first, other, second]) == [[first, second], [other]]
