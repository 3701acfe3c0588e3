"""Learning the difficult vendor and asking what was learned: agreement with its hidden table on answers never shown.

In: a seed, and what is known of all other vendors. Out: an `Agreement`. The vendor is learned as in life: what a probe
brings about first, with the class that each probe wants; then what production brings and no rule knows, in groups, each
with the class that a person gives it after a look at its first answer. Nothing but the shown half is ever looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import Final

from proxy.canon.verdict import ErrorClass
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.learning.drafting import draft_rules
from proxy.learning.editing import RuleFileEditor
from proxy.learning.known import answer_of, known_answers
from proxy.learning.likeness import Corpus, group_alike
from proxy.learning.replaying import replay
from proxy.learning.values import Answer
from proxy.semantics.rule import RuleSet, VendorProfile
from proxy.semantics.ruleset import parse_rule_files
from proxy.stores.difficult import Cause, DifficultVendor
from proxy.stores.difficult_answers import VENDOR, Asked
from proxy.stores.evidence import shipped_recordings
from proxy.stores.recordings import Recording
from proxy.stores.rules import default_rules_dir, read_texts

#: The least that a rule file of a known family must say.
BARE_FILE: Final = f"vendor: {VENDOR}\ndialect: openai\nuse: [_infra]\n"
FILE: Final = f"{VENDOR}.yaml"
TODAY: Final = date(2026, 11, 30)
#: How often a probe brings a cause about, and production all causes; as a plain answer and as a stream in turn.
PROBED, MET = 3, 6


@dataclass(frozen=True, slots=True)
class Agreement:
    """Over the held-out answers of one seed. `right` by a rule, `lucky` by the fallback table alone. `missed` says
    which were neither."""

    seed: int
    right: int = 0
    lucky: int = 0
    asked: int = 0
    rules: int = 0
    puzzles: int = 0
    missed: tuple[str, ...] = field(default=())

    @property
    def share(self) -> float:
        return self.right / self.asked


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that is known before the vendor is met."""

    texts: dict[str, str]
    answers: Sequence[Answer]
    corpus: Corpus


@cache
def known() -> Known:
    texts = {**read_texts(default_rules_dir()), FILE: BARE_FILE}
    rules = parse_rule_files(texts, VENDOR_DIALECTS)
    answers = known_answers(rules, shipped_recordings())
    return Known(texts, answers, Corpus(rules, answers))


def learn(seed: int) -> tuple[DifficultVendor, str, int]:
    """The vendor, the text of its rule file after probe and production, and how many answers remained puzzles."""
    vendor = DifficultVendor(seed)
    probed = list(_probed(vendor))
    text, puzzles = _written(BARE_FILE, [], [answer for _, answer in probed])
    rules = rules_of(text)
    unmapped = [(cause, recording) for cause, recording in _met(vendor) if _is_unmapped(rules, recording)]
    named = list(_named_by_a_person(rules, unmapped))
    text, more = _written(text, [answer for _, answer in probed], named)
    return vendor, text, puzzles + more


def agreement(seed: int) -> Agreement:
    """Learn the vendor, then have every answer of its held-out half classed."""
    vendor, text, puzzles = learn(seed)
    rules = rules_of(text)
    return judged(vendor, rules, puzzles)


def judged(vendor: DifficultVendor, rules: RuleSet, puzzles: int = 0) -> Agreement:
    """What these rules make of the held-out half."""
    profile = rules.profile(VENDOR)
    right = lucky = asked = 0
    missed = []
    for cause in Cause:
        for recording in vendor.held_out(cause):
            facts = replay(profile, recording)
            is_class = facts.error_class == cause.error_class
            right += is_class and not facts.unmapped
            lucky += is_class and facts.unmapped
            asked += 1
            if not is_class:
                missed.append(f"{vendor.seed} {cause}: {facts.error_class} by {facts.rule_id}")
    own = sum(rule.file.endswith(FILE) for rule in profile.rules)
    return Agreement(vendor.seed, right, lucky, asked, own, puzzles, tuple(dict.fromkeys(missed)))


def rules_of(text: str) -> RuleSet:
    """The shared rules, and this file."""
    shared = {name: shared for name, shared in known().texts.items() if name.startswith("_")}
    return parse_rule_files({**shared, FILE: text}, VENDOR_DIALECTS)


def _probed(vendor: DifficultVendor) -> Iterator[tuple[Cause, Answer]]:
    profile = rules_of(BARE_FILE).profile(VENDOR)
    for cause in (cause for cause in Cause if cause.is_probeable):
        for number in range(PROBED):
            asked = Asked(model=f"asked-{number}", stream=number % 2 == 1)
            recording = vendor.answer(cause, number, asked)
            yield cause, _answer(profile, recording, f"probe-{cause}-{number}", cause.error_class)


def _met(vendor: DifficultVendor) -> Iterator[tuple[Cause, Recording]]:
    for cause in Cause:
        for number in range(MET):
            yield cause, vendor.answer(cause, number, Asked(model="fine", stream=number % 2 == 0))


def _is_unmapped(rules: RuleSet, recording: Recording) -> bool:
    return replay(rules.profile(VENDOR), recording).unmapped


def _named_by_a_person(rules: RuleSet, met: Sequence[tuple[Cause, Recording]]) -> Iterator[Answer]:
    """Each group has the class of its first answer: that is what a person is shown."""
    profile = rules.profile(VENDOR)
    causes: dict[str, Cause] = {}
    answers = []
    for number, (cause, recording) in enumerate(met):
        place = f"met-{number}"
        causes[place] = cause
        answers.append(_answer(profile, recording, place, None))
    for group in group_alike(known().corpus, answers):
        error_class = causes[group[0].place].error_class
        yield from (replace(answer, wanted=(error_class,), code=None) for answer in group)


def _answer(profile: VendorProfile, recording: Recording, place: str, wanted: ErrorClass | None) -> Answer:
    """As production and probes see it: without what the recording expects."""
    bare = replace(recording, expect={"class": [wanted.value]} if wanted is not None else {}, at=TODAY.isoformat())
    answer = answer_of(profile, bare, place)
    assert answer is not None, "every answer of the vendor is seen as an error"
    return replace(answer, code=None)


def _written(text: str, before: Sequence[Answer], answers: Sequence[Answer]) -> tuple[str, int]:
    """The file with rules for these answers; `before` must keep their verdicts."""
    profile = rules_of(text).profile(VENDOR)
    proposal = draft_rules(profile, answers, [*known().answers, *before], known().corpus.stats, today=TODAY)
    editor = RuleFileEditor(FILE, text)
    for draft in proposal.drafts:
        editor.add_rule(draft)
    return editor.text, len(proposal.puzzles)
