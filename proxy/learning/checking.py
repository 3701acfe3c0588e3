"""Are the rules sound, and what did an edit move? Every recording replayed against a rule set (contracts R1, R4).

In: a rule set, recordings, and the verdicts that were last accepted. Out: a `Report`. It names verdicts that moved,
recordings that do not get what they expect, evidence that another rule takes, and rules that nothing reaches, that an
earlier one shadows, or that have no evidence. Never: reads or writes a file, or goes live with anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.learning.replaying import play
from proxy.learning.shadowing import find_shadowed
from proxy.learning.verdict_lock import Judged
from proxy.pipeline.stream import Pipeline
from proxy.semantics.rule import Rule, RuleSet
from proxy.stores.recordings import Recording


@dataclass(frozen=True, slots=True)
class Difference:
    """A recording that did not get what it expects, or a rule whose evidence does not prove it. `rule` is the rule that
    decided, or the one that names what is not there."""

    recording: str
    reason: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A verdict that is not the accepted one; `old` is None for a new recording, `new` for one that is gone."""

    recording: str
    old: Judged | None
    new: Judged | None


@dataclass(frozen=True, slots=True)
class RuleFault:
    """A rule that cannot do its work. `place` is its file and line."""

    rule: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """`left_out`: recordings that no client dialect of this version can replay. `compared`: there were accepted
    verdicts; `verdicts` are this run's, by recording."""

    rules: int
    vendors: int
    recordings: int
    left_out: int
    compared: bool
    changed: tuple[Move, ...]
    new: tuple[Move, ...]
    vanished: tuple[Move, ...]
    differences: tuple[Difference, ...]
    unreached: tuple[RuleFault, ...]
    shadowed: tuple[RuleFault, ...]
    without_evidence: tuple[RuleFault, ...]
    unproven: tuple[str, ...]
    verdicts: Mapping[str, Judged]

    @property
    def moves(self) -> int:
        return len(self.changed) + len(self.new) + len(self.vanished)

    @property
    def faults(self) -> int:
        """What accepting the verdicts does not mend."""
        return len(self.differences) + len(self.unreached) + len(self.shadowed) + len(self.without_evidence)


Progress = Callable[[Sequence[str]], Iterable[str]]


def check(
    rules: RuleSet,
    recordings: Mapping[str, Recording],
    accepted: Mapping[str, Judged] | None = None,
    progress: Progress = iter,
) -> Report:
    """`recordings` by the paths that `evidence:` writes. Without any, nothing can be said about verdicts, evidence and
    what is reached: those lists are empty."""
    proves = _rules_by_evidence(rules)
    differences: list[Difference] = []
    verdicts: dict[str, Judged] = {}
    playable = [place for place, recording in recordings.items() if _is_playable(recording)]
    for place in progress(playable):
        recording = recordings[place]
        if recording.vendor in rules.vendors:
            played = play(rules.profile(recording.vendor), recording)
            verdicts[place] = _judged(played)
            differences += _compare(recording, place, verdicts[place], proves.get(place, ()))
        elif place in proves:
            differences.append(Difference(place, f"there are no rules for its vendor {recording.vendor!r}"))
    if recordings:
        differences += _missing(proves, recordings.keys())
    every = list(rules.all_rules())
    moves = _moves(accepted, verdicts) if accepted is not None and recordings else []
    return Report(
        rules=len(every),
        vendors=len(rules.vendors),
        recordings=len(playable),
        left_out=len(recordings) - len(playable),
        compared=accepted is not None and bool(recordings),
        changed=tuple(move for move in moves if move.old is not None and move.new is not None),
        new=tuple(move for move in moves if move.old is None),
        vanished=tuple(move for move in moves if move.new is None),
        differences=tuple(differences),
        unreached=(*_unused(rules), *(_unreached(every, verdicts) if recordings else ())),
        shadowed=tuple(_shadowed(rules)),
        without_evidence=tuple(_fault(rule, "has no evidence") for rule in every if not rule.evidence),
        unproven=tuple(rule.id for rule in every if rule.proof == "composed"),
        verdicts=verdicts,
    )


def _is_playable(recording: Recording) -> bool:
    """In a dialect that is built? (An operator's own recordings may name others.)"""
    return not recording.dialect or recording.dialect in VENDOR_DIALECTS


def _judged(played: Pipeline) -> Judged:
    facts, verdict = played.facts, played.verdict
    ending = str(facts.ending)
    if verdict is None:
        return Judged(ending, facts.error_class, facts.error_code)
    return Judged(
        ending,
        facts.error_class,
        facts.error_code,
        verdict.status,
        verdict.retryable,
        verdict.retry_after_s,
        facts.rule_id,
    )


def _rules_by_evidence(rules: RuleSet) -> Mapping[str, list[Rule]]:
    proves: dict[str, list[Rule]] = {}
    for rule in rules.all_rules():
        for place in rule.evidence:
            proves.setdefault(place, []).append(rule)
    return proves


def _missing(proves: Mapping[str, Sequence[Rule]], seen: Collection[str]) -> Iterable[Difference]:
    return (
        Difference(place, f"is not there; {rule.id} names it as its evidence", rule.id)
        for place, named in proves.items()
        if place not in seen
        for rule in named
    )


def _compare(recording: Recording, place: str, got: Judged, proves: Sequence[Rule]) -> list[Difference]:
    differences = []
    expected = recording.expect.get("class")
    classes = expected if isinstance(expected, list) else [expected]
    if "class" in recording.expect and got.error_class not in classes:
        wanted = " or ".join(str(one or "no error") for one in classes)
        given = f"{got.error_class} ({got.code})" if got.error_class else "no error"
        differences.append(Difference(place, f"is {given}, expected {wanted}{_by(got)}", got.rule))
    elif (wanted_code := recording.expect.get("code")) is not None and got.code != wanted_code:
        differences.append(Difference(place, f"has the code {got.code}, expected {wanted_code}{_by(got)}", got.rule))
    if proves and got.rule not in [rule.id for rule in proves]:
        named = ", ".join(rule.id for rule in proves)
        taken = f"is taken by {got.rule}" if got.rule else "is taken by no rule"
        differences.append(Difference(place, f"{taken}, not by {named}", got.rule))
    return differences


def _by(got: Judged) -> str:
    return f", by {got.rule}" if got.rule else ", by no rule"


def _moves(accepted: Mapping[str, Judged], verdicts: Mapping[str, Judged]) -> list[Move]:
    return [
        Move(place, accepted.get(place), verdicts.get(place))
        for place in sorted(accepted.keys() | verdicts.keys())
        if accepted.get(place) != verdicts.get(place)
    ]


def _unreached(every: Iterable[Rule], verdicts: Mapping[str, Judged]) -> Iterable[RuleFault]:
    deciding = {judged.rule for judged in verdicts.values()}
    return (_fault(rule, "decides no recording") for rule in every if rule.id not in deciding)


def _unused(rules: RuleSet) -> Iterable[RuleFault]:
    return (_fault(rule, "stands in a shared file that no vendor's `use:` names") for rule in rules.unused)


def _shadowed(rules: RuleSet) -> Iterable[RuleFault]:
    return (
        _fault(shadow.rule, f"never decides: {shadow.by.id} ({shadow.by.file}:{shadow.by.line}) takes all of it before")
        for shadow in find_shadowed(rules)
    )


def _fault(rule: Rule, reason: str) -> RuleFault:
    return RuleFault(rule.id, f"{rule.file}:{rule.line}", reason)
