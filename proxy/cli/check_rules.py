"""`sluice check-rules`: are the rule files valid, does every recording still get its verdict? (contracts C3, R1, R4)

In: a folder of rules (given, or the configuration's, or the shipped one), the recordings beside it, and its
`verdicts.lock`. Out: the report of `learning.checking`, for a person or as JSON. Exits 0 when nothing is wrong, 1 when
something is, 2 when it could not be told, with file, line and reason. Writes one file, the lock, and only if asked to
accept. Never: goes live with anything.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
import orjson
from rich.console import Console
from rich.progress import track
from rich.text import Text

from proxy.config import load_config
from proxy.errors import ConfigError
from proxy.learning.checking import Move, Progress, Report, RuleFault, check
from proxy.learning.known import evidence_of
from proxy.learning.verdict_lock import LOCK_NAME, named_in, read_lock, write_lock
from proxy.stores.rules import default_rules_dir, load_rules

_NAMED: Final = 20  # so many unproven rules are named one by one


@click.command("check-rules")
@click.option("--config", type=click.Path(path_type=Path), help="Check the rules folder that this configuration names.")
@click.option("--rules", type=click.Path(path_type=Path), help="Check this folder.")
@click.option("--recordings", type=click.Path(path_type=Path), help="Default: recordings/ beside the rules folder.")
@click.option("--accept", is_flag=True, help=f"Write this run's verdicts to {LOCK_NAME} in the rules folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check_rules(config: Path | None, rules: Path | None, recordings: Path | None, accept: bool, as_json: bool) -> int:
    """Validate the rules and replay every recording against them."""
    configured = load_config(config, secrets=False).rules_dir if config is not None else None
    folder = rules or configured or default_rules_dir()
    rule_set = load_rules(folder)
    lock = folder / LOCK_NAME
    # A lock that is broken must not keep anybody from making it anew.
    accepted = None if accept and _is_broken(lock) else read_lock(lock)
    evidence = recordings or folder.resolve().parent / "recordings"
    if recordings is not None and not recordings.is_dir():
        raise ConfigError(str(recordings), None, "is no folder of recordings")
    # Of the shipped recordings those count that these rules, or this lock, name: the set may be a copy of a part.
    named = {place for rule in rule_set.all_rules() for place in rule.evidence} | named_in(lock)
    report = check(rule_set, evidence_of(evidence, named), accepted, _progress_for(as_json))
    if accept:
        if not report.verdicts:
            raise ConfigError(str(evidence), None, "nothing was replayed, so there is no verdict to accept")
        write_lock(lock, report.verdicts)
    if as_json:
        click.echo(orjson.dumps(_as_json(report, accept), option=orjson.OPT_INDENT_2))
    else:
        _Printer(Console(highlight=False, soft_wrap=True)).print(report, folder, accept)
    return 1 if report.faults or (report.moves and not accept) else 0


def _is_broken(lock: Path) -> bool:
    try:
        read_lock(lock)
    except ConfigError:
        return True
    return False


def _progress_for(as_json: bool) -> Progress:
    if as_json or not sys.stderr.isatty():
        return iter
    return lambda recordings: track(recordings, "Replaying", console=Console(stderr=True), transient=True)


def _as_json(report: Report, accepted: bool) -> dict[str, object]:
    value = asdict(report)
    del value["verdicts"]
    return {"accepted": accepted, **value}


class _Printer:
    """Counts first, then what is wrong, then what is unproven. Colours on a terminal alone."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def print(self, report: Report, folder: Path, accepted: bool) -> None:
        self._counts(report, folder)
        self._moves(report, folder, accepted)
        self._list("differ from what is expected", "recordings", [(d.recording, d.reason) for d in report.differences])
        self._list("decide no recording", "rules", _told(report.unreached))
        self._list("are shadowed by an earlier one", "rules", _told(report.shadowed))
        self._list("have no evidence", "rules", _told(report.without_evidence))
        self._unproven(report.unproven)
        if not report.faults and (accepted or not report.moves):
            self._say("nothing is wrong", "green")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style))

    def _counts(self, report: Report, folder: Path) -> None:
        self._say(
            f"{folder}: {report.rules} rules for {report.vendors} vendors, {report.recordings} recordings replayed",
            "bold",
        )
        if report.left_out:
            self._say(f"  {report.left_out} recordings of other APIs left out")
        if not report.recordings:
            self._say("  no recordings beside the rules: nothing was replayed, and nothing compared", "yellow")

    def _moves(self, report: Report, folder: Path, accepted: bool) -> None:
        if report.compared:
            told = f"{len(report.changed)} changed, {len(report.new)} new, {len(report.vanished)} vanished"
            self._say(f"verdicts against {LOCK_NAME}: {told}", "red" if report.moves and not accepted else "")
            for heading, moves in (("changed", report.changed), ("new", report.new), ("vanished", report.vanished)):
                self._moved(heading, moves)
        if accepted:
            self._say(f"accepted {len(report.verdicts)} verdicts: {folder / LOCK_NAME} is written", "green")
        elif report.moves:
            self._say("  if they are meant: sluice check-rules --accept, and have the lock's diff reviewed")
        elif report.recordings and not report.compared:
            self._say(
                f"no {LOCK_NAME} yet, so no verdict was compared: `sluice check-rules --accept` makes one", "yellow"
            )

    def _moved(self, heading: str, moves: Sequence[Move]) -> None:
        for move in moves:
            self._say(f"  {heading}: {move.recording}", "bold")
            if move.old is not None:
                self._say(f"    - {move.old}", "red")
            if move.new is not None:
                self._say(f"    + {move.new}", "green")

    def _list(self, what: str, kind: str, found: Iterable[tuple[str, str]]) -> None:
        rows = list(found)
        self._say(f"{len(rows)} {kind} {what}", "red" if rows else "")
        for name, reason in rows:
            self._say(f"  {name} {reason}")

    def _unproven(self, rules: Sequence[str]) -> None:
        if not rules:
            return
        self._say(f"{len(rules)} rules are unproven, their evidence being composed (no failure; --json names each):")
        if len(rules) <= _NAMED:
            self._say("  " + ", ".join(rules))
            return
        by_vendor = Counter(rule.split(".")[0] for rule in rules)
        self._say("  " + ", ".join(f"{vendor} {count}" for vendor, count in by_vendor.items()))


def _told(faults: Iterable[RuleFault]) -> Iterable[tuple[str, str]]:
    return ((fault.rule, f"({fault.place}) {fault.reason}") for fault in faults)
