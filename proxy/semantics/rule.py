"""The values of the rule language: a rule, what it asks, what it says, and what a vendor's file amounts to.

Nothing here reads a file (`rulefile`, `ruleset`) or judges an answer (`classifier`). Contract clauses R1 and C4.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from re import Pattern

from proxy.canon.verdict import ErrorClass, Phase
from proxy.errors import RuleError
from proxy.semantics.paths import JsonPath


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule asks of an observation; None asks nothing, and all that is asked must hold. `json` compares as text
    and without case; `body` sees only bodies that are no JSON."""

    status: tuple[range, ...] | None = None
    header: tuple[tuple[str, Pattern[str]], ...] = ()
    json: tuple[tuple[JsonPath, frozenset[str]], ...] = ()
    match: tuple[tuple[JsonPath, Pattern[str]], ...] = ()
    body: Pattern[str] | None = None
    phase: frozenset[Phase] | None = None
    finish: frozenset[str] | None = None
    event: frozenset[str] | None = None
    comment: Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule says. `retry_after` in seconds is for when the vendor gave no hint; `retry_after_match` and
    `retry_after_json` say where this vendor hides its own."""

    error_class: ErrorClass
    code: str
    status: int | None = None
    retryable: bool | None = None
    retry_after: float | None = None
    retry_after_match: Pattern[str] | None = None
    retry_after_json: JsonPath | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    file: str
    line: int
    when: Condition
    then: Outcome
    evidence: tuple[str, ...]
    seen: date
    proof: str  # captured | simulated | composed


@dataclass(frozen=True, slots=True)
class Fallback:
    """One line of the table at the end of `_default.yaml`: the class of an answer that no rule knows."""

    status: tuple[range, ...]
    error_class: ErrorClass


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """All that is data about one vendor. `finish_reasons` maps the vendor's word to `stop | length | tool_calls |
    content_filter | error`; `end_mark_trusted` is False where a relay invents end marks (contract W5); `key_header`
    names the header for our key where that is not `Authorization: Bearer`; `request_fields` are this vendor's own names
    of request fields, None where it does not take one."""

    vendor: str
    dialect: str = "openai"
    dialects: tuple[str, ...] = ("openai",)
    end_mark_trusted: bool = True
    key_header: str | None = None
    request_fields: Mapping[str, str | None] = field(default_factory=dict)
    finish_reasons: Mapping[str, str] = field(default_factory=dict)
    heartbeats: tuple[Pattern[str], ...] = ()
    rules: tuple[Rule, ...] = ()
    fallback: tuple[Fallback, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Every vendor's profile. `version` is a hash of the texts: equal texts, equal set."""

    vendors: Mapping[str, VendorProfile]
    version: str
    files: tuple[str, ...] = ()

    def profile(self, vendor: str) -> VendorProfile:
        if vendor in self.vendors:
            return self.vendors[vendor]
        near = difflib.get_close_matches(vendor, self.vendors, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(self.vendors))}"
        raise RuleError(f"{vendor}.yaml", None, f"there are no rules for the vendor {vendor!r}{hint}")

    def all_rules(self) -> Iterator[Rule]:
        """Each rule once, though shared ones stand in many profiles."""
        seen: set[str] = set()
        for profile in self.vendors.values():
            for rule in profile.rules:
                if rule.id not in seen:
                    seen.add(rule.id)
                    yield rule
