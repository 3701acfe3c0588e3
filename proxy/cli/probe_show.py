"""What `sluice probe` prints: the plan, the table of what the vendor said, what is proposed, what moved (contract C3).

In: the values of a probe. Out: text for a person, in colours on a terminal, or one JSON object for a program on
standard output (the plan then goes to standard error). Never: decides anything, or prints a control character of a
vendor's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy.learning.asking import Subject
from proxy.learning.diffing import diff_of, print_diff, visible
from proxy.learning.drift import Drift
from proxy.learning.judging import Judgement, Outcome
from proxy.learning.keeping import Fate, Kept
from proxy.learning.plan import SPARE, Item, Plan
from proxy.learning.probed import Looked
from proxy.learning.probing import Run
from proxy.learning.proposing import Change
from proxy.learning.ways import describe

_STYLES: Final = {
    Judgement.RIGHT: "green",
    Judgement.WRONG: "bold red",
    Judgement.ACCEPTED: "yellow",
    Judgement.REFUSED: "yellow",
    Judgement.UNSURE: "yellow",
    Judgement.UNHEARD: "yellow",
}
#: A table is never broken to less; a pipe has no width of its own.
_PIPE_WIDTH: Final = 160


@dataclass(frozen=True, slots=True)
class Shown:
    """For whom: `upstream` is its configured name."""

    upstream: str
    subject: Subject
    as_json: bool

    def console(self, *, stderr: bool = False) -> Console:
        console = Console(stderr=stderr, highlight=False, soft_wrap=False)
        return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_PIPE_WIDTH)


# ---- the plan --------------------------------------------------------------------------------------------------------


def show_plan(shown: Shown, plan: Plan, plan_only: bool) -> None:
    """Before anything is sent."""
    if shown.as_json and plan_only:
        _print_json({**_who(shown), "plan": _plan_json(plan)})
        return
    console = shown.console(stderr=shown.as_json)
    subject = shown.subject
    told = f"{shown.upstream}: {subject.profile.vendor} ({subject.upstream.dialect.name}), model {subject.model}"
    console.print(Text(told, "bold"))
    table = Table("probe", "for", box=None, pad_edge=False)
    for name in ("requests", "input tokens", "output tokens at most"):
        table.add_column(name, justify="right")
    for item in plan.items:
        table.add_row(item.probe.name, item.probe.about, *_figures(item))
        for reason in item.left_out:
            table.add_row("", Text(f"left out: {reason}", "yellow"), "", "", "")
    console.print(table)
    price = plan.price
    whose = "the dearest we know of, for want of --price" if plan.is_dear else "as given"
    console.print(
        f"{plan.requests} requests at most, and {SPARE} more where a limit answers; {_dollars(plan.expected_cost)} if "
        f"what should be refused is, {_dollars(plan.most_cost)} at most, at {price.input:g}/{price.output:g} for a "
        f"million tokens ({whose})",
        soft_wrap=True,
    )


def _dollars(cost: float) -> str:
    return f"{cost:.2f} US dollars" if cost >= 0.01 or not cost else "less than 0.01 US dollars"


def _figures(item: Item) -> tuple[str, str, str]:
    return str(item.requests), str(item.most_input), str(item.most_output)


def _plan_json(plan: Plan) -> dict[str, object]:
    return {
        "probes": [
            {
                "name": item.probe.name,
                "about": item.probe.about,
                "requests": item.requests,
                "input_tokens": {"expected": item.expected_input, "most": item.most_input},
                "output_tokens": {"expected": item.expected_output, "most": item.most_output},
                "left_out": item.left_out,
            }
            for item in plan.items
        ],
        "requests": plan.requests,
        "spare_requests": SPARE,
        "price": {**asdict(plan.price), "is_given": not plan.is_dear},
        "cost": {"expected": round(plan.expected_cost, 6), "most": round(plan.most_cost, 6)},
    }


# ---- what came of it -------------------------------------------------------------------------------------------------


def show_looked(shown: Shown, run: Run, looked: Looked, written: bool) -> None:
    """The table, the ways, the proposal."""
    change = looked.change
    diff = diff_of(str(change.file), change.before, change.after)
    if shown.as_json:
        _print_json(_looked_json(shown, run, looked, diff, written))
        return
    console = shown.console()
    console.print(_table(looked))
    for line in describe(looked.ways):
        console.print(Text(visible(line)), soft_wrap=True)
    fates = looked.fates()
    told = ", ".join(f"{fates[fate.value]} {fate.value}" for fate in Fate)
    console.print(f"{run.sent} requests; recordings: {told}")
    for name, reason in looked.unwritten:
        console.print(Text(f"{name}: {reason}", "red"), soft_wrap=True)
    for puzzle in change.puzzles:
        console.print(Text(f"{puzzle.answer.place}: no rule proposed: {puzzle.reason}", "yellow"), soft_wrap=True)
    if change.is_empty:
        console.print(f"{change.file}: nothing to change")
        return
    for way in change.ways:
        console.print(Text(visible(f"{way.key}: {way.reason}")), soft_wrap=True)
    print_diff(console, diff)
    console.print(f"{change.file}: {'written' if written else 'not written; --write writes it'}", soft_wrap=True)


def _table(looked: Looked) -> Table:
    proposed = _proposed(looked.change)
    table = Table(box=None, pad_edge=False)
    for name in ("probe", "the vendor said", "which means", "should mean", "so"):
        table.add_column(name, overflow="fold")
    for one in looked.outcomes:
        so = proposed.get(one.recording) or one.note or one.judgement.value
        table.add_row(
            f"{one.probe} {one.number}",
            Text(_said(one)),
            Text(_means(one)),
            one.wanted or "",
            Text(so, _STYLES[one.judgement]),
        )
    return table


def _said(one: Outcome) -> str:
    words = [str(one.status) if one.status is not None else "nothing", one.vendor_code, one.vendor_message]
    return visible(" ".join(word for word in words if word))


def _means(one: Outcome) -> str:
    what = " ".join(word for word in (one.error_class or one.ending, one.code) if word)
    return f"{what} ({one.rule})" if one.rule else what


def _proposed(change: Change) -> dict[str, str]:
    """By a recording's place: the rule that is proposed for it."""
    drafted = {place: f"rule {draft.id}" for draft in change.drafts for place in draft.evidence}
    return drafted | {proof.evidence: f"proves {proof.rule_id}" for proof in change.proofs}


def _who(shown: Shown) -> dict[str, object]:
    subject = shown.subject
    return {
        "upstream": shown.upstream,
        "vendor": subject.profile.vendor,
        "dialect": subject.upstream.dialect.name,
        "model": subject.model,
    }


def _looked_json(shown: Shown, run: Run, looked: Looked, diff: str, written: bool) -> dict[str, object]:
    change = looked.change
    proposed = _proposed(change)
    return {
        **_who(shown),
        "sent": run.sent,
        "stopped": run.stopped,
        "wrong": looked.wrong,
        "outcomes": [{**asdict(one), "proposed": proposed.get(one.recording)} for one in looked.outcomes],
        "recordings": {
            **{fate.value: [one.recording.name for one in looked.kept if one.fate is fate] for fate in Fate},
            "unwritten": [{"name": name, "reason": reason} for name, reason in looked.unwritten],
        },
        "ways": asdict(looked.ways),
        "proposal": {
            "file": str(change.file),
            "diff": diff,
            "rules": [asdict(draft) for draft in change.drafts],
            "proofs": [asdict(proof) for proof in change.proofs],
            "ways": [asdict(way) for way in change.ways],
            "puzzles": [{"recording": one.answer.place, "reason": one.reason} for one in change.puzzles],
        },
        "written": written,
    }


# ---- what moved ------------------------------------------------------------------------------------------------------


def show_drift(shown: Shown, moved: Sequence[Drift], kept: Sequence[Kept]) -> None:
    compared = sum(one.before is not None for one in kept)
    if shown.as_json:
        _print_json({**_who(shown), "compared": compared, "drift": [asdict(one) for one in moved]})
        return
    console = shown.console()
    for one in moved:
        before, now = visible(one.before), visible(one.now)
        console.print(Text.assemble((f"{one.kind} {visible(one.what)}: ", "bold"), before, " -> ", (now, "red")))
    console.print(f"{shown.upstream}: {compared} answers compared, {len(moved)} moved")


def _print_json(value: object) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))
