"""Rules that know answers nobody listed: unseen rows, and mutations of known and unseen ones that keep their meaning.

`tests/support/error_rows.py` says what a mutation is and which changes are none. Every unseen row must have its class;
of each mutation a few may be lost, because a relay can hide the one word that told two meanings apart.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from functools import cache
from re import Pattern
from typing import Any

import pytest

from proxy.canon.verdict import Phase, Verdict
from proxy.learning.replaying import replay
from proxy.semantics.classifier import classify
from proxy.semantics.envelope import read_envelope
from proxy.semantics.ruleset import RuleSet
from proxy.stores.rules import default_rules_dir, load_rules
from tests.support.error_rows import (
    MUTATIONS,
    ErrorRow,
    Mutation,
    examined_rows,
    known_rows,
    mutated,
    sibling_rows,
    unseen_rows,
)

pytestmark = pytest.mark.clause("E")

NOW = 1_795_996_800.0
#: Of every mutation. What is lost is listed when a test fails.
KEPT = 0.99
#: Through a relay that passes on one message and one code of the vendor's answer.
KEPT_BY_RELAYS = 0.96
#: The same words mean another thing at these: a code or an empty 429 of theirs says nothing to another vendor's rules.
OF_THEIR_OWN = {"qwen_compat", "new_api", "one_api", "litellm", "openrouter"}

UNSEEN = unseen_rows() + examined_rows() + sibling_rows()
KNOWN = known_rows()


@cache
def rules() -> RuleSet:
    return load_rules(default_rules_dir())


def judged(row: ErrorRow) -> Verdict:
    return classify(rules().profile(row.vendor), row.seen, NOW)


def names(rows: list[ErrorRow]) -> list[str]:
    return [row.id for row in rows]


@pytest.mark.parametrize("row", UNSEEN, ids=names(UNSEEN))
def test_an_unseen_answer_gets_its_class(row: ErrorRow) -> None:
    """The whole exchange through the pipeline; an event behind some text as the pipeline shows it."""
    profile = rules().profile(row.vendor)
    found = judged(row).error_class if row.phase is Phase.MID else replay(profile, row.recording).error_class
    assert found in row.classes


@pytest.mark.parametrize("row", [row for row in UNSEEN if row.wait is not None], ids=lambda row: row.id)
def test_a_wait_is_told_in_seconds(row: ErrorRow) -> None:
    """From headers, fields, words, dates, in several languages."""
    assert judged(row).retry_after_s == pytest.approx(row.wait, abs=0.001)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_keeps_the_class(mutation: Mutation) -> None:
    """Other ids, words around the words, other nesting, other places: the same meaning."""
    sound = [row for row in KNOWN + UNSEEN if judged(row).error_class in row.classes]
    made = mutated(sound, mutation)
    lost = [(row.id, judged(row).rule_id, row.body[:200]) for row in made if judged(row).error_class not in row.classes]
    assert len(made) > 50
    assert 1 - len(lost) / len(made) >= KEPT, lost


@pytest.mark.parametrize("relay", ["new_api", "one_api", "openai_compatible", "openrouter", "litellm"])
def test_what_a_relay_passes_on_keeps_its_class(relay: str) -> None:
    """A relay keeps the vendor's first message and its words for it, adds an id, and is judged by its own rules."""
    made = [passed for row in UNSEEN if (passed := passed_on(row, relay)) is not None]
    lost = [(row.id, judged(row).rule_id, row.body[:200]) for row in made if judged(row).error_class not in row.classes]
    assert len(made) > 500
    assert 1 - len(lost) / len(made) >= KEPT_BY_RELAYS, lost


def passed_on(row: ErrorRow, relay: str) -> ErrorRow | None:
    said = read_envelope(None, row.body.encode())
    if row.status < 400 or row.phase is not Phase.HEAD or row.vendor in OF_THEIR_OWN or said.text is not None:
        return None
    if not said.messages:
        return None
    codes = [code for code in said.codes if code != str(row.status)]
    error = {
        "message": f"{said.messages[0]} (request id: 20261130)",
        "type": codes[-1] if len(codes) > 1 else "upstream_error",
        "param": "",
        "code": codes[0] if codes else None,
    }
    body = json.dumps({"error": error}, ensure_ascii=False)
    return ErrorRow(f"{row.id} by {relay}", relay, row.status, body, row.classes)


@pytest.mark.clause("R1")
def test_no_expression_of_a_rule_can_run_away() -> None:
    """No repetition without end inside another: searching a bounded text takes bounded work."""
    assert [(rule_id, found.pattern) for rule_id, found in expressions() if is_nested(parsed(found))] == []


def expressions() -> Iterator[tuple[str, Pattern[str]]]:
    for rule in rules().all_rules():
        yield from ((rule.id, pattern) for _, pattern in (*rule.when.match, *rule.when.header))
        yield from ((rule.id, pattern) for pattern in (rule.when.body, rule.when.comment) if pattern is not None)


def parsed(expression: Pattern[str]) -> Any:
    return importlib.import_module("re._parser").parse(expression.pattern, expression.flags)


def is_nested(tree: Any, inside: bool = False) -> bool:
    """Does a repetition without end stand in one? Repetitions are (least, most, tree) in a tree of tuples and lists."""
    if isinstance(tree, tuple) and len(tree) == 2 and str(tree[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
        endless = tree[1][1] > 10_000
        return (endless and inside) or is_nested(tree[1][2], inside or endless)
    if isinstance(tree, str | bytes) or not hasattr(tree, "__iter__"):
        return False
    return any(is_nested(part, inside) for part in tree)
