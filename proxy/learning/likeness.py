"""What a new answer may mean, judged by the known answers that it is most like, with the reason for a person.

In: known answers with their classes, and a new one. Out: a `Guess`: class, code, how like, whether that is enough to
act on without asking, and why. Words are weighed by how few answers have them (TF-IDF) and compared by cosine; the five
nearest vote. It is a proposal: what decides an answer is always a rule. Pure; the same corpus gives the same guess.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from proxy.canon.verdict import ErrorClass
from proxy.learning.atoms import marks_of
from proxy.learning.known import shipped_answers
from proxy.learning.values import Answer
from proxy.learning.words import WordStats, tokens, words_of
from proxy.semantics.classifier import Seen
from proxy.semantics.rule import RuleSet, VendorProfile

_VOTERS: Final = 5
# Found by leaving out one vendor after the other: tests/unit/learning/test_likeness.py holds them to their figures.
_SURE_LIKENESS: Final = 0.40
_SURE_SHARE: Final = 0.90
_TOLD_WORDS: Final = 3
_SAME: Final = 0.60

Vector = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Guess:
    """`likeness` is 0 to 1; `sure`: near enough, and nobody near disagrees. `nearest` is the place of the example."""

    error_class: ErrorClass
    code: str
    likeness: float
    sure: bool
    reason: str
    nearest: str


class Corpus:
    """The known answers, ready to be compared. `rules` says how each vendor's answers are seen."""

    def __init__(self, rules: RuleSet, known: Sequence[Answer]) -> None:
        self._rules = rules
        self.known = [answer for answer in known if len(answer.wanted) == 1]
        bags = [self.bag(answer) for answer in self.known]
        self._rarity = _rarity(bags)
        self._vectors = [self._vector(bag) for bag in bags]
        self._having: dict[str, list[int]] = defaultdict(list)
        for number, vector in enumerate(self._vectors):
            for word in vector:
                self._having[word].append(number)
        self.stats = WordStats((bag, answer.wanted) for bag, answer in zip(bags, self.known, strict=True))

    def bag(self, answer: Answer) -> Counter[str]:
        """The answer's words."""
        return words_of(answer.observation.vendor, self._seen(answer), answer.asked)

    def guess(self, answer: Answer, *, but: str | None = None) -> Guess | None:
        """None if the answer has no word in common with any known one. `but` leaves out the answers of one vendor."""
        vector = self.vector(answer)
        likeness: dict[int, float] = defaultdict(float)
        for word, weight in vector.items():
            for number in self._having.get(word, ()):
                likeness[number] += weight * self._vectors[number][word]
        nearest = sorted(likeness.items(), key=lambda item: item[1], reverse=True)
        fitting = (
            (like, number)
            for number, like in nearest
            if (but is None or self.known[number].observation.vendor != but) and not self._is_told_apart(answer, number)
        )
        near = list(islice(fitting, _VOTERS))
        if not near:
            return None
        votes: dict[ErrorClass, float] = defaultdict(float)
        for like, number in near:
            votes[self.known[number].wanted[0]] += like * like
        best = max(votes, key=lambda one: votes[one])
        like, number = next((like, number) for like, number in near if self.known[number].wanted[0] is best)
        share = votes[best] / sum(votes.values())
        example = self.known[number]
        return Guess(
            best,
            example.code or best.value,
            round(like, 3),
            like >= _SURE_LIKENESS and share >= _SURE_SHARE and self._has_words(vector, number),
            f"like {example.place} ({like:.0%}): {self._shared(vector, number)}",
            example.place,
        )

    def marks(self, answer: Answer) -> frozenset[str]:
        """The answer's codes, wherever they stand."""
        return marks_of(self._seen(answer), answer.asked)

    def _seen(self, answer: Answer) -> Seen:
        vendor = answer.observation.vendor
        return Seen.of(self._rules.vendors.get(vendor) or VendorProfile(vendor), answer.observation)

    def _is_told_apart(self, answer: Answer, number: int) -> bool:
        """Does the vendor tell these two apart: the same words with another code, or one code with another beside it?
        Then what they have in common says nothing."""
        other = self.known[number]
        if other.observation.vendor != answer.observation.vendor:
            return False
        marks, others = self.marks(answer), self.marks(other)
        if not marks or not others or marks == others:
            return False
        said, told = self._plain(answer), self._plain(other)
        return bool(marks & others) or said <= told or told <= said

    def _plain(self, answer: Answer) -> frozenset[str]:
        """The words of its messages; numbers, and words with digits in them, are left out."""
        said = [token for message in self._seen(answer).said.messages for token in tokens(message)]
        return frozenset(token for token in said if not any(character.isdigit() for character in token))

    def vector(self, answer: Answer) -> Vector:
        """The answer's words by their weight, of length 1."""
        return self._vector(self.bag(answer))

    def _vector(self, bag: Counter[str]) -> Vector:
        """Of length 1. A word that no answer has is as rare as can be, but not all of what counts."""
        unseen = max(self._rarity.values(), default=1.0) / 2
        raw = {word: (1 + math.log(count)) * self._rarity.get(word, unseen) for word, count in bag.items()}
        length = math.sqrt(sum(weight * weight for weight in raw.values())) or 1.0
        return {word: weight / length for word, weight in raw.items()}

    def _has_words(self, vector: Vector, number: int) -> bool:
        """More than the status is common to both."""
        return any(word in self._vectors[number] for word in vector if word[0] != "#")

    def _shared(self, vector: Vector, number: int) -> str:
        other = self._vectors[number]
        both = sorted((weight * other[word], word) for word, weight in vector.items() if word in other)
        told = [f"status {word[1:]}" if word[0] == "#" else word.lstrip("=") for _, word in both[-1:-8:-1]]
        return "both say " + ", ".join(dict.fromkeys(told[:_TOLD_WORDS]))


def corpus_of(rules: RuleSet, answers: Sequence[Answer]) -> Corpus:
    """These answers, and those that came with the package: an example need not be of the same vendor."""
    shipped, examples = shipped_answers()
    own = {answer.place for answer in answers}
    every = RuleSet({**shipped.vendors, **rules.vendors}, rules.version)
    return Corpus(every, [*answers, *(one for one in examples if one.place not in own)])


def _rarity(bags: Sequence[Counter[str]]) -> Mapping[str, float]:
    having: Counter[str] = Counter()
    for bag in bags:
        having.update(bag.keys())
    return {word: math.log((1 + len(bags)) / (1 + count)) + 0.1 for word, count in having.items()}


def group_alike(corpus: Corpus, answers: Sequence[Answer]) -> list[list[Answer]]:
    """Answers of one vendor that say the same, together; in the order in which they came. Those whose marks differ
    (codes, tags, telling headers) are apart, also where their words are the same."""
    groups: list[list[tuple[Answer, Vector]]] = []
    by_marks: dict[tuple[str, frozenset[str]], list[list[tuple[Answer, Vector]]]] = defaultdict(list)
    for answer in answers:
        vector = corpus.vector(answer)
        marked = by_marks[answer.observation.vendor, corpus.marks(answer)]
        fitting = next((group for group in marked if any(_cosine(one, vector) >= _SAME for _, one in group)), None)
        if fitting is None:
            fitting = []
            groups.append(fitting)
            marked.append(fitting)
        fitting.append((answer, vector))
    return [[answer for answer, _ in group] for group in groups]


def _cosine(one: Vector, other: Vector) -> float:
    """0 to 1; both are of length 1."""
    return sum(weight * other.get(word, 0.0) for word, weight in one.items())
