"""What is said to be shadowed is: where the later condition holds, the earlier one holds as well (contract R4)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.canon.verdict import Observation, Phase
from proxy.learning.shadowing import covers
from proxy.semantics.classifier import Seen, holds
from proxy.semantics.rule import Condition, VendorProfile
from proxy.semantics.ruleset import parse_rule_files

pytestmark = pytest.mark.clause("R4")

DEFAULT = "fallback:\n  - {status: any, class: model_unavailable}\n"
#: Pieces of expressions that are easy to misread, and of texts in which they do and do not find something.
PIECES = (
    *("a", "b", "ab", "A", "余", "1", "{", "2,3", " ", r"\.", r"\\", "-"),
    *("a?", "b*", "a+", "a{2}", "b{0,1}", "a+?", ".", "[ab]", "[^a]", "[]a]", r"[\]b]"),
    *("^", "$", r"\b", r"\d", r"\w", "(ab)?", "(?:a|b)", "(a|余)", "(?=b)", "(?!b)", "(?<!a)", "(?-i:a)", "a++", "|"),
)
WORDS = ("a", "b", "ab", "aB", "A", "aa", "余", "1", "2,3", "{", ".", "\\", " ", "-", "]", "\n")
STATUSES = (402, 429, 500, 200)


def is_expression(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return bool(text)


@st.composite
def two_expressions(draw: st.DrawFn) -> tuple[str, str]:
    """The second is a whole of which the first is mostly a part, so that it is often covered."""
    pieces = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5))
    start = draw(st.integers(0, len(pieces) - 1))
    part = draw(st.sampled_from(["", "", "", "|b", "a"])) + "".join(pieces[start : draw(st.integers(start + 1, 5))])
    whole = "".join(pieces)
    return (part, whole) if is_expression(part) and is_expression(whole) else ("a", "ab")


texts = st.lists(st.sampled_from(WORDS), max_size=6).map("".join)
values = st.one_of(texts, st.sampled_from([1, 11, True, None, 12345678901234567890, 1.0]))


@st.composite
def two_conditions(draw: st.DrawFn) -> tuple[Mapping[str, object], Mapping[str, object]]:
    pairs: list[dict[str, object]] = [{}, {}]
    part, whole = draw(two_expressions())
    kinds: dict[str, st.SearchStrategy[object]] = {
        "status": st.sampled_from([429, [402, 429], "4xx", "any", ["5xx", 429]]),
        "phase": st.sampled_from(["head", ["head", "mid"], ["head", "first", "mid", "end"]]),
        "json": st.lists(values, min_size=1, max_size=2).map(lambda words: {"error.code": words}),
    }
    for when, expression in zip(pairs, (part, whole), strict=True):
        for key, strategy in kinds.items():
            if draw(st.booleans()):
                when[key] = draw(strategy)
        if not when or draw(st.booleans()):
            when["match"] = {"error.code": expression}
    return pairs[0], pairs[1]


def compiled(when: Mapping[str, object]) -> Condition:
    rule = {"id": "acme.x", "when": when, "then": {"class": "rate_limited", "code": "x"}}
    files = {"acme.yaml": json.dumps({"vendor": "acme", "rules": [rule]}), "_default.yaml": DEFAULT}
    return parse_rule_files(files).profile("acme").rules[0].when


def seen(code: object, status: int = 400, phase: Phase = Phase.HEAD) -> Seen:
    return Seen.of(VendorProfile("acme"), Observation("acme", phase, status, payload={"error": {"code": code}}))


def holds_alone(when: tuple[Mapping[str, object], Mapping[str, object]], answers: Sequence[Seen]) -> list[Seen]:
    """The answers for which the second condition holds and the first, which is said to cover it, does not."""
    earlier, later = compiled(when[0]), compiled(when[1])
    if not covers(earlier, later):
        return []
    return [answer for answer in answers if holds(later, answer) and not holds(earlier, answer)]


@given(two_conditions(), st.lists(values, min_size=5, max_size=10))
def test_a_shadowed_condition_never_holds_alone(
    when: tuple[Mapping[str, object], Mapping[str, object]], codes: list[object]
) -> None:
    """For any two conditions and any answer."""
    answers = [seen(code, status, phase) for code in codes for status in STATUSES for phase in (Phase.HEAD, Phase.MID)]
    assert holds_alone(when, answers) == []


@given(two_expressions(), st.lists(texts, min_size=5, max_size=20))
@example(("2,3", "a{2,3}"), ["aa"])
@example(("ab", "ab?"), ["a"])
@example(("a++b", "xa++b"), ["xab"])
def test_an_expression_that_is_covered_finds_nothing_alone(parts: tuple[str, str], codes: list[str]) -> None:
    """The same for regular expressions, of which far more are alike."""
    wide, narrow = ({"match": {"error.code": expression}} for expression in parts)
    assert holds_alone((wide, narrow), [seen(code) for code in codes]) == []
