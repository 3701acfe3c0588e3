"""A vendor's marks (codes, tags, telling headers) decide where its words do not: in groups, guesses and drafts (R1)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from proxy.canon.verdict import ErrorClass, Phase
from proxy.learning.drafting import Proposal, draft_rules
from proxy.learning.known import shipped_answers
from proxy.learning.likeness import Corpus, group_alike
from proxy.learning.replaying import WALL
from proxy.learning.values import Answer
from proxy.semantics.classifier import classify
from tests.support.learning import BARE, TODAY, acme, answer, shipped_corpus, text_with

pytestmark = pytest.mark.clause("R1")

AUTH, RATE, BUSY = ErrorClass.AUTH_FAILURE, ErrorClass.RATE_LIMITED, ErrorClass.MODEL_UNAVAILABLE
INVALID = ErrorClass.INVALID_REQUEST


def drafted(answers: Sequence[Answer], background: Sequence[Answer] = ()) -> Proposal:
    return draft_rules(acme(BARE), answers, background, shipped_corpus().stats, today=TODAY)


def class_of(proposal: Proposal, one: Answer) -> ErrorClass:
    return classify(acme(text_with(proposal.drafts, BARE)), one.observation, WALL).error_class


def nameless(one: Answer) -> Answer:
    return replace(one, wanted=(), code=None)


def with_header(one: Answer, value: str) -> Answer:
    return replace(one, observation=replace(one.observation, headers={"x-acme-reason": value}))


def quoted(number: int, words: str) -> dict[str, object]:
    inner = {"error": {"message": words, "code": "E1", "errno": number}}
    return {"error": {"message": json.dumps(inner, ensure_ascii=False)}}


@pytest.mark.parametrize(
    "pair",
    [
        (
            answer(400, {"code": "ZX-1", "message": "آرام باش"}, AUTH),
            answer(400, {"code": "ZX-2", "message": "آرام باش"}, RATE),
        ),
        (answer(400, {"x": {"errno": 71, "say": "静"}}, AUTH), answer(400, {"x": {"errno": 72, "say": "静"}}, RATE)),
        (answer(400, quoted(7547, "नदी बहती है"), AUTH), answer(400, quoted(6033, "नदी बहती है"), RATE)),
        (answer(400, {"error": "DRUM-417: 静かに"}, AUTH), answer(400, {"error": "VASE-902: 静かに"}, RATE)),
        (
            with_header(answer(400, {"error": "тихо"}, AUTH), "drum"),
            with_header(answer(400, {"error": "тихо"}, RATE), "vase"),
        ),
    ],
    ids=["code", "field", "quoted", "tag", "header"],
)
def test_the_same_words_with_another_mark_are_another_group_and_another_rule(pair: tuple[Answer, Answer]) -> None:
    """Wherever the vendor keeps it."""
    one, other = (replace(each, place=f"recordings/acme/{number}") for number, each in enumerate(pair))
    assert group_alike(shipped_corpus(), [nameless(one), nameless(other)]) == [[nameless(one)], [nameless(other)]]
    proposal = drafted([one, other])
    assert not proposal.puzzles
    assert [class_of(proposal, each) for each in (one, other)] == [AUTH, RATE]


def test_words_that_the_vendor_says_with_another_code_are_no_reason_for_a_guess() -> None:
    """What it says with this very code is."""
    said = "The velvet lantern sleeps behind copper hills"
    known = answer(400, {"code": "ZX-1", "message": said}, AUTH)
    rules, answers = shipped_answers()
    corpus = Corpus(rules, [known, *answers])
    told_apart = corpus.guess(nameless(answer(400, {"code": "ZX-2", "message": said}, AUTH)))
    same = corpus.guess(nameless(answer(400, {"code": "ZX-1", "message": said}, AUTH)))
    assert told_apart is None or not told_apart.sure
    assert same is not None and (same.error_class, same.nearest) == (AUTH, known.place)


def test_a_usual_status_is_no_rule_where_there_is_anything_else() -> None:
    """However many have it: what nobody has seen yet may have it too."""
    proposal = drafted(
        [answer(400, {"errno": 70 + number, "say": words}, INVALID) for number, words in enumerate("静笛茶")]
    )
    assert all("status" not in draft.when for draft in proposal.drafts)


def test_answers_that_are_right_already_show_what_is_stable() -> None:
    """The shared rules know two of three wordings; the rule for the third is what it has in common with them."""
    wordings = ("Too many requests from your side", "请求太频繁，请放慢", "Sie fragen schon wieder")
    answers = [answer(400, {"error": f"Movsko oltba: {words}"}, RATE) for words in wordings]
    proposal = drafted(answers)
    assert len(proposal.known) == 2
    assert class_of(proposal, answer(400, {"error": "Movsko oltba: آهسته‌تر لطفاً"}, RATE)) is RATE


def test_what_strangers_share_is_left_alone_where_something_else_will_do() -> None:
    """A code that answers of unknown meaning have as well decides nothing about them."""

    def said(number: int, words: str) -> dict[str, object]:
        return {"error": {"code": "GENERAL", "errno": number, "message": words}}

    busy = [answer(500, said(41, words), BUSY) for words in ("شب آرام است", "山高水长")]
    strangers = [nameless(answer(500, said(42, words), AUTH, place="inbox")) for words in ("शांत नदी", "тихая река")]
    profile = acme(text_with(drafted(busy, strangers).drafts, BARE))
    assert [classify(profile, one.observation, WALL).mapped for one in (*busy, *strangers)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_number_makes_no_mark_of_the_words_before_it() -> None:
    """Two wordings of one refusal are one group, though each counts something."""
    one, other = (
        nameless(answer(429, {"error": words}, RATE))
        for words in ("The teapot pours slowly today, 5 left", "The teapot pours slowly, 7 left")
    )
    assert group_alike(shipped_corpus(), [one, other]) == [[one, other]]


def test_an_answer_in_a_stream_keeps_its_mark() -> None:
    """The phase is no mark."""
    head = answer(200, {"error": {"code": "ZX-1", "message": "آرام باش"}}, AUTH)
    mid = replace(head, observation=replace(head.observation, phase=Phase.MID), place="recordings/acme/mid")
    assert group_alike(shipped_corpus(), [nameless(head), nameless(mid)]) == [[nameless(head), nameless(mid)]]
