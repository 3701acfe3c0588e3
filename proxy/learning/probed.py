"""From what a probe heard to what is kept, what it means and what is proposed: the whole of its end (R1, R3, C3).

In: what was heard and what is known. Out: `Looked`, the values that the command prints. `look` writes recordings,
`write_change` the rule file, in one step (a reader sees the old text or the new one); nothing else writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from proxy.learning.asking import Heard
from proxy.learning.judging import Judgement, Outcome, expecting, judge
from proxy.learning.keeping import Kept, compare, write
from proxy.learning.known import evidence_of, known_answers, place_of
from proxy.learning.likeness import corpus_of
from proxy.learning.proposing import Change, Known, propose, rules_after, ways_of
from proxy.learning.ways import Ways
from proxy.semantics.rule import RuleSet, VendorProfile
from proxy.stores.rule_writing import write_rule_text


@dataclass(frozen=True, slots=True)
class Looked:
    """`unwritten`: recordings that could not be written, with the reason."""

    outcomes: tuple[Outcome, ...]
    kept: tuple[Kept, ...]
    unwritten: tuple[tuple[str, str], ...]
    ways: Ways
    change: Change

    def fates(self) -> Counter[str]:
        return Counter(one.fate.value for one in self.kept)

    @property
    def wrong(self) -> int:
        return sum(one.judgement is Judgement.WRONG for one in self.outcomes) + len(self.unwritten)


def known_of(rules: RuleSet, folder: Path, recordings: Path) -> Known:
    """What the recordings of all vendors say already: they are what a new answer is compared with."""
    answers = known_answers(rules, evidence_of(recordings))
    return Known(rules, folder, answers, corpus_of(rules, answers), recordings.parent)


def look(known: Known, vendor: str, heard: Sequence[Heard], recordings: Path, secrets: Collection[str]) -> Looked:
    """Judge, keep and propose."""
    profile = known.rules.profile(vendor)
    outcomes = [judge(profile, one, known.corpus) for one in heard]
    expected = [expecting(one, outcome) for one, outcome in zip(heard, outcomes, strict=True)]
    kept = compare(profile, expected, recordings)
    problems = [(one.recording.name, reason) for one in kept if (reason := write(one, secrets)) is not None]
    lost = {name for name, _ in problems}
    kept = [one for one in kept if one.recording.name not in lost]
    by_ask = {(one.heard.probe.name, one.heard.number): one for one in kept}
    judged = []
    for number, outcome in enumerate(outcomes):
        one = by_ask.get((outcome.probe, outcome.number))
        if one is not None:
            outcomes[number] = replace(outcome, recording=place_of(one.recording.path, known.root))
            judged.append((one, outcomes[number]))
    ways = ways_of(profile, kept)
    change = propose(known, vendor, judged, ways, date.today())
    return Looked(tuple(outcomes), tuple(kept), tuple(problems), ways, change)


def judged_after(known: Known, looked: Looked, vendor: str, heard: Sequence[Heard]) -> list[Outcome]:
    """The outcomes by the rules as they will be."""
    profile: VendorProfile = rules_after(known, looked.change).profile(vendor)
    again = (judge(profile, one, known.corpus) for one in heard)
    return [replace(new, recording=old.recording) for new, old in zip(again, looked.outcomes, strict=True)]


def write_change(change: Change) -> None:
    """Put the new text in the file's place. Raises RuleError if somebody changed the file meanwhile, or it cannot be
    written."""
    write_rule_text(change.file, change.before, change.after)
