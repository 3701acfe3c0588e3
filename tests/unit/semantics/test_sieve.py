"""Looking for words first finds what searching finds: for every expression that is shipped, and for any other."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from re import Pattern

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.semantics.classifier import classify
from proxy.semantics.rule import RuleSet
from proxy.semantics.scrub import scrub
from proxy.semantics.sieve import Sieve, Texts, alternatives, fold
from proxy.stores.rules import default_rules_dir, load_rules
from tests.support.error_rows import ErrorRow, known_rows, unseen_rows

pytestmark = pytest.mark.clause("R1")

NOW = 1_795_996_800.0
#: Letters that are another one to an expression without case, grow when they are folded, or join what stands around.
ODD = ("ſ", "\u212a", "ı", "İ", "i\u0307", "ß", "ẞ", "ﬁ", "ς", "Σ", "µ", "\u0345", "\u200c", "\ud83d", "👋🏽", "ک", "ु")
#: Pieces of expressions, among them those of which nothing may be concluded.
PIECES = (
    *("key", "Limit", "余额", "ſs", "İ", "ß", " ", r"\.", r"\|", r"\(", "{", "a{2|3}", "s?", "x*", "ab+", "(?:no ){2}"),
    *("(key|tok|)", "(?:limit|rate)", "(a|b)", "[|]", "[]|(]", r"[^\]|)]", "[-_]", ".", r"\w", "^", "$", r"\b", "|"),
    *("(?=key)", "(?!key)", "(?<!no )", "(?-i:Key)", "(?i:x|y)", r"(ab)\1", "(?P<n>ab)(?P=n)", "(?#a|b)", "(?>ab|a)"),
    *("(?x:a # |)\n)", "a++", "(?s)", "(?x)"),
)


@cache
def shipped() -> RuleSet:
    return load_rules(default_rules_dir())


def expressions() -> Iterator[Pattern[str]]:
    for rule in shipped().all_rules():
        yield from (pattern for _, pattern in rule.when.match)
        if rule.when.body is not None:
            yield rule.when.body


@cache
def sieves() -> list[tuple[Pattern[str], Sieve]]:
    return [(pattern, Sieve.of(pattern)) for pattern in dict.fromkeys(expressions())]


@cache
def words() -> list[str]:
    """The words of the expressions themselves, with the spaces between them."""
    found = (word for pattern, _ in sieves() for word in re.findall(r"(?:[^\W_]| (?=\w))+", pattern.pattern))
    return sorted(set(found))


def spelled(word: str) -> st.SearchStrategy[str]:
    """As it stands, in other case, with odd letters for plain ones, or a piece of it."""
    odd = word.replace("s", "ſ").replace("k", "\u212a").replace("i", "İ")
    cut = st.builds(lambda start, end: word[start:end], st.integers(0, 3), st.integers(1, 9))
    return st.one_of(st.sampled_from([word, word, word.upper(), word.title(), odd, word.replace("i", "ı")]), cut)


pieces = st.one_of(
    st.deferred(lambda: st.sampled_from(words())).flatmap(spelled),
    st.sampled_from([" ", "_", "-", ".", ": ", "\n", "0", *ODD]),
    st.text(max_size=3),
)
texts = st.builds(str.join, st.sampled_from(["", " ", " ", "_"]), st.lists(pieces, max_size=25))


@given(texts)
@example("İnsufficient_quota toKen expıred")
@example("余额不足")
def test_what_is_shipped_finds_what_a_search_finds(text: str) -> None:
    """Every expression of every rule, in texts made of the words that the rules look for."""
    seen = Texts.of([text])
    differ = [pattern.pattern for pattern, sieve in sieves() if sieve.finds_any(seen) is not bool(pattern.search(text))]
    assert differ == []


@st.composite
def compiled(draw: st.DrawFn) -> Pattern[str]:
    expression = "".join(draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7)))
    expression = draw(st.sampled_from([expression, f"(?:{expression})", f"(?:{expression})|(?:{expression[::-1]})"]))
    try:
        return re.compile(expression, draw(st.sampled_from([re.IGNORECASE, re.IGNORECASE, re.NOFLAG, re.DOTALL])))
    except re.error:
        return re.compile("key|limit", re.IGNORECASE)


NEAR = ("key", "KEY", "limit", "rate", "tok", "余额", "SS", "ab", "a", "x", "s", "no ", "{2", "3}", *"|()]-#.", *ODD)
near = st.lists(st.sampled_from(NEAR)).map("".join)


@pytest.mark.filterwarnings("ignore:Possible nested set")
@given(compiled(), st.lists(near, min_size=1, max_size=6))
@example(re.compile(r"(?:(a)|(b)\2)", re.IGNORECASE), ["bb", "b"])
@example(re.compile("(?x: a # )|b\n c)|d"), ["ac", "d", "b"])
@example(re.compile("[]|a]b|(?:c|d)e", re.IGNORECASE), ["|b", "ce", "de", "d"])
@example(re.compile("(?:a)|(?:b)c", re.IGNORECASE), ["b", "bc"])
def test_any_expression_finds_what_a_search_finds(pattern: Pattern[str], several: list[str]) -> None:
    """Also with references, comments, flags and odd classes, which are left to the engine; in one of several texts."""
    sieve = Sieve.of(pattern)
    found = [text for text in several if pattern.search(text)]
    assert sieve.finds_any(Texts.of(several)) is bool(found)
    assert all(sieve.may_find(fold(text)) for text in found)


def test_letters_that_are_one_to_an_expression_fold_to_one() -> None:
    """All of Unicode: the engine's own equality of letters without case is asked, letter by letter."""
    letters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    cased = "".join(letter for letter in letters if not letter.lower() == letter.upper() == letter)
    differ = [
        (letter, other)
        for letter in cased
        for other in re.findall(re.escape(letter), cased, re.IGNORECASE)
        if fold(letter) != fold(other)
    ]
    assert differ == []
    assert len(cased) > 2_000


@given(st.text(), st.text(), texts)
def test_what_stands_in_a_text_stands_in_it_folded(before: str, behind: str, inner: str) -> None:
    """Letter by letter, whatever stands around: no final sigma, no joining."""
    assert fold(before + inner + behind) == fold(before) + fold(inner) + fold(behind)


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("quota", ["quota"]),
        ("quota|余额", ["quota", "余额"]),
        ("(?:a|b)|(?:c(d|e))", ["a", "b", "c(d|e)"]),
        ("(?:a|b)c", ["(?:a|b)c"]),
        ("(a|b)", ["(a|b)"]),
        (r"a\|b|[|]|[]|]|[^]|]|\[|c", [r"a\|b", "[|]", "[]|]", "[^]|]", r"\[", "c"]),
        ("(?:a)(?:b)", ["(?:a)(?:b)"]),
        ("a||b", ["a", "", "b"]),
    ],
)
def test_an_expression_is_taken_apart_into_its_alternatives(expression: str, parts: list[str]) -> None:
    """At bars that are neither escaped nor in a class or a group."""
    assert alternatives(expression) == parts


def test_most_of_what_is_shipped_is_told_by_words() -> None:
    """An expression of which nothing is known is searched for in every answer: they stay few."""
    unknown = [pattern.pattern for pattern, sieve in sieves() if not sieve.words]
    assert len(unknown) * 10 <= len(sieves()), unknown


@cache
def rows() -> list[ErrorRow]:
    odd = {ord("s"): "ſ", ord("k"): "\u212a"}
    unseen = unseen_rows()
    return [*known_rows(), *unseen, *(replace(row, body=row.body.translate(odd)) for row in unseen)]


@pytest.mark.clause("E")
def test_verdicts_are_those_of_plain_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recorded and every unseen answer, also with odd letters in its words."""
    sieved = [classify(shipped().profile(row.vendor), row.seen, NOW) for row in rows()]
    monkeypatch.setattr(Sieve, "of", lambda pattern: Sieve((), 0, ((pattern.search, ()),)))
    monkeypatch.setattr(Sieve, "may_find", lambda *_: True)
    plain = load_rules(default_rules_dir())
    assert [classify(plain.profile(row.vendor), row.seen, NOW) for row in rows()] == sieved


@pytest.mark.clause("Q2")
def test_what_is_taken_out_is_what_searching_takes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what callers are shown."""
    shown = [scrub(row.body) for row in rows()]
    monkeypatch.setattr(Sieve, "may_find", lambda *_: True)
    assert [scrub(row.body) for row in rows()] == shown
