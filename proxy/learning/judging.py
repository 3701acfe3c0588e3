"""Is what a vendor said what it should mean, and what follows for its rules? (contract R1, E)

In: what was heard, with the recordings in force, and the vendor's rules. Out: an `Outcome` for each exchange, for the
table and for the exit code, and the recordings with what is expected of them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from proxy.canon.ending import Ending, Stop
from proxy.canon.verdict import ErrorClass
from proxy.learning.asking import Heard
from proxy.learning.known import answer_of
from proxy.learning.likeness import Corpus
from proxy.learning.probes import Kind
from proxy.learning.probing import Meaning, meaning_of
from proxy.semantics.rule import VendorProfile
from proxy.semantics.scrub import scrub

_SHOWN: Final = 160


class Judgement(StrEnum):
    """`RIGHT`: it means what it should. `WRONG`: it does not, or no rule knows it. `ACCEPTED`: the vendor answered what
    it was to refuse. `REFUSED`: it refused what it was to answer, and a rule knows why. `UNSURE`: what it should mean
    cannot be told. `UNHEARD`: no answer came."""

    RIGHT = "right"
    WRONG = "wrong"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNSURE = "unsure"
    UNHEARD = "unheard"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the table. `wanted` is what it should mean, None where that is an answer or nobody knows."""

    probe: str
    number: int
    odd: str
    status: int | None
    vendor_code: str | None
    vendor_message: str | None
    ending: str
    error_class: str | None
    code: str | None
    rule: str | None
    wanted: str | None
    judgement: Judgement
    note: str = ""
    recording: str = ""


def judge(profile: VendorProfile, heard: Heard, corpus: Corpus) -> Outcome:
    """By the present rules."""
    told = meaning_of(profile, heard)
    wanted, judgement, note = _judged(profile, heard, told, corpus)
    verdict = told.verdict
    facts = told.facts
    return Outcome(
        probe=heard.probe.name,
        number=heard.number,
        odd=heard.ask.odd,
        status=heard.recording.status if heard.recording is not None else None,
        vendor_code=verdict.vendor_code if verdict is not None else None,
        vendor_message=scrub(verdict.vendor_message, _SHOWN) if verdict and verdict.vendor_message else None,
        ending=told.ending,
        error_class=told.error_class.value if told.error_class is not None else None,
        code=told.code if told.code is not None or facts is None else facts.finish_reason,
        rule=told.rule_id,
        wanted=wanted.value if wanted is not None else None,
        judgement=judgement,
        note=note,
    )


_Judged = tuple[ErrorClass | None, Judgement, str]


def _judged(profile: VendorProfile, heard: Heard, told: Meaning, corpus: Corpus) -> _Judged:
    match heard.probe.kind:
        case Kind.ANSWER:
            return _answer(told)
        case Kind.OURS:
            return _ended_by_us(heard, told)
        case Kind.REFUSAL:
            return _refusal(profile, heard, told, corpus)


def _answer(told: Meaning) -> _Judged:
    if told.facts is None:
        return None, Judgement.UNHEARD, "no answer came"
    if told.refused:
        if told.mapped:
            return None, Judgement.REFUSED, "the vendor does not do this"
        return None, Judgement.WRONG, "refused, and no rule knows how"
    if told.ending == Ending.COMPLETED:
        return None, Judgement.RIGHT, ""
    return None, Judgement.WRONG, "it has no end by the present rules"


def _ended_by_us(heard: Heard, told: Meaning) -> _Judged:
    wanted = heard.probe.wanted
    if heard.stop is Stop.GONE:
        return wanted, Judgement.RIGHT, f"closed by us within {heard.closed_s * 1000:.0f} ms"
    if told.refused:
        return wanted, Judgement.UNSURE, "it was refused"
    if wanted is None or told.ending == Ending.COMPLETED:
        return wanted, Judgement.UNSURE, "the answer was over before"
    if told.error_class is wanted:
        return wanted, Judgement.RIGHT, "closed by us"
    return wanted, Judgement.UNHEARD, "no answer came"


def _refusal(profile: VendorProfile, heard: Heard, told: Meaning, corpus: Corpus) -> _Judged:
    probe = heard.probe
    wanted = probe.wanted
    if told.error_class is None:
        return wanted, Judgement.ACCEPTED, "no limit was met" if probe.burst else "the vendor answers it"
    if told.error_class in (wanted, probe.also) and told.mapped:
        return told.error_class, Judgement.RIGHT, "" if told.error_class is wanted else "another limit came first"
    if not told.refused:
        return wanted, Judgement.UNHEARD, f"no answer came: {told.code}"
    if (probe.burst or probe.also is not None) and (guessed := _guess(profile, heard, corpus)) is not wanted:
        if guessed is not None and guessed is probe.also:
            return guessed, Judgement.WRONG, "like answers to another limit"
        if probe.burst and not _speaks_of_rate(heard, told):
            return None, Judgement.UNSURE, "an overload says this too"
    return wanted, Judgement.WRONG, "no rule knows it" if not told.mapped else f"taken for {told.error_class}"


def _speaks_of_rate(heard: Heard, told: Meaning) -> bool:
    """What comes under load is a limit, unless it says that the vendor is at its end, or a rule knows better."""
    status = heard.recording.status if heard.recording is not None else None
    return status == 429 or (not told.mapped and status is not None and status < 500)


def _guess(profile: VendorProfile, heard: Heard, corpus: Corpus) -> ErrorClass | None:
    if heard.recording is None or (answer := answer_of(profile, heard.recording, "")) is None:
        return None
    guess = corpus.guess(answer)
    return guess.error_class if guess is not None and guess.sure else None


def expecting(heard: Heard, outcome: Outcome) -> Heard:
    """The same with what its recording must mean, where that is known."""
    if heard.recording is None:
        return heard
    expect = dict(heard.recording.expect)
    if outcome.wanted is not None and outcome.judgement in (Judgement.RIGHT, Judgement.WRONG):
        expect["class"] = [outcome.wanted]
    return replace(heard, recording=replace(heard.recording, expect=expect))
