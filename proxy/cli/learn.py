"""`sluice learn`: work through the inbox of answers that no rule knows (contracts C3, E, R1, R3).

In: an inbox (given, or the configuration's), rules and the recordings beside them. Out: for each group of answers how
often it came, an example, what it may mean and why, and the rule as a diff; on a terminal a question, with `--accept`
the rules of all groups that are sure enough. Exits 0 when nothing is left to decide, 1 when something is, 2 when it
could not be done. Never: writes a rule that moves the verdict of a recording, or touches rules that came with the
package.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import orjson
from rich.console import Console

from proxy.canon.verdict import ErrorClass
from proxy.cli.learn_show import Shown, example_of, show_group, show_known, show_lesson, show_mute
from proxy.config import load_config
from proxy.errors import ConfigError, RuleError
from proxy.learning.drafting import CODES
from proxy.learning.learning import Group, Learner, Lesson, Survey
from proxy.stores.inbox_folder import read_inbox
from proxy.stores.rules import default_rules_dir

_QUESTION: Final = "[w]rite, [c]hoose another class, [s]kip, [d]elete, [q]uit"
_QUESTION_OPEN: Final = "[c]hoose a class, [s]kip, [d]elete, [q]uit"


@click.command("learn")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Its inbox and its rules folder.")
@click.option("--inbox", type=click.Path(path_type=Path), help="Work through this folder.")
@click.option("--rules", type=click.Path(path_type=Path), help="Write into this folder.")
@click.option("--recordings", type=click.Path(path_type=Path), help="Default: recordings/ beside the rules folder.")
@click.option("--accept", is_flag=True, help="Write every rule that is sure enough; ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; ask nothing.")
def learn(
    config_file: Path | None,
    inbox: Path | None,
    rules: Path | None,
    recordings: Path | None,
    accept: bool,
    as_json: bool,
) -> int:
    """Turn answers that no rule knows into rules."""
    inbox, rules_dir = _places(config_file, inbox, rules)
    kept = read_inbox(inbox)
    is_own = rules_dir is not None
    folder = rules_dir or default_rules_dir()
    learner = Learner(folder, recordings or folder.resolve().parent / "recordings", datetime.now(UTC).date())
    session = _Session(learner, learner.survey(kept), is_own, as_json)
    if accept:
        session.accept()
    elif not as_json and _is_terminal():
        session.ask()
    else:
        session.tell()
    return session.end(len(kept))


def _is_terminal() -> bool:
    """Is there somebody who can be asked?"""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _places(config_file: Path | None, inbox: Path | None, rules: Path | None) -> tuple[Path, Path | None]:
    if config_file is None and inbox is None and Path("sluice.yaml").exists():
        config_file = Path("sluice.yaml")
    if config_file is not None:
        settings = load_config(config_file, secrets=False)
        inbox, rules = inbox or settings.ledger.inbox_dir, rules or settings.rules_dir
    if inbox is None:
        raise click.UsageError("whose inbox? name a configuration with --config, or a folder with --inbox")
    return inbox, rules


class _Session:
    """One run over one inbox."""

    def __init__(self, learner: Learner, survey: Survey, is_own: bool, as_json: bool) -> None:
        self._learner, self._survey, self._is_own = learner, survey, is_own
        self._console = Console(highlight=False, quiet=as_json, soft_wrap=True)
        self._as_json = as_json
        self._shown: list[Shown] = []
        self._forgotten = 0

    def tell(self) -> None:
        """Change nothing."""
        show_known(self._console, self._survey.known)
        for number, group in enumerate(self._survey.groups, start=1):
            self._show(number, group)

    def accept(self) -> None:
        """Write what is sure; leave the rest."""
        self._needs_own_rules()
        show_known(self._console, self._survey.known)
        self._forget_known()
        for number, given in enumerate(self._survey.groups, start=1):
            if (group := self._learner.still_open(given)) is None:
                continue
            shown, lesson = self._show(number, group)
            if lesson is None or group.guess is None or not group.guess.sure:
                self._console.print("  not sure enough: left for a person")
            elif lesson.is_sound:
                self._write(shown, lesson)

    def ask(self) -> None:
        """One group after the other, until the person has had enough."""
        show_known(self._console, self._survey.known)
        if self._survey.known and click.confirm("Delete them from the inbox?", default=True):
            self._forget_known()
        for number, given in enumerate(self._survey.groups, start=1):
            if (group := self._learner.still_open(given)) is None:
                continue
            shown, lesson = self._show(number, group)
            if not self._decide(group, shown, lesson):
                for later, left in enumerate(self._survey.groups[number:], start=number + 1):
                    if (still := self._learner.still_open(left)) is not None:
                        self._shown.append(Shown(later, still, None, "", "open"))
                return

    def end(self, kept: int) -> int:
        """What came of it, and the exit code."""
        show_mute(self._console, self._survey.mute)
        is_open = [one for one in self._shown if one.fate != "written" and one.fate != "deleted"]
        left = sum(one.left for one in self._shown)
        if self._as_json:
            click.echo(orjson.dumps(self._as_object(kept), option=orjson.OPT_INDENT_2))
        else:
            written = sum(one.fate == "written" for one in self._shown)
            self._console.print(
                f"{kept} answers in the inbox: {len(self._survey.groups)} groups that no rule knew, {written} learned, "
                f"{len(is_open)} still open"
            )
            if written:
                self._console.print("sluice check-rules shows the verdicts that are new; accept them there.")
        return 1 if is_open or left or self._survey.mute else 0

    # ---- one group

    def _show(self, number: int, group: Group) -> tuple[Shown, Lesson | None]:
        show_group(self._console, group, self._learner.verdict(group.pending[0]), number, len(self._survey.groups))
        guess = group.guess
        lesson, problem = (None, "nothing known is like it")
        if guess is not None:
            lesson, problem = self._try(group, guess.error_class, guess.code)
        shown = Shown(number, group, lesson, problem, "open")
        self._shown.append(shown)
        show_lesson(self._console, shown)
        return shown, lesson

    def _try(self, group: Group, error_class: ErrorClass, code: str) -> tuple[Lesson | None, str]:
        others = [other for other in self._survey.groups if other.pending[0] not in group.pending]
        try:
            return self._learner.propose(group, error_class, code, others), ""
        except RuleError as error:
            return None, str(error)

    def _decide(self, group: Group, shown: Shown, lesson: Lesson | None) -> bool:
        """False: the person has had enough."""
        while True:
            may_write = lesson is not None and lesson.is_sound
            letters = "wcsdq" if may_write else "csdq"
            question = _QUESTION if may_write else _QUESTION_OPEN
            match click.prompt(question, type=click.Choice(list(letters), case_sensitive=False), show_choices=False):
                case "w":
                    assert lesson is not None
                    self._needs_own_rules()
                    self._write(shown, lesson)
                    return True
                case "c":
                    error_class = ErrorClass(click.prompt("class", type=click.Choice([str(one) for one in ErrorClass])))
                    code = click.prompt("code", default=CODES[error_class])
                    lesson, shown.problem = self._try(group, error_class, code)
                    shown.lesson = lesson
                    show_lesson(self._console, shown)
                case "d":
                    self._learner.forget(one.kept for one in group.pending)
                    shown.fate = "deleted"
                    return True
                case "s":
                    return True
                case _:
                    return False

    def _write(self, shown: Shown, lesson: Lesson) -> None:
        shown.written = [str(path) for path in self._learner.write(lesson)]
        shown.fate = "written"
        for path in [str(lesson.file), *shown.written]:
            self._console.print(f"  written: {path}", markup=False)

    def _forget_known(self) -> None:
        self._learner.forget(one.kept for one in self._survey.known)
        self._forgotten = len(self._survey.known)

    def _needs_own_rules(self) -> None:
        if not self._is_own:
            reason = "there is no rules folder of your own: name one with --rules, or set `rules:` in the configuration"
            raise ConfigError("rules", None, f"{reason} (a copy of the shipped ones if you have none)")

    def _as_object(self, kept: int) -> dict[str, object]:
        return {
            "answers": kept,
            "known_now": [
                {"file": str(one.kept.recording.path), "rule": one.rule_id, "class": one.error_class}
                for one in self._survey.known
            ],
            "known_now_deleted": self._forgotten,
            "groups": [one.as_object(example_of(self._learner.rules, one.group)) for one in self._shown],
            "mute": [str(one.recording.path) for one in self._survey.mute],
        }
