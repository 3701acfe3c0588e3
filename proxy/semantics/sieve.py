"""What a regular expression cannot do without: pieces of plain text that every match holds, looked for first.

In: compiled expressions, once; then texts. Out: whether the expression finds something, exactly as its own `search`
says, only sooner: to look for a word is far cheaper than to try twenty alternatives at each letter, and a hostile text
cannot make it dear (bench/classify). An expression is taken apart into its alternatives, and only those whose words are
there are searched for. What this module does not understand of an expression it leaves to `search`. Never: a guess.
Contract clause R1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from re import Match, Pattern
from typing import Any, Final

# How the engine itself reads an expression. Private, but this is all that it is used for: to walk the tree. A kind of
# node that is not named below is one of which nothing is known.
_ENGINE: Final[Any] = import_module("re._parser")
# What a piece of an expression does not mean alone: references to groups. And where brackets say nothing: comments.
_WHOLE: Final = re.compile(r"\\[1-9]|\(\?(?:P=|\(|#|[aiLmsu]*x)")
_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[(|)]", re.DOTALL)
# Every alternative asks for so many words at most: more cost more than they spare.
_MAX_NEEDS: Final = 3

#: One of these texts is in every match, as `fold` writes it.
Words = tuple[str, ...]


def fold(text: str) -> str:
    """Equal for texts that are one to an expression that looks without case: also K (Kelvin), ſ, ı and İ, which are k,
    s and i to it. Letter by letter, so that what stands in a text stands in it folded."""
    return text.lower() if text.isascii() else text.replace("İ", "i").replace("ı", "i").casefold()


@dataclass(frozen=True, slots=True)
class Texts:
    """What is searched of an answer: each text with its folded form, and all of these in one."""

    pairs: tuple[tuple[str, str], ...]
    folded: str

    @staticmethod
    def of(texts: Iterable[str]) -> Texts:
        pairs = tuple([(text, fold(text)) for text in texts])
        return Texts(pairs, pairs[0][1] if len(pairs) == 1 else "\n".join([folded for _, folded in pairs]))


@dataclass(frozen=True, slots=True)
class Sieve:
    """An expression with what it needs. `words`: one of them is in every text in which it finds something; none, if
    nothing is known. `least`: so many letters a text must have. `parts`: its alternatives, each with all its needs."""

    words: Words
    least: int
    parts: tuple[tuple[Callable[[str], Match[str] | None], tuple[Words, ...]], ...]

    @staticmethod
    @lru_cache(maxsize=2048)  # whoever edits a rule, or looks for one, comes with the same expressions again
    def of(pattern: Pattern[str]) -> Sieve:
        is_whole = pattern.flags & re.VERBOSE or _WHOLE.search(pattern.pattern) is not None
        parts = [pattern.pattern] if is_whole else alternatives(pattern.pattern)
        trees = [_ENGINE.parse(part, pattern.flags) for part in parts]
        needs = [_needs(tree) for tree in trees]
        searches = [re.compile(part, pattern.flags).search for part in parts] if len(parts) > 1 else [pattern.search]
        words = [word for each in needs for word in (each[0] if each else ())] if all(needs) else []
        least = min(tree.getwidth()[0] for tree in trees)
        return Sieve(_shortest(words), least, tuple(zip(searches, needs, strict=True)))

    def finds_any(self, texts: Texts) -> bool:
        """Does the expression find something in one of the texts?"""
        if not self._has_word(texts.folded):
            return False
        for search, needs in self.parts:
            if _has_all(needs, texts.folded):
                for text, folded in texts.pairs:
                    if _has_all(needs, folded) and search(text) is not None:
                        return True
        return False

    def may_find(self, folded: str) -> bool:
        """False: in no text of this folded form does the expression find anything."""
        if len(folded) < self.least or not self._has_word(folded):
            return False
        return any(_has_all(needs, folded) for _, needs in self.parts)

    def _has_word(self, folded: str) -> bool:
        for word in self.words:  # `any` over a generator costs five times as much as to look for a word
            if word in folded:
                return True
        return not self.words


def _has_all(needs: tuple[Words, ...], folded: str) -> bool:
    for words in needs:
        for word in words:
            if word in folded:
                break
        else:
            return False
    return True


def _shortest(words: Iterable[str]) -> Words:
    """Without those that hold another one."""
    kept: list[str] = []
    for word in sorted(dict.fromkeys(words), key=len):
        if not any(inner in word for inner in kept):
            kept.append(word)
    return tuple(kept)


def alternatives(expression: str) -> list[str]:
    """The alternatives of a whole expression; `(?:…)` around one of them is taken off."""
    bars, closings, depth = [-1], [], 0
    for token in _TOKEN.finditer(expression):
        depth += (token[0] == "(") - (token[0] == ")")
        if depth == 0 and token[0] == "|":
            bars.append(token.start())
        elif depth == 0 and token[0] == ")":
            closings.append(token.end())
    if len(bars) > 1:
        parts = [expression[bar + 1 : end] for bar, end in pairwise([*bars, len(expression)])]
        return [inner for part in parts for inner in alternatives(part)]
    if expression.startswith("(?:") and closings[0] == len(expression):
        return alternatives(expression[3:-1])
    return [expression]


def _needs(tree: Any) -> tuple[Words, ...]:
    """The most telling words first."""
    return tuple(sorted(_all_needs(tree), key=_weakness)[:_MAX_NEEDS])


def _weakness(words: Words) -> tuple[int, int]:
    return -min(map(_telling, words)), len(words)


def _telling(word: str) -> int:
    """How much it says that a text has this word: about as many letters of English as it is long."""
    return len(word) if word.isascii() else 2 * len(word)


def _all_needs(tree: Any) -> list[Words]:
    needs: list[Words] = []
    run: list[str] = []

    def end_run() -> None:
        if run:
            needs.append((fold("".join(run)),))
            run.clear()

    def walk(nodes: Any) -> None:
        for kind, what in nodes:
            if kind is _ENGINE.LITERAL:
                run.append(chr(what))
            elif kind is _ENGINE.SUBPATTERN:
                walk(what[-1])
            elif kind in (_ENGINE.MAX_REPEAT, _ENGINE.MIN_REPEAT) and what[0] > 0:
                walk(what[2])
                end_run()
            elif kind not in (_ENGINE.AT, _ENGINE.ASSERT, _ENGINE.ASSERT_NOT):  # these take no room
                end_run()
                if kind is _ENGINE.BRANCH:
                    needs.extend(_need_of_any([_needs(branch) for branch in what[1]]))
                elif kind is _ENGINE.IN and all(inner is _ENGINE.LITERAL for inner, _ in what):
                    needs.append(tuple(dict.fromkeys(fold(chr(letter)) for _, letter in what)))

    walk(tree)
    end_run()
    return needs


def _need_of_any(branches: Sequence[tuple[Words, ...]]) -> Iterator[Words]:
    """What a choice needs: the first need of each branch, if each has one."""
    if all(branches):
        yield tuple(dict.fromkeys(word for needs in branches for word in needs[0]))
