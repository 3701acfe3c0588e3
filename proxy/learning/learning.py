"""From the inbox to rules: what no rule knew, grouped, guessed, drafted, tried, and written (contracts E, R1, R3, R4).

In: the rules in force, the recordings that prove them, and the answers of the inbox. Out: `Survey`, what is known by
now and what is not; for each group a `Lesson`, the rules that would know it and what they would move. `write` puts a
lesson into force in three steps, of which each may be the last one done: first the evidence, then the rule file, then
the inbox entries go; a second run does what is left. Never: writes a lesson that moves the verdict of a recording.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Final

from proxy.canon.verdict import ErrorClass, Verdict
from proxy.learning.drafting import Puzzle, draft_rules
from proxy.learning.editing import RuleFileEditor
from proxy.learning.known import answer_of, evidence_of, known_answers, place_of, wanted_classes
from proxy.learning.likeness import Corpus, Guess, corpus_of, group_alike
from proxy.learning.replaying import WALL, replay
from proxy.learning.values import Answer, Draft
from proxy.pipeline.values import Facts
from proxy.semantics.classifier import classify
from proxy.semantics.rule import VendorProfile
from proxy.stores.inbox_folder import Kept, remove
from proxy.stores.recordings import Recording, dump_recording
from proxy.stores.rule_writing import read_rule_text, write_rule_text
from proxy.stores.rules import load_rules, rule_file_of, rules_with

LEARNED: Final = "learned"
#: So many wordings of one error prove its rule; more would only fill the folder.
MAX_EVIDENCE: Final = 5
_ODD: Final = "no rule knew this answer before"


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer of the inbox that no rule knows. `answer.place` is where its recording would prove a rule."""

    kept: Kept
    answer: Answer


@dataclass(frozen=True, slots=True)
class KnownNow:
    """An answer of the inbox that a rule knows by now."""

    kept: Kept
    rule_id: str
    error_class: str


@dataclass(frozen=True, slots=True)
class Group:
    """Answers of one vendor that say the same, the most frequent first. `guess` is of that one."""

    vendor: str
    pending: tuple[Pending, ...]
    guess: Guess | None

    @property
    def count(self) -> int:
        return sum(one.kept.count for one in self.pending)

    @property
    def first(self) -> str:
        return min(one.kept.first for one in self.pending)

    @property
    def last(self) -> datetime:
        return max(one.kept.last for one in self.pending)


@dataclass(frozen=True, slots=True)
class Survey:
    """`mute`: recordings that are no error by any dialect of their vendor, or of a vendor without rules; nothing can be
    learned from them."""

    known: tuple[KnownNow, ...]
    groups: tuple[Group, ...]
    mute: tuple[Kept, ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What would be written for a group: `after` takes the place of `before` in `file`, `taken` leave the inbox and
    those with a place in `evidence` become recordings. `left` are those that it does not know, and why; `moved` the
    recordings whose verdict it would move. It may be written if it takes something and moves nothing."""

    group: Group
    error_class: ErrorClass
    code: str
    file: Path
    before: str
    after: str
    drafts: tuple[Draft, ...]
    taken: tuple[Pending, ...]
    left: tuple[Puzzle, ...]
    moved: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return bool(self.taken) and not self.moved

    @property
    def evidence(self) -> frozenset[str]:
        return frozenset(place for draft in self.drafts for place in draft.evidence)


class Learner:
    """The rules of one folder while they learn. `recordings` is the folder of evidence, mostly beside it."""

    def __init__(self, rules_dir: Path, recordings: Path, today: date) -> None:
        self._rules_dir, self._recordings_dir, self._today = rules_dir, recordings.resolve(), today
        self._root = self._recordings_dir.parent
        self.rules = load_rules(rules_dir)
        self._recordings = evidence_of(self._recordings_dir)
        self._known = known_answers(self.rules, self._recordings)
        self._corpus = Corpus(self.rules, [])  # `survey` fills it

    def survey(self, inbox: Iterable[Kept]) -> Survey:
        """Every answer of the inbox by the present rules."""
        known, pending, mute = [], [], []
        for kept in inbox:
            match self._look(kept):
                case KnownNow() as found:
                    known.append(found)
                case Pending() as found:
                    pending.append(found)
                case None:
                    mute.append(kept)
        by_place = {one.answer.place: one for one in pending}
        # A run that was killed left evidence without its rule: it says nothing about itself.
        self._corpus = self._examples(by_place.keys())
        groups = []
        for answers in group_alike(self._corpus, [one.answer for one in pending]):
            members = sorted((by_place[answer.place] for answer in answers), key=lambda one: -one.kept.count)
            guess = self._corpus.guess(members[0].answer)
            groups.append(Group(members[0].kept.recording.vendor, tuple(members), guess))
        groups.sort(key=lambda group: (-group.count, group.vendor, group.pending[0].answer.place))
        return Survey(tuple(known), tuple(groups), tuple(mute))

    def still_open(self, group: Group) -> Group | None:
        """The group without what a rule knows that was written since; None if nothing is left."""
        pending = tuple(one for one in group.pending if not self.verdict(one).mapped)
        return replace(group, pending=pending) if pending else None

    def verdict(self, pending: Pending) -> Verdict:
        """By the present rules."""
        return classify(self._profile(pending), pending.answer.observation, WALL)

    def propose(self, group: Group, error_class: ErrorClass, code: str, others: Sequence[Group] = ()) -> Lesson:
        """What would be written if the group meant this. `others` are the rest of the inbox: a rule must not take what
        is surely of another meaning, and had better not take what may be. Raises RuleError where the file, or this
        meaning, does not allow it."""
        profile = self._profile(group.pending[0])
        answers = [replace(one.answer, wanted=(error_class,), code=code) for one in group.pending]
        background = [*self._known, *(answer for other in others for answer in _guessed(other))]
        taken_ids = [rule.id for rule in self.rules.all_rules()]
        proposal = draft_rules(profile, answers, background, self._corpus.stats, today=self._today, taken=taken_ids)
        reason = _reason(group, error_class)
        drafts = tuple(
            replace(draft, evidence=draft.evidence[:MAX_EVIDENCE], reason=reason) for draft in proposal.drafts
        )
        file = rule_file_of(self._rules_dir, self.rules, profile.vendor)
        before = read_rule_text(file)
        editor = RuleFileEditor(str(file), before)
        for draft in drafts:
            editor.add_rule(draft)
        after = rules_with(self._rules_dir, file, editor.text).profile(profile.vendor)
        ids = {draft.id for draft in drafts}
        taken = tuple(one for one in group.pending if classify(after, one.answer.observation, WALL).rule_id in ids)
        places = {one.answer.place for one in group.pending}
        moved = tuple(self._moved(profile, after, places))
        return Lesson(group, error_class, code, file, before, editor.text, drafts, taken, proposal.puzzles, moved)

    def write(self, lesson: Lesson) -> list[Path]:
        """Evidence, rules, inbox, in this order; gives what was written. Raises RuleError or RecordingError."""
        assert lesson.is_sound
        written = [self._write_evidence(lesson, one) for one in lesson.taken if one.answer.place in lesson.evidence]
        write_rule_text(lesson.file, lesson.before, lesson.after)
        self.rules = load_rules(self._rules_dir)
        new = {place_of(one.path, self._root): one for one in written}
        self._recordings |= new
        self._known += known_answers(self.rules, new)
        self.forget(one.kept for one in lesson.taken)
        return [recording.path for recording in written]

    @staticmethod
    def forget(inbox: Iterable[Kept]) -> None:
        """These go from the inbox."""
        for kept in inbox:
            remove(kept.recording.path)

    def _examples(self, but: Collection[str]) -> Corpus:
        return corpus_of(self.rules, [answer for answer in self._known if answer.place not in but])

    def _look(self, kept: Kept) -> Pending | KnownNow | None:
        if kept.recording.vendor not in self.rules.vendors:
            return None
        profile = self.rules.profile(kept.recording.vendor)
        # The inbox does not say in which of its vendor's dialects an answer came.
        for dialect in ("", *profile.dialects[1:]):
            recording = replace(kept.recording, dialect=dialect)
            place = self._path_of(recording)
            answer = answer_of(profile, recording, place_of(place, self._root))
            if answer is not None:
                verdict = classify(profile, answer.observation, WALL)
                if verdict.rule_id is not None:
                    return KnownNow(kept, verdict.rule_id, str(verdict.error_class))
                return Pending(replace(kept, recording=recording), replace(answer, wanted=(), code=None))
        return None

    def _profile(self, pending: Pending) -> VendorProfile:
        return self.rules.profile(pending.kept.recording.vendor)

    def _path_of(self, recording: Recording) -> Path:
        vendor = recording.path.parent.name  # fit for a path, as the inbox made it; what a file says inside may not be
        return self._recordings_dir / vendor / "errors" / f"{LEARNED}-{recording.path.stem}.jsonl"

    def _moved(self, now: VendorProfile, then: VendorProfile, but: set[str]) -> Iterable[str]:
        """Recordings of the vendor that would mean something else, or the same by another rule; but for one that no
        rule knew and that then means what it says it should."""
        for place, recording in self._recordings.items():
            if recording.vendor != now.vendor or place in but:
                continue
            before, after = replay(now, recording), replay(then, recording)
            is_better = before.unmapped and after.error_class in wanted_classes(recording.expect)
            if _meaning(before) != _meaning(after) and not is_better:
                yield f"{place}: {_told(before)}, would be {_told(after)}"

    def _write_evidence(self, lesson: Lesson, pending: Pending) -> Recording:
        recording = pending.kept.recording
        path = self._path_of(recording)
        expect = {
            "class": [str(lesson.error_class)],
            "phase": str(pending.answer.observation.phase),
            "code": lesson.code,
        }
        evidence = replace(recording, path=path, name=f"errors/{path.stem}", odd=_ODD, expect=expect)
        dump_recording(evidence, path)
        return evidence


def _guessed(group: Group) -> Iterable[Answer]:
    """With what the group surely means, if it does."""
    wanted = (group.guess.error_class,) if group.guess is not None and group.guess.sure else ()
    for one in group.pending:
        yield replace(one.answer, wanted=wanted)


def _meaning(facts: Facts) -> tuple[str | None, str | None, str | None]:
    return facts.error_class, facts.error_code, facts.rule_id


def _told(facts: Facts) -> str:
    return f"{facts.error_class or 'no error'} ({facts.error_code}) by {facts.rule_id or 'no rule'}"


def _reason(group: Group, error_class: ErrorClass) -> str:
    """The comment above a rule."""
    is_guessed = group.guess is not None and group.guess.error_class is error_class
    return f"From the inbox; {group.guess.reason}" if group.guess is not None and is_guessed else "From the inbox."
