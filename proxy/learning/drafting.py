"""Rules from answers whose meaning is known: as few and as general as the answers allow (contracts R1, R4).

In: a vendor's rules, answers with the class that each must have (a probe knows what it asked for; a person or a guess
says it of the inbox), and the background, which is every other known answer of that vendor. Out: a `Proposal`: rules
to write, rules that were proved right, and answers that nothing tells apart from answers of another meaning. A drafted
rule holds for no known answer of another meaning, and moves no verdict that is right. Pure: equal input, equal
proposal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from proxy.canon.verdict import ErrorClass, Verdict
from proxy.learning.atoms import Atom, atoms_of, joined, marks_of, status_atom
from proxy.learning.candidates import Candidate, combined, mergeable, when_of
from proxy.learning.replaying import WALL
from proxy.learning.values import PROOFS, Answer, Draft
from proxy.learning.waits import wait_path
from proxy.learning.words import WordStats
from proxy.semantics.classifier import Seen, classify, holds
from proxy.semantics.rule import VendorProfile

#: The code of a class where nobody named a better one.
CODES: Final[Mapping[ErrorClass, str]] = {
    ErrorClass.AUTH_FAILURE: "invalid_credential",
    ErrorClass.RATE_LIMITED: "rate_limited",
    ErrorClass.CONTENT_BLOCKED: "content_filter",
    ErrorClass.UPSTREAM_TIMEOUT: "vendor_timeout",
    ErrorClass.MODEL_UNAVAILABLE: "server_error",
    ErrorClass.INVALID_REQUEST: "invalid_request",
}
_MAX_ATOMS: Final = 80
# What one more answer is worth against a better condition.
_PER_ANSWER: Final = 1.4
_PER_SIBLING: Final = 0.45
_MAX_SIBLINGS: Final = 2
_FOR_STRANGERS: Final = 3.0
_LEAST: Final = 0.2


@dataclass(frozen=True, slots=True)
class Proof:
    """A rule of the vendor's own file that was right, and now has stronger evidence."""

    rule_id: str
    evidence: str
    seen: date
    proof: str


@dataclass(frozen=True, slots=True)
class Puzzle:
    """An answer that no condition tells from an answer of another meaning."""

    answer: Answer
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """`known`: place and rule of each answer that the present rules class rightly."""

    drafts: tuple[Draft, ...] = ()
    proofs: tuple[Proof, ...] = ()
    known: tuple[tuple[str, str], ...] = ()
    puzzles: tuple[Puzzle, ...] = ()


@dataclass(frozen=True, slots=True)
class _Judged:
    """An answer under the present rules. `index` is the place of the rule that decides it, past the last one for
    none."""

    answer: Answer
    seen: Seen
    verdict: Verdict
    index: int

    @property
    def right(self) -> bool:
        return self.verdict.mapped and self.verdict.error_class in self.answer.wanted


def draft_rules(
    profile: VendorProfile,
    answers: Sequence[Answer],
    background: Iterable[Answer],
    stats: WordStats,
    *,
    today: date,
    taken: Iterable[str] = (),
) -> Proposal:
    """`background` holds known answers of this vendor; those that stand among `answers` by place are passed by. One
    without a class is a stranger: nobody knows its meaning yet, so a rule had better not take it. `taken` are ids of
    rules in other files."""
    return _Drafting(profile, answers, background, stats, today, taken).propose()


class _Drafting:
    def __init__(
        self,
        profile: VendorProfile,
        answers: Sequence[Answer],
        background: Iterable[Answer],
        stats: WordStats,
        today: date,
        taken: Iterable[str],
    ) -> None:
        self._profile, self._stats, self._today = profile, stats, today
        self._own = [rule.id for rule in profile.rules if _stem(rule.file) == profile.vendor]
        self._taken = {*taken, *(rule.id for rule in profile.rules)}
        places = {answer.place for answer in answers if answer.place}
        self._asked = [self._judge(answer) for answer in answers if answer.wanted]
        background = list(background)
        others = [one for one in background if one.wanted and one.observation.vendor == profile.vendor]
        self._all = self._asked + [self._judge(one) for one in others if one.place not in places]
        nameless = [one for one in background if not one.wanted and one.observation.vendor == profile.vendor]
        judged = [self._judge(one) for one in nameless if one.place not in places]
        self._strangers = [one for one in judged if not one.verdict.mapped]

    def _judge(self, answer: Answer) -> _Judged:
        verdict = classify(self._profile, answer.observation, WALL)
        rules = self._profile.rules
        index = next((i for i, rule in enumerate(rules) if rule.id == verdict.rule_id), len(rules))
        return _Judged(answer, Seen.of(self._profile, answer.observation), verdict, index)

    def propose(self) -> Proposal:
        drafts: list[Draft] = []
        puzzles: list[Puzzle] = []
        for group in self._wrong_by_meaning():
            chosen, left = self._cover(group)
            drafts += self._write(group, chosen)
            puzzles += [Puzzle(one.answer, self._twin_of(one)) for one in left]
        right = [one for one in self._asked if one.right]
        return Proposal(
            tuple(drafts),
            tuple(self._proofs(right)),
            tuple((one.answer.place, one.verdict.rule_id or "") for one in right),
            tuple(puzzles),
        )

    def _wrong_by_meaning(self) -> list[list[_Judged]]:
        groups: dict[tuple[ErrorClass, str], list[_Judged]] = {}
        for one in self._asked:
            if not one.right:
                groups.setdefault(_meaning(one.answer), []).append(one)
        return list(groups.values())

    # ---- which conditions ----------------------------------------------------------------------------------------

    def _cover(self, group: Sequence[_Judged]) -> tuple[list[Candidate], list[_Judged]]:
        """The best conditions that together hold for all of the group, and what no condition holds for alone."""
        before = self._insertion(group)
        meaning = _meaning(group[0].answer)
        against = [one for one in self._all if one.index >= before and self._would_be_wrong(one, meaning)]
        candidates = [one for one in self._candidates(group) if not self._conflicts(one, against)]
        siblings = [one for one in self._all if one.right and _meaning(one.answer) == meaning]
        marks = {marks_of(one.seen, one.answer.asked) for one in group}
        strangers = [one for one in self._strangers if marks_of(one.seen, one.answer.asked) not in marks]
        worth = {one: self._worth(one, siblings, strangers) for one in candidates}
        chosen: list[Candidate] = []
        open_ones = set(range(len(group)))
        while open_ones:
            best = max(
                (one for one in candidates if one.covers & open_ones),
                key=lambda one: worth[one] + (0 if one.is_status else _PER_ANSWER * len(one.covers & open_ones)),
                default=None,
            )
            if best is None:
                break
            chosen.append(best)
            open_ones -= best.covers
        return chosen, [group[number] for number in sorted(open_ones)]

    @staticmethod
    def _worth(candidate: Candidate, siblings: Sequence[_Judged], strangers: Sequence[_Judged]) -> float:
        """Answers of this meaning that are right already need no rule, but they show what is stable; those
        that say other codes, and whose meaning nobody knows, show what is shared."""
        condition = joined(candidate.atoms)
        held = sum(holds(condition, one.seen) for one in siblings)
        worth = candidate.score + _PER_SIBLING * min(held, _MAX_SIBLINGS)
        return worth - (_FOR_STRANGERS if any(holds(condition, one.seen) for one in strangers) else 0.0)

    @staticmethod
    def _would_be_wrong(one: _Judged, meaning: tuple[ErrorClass, str]) -> bool:
        """Were this answer given that meaning. A code that no longer holds matters where it is right today."""
        error_class, code = meaning
        if error_class not in one.answer.wanted:
            return True
        return one.right and one.answer.code not in (None, code)

    @staticmethod
    def _conflicts(candidate: Candidate, against: Sequence[_Judged]) -> bool:
        condition = joined(candidate.atoms)
        return any(holds(condition, one.seen) for one in against)

    def _candidates(self, group: Sequence[_Judged]) -> list[Candidate]:
        """Each condition once, however many of the group suggest it."""
        error_class = group[0].answer.wanted[0]
        found: dict[tuple[object, ...], tuple[Atom, ...]] = {}
        for one in group:
            atoms = atoms_of(one.seen, error_class, self._stats, one.answer.asked)[:_MAX_ATOMS]
            for together in combined(atoms, status_atom(one.seen)):
                found.setdefault(tuple((atom.key, atom.path, atom.value) for atom in together), together)
        return [self._candidate(together, group) for together in found.values()]

    @staticmethod
    def _candidate(atoms: tuple[Atom, ...], group: Sequence[_Judged]) -> Candidate:
        condition = joined(atoms)
        covers = frozenset(number for number, one in enumerate(group) if holds(condition, one.seen))
        # Two conditions are a narrower rule: the better of them counts, and the lesser hardly.
        score = max(atom.score for atom in atoms) - 0.6 * (len(atoms) - 1)
        return Candidate(atoms, covers, max(score, _LEAST) if len(covers) == len(group) > 1 else score)

    # ---- how it is written ---------------------------------------------------------------------------------------

    def _insertion(self, group: Sequence[_Judged]) -> int:
        """The index of the first own rule that takes an answer of the group, else the end of the own rules."""
        takers = [one.index for one in group if one.index < len(self._own)]
        return min(takers, default=len(self._own))

    def _write(self, group: Sequence[_Judged], chosen: Sequence[Candidate]) -> Iterator[Draft]:
        error_class, code = _meaning(group[0].answer)
        before = self._insertion(group)
        for candidates in mergeable(chosen):
            held = sorted(frozenset[int]().union(*(one.covers for one in candidates)))
            answers = [group[number] for number in held]
            then: dict[str, object] = {"class": error_class.value, "code": code}
            if error_class is ErrorClass.RATE_LIMITED and (path := wait_path([one.seen for one in answers])):
                then["retry_after"] = {"json": path}
            yield Draft(
                vendor=self._profile.vendor,
                id=self._new_id(answers[0].answer.cause or code),
                when=when_of(candidates),
                then=then,
                evidence=tuple(dict.fromkeys(one.answer.place for one in answers if one.answer.place)),
                seen=max((one.answer.seen for one in answers if one.answer.seen), default=self._today),
                proof=min((one.answer.proof for one in answers), key=PROOFS.index),
                before=self._own[before] if before < len(self._own) else None,
                reason=_reason(answers),
            )

    def _new_id(self, word: str) -> str:
        prefixes = Counter(rule_id.split(".", 1)[0] for rule_id in self._own if "." in rule_id)
        prefix = prefixes.most_common(1)[0][0] if prefixes else self._profile.vendor
        stem = f"{prefix}.{re.sub(r'[^a-z0-9-]+', '-', word.lower()).strip('-')}"
        name, number = stem, 2
        while name in self._taken:
            name, number = f"{stem}-{number}", number + 1
        self._taken.add(name)
        return name

    def _proofs(self, right: Sequence[_Judged]) -> Iterator[Proof]:
        """For each own rule that was right, the first answer that proves it better than what it has."""
        own = {rule.id: rule for rule in self._profile.rules[: len(self._own)]}
        done: set[str] = set()
        for one in right:
            rule = own.get(one.verdict.rule_id or "")
            if rule is None or rule.id in done or not one.answer.place:
                continue
            if rule.proof is None or PROOFS.index(one.answer.proof) > PROOFS.index(rule.proof):
                done.add(rule.id)
                yield Proof(rule.id, one.answer.place, one.answer.seen or self._today, one.answer.proof)

    def _twin_of(self, one: _Judged) -> str:
        """Why there is no rule for it: another answer that has all that it has."""
        atoms = atoms_of(one.seen, one.answer.wanted[0], self._stats, one.answer.asked)
        if not atoms:
            return "it says nothing that could be a condition"
        condition = joined(atoms[:1])
        twin = next(
            (
                other.answer
                for other in self._all
                if one.answer.wanted[0] not in other.answer.wanted and holds(condition, other.seen)
            ),
            None,
        )
        if twin is None:
            return "no condition holds for it and for nothing else"
        return f"nothing tells it from {twin.place or 'another answer'}, which is {' or '.join(twin.wanted)}"


def _stem(file: str) -> str:
    return file.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def _meaning(answer: Answer) -> tuple[ErrorClass, str]:
    error_class = answer.wanted[0]
    return error_class, answer.code or CODES[error_class]


def _reason(answers: Sequence[_Judged]) -> str:
    before = answers[0].verdict
    causes = dict.fromkeys(one.answer.cause for one in answers if one.answer.cause)
    probed = f"probed with {', '.join(causes)}: " if causes else ""
    if not before.mapped:
        return f"{probed}no rule knew this answer"
    return f"{probed}was taken for {before.error_class} by {before.rule_id}"
