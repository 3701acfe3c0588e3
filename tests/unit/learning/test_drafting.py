"""Rules drafted from answers whose meaning is known: wide enough for siblings, narrow enough for all others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.canon.verdict import ErrorClass, Phase
from proxy.learning.drafting import Proposal, draft_rules
from proxy.learning.replaying import WALL
from proxy.learning.values import Answer
from proxy.semantics.classifier import classify
from proxy.semantics.rule import VendorProfile
from tests.support.learning import BARE, TODAY, acme, answer, shipped_corpus, text_with

AUTH, RATE, BLOCKED = ErrorClass.AUTH_FAILURE, ErrorClass.RATE_LIMITED, ErrorClass.CONTENT_BLOCKED
MODEL, INVALID, TIMEOUT = ErrorClass.MODEL_UNAVAILABLE, ErrorClass.INVALID_REQUEST, ErrorClass.UPSTREAM_TIMEOUT


def drafted(answers: Sequence[Answer], background: Sequence[Answer] = (), text: str = BARE) -> Proposal:
    return draft_rules(acme(text), answers, background, shipped_corpus().stats, today=TODAY)


def after(proposal: Proposal, text: str = BARE) -> VendorProfile:
    return acme(text_with(proposal.drafts, text))


def class_of(profile: VendorProfile, one: Answer) -> ErrorClass:
    return classify(profile, one.observation, WALL).error_class


def own(message: str, number: int) -> dict[str, object]:
    return {"ret": {"no": number, "msg": message}}


@pytest.mark.clause("R1")
def test_a_code_of_its_own_becomes_one_rule_that_holds_for_the_siblings_too() -> None:
    """Two wordings with the same number: the number is the rule, whatever the words, ids and model names."""
    proposal = drafted([
        answer(400, {"errno": 8812, "error": "no such engine: alpha-7"}, MODEL, asked=("alpha-7",)),
        answer(400, {"errno": 8812, "error": "engine beta-9 is asleep for good"}, MODEL, asked=("beta-9",)),
        answer(400, {"errno": 8811, "error": "the body makes no sense"}, INVALID),
        answer(400, {"errno": 8811, "error": "prompt: bad shape"}, INVALID),
    ])  # fmt: skip
    assert [draft.when for draft in proposal.drafts] == [{"json": {"errno": [8812]}}, {"json": {"errno": [8811]}}]
    profile = after(proposal)
    assert class_of(profile, answer(400, {"errno": 8812, "error": "گاما پیدا نشد"}, MODEL)) is MODEL
    assert class_of(profile, answer(400, {"errno": 8811, "error": "格式不对"}, INVALID)) is INVALID


@pytest.mark.clause("R1")
def test_where_only_the_words_differ_the_words_decide_and_not_what_they_quote() -> None:
    """One status, one type, one code for everything, as at DeepSeek: what is common to the variants of a cause."""

    def said(message: str) -> dict[str, object]:
        return {"error": {"message": message, "type": "acme_error", "code": "E1"}}

    proposal = drafted([
        answer(400, said("Velvet lantern: nimbus-x is dark"), MODEL, asked=("nimbus-x",)),
        answer(400, said("Velvet lantern: cirrus-y is dark"), MODEL, asked=("cirrus-y",)),
        answer(400, said("Copper gate stays shut for sk-aaa"), AUTH, asked=("sk-aaa",)),
        answer(400, said("Copper gate stays shut for sk-bbb"), AUTH, asked=("sk-bbb",)),
        answer(400, said("Paper bird cannot be folded at messages"), INVALID),
        answer(400, said("Paper bird cannot be folded at max_tokens"), INVALID),
    ])  # fmt: skip
    assert not proposal.puzzles
    profile = after(proposal)
    assert class_of(profile, answer(400, said("Velvet lantern: stratus-2 is dark"), MODEL)) is MODEL
    assert class_of(profile, answer(400, said("Copper gate stays shut for sk-zzz"), AUTH)) is AUTH
    for draft in proposal.drafts:
        assert not any(word in str(draft.when) for word in ("nimbus", "cirrus", "sk-aaa", "sk-bbb")), draft.when


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("first", "second", "unseen"),
    [
        ("余额不足,账号 1234567890", "您的余额不足", "对不起,余额不足,请充值"),
        ("مانده حساب تمام شد (a1)", "مانده حساب تمام شد (b2)", "دوست گرامی، مانده حساب تمام شد"),
        ("खाते में शेष राशि नहीं", "खाते में शेष राशि नहीं!", "क्षमा करें, खाते में शेष राशि नहीं"),
    ],
    ids=["chinese", "persian", "hindi"],
)
def test_a_phrase_in_any_script_is_found_again_in_other_words(first: str, second: str, unseen: str) -> None:
    """Scripts with and without spaces between words."""
    proposal = drafted([
        answer(400, own(first, 1), AUTH, code="insufficient_quota"),
        answer(400, own(second, 1), AUTH, code="insufficient_quota"),
        answer(400, own("别的事情", 1), INVALID),
        answer(400, own("یک چیز دیگر", 1), INVALID),
    ])  # fmt: skip
    verdict = classify(after(proposal), answer(400, own(unseen, 1), AUTH).observation, WALL)
    assert (verdict.error_class, verdict.code) == (AUTH, "insufficient_quota")


@pytest.mark.clause("R4")
def test_a_new_rule_moves_no_verdict_that_is_right() -> None:
    """The background has an answer with the same code and another meaning: the rule must be narrower than the code."""
    text = BARE + (
        "rules:\n  - id: acme.shut\n    when: {json: {$code: [G7]}}\n    then: {class: auth_failure, code: shut}\n"
    )
    old = answer(400, {"error": {"code": "G7", "message": "the silver door is shut"}}, AUTH, code="shut", place="old")
    new = [
        answer(400, {"error": {"code": "G7", "message": "the heron is resting, come back"}}, RATE, place="a"),
        answer(400, {"error": {"code": "G7", "message": "the heron is resting now"}}, RATE, place="b"),
    ]
    proposal = drafted(new, [old], text)
    profile = after(proposal, text)
    assert proposal.drafts[0].before == "acme.shut"
    assert classify(profile, old.observation, WALL).rule_id == "acme.shut"
    assert [class_of(profile, one) for one in new] == [RATE, RATE]


@pytest.mark.clause("R1")
def test_what_nothing_tells_apart_is_a_puzzle_and_not_a_rule() -> None:
    """The same answer for two causes cannot be learned, and is said with its twin."""
    body = {"error": {"message": "no", "code": "N"}}
    proposal = drafted([answer(400, body, MODEL, place="p/model"), answer(400, body, AUTH, place="p/key")])
    assert proposal.drafts == ()
    assert {puzzle.answer.place: puzzle.reason for puzzle in proposal.puzzles} == {
        "p/model": "nothing tells it from p/key, which is auth_failure",
        "p/key": "nothing tells it from p/model, which is model_unavailable",
    }


@pytest.mark.clause("R1")
def test_two_codes_that_only_together_tell_stand_under_their_own_paths() -> None:
    """Each of them is said of another cause too; the rule asks for both, and holds for what it was made of."""

    def said(code: str, kind: str) -> dict[str, object]:
        return {"error": {"code": code, "type": kind, "message": ""}}

    both = answer(400, said("AA", "BB"), MODEL, place="both")
    proposal = drafted([both], [answer(400, said("AA", "CC"), AUTH), answer(400, said("DD", "BB"), INVALID)])
    (draft,) = proposal.drafts
    profile = after(proposal)
    assert classify(profile, both.observation, WALL).rule_id == draft.id
    assert classify(profile, answer(400, said("AA", "EE"), AUTH).observation, WALL).rule_id != draft.id
    assert classify(profile, answer(400, said("EE", "BB"), INVALID).observation, WALL).rule_id != draft.id


@pytest.mark.clause("R1")
def test_a_header_or_an_odd_status_is_enough_where_the_body_says_nothing() -> None:
    proposal = drafted([
        answer(400, "", RATE, headers={"x-acme-reason": "tide-is-high"}, place="a"),
        answer(400, "", RATE, headers={"x-acme-reason": "tide-is-high"}, place="b"),
        answer(400, "", INVALID, headers={"x-acme-reason": "shape"}, place="c"),
        answer(418, "", BLOCKED, place="d"),
    ])  # fmt: skip
    profile = after(proposal)
    assert class_of(profile, answer(400, "", RATE, headers={"x-acme-reason": "tide-is-high"})) is RATE
    assert class_of(profile, answer(400, "", INVALID, headers={"x-acme-reason": "shape"})) is INVALID
    assert class_of(profile, answer(418, "", BLOCKED)) is BLOCKED


@pytest.mark.clause("R1")
def test_a_word_that_means_something_else_everywhere_is_not_the_reason_alone() -> None:
    """One capacity failure under `invalid_api_key` must not make every wrong key a capacity failure."""
    odd = answer(503, {"error": {"code": "invalid_api_key", "message": "swarm of bees in the rack"}}, MODEL)
    proposal = drafted([odd])
    plain = answer(401, {"error": {"code": "invalid_api_key", "message": "Incorrect API key provided"}}, AUTH)
    profile = after(proposal)
    assert class_of(profile, odd) is MODEL
    assert class_of(profile, plain) is AUTH


@pytest.mark.clause("R1")
def test_an_answer_in_the_middle_of_a_stream_is_learned_as_any_other() -> None:
    body = {"error": {"kind": "Quench", "message": "x"}}
    proposal = drafted([answer(200, body, MODEL, phase=Phase.MID)])
    assert class_of(after(proposal), answer(200, body, MODEL, phase=Phase.FIRST)) is MODEL


@pytest.mark.clause("E")
def test_a_wait_that_a_vendor_hides_is_named_by_its_path() -> None:
    """No header, no known field, no wording: the path of the number whose name speaks of waiting."""

    def limited(seconds: int) -> Answer:
        return answer(400, {"fault": {"kind": "Tide", "cooldown": seconds}}, RATE, place=f"w/{seconds}")

    proposal = drafted([limited(17), limited(23)])
    assert proposal.drafts[0].then["retry_after"] == {"json": "fault.cooldown"}
    assert classify(after(proposal), limited(41).observation, WALL).retry_after_s == 41


@pytest.mark.clause("R1")
def test_what_the_shared_rules_know_needs_no_rule_and_a_second_look_proposes_nothing() -> None:
    """Probing an unchanged vendor again changes nothing."""
    known = answer(401, {"error": {"code": "invalid_api_key", "message": "no"}}, AUTH, place="k")
    unknown = answer(400, {"errno": 77, "error": "tock"}, MODEL, place="u")
    first = drafted([known, unknown])
    assert [place for place, _ in first.known] == ["k"]
    text = text_with(first.drafts)
    again = drafted([known, unknown], text=text)
    assert again.drafts == () and again.proofs == () and {place for place, _ in again.known} == {"k", "u"}


@pytest.mark.clause("R1")
def test_an_own_rule_that_was_right_is_proved_once_by_the_stronger_evidence() -> None:
    rule = (
        "rules:\n  - id: acme.key\n    when: {json: {$code: [K9]}}\n    then: {class: auth_failure, code: k}\n"
        "    evidence: recordings/acme/errors/k.jsonl\n    seen: 2026-01-01\n    proof: composed\n"
    )
    seen = [answer(400, {"code": "K9"}, AUTH, place="p/1"), answer(400, {"code": "K9", "n": 2}, AUTH, place="p/2")]
    proposal = drafted(seen, text=BARE + rule)
    assert [(proof.rule_id, proof.evidence, proof.proof) for proof in proposal.proofs] == [
        ("acme.key", "p/1", "captured")
    ]
    assert drafted(seen, text=BARE + rule.replace("composed", "captured")).proofs == ()


@pytest.mark.clause("R1")
def test_ids_of_new_rules_are_new_and_in_the_manner_of_the_file() -> None:
    rule = "when: {json: {$code: [A]}}\n    then: {class: model_unavailable, code: a}\n"
    text = f"{BARE}rules:\n  - id: ac.server-error\n    {rule}"
    proposal = drafted([answer(400, {"errno": 5, "error": "zig"}, MODEL)], text=text)
    assert [draft.id for draft in proposal.drafts] == ["ac.server-error-2"]
