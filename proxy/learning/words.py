"""The words by which answers are compared and told apart: codes and their parts, what the message says, the status.

In: an answer as the classifier sees it. Out: words. Ids, moments and what the request itself said are left out: they
say nothing about what an answer means. Scripts without spaces give pairs of characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from proxy.canon.verdict import ErrorClass
from proxy.semantics.classifier import Seen
from proxy.semantics.sameness import without_ids

#: Han, kana, Thai, Lao, Khmer, Burmese: written without spaces between words.
SPACELESS: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN: Final = re.compile(rf"[{SPACELESS}]+|(?:(?![{SPACELESS}])\w)+(?:[-'](?:(?![{SPACELESS}])\w)+)*")
_SPACELESS_RUN: Final = re.compile(rf"[{SPACELESS}]+")
_CODE_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MAX_WORDS: Final = 120
#: Say nothing by themselves, in the languages in which most vendors write.
STOPWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be been by can cannot check could do does for from has have if in is it its may more no
        not of on or our please see so than that the their them then there these this to try us was we were what when
        which while will with you your error request requests response message details http https code status id""",
    )
)


def tokens(text: str) -> list[str]:
    """Words of a text in order, without case; a run of a script without spaces is one of them."""
    return [found.lower() for found in _TOKEN.findall(text)]


def pieces_of(token: str) -> Iterable[str]:
    """What stands for a token in a comparison: itself, or the pairs of characters of a run without spaces."""
    if _SPACELESS_RUN.fullmatch(token) and len(token) > 2:
        return (token[start : start + 2] for start in range(len(token) - 1))
    return (token,)


def code_parts(code: str) -> list[str]:
    """`insufficient_quota`, `InsufficientQuota` and `insufficient-quota` have the same parts."""
    return [part.lower() for part in _CODE_PART.findall(code)]


def without_asked(text: str, asked: Iterable[str]) -> str:
    """The text with a gap (`#`) for what it quotes of the request, and for each id."""
    for word in sorted(asked, key=len, reverse=True):
        text = re.sub(re.escape(word), "#", text, flags=re.IGNORECASE)
    return without_ids(text)


def words_of(vendor: str, seen: Seen, asked: Collection[str] = ()) -> Counter[str]:
    """The answer as a bag of words. A word that begins with `=` is a whole code, with `#` a status; a code of digits
    means something at its own vendor alone."""
    bag: Counter[str] = Counter()
    for code in seen.said.codes[:8]:
        bag[f"={vendor}:{code}" if code.isdigit() else f"={code.lower()}"] = 2
        bag.update({part: 1 for part in code_parts(code) if not part.isdigit()})
    for message in seen.said.messages[:6]:
        for token in tokens(without_asked(message, asked))[:_MAX_WORDS]:
            if token not in STOPWORDS and not token.isdigit():
                bag.update(pieces_of(token))
    bag.update({f"=finish {word}": 2 for word in seen.finishes})
    if seen.status is not None:
        bag[f"#{seen.status}"] = 1
    return bag


class WordStats:
    """How much a word speaks for a class, over all known answers."""

    def __init__(self, known: Iterable[tuple[Counter[str], Collection[ErrorClass]]]) -> None:
        self._by_word: dict[str, Counter[ErrorClass]] = {}
        self._answers: Counter[ErrorClass] = Counter()
        for bag, classes in known:
            if len(classes) != 1:
                continue
            (error_class,) = classes
            self._answers[error_class] += 1
            for word in bag:
                self._by_word.setdefault(word, Counter())[error_class] += 1

    def leaning(self, word: str, error_class: ErrorClass) -> float | None:
        """Above 0 it speaks for the class, below against it; a share of seven or so to one is 1. None: never seen."""
        if (found := self._by_word.get(word)) is None:
            return None
        inside, outside = found[error_class], found.total() - found[error_class]
        all_inside, all_outside = self._answers[error_class], self._answers.total() - self._answers[error_class]
        ratio = ((inside + 0.5) / (all_inside + 1)) / ((outside + 0.5) / (all_outside + 1))
        return max(-1.0, min(1.0, math.log(ratio, 7)))
