"""The values of the rule language: a rule, what it asks, what it says, and what a vendor's file amounts to.

Nothing here reads a file (`rulefile`, `ruleset`) or judges an answer (`classifier`). Contract clauses R1 and C4.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, tzinfo
from itertools import chain
from re import Pattern
from typing import Literal

from proxy.canon.usage import Place
from proxy.canon.verdict import ErrorClass, Phase
from proxy.errors import RuleError
from proxy.semantics.paths import JsonPath
from proxy.semantics.sieve import Sieve


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule asks of an observation; None asks nothing, and all that is asked must hold. `json` compares as text
    and without case; `body` sees only bodies that are no JSON. `statuses`, `sieves` (of `match`, in its order) and
    `body_sieve` are the same, made ready for the classifier."""

    status: tuple[range, ...] | None = None
    header: tuple[tuple[str, Pattern[str]], ...] = ()
    json: tuple[tuple[JsonPath, frozenset[str]], ...] = ()
    match: tuple[tuple[JsonPath, Pattern[str]], ...] = ()
    body: Pattern[str] | None = None
    phase: frozenset[Phase] | None = None
    finish: frozenset[str] | None = None
    event: frozenset[str] | None = None
    comment: Pattern[str] | None = None
    statuses: frozenset[int] | None = field(init=False, compare=False, repr=False)
    sieves: tuple[tuple[JsonPath, Sieve], ...] = field(init=False, compare=False, repr=False)
    body_sieve: Sieve | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        made = {
            "statuses": None if self.status is None else frozenset(chain(*self.status)),
            "sieves": tuple((path, Sieve.of(pattern)) for path, pattern in self.match),
            "body_sieve": None if self.body is None else Sieve.of(self.body),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)  # frozen for everybody else


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
    """One rule as written. A rule that nobody has seen at work yet has no `evidence`, no `seen` and no `proof`
    (`captured | simulated | composed`); there is never only a part of the three."""

    id: str
    file: str
    line: int
    when: Condition
    then: Outcome
    evidence: tuple[str, ...] = ()
    seen: date | None = None
    proof: str | None = None


@dataclass(frozen=True, slots=True)
class Fallback:
    """One line of the table at the end of `_default.yaml`: the class of an answer that no rule knows."""

    status: tuple[range, ...]
    error_class: ErrorClass


EndMark = Literal["sent", "never"]
TextMode = Literal["delta", "cumulative", "final_repeat"]
UsageScope = Literal["final", "cumulative", "increments", "absent"]
UsageUnit = Literal["tokens", "characters"]
UsageSource = Literal["vendor", "relay"]


@dataclass(frozen=True, slots=True)
class UsageWays:
    """How a vendor reports usage. `at` are places of its object besides those that the dialect's reader knows; `scope`:
    the last report counts (`final`, `cumulative`), all are added up (`increments`), or there is none (`absent`);
    `reasoning` and `cache`: whether its output and its input hold them. None: the dialect's reader knows. `unit`: what
    its figures count; `source`: who counted, the vendor or a relay in its place; `untrusted`: figures of it that are
    known to be wrong, and count as not told; `billed_input` and `billed_output`: where in the object a second scale
    stands that the vendor charges by."""

    at: tuple[JsonPath, ...] = ()
    scope: UsageScope | None = None
    reasoning: Place | None = None
    cache: Place | None = None
    unit: UsageUnit = "tokens"
    source: UsageSource = "vendor"
    untrusted: frozenset[str] = frozenset()
    billed_input: JsonPath | None = None
    billed_output: JsonPath | None = None


@dataclass(frozen=True, slots=True)
class StreamWays:
    """How a vendor speaks its usual dialect. `end_mark`: does it send one (`[DONE]` or the family's own), None if that
    is not known; `untrusted_finishes` are finish words, in lower case, that it also says before the end; `text_mode`:
    texts are increments, or each event repeats all so far, or the last one does."""

    end_mark: EndMark | None = None
    untrusted_finishes: frozenset[str] = frozenset()
    text_mode: TextMode = "delta"
    usage: UsageWays = UsageWays()


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """All that is data about one vendor. `finish_reasons` maps the vendor's word to `stop | length | tool_calls |
    content_filter | error`; `end_mark_trusted` is False where a relay invents end marks (contract W5); `key_header`
    names the header for our key where that is not `Authorization: Bearer`; `request_fields` are this vendor's own names
    of request fields, None where it does not take one; `deadlines` are seconds by name, where the configuration says
    none; `ways` are those of its usual dialect; `time_zone` is that of dates which do not say theirs, None if nobody
    knows; `token_route` is the dialect in which it takes token ids, None where it takes none."""

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
    ways: StreamWays = StreamWays()
    deadlines: Mapping[str, float] = field(default_factory=dict)
    time_zone: tzinfo | None = None
    token_route: str | None = None

    def speaking(self, dialect: str) -> VendorProfile:
        """The profile for an answer in this dialect: one that is not the usual has the ways of its family (xAI counts
        reasoning beside its output in chat completions, and inside it in responses). Who counts stays the same."""
        if dialect == self.dialect:
            return self
        return replace(self, ways=StreamWays(usage=UsageWays(source=self.ways.usage.source)))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Every vendor's profile. `version` is a hash of the texts: equal texts, equal set. `unused` are the rules of
    shared files that no vendor takes in."""

    vendors: Mapping[str, VendorProfile]
    version: str
    files: tuple[str, ...] = ()
    unused: tuple[Rule, ...] = ()

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
