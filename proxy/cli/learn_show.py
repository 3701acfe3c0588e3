"""How `sluice learn` shows a group of answers and what would be written for it (contract C3).

In: groups and lessons. Out: lines on a console, or values for JSON. Never: a control character of a vendor's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.console import Console
from rich.text import Text

from proxy.canon.verdict import Verdict
from proxy.learning.diffing import diff_of, print_diff, visible
from proxy.learning.learning import Group, KnownNow, Lesson
from proxy.learning.replaying import WALL
from proxy.semantics.classifier import classify
from proxy.semantics.rule import RuleSet
from proxy.stores.inbox_folder import LIMIT_COUNT, Kept

_MAX_MESSAGE = 300
_MAX_LISTED = 5


@dataclass(slots=True)
class Shown:
    """A group as it was shown, and what became of it. `problem`: why there is no lesson."""

    number: int
    group: Group
    lesson: Lesson | None
    problem: str
    fate: Literal["open", "written", "deleted"]
    written: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Answers that what was written does not know."""
        if self.fate != "written" or self.lesson is None:
            return 0
        return len(self.group.pending) - len(self.lesson.taken)

    def as_object(self, example: Verdict) -> dict[str, object]:
        group, lesson, guess = self.group, self.lesson, self.group.guess
        return {
            "vendor": group.vendor,
            "count": group.count,
            "wordings": len(group.pending),
            "first_seen": group.first,
            "last_seen": group.last.isoformat(timespec="seconds"),
            "files": [str(one.kept.recording.path) for one in group.pending],
            "example": {
                "status": example.vendor_status,
                "code": example.vendor_code,
                "message": example.vendor_message,
            },
            "guess": None
            if guess is None
            else {
                "class": str(guess.error_class),
                "code": guess.code,
                "sure": guess.sure,
                "likeness": guess.likeness,
                "reason": guess.reason,
            },
            "diff": diff_of(str(lesson.file), lesson.before, lesson.after) if lesson is not None else "",
            "rules": [draft.id for draft in lesson.drafts] if lesson is not None else [],
            "not_told_apart": _left_of(lesson),
            "would_move": list(lesson.moved) if lesson is not None else [],
            "problem": self.problem,
            "fate": self.fate,
            "recordings": self.written,
        }


def example_of(rules: RuleSet, group: Group) -> Verdict:
    """The most frequent answer of the group, with what its vendor said."""
    return classify(rules.profile(group.vendor), group.pending[0].answer.observation, WALL)


def show_known(console: Console, known: Sequence[KnownNow]) -> None:
    if known:
        console.print(f"{len(known)} answers are known by now:")
        for one in known[:_MAX_LISTED]:
            told = f"  {one.kept.recording.vendor} {one.kept.recording.name}: {one.error_class} by {one.rule_id}"
            console.print(visible(told), markup=False)
        if len(known) > _MAX_LISTED:
            console.print(f"  and {len(known) - _MAX_LISTED} more")


def show_mute(console: Console, mute: Sequence[Kept]) -> None:
    if mute:
        console.print("Nothing can be learned from these; look at them, and delete them:")
        for one in mute:
            console.print(visible(f"  {one.recording.path}"), markup=False)


def show_group(console: Console, group: Group, example: Verdict, number: int, groups: int) -> None:
    often = f"{group.count:,} times" if group.count != 1 else "once"
    if any(one.kept.count >= LIMIT_COUNT for one in group.pending):
        often = f"{group.count:,} times or more"
    wordings = f", {len(group.pending)} wordings" if len(group.pending) > 1 else ""
    span = f"first {visible(group.first) or 'unknown'}, last {group.last:%Y-%m-%d %H:%M} UTC"
    console.print()
    console.print(Text.assemble((f"{number}/{groups}  {group.vendor}", "bold"), f": {often}{wordings}, {span}"))
    code = f", code {visible(example.vendor_code)}" if example.vendor_code else ""
    body = group.pending[0].kept.recording.body[:_MAX_MESSAGE].decode("utf-8", "replace")
    message = visible(" ".join((example.vendor_message or body or "nothing in it").split()))
    console.print(f"  status {example.vendor_status}{code}: {message[:_MAX_MESSAGE]}", markup=False)


def show_lesson(console: Console, shown: Shown) -> None:
    lesson, guess = shown.lesson, shown.group.guess
    if lesson is None:
        console.print(visible(f"  no proposal: {shown.problem}"), markup=False)
        return
    reason = "as you say"
    if guess is not None and guess.error_class is lesson.error_class:
        reason = guess.reason if guess.sure else f"{guess.reason}; not sure"
    console.print(visible(f"  proposed: {lesson.error_class} ({lesson.code}); {reason}"), markup=False)
    for told in _left_of(lesson):
        console.print(visible(f"  stays: {told}"), markup=False)
    if lesson.moved:
        console.print("  cannot be written: it would move the verdict of recordings:")
        for told in lesson.moved[:_MAX_LISTED]:
            console.print(visible(f"    {told}"), markup=False)
    elif not lesson.taken:
        console.print("  cannot be written: no rule was found that knows it and nothing else")
    else:
        print_diff(console, diff_of(str(lesson.file), lesson.before, lesson.after))


def _left_of(lesson: Lesson | None) -> list[str]:
    if lesson is None:
        return []
    return [f"{puzzle.answer.place.rsplit('/', 1)[-1]}: {puzzle.reason}" for puzzle in lesson.left]
