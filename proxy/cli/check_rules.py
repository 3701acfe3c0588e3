"""`sluice check-rules`: are the rule files valid, does every recording still get its verdict? (contracts C3, R1, R4)

In: a folder of rules (given, or the configuration's, or the shipped one) and the recordings beside it. Out: which
verdicts differ from what a recording expects, which evidence another rule takes first or is not there, and which rules
rest on composed evidence and so are unproven. Exits 0 when nothing differs, 1 when something does, 2 when the rules are
not valid, with file, line and reason. Never: writes a file, or goes live with anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import orjson
from rich.console import Console
from rich.progress import track

from proxy.config import load_config
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.learning.replaying import replay
from proxy.pipeline.values import Facts
from proxy.semantics.ruleset import Rule, RuleSet
from proxy.stores.recordings import Recording, find_recordings
from proxy.stores.rules import default_rules_dir, load_rules


@dataclass(frozen=True, slots=True)
class Difference:
    """A recording that did not get what it expects, or a rule whose evidence does not prove it. `rule` is the rule that
    decided, or the one that names what is not there."""

    recording: str
    reason: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """`left_out`: recordings that no client dialect of this version can replay."""

    rules: int
    vendors: int
    recordings: int
    left_out: int
    differences: tuple[Difference, ...]
    unproven: tuple[str, ...]


@click.command("check-rules")
@click.option("--config", type=click.Path(path_type=Path), help="Check the rules folder that this configuration names.")
@click.option("--rules", type=click.Path(path_type=Path), help="Check this folder.")
@click.option("--recordings", type=click.Path(path_type=Path), help="Default: recordings/ beside the rules folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check_rules(config: Path | None, rules: Path | None, recordings: Path | None, as_json: bool) -> int:
    """Validate the rules and replay every recording against them."""
    folder = rules or (load_config(config).rules_dir if config is not None else None) or default_rules_dir()
    rule_set = load_rules(folder)
    evidence = recordings or folder.resolve().parent / "recordings"
    found = find_recordings([evidence]) if recordings is not None or evidence.is_dir() else []
    report = check(rule_set, found, evidence.parent, _progress_for(as_json))
    if as_json:
        click.echo(orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2))
    else:
        _print(report, folder)
    return 1 if report.differences else 0


_Progress = Callable[[Sequence[Recording]], Iterable[Recording]]


def _progress_for(as_json: bool) -> _Progress:
    if as_json or not sys.stderr.isatty():
        return lambda recordings: recordings
    return lambda recordings: track(recordings, "Replaying", console=Console(stderr=True), transient=True)


def check(rules: RuleSet, recordings: Sequence[Recording], root: Path, progress: _Progress = iter) -> Report:
    """`root` is the folder that the rules' `evidence:` paths start from."""
    proves = _rules_by_evidence(rules)
    differences: list[Difference] = []
    playable = [recording for recording in recordings if _is_playable(recording)]
    for recording in progress(playable):
        place = _place(recording, root)
        if recording.vendor in rules.vendors:
            facts = replay(rules.profile(recording.vendor), recording)
            differences += _compare(recording, place, facts, proves.get(place, ()))
        elif place in proves:
            differences.append(Difference(place, f"there are no rules for its vendor {recording.vendor!r}"))
    if recordings:
        seen = {_place(recording, root) for recording in recordings}
        differences += [
            Difference(place, "is not there", rule.id)
            for place, named in proves.items()
            if place not in seen
            for rule in named
        ]
    every = list(rules.all_rules())
    unproven = tuple(rule.id for rule in every if rule.proof == "composed")
    return Report(
        len(every), len(rules.vendors), len(playable), len(recordings) - len(playable), tuple(differences), unproven
    )


def _is_playable(recording: Recording) -> bool:
    """In a dialect that is built? (An operator's own recordings may name others.)"""
    return not recording.dialect or recording.dialect in VENDOR_DIALECTS


def _place(recording: Recording, root: Path) -> str:
    path = recording.path.resolve()
    root = root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _rules_by_evidence(rules: RuleSet) -> Mapping[str, list[Rule]]:
    proves: dict[str, list[Rule]] = {}
    for rule in rules.all_rules():
        for place in rule.evidence:
            proves.setdefault(place, []).append(rule)
    return proves


def _compare(recording: Recording, place: str, facts: Facts, proves: Sequence[Rule]) -> list[Difference]:
    differences = []
    got, code = facts.error_class, facts.error_code
    expected = recording.expect.get("class")
    classes = expected if isinstance(expected, list) else [expected]
    if "class" in recording.expect and got not in classes:
        wanted = " or ".join(str(one or "no error") for one in classes)
        differences.append(Difference(place, f"is {got or 'no error'} ({code}), expected {wanted}", facts.rule_id))
    elif (wanted_code := recording.expect.get("code")) is not None and code != wanted_code:
        differences.append(Difference(place, f"has the code {code}, expected {wanted_code}", facts.rule_id))
    if proves and facts.rule_id not in [rule.id for rule in proves]:
        named = ", ".join(rule.id for rule in proves)
        taken = f"is taken by {facts.rule_id}" if facts.rule_id else "is taken by no rule"
        differences.append(Difference(place, f"{taken}, not by {named}", facts.rule_id))
    return differences


def _print(report: Report, folder: Path) -> None:
    click.echo(f"{folder}: {report.rules} rules for {report.vendors} vendors, {report.recordings} recordings replayed")
    if report.left_out:
        click.echo(f"  {report.left_out} recordings of other APIs left out")
    if not report.recordings:
        click.echo("  no recordings beside the rules: nothing was replayed")
    for difference in report.differences:
        click.echo(f"  {difference.recording} {difference.reason}")
    click.echo(f"{len(report.differences)} verdicts differ")
    if report.unproven:
        click.echo(f"{len(report.unproven)} rules are unproven, their evidence being composed:")
        click.echo("  " + ", ".join(report.unproven))
