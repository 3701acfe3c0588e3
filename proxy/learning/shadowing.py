"""Rules that can never decide, because an earlier one takes every answer that they match (contract R4).

In: a rule set. Out: each such rule with the earlier one. It looks at conditions, not at recordings, and is sound: what
it names is shadowed in every profile that has the rule. It does not find all of them: of a regular expression it knows
equal alternatives, and pieces of plain text that every match holds and that the earlier expression finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import Pattern
from typing import Final

from proxy.canon.verdict import Phase
from proxy.semantics.paths import JsonPath
from proxy.semantics.rule import Condition, Rule, RuleSet

# What makes a match depend on the text around it, or on more than this program reads: anchors, edges of words, groups
# other than `(` and `(?:`, possessive repeats, references back.
_DEPENDS: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[bBAZ\d]|[$^]|\(\?(?!:)|[*+?}]\+)")
_REFERS: Final = re.compile(r"\\[1-9]|\(\?\(")
# What this program would misread: characters written by number or name, comments, expressions with blanks for the eye.
_UNREAD: Final = re.compile(r"\\[xuUN0]|\(\?(?:#|[aiLmsu]*x)")
_REPEAT: Final = re.compile(r"[*?]|\{\d*,?\d*\}")
# `match` sees no booleans, no null, and no number of nineteen digits.
_UNSEARCHED: Final = frozenset({"true", "false", "null"})
_MAX_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class Shadow:
    """`rule` never decides: `by`, which is tried before it, takes all that it matches."""

    rule: Rule
    by: Rule


def find_shadowed(rules: RuleSet) -> list[Shadow]:
    """Each rule that an earlier one shadows in every profile that has it."""
    shadows: dict[str, Shadow] = {}
    reached: set[str] = set()
    for profile in rules.vendors.values():
        for position, rule in enumerate(profile.rules):
            if rule.id in reached:
                continue
            by = next((earlier for earlier in profile.rules[:position] if covers(earlier.when, rule.when)), None)
            if by is None:
                reached.add(rule.id)
                shadows.pop(rule.id, None)
            else:
                shadows.setdefault(rule.id, Shadow(rule, by))
    return list(shadows.values())


def covers(wide: Condition, narrow: Condition) -> bool:
    """Does `wide` hold wherever `narrow` does?"""
    return (
        _has_all(wide.status, narrow.status)
        and (wide.phase is None or wide.phase == frozenset(Phase) or _is_within(narrow.phase, wide.phase))
        and (wide.event is None or _is_within(narrow.event, wide.event))
        and (wide.finish is None or _is_within(narrow.finish, wide.finish))
        and (wide.body is None or _finds(wide.body, narrow.body))
        and (wide.comment is None or _finds(wide.comment, narrow.comment))
        and all(any(name == other and _finds(a, b) for other, b in narrow.header) for name, a in wide.header)
        and all(any(path == other and given <= words for other, given in narrow.json) for path, words in wide.json)
        and all(_finds_at(path, pattern, narrow) for path, pattern in wide.match)
    )


def _has_all(wide: tuple[range, ...] | None, narrow: tuple[range, ...] | None) -> bool:
    if wide is None:
        return True
    return narrow is not None and all(any(status in span for span in wide) for given in narrow for status in given)


def _is_within(narrow: frozenset[str] | frozenset[Phase] | None, wide: frozenset[str] | frozenset[Phase]) -> bool:
    return narrow is not None and narrow <= wide


def _finds_at(path: JsonPath, pattern: Pattern[str], narrow: Condition) -> bool:
    if any(path == other and _finds(pattern, given) for other, given in narrow.match):
        return True
    return any(path == other and all(_finds_word(pattern, word) for word in words) for other, words in narrow.json)


def _finds_word(pattern: Pattern[str], word: str) -> bool:
    """A whole value, known but for its case."""
    if word in _UNSEARCHED or (len(word) > _MAX_DIGITS and word.lstrip("-").isdigit()) or not word.isascii():
        return False
    return "(?" not in pattern.pattern.replace("(?:", "") and pattern.search(word) is not None


def _finds(wide: Pattern[str], narrow: Pattern[str] | None) -> bool:
    """Does `wide` find something in every text in which `narrow` does?"""
    if narrow is None:
        return False
    finder, given = _parts(wide.pattern, wide.flags), _parts(narrow.pattern, narrow.flags)
    if finder is None or given is None:
        return False
    return all(
        one in finder.runs or any(pattern.search(run) for pattern in finder.simple for run in runs)
        for one, runs in given.runs.items()
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """An expression's alternatives, each with the plain text that its matches hold, and those that search alone."""

    runs: Mapping[str, Sequence[str]]
    simple: Sequence[Pattern[str]]


@lru_cache(maxsize=16_384)  # each rule is compared with all before it
def _parts(text: str, flags: int) -> _Parts | None:
    """None for what an alternative alone would misread: flags of its own, references to groups, what is not read."""
    if flags != re.IGNORECASE | re.UNICODE or _REFERS.search(text) or _UNREAD.search(text):
        return None
    runs = {one: _runs(one) for one in _alternatives(text)}
    return _Parts(runs, [re.compile(one, re.IGNORECASE) for one in runs if _DEPENDS.search(one) is None])


def _alternatives(expression: str) -> list[str]:
    """The alternatives of a whole expression; `(?:…)` around one of them is taken off."""
    parts = [expression[start:end] for start, end in _split(expression)]
    if len(parts) > 1:
        return [inner for part in parts for inner in _alternatives(part)]
    if expression.startswith("(?:") and _closing(expression, 0) == len(expression) - 1:
        return _alternatives(expression[3:-1])
    return [expression]


def _split(expression: str) -> Iterator[tuple[int, int]]:
    start = position = 0
    while position < len(expression):
        if expression[position] == "|":
            yield start, position
            start = position + 1
        position = _after(expression, position)
    yield start, len(expression)


def _after(expression: str, position: int) -> int:
    """Where the next piece begins: behind a character, an escape, a class or a group."""
    match expression[position]:
        case "\\":
            return position + 2
        case "[":
            return _class_end(expression, position) + 1
        case "(":
            return _closing(expression, position) + 1
        case _:
            return position + 1


def _class_end(expression: str, start: int) -> int:
    position = start + 1
    if expression[position] == "^":
        position += 1
    if expression[position] == "]":  # first in a class it is a letter
        position += 1
    while expression[position] != "]":
        position += 2 if expression[position] == "\\" else 1
    return position


def _closing(expression: str, start: int) -> int:
    position = start + 1
    while expression[position] != ")":
        position = _after(expression, position)
    return position


def _runs(alternative: str) -> list[str]:
    """Pieces of plain text that every match holds as they stand, but for their case."""
    runs: list[list[str]] = [[]]
    position = 0
    while position < len(alternative):
        repeat = _REPEAT.match(alternative, position)
        piece = repeat[0] if repeat else alternative[position : _after(alternative, position)]
        position += len(piece)
        if repeat:  # perhaps not there at all
            runs[-1] = runs[-1][:-1]
            runs.append([])
        elif (letter := _plain_letter(piece)) is not None:
            runs[-1].append(letter)
        else:
            runs.append([])
    return ["".join(run) for run in runs if run]


def _plain_letter(piece: str) -> str | None:
    if piece[0] == "\\":
        return piece[1] if not piece[1].isalnum() else None
    return piece if len(piece) == 1 and piece not in ".^$+*?{" else None
