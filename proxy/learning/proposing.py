"""The next version of a vendor's rule file, from what a probe heard (contracts R1, R3).

In: the rules in force, every known answer, the recordings of a probe with what they must mean. Out: a `Change`: the
file's text before and after, and what was done to it. The text was read back with all the other files before it is
given out. Pure, but that it reads the one file that it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from proxy.learning.drafting import Proof, Puzzle, draft_rules
from proxy.learning.editing import RuleFileEditor
from proxy.learning.judging import Judgement, Outcome
from proxy.learning.keeping import Kept
from proxy.learning.known import answer_of, place_of
from proxy.learning.likeness import Corpus
from proxy.learning.probes import Kind
from proxy.learning.values import Answer, Draft, WayChange
from proxy.learning.ways import Ways, findings, way_changes
from proxy.semantics.rule import RuleSet, VendorProfile
from proxy.stores.rule_writing import read_rule_text
from proxy.stores.rules import rule_file_of, rules_with


@dataclass(frozen=True, slots=True)
class Change:
    """What is proposed for `file`. Empty where `after` is `before`."""

    file: Path
    before: str
    after: str
    drafts: tuple[Draft, ...] = ()
    proofs: tuple[Proof, ...] = ()
    ways: tuple[WayChange, ...] = ()
    puzzles: tuple[Puzzle, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before a probe: the rules, their texts by file name, the answers, and the folder from which their
    places start."""

    rules: RuleSet
    folder: Path
    answers: Sequence[Answer]
    corpus: Corpus
    root: Path


def ways_of(profile: VendorProfile, kept: Sequence[Kept]) -> Ways:
    """What the healthy answers show."""
    return findings([one.recording for one in kept if one.heard.probe.kind is Kind.ANSWER], profile)


def propose(known: Known, vendor: str, judged: Sequence[tuple[Kept, Outcome]], ways: Ways, today: date) -> Change:
    """`ways` are those of the same answers. Raises RuleError where the file cannot be changed by a program."""
    profile = known.rules.profile(vendor)
    found = [_answer(profile, known.root, kept, outcome) for kept, outcome in judged]
    answers = [answer for answer in found if answer is not None]
    taken = [rule.id for rule in known.rules.all_rules()]
    proposal = draft_rules(profile, answers, known.answers, known.corpus.stats, today=today, taken=taken)
    changes = tuple(way_changes(profile, ways))
    file = rule_file_of(known.folder, known.rules, vendor)
    before = read_rule_text(file)
    editor = RuleFileEditor(str(file), before)
    for draft in proposal.drafts:
        editor.add_rule(draft)
    for proof in proposal.proofs:
        editor.prove(proof.rule_id, [proof.evidence], proof.seen, proof.proof)
    for change in changes:
        editor.set_way(change.key, change.value)
    return Change(file, before, editor.text, proposal.drafts, proposal.proofs, changes, proposal.puzzles)


def rules_after(known: Known, change: Change) -> RuleSet:
    """The whole set with the change. Raises RuleError if it is no valid one."""
    return rules_with(known.folder, change.file, change.after)


def _answer(profile: VendorProfile, root: Path, kept: Kept, outcome: Outcome) -> Answer | None:
    """What rules can be drafted from: an answer of the vendor's that refuses, with the meaning it must have."""
    probe = kept.heard.probe
    if probe.kind is not Kind.REFUSAL or outcome.judgement not in (Judgement.RIGHT, Judgement.WRONG):
        return None
    answer = answer_of(profile, kept.recording, place_of(kept.recording.path, root))
    if answer is None or outcome.judgement is Judgement.RIGHT:
        return answer
    code = probe.code if outcome.wanted == probe.wanted else None
    return replace(answer, code=code, cause=probe.name)
