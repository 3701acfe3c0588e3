"""A vendor that exists in tests alone, what it answers, and its file after rules were drafted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from functools import cache

import yaml

from proxy.canon.verdict import ErrorClass, Observation, Phase
from proxy.learning.known import shipped_answers
from proxy.learning.likeness import Corpus
from proxy.learning.values import Answer, Draft
from proxy.semantics.rule import VendorProfile
from proxy.semantics.ruleset import parse_rule_files
from proxy.stores.rules import default_rules_dir

TODAY = date(2026, 11, 30)
BARE = "vendor: acme\ndialects: [openai]\nuse: [_infra]\n"


@cache
def shared_texts() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(default_rules_dir().glob("_*.yaml"))}


@cache
def acme(text: str = BARE) -> VendorProfile:
    """The profile of `acme.yaml` with this text, beside the shipped shared files."""
    return parse_rule_files({**shared_texts(), "acme.yaml": text}).profile("acme")


@cache
def shipped_corpus() -> Corpus:
    """Every recorded answer of the shipped set."""
    return Corpus(*shipped_answers())


def answer(
    status: int,
    body: object,
    wanted: ErrorClass,
    *,
    place: str = "",
    code: str | None = None,
    asked: tuple[str, ...] = (),
    headers: dict[str, str] | None = None,
    phase: Phase = Phase.HEAD,
) -> Answer:
    raw = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    observation = Observation("acme", phase, status, headers or {}, raw.encode())
    return Answer(place or f"recordings/acme/probes/{abs(hash(raw)) % 10**8}.jsonl", observation, (wanted,), code,
                  "captured", TODAY, asked)  # fmt: skip


def text_with(drafts: Iterable[Draft], text: str = BARE) -> str:
    """The file after the drafts were written where they say."""
    value = yaml.safe_load(text)
    rules = value.setdefault("rules", [])
    for draft in drafts:
        rule = {
            "id": draft.id, "when": dict(draft.when), "then": dict(draft.then),
            "evidence": list(draft.evidence), "seen": draft.seen, "proof": draft.proof,
        }  # fmt: skip
        places = [one["id"] for one in rules]
        rules.insert(places.index(draft.before) if draft.before is not None else len(rules), rule)
    return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False))
