"""`sluice probe UPSTREAM`: ask a live vendor, record what it says, propose rules for it (contracts C3, R1, R3).

In: a configuration and the name of one of its upstreams. Out: a plan before anything is sent, recordings beside the
rules, a table of what the vendor said and what that means, and a change of its rule file as a diff; `--write` writes
it. With `--watch` nothing is written: what moved since the recordings were taken is told. Exits 0 when all is as it
should be, 1 when an answer does not mean what it should or something moved, 2 when it could not be done. Never: sends
what was not in the plan, or shows a key.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

import click
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from yarl import URL

from proxy.app import upstream as upstream_of
from proxy.cli.probe_show import Shown, show_drift, show_looked, show_plan
from proxy.config import Settings, load_config
from proxy.config.settings import Secret, UpstreamSettings
from proxy.errors import ConfigError, SluiceError
from proxy.learning.asking import Asker, Subject
from proxy.learning.catalogue import BAIT, LONG_TOKENS, MAX_BURST, MAX_LONG_TOKENS, NAMES, Allowed, catalogue
from proxy.learning.drift import drifts
from proxy.learning.keeping import compare, has_probes
from proxy.learning.plan import Plan, Price, chosen, make_plan, parse_price
from proxy.learning.probed import judged_after, known_of, look, write_change
from proxy.learning.probing import Manners, Prober, Run
from proxy.metering.tokens import load_counter
from proxy.semantics.rule import RuleSet
from proxy.stores.rules import default_rules_dir, load_rules
from proxy.upstream.attempts import Upstream
from proxy.upstream.session import Session

#: Headers in which a vendor may want its key, where the configuration gives it as a header.
_KEY_HEADERS: Final = frozenset(("authorization", "api-key", "x-api-key", "x-goog-api-key"))
#: In one piece, as which no key has a larger plan.
_ANY_KEY: Final = "any-key"
#: A shorter value of a header or of the address's query is a version or a flag.
_SECRET_CHARS: Final = 16


def _price(ctx: click.Context, param: click.Parameter, value: str | None) -> Price | None:
    try:
        return parse_price(value) if value is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip()) if value is not None else ()


@dataclass(frozen=True, slots=True)
class _Job:
    """One probe, ready to be run."""

    subject: Subject
    rules: RuleSet
    folder: Path
    recordings: Path
    plan: Plan
    manners: Manners


@click.command(epilog=f"Probes: {', '.join(NAMES)}.")
@click.argument("upstream")
@click.option("--config", "config_file", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option("--model", help="The vendor's name of a model; default: the first that the configuration sends there.")
@click.option("--only", callback=_names, metavar="A,B", help="These probes alone, and the plain answer.")
@click.option("--skip", callback=_names, metavar="A,B", help="Not these.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be sent and what it costs; send nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before sending.")
@click.option("--price", callback=_price, metavar="IN/OUT", help="US dollars for a million tokens, for the plan.")
@click.option("--allow-moderation", is_flag=True, help="Also send texts that moderation should block.")
@click.option("--moderation-text", type=click.File(encoding="utf-8"), help="A text of your own for that.")
@click.option("--allow-burst", type=click.IntRange(2, MAX_BURST), metavar="N", help="Also send up to N.")
@click.option("--long-tokens", type=click.IntRange(1000, MAX_LONG_TOKENS), default=LONG_TOKENS, show_default=True)
@click.option("--recordings", type=click.Path(path_type=Path), help="Default: recordings/ beside the rules folder.")
@click.option("--pause", type=click.FloatRange(0, 3600), default=0.2, show_default=True, help="Seconds between two.")
@click.option("--write", "write_rules", is_flag=True, help="Write the proposed change to the rule file.")
@click.option("--watch", is_flag=True, help="Write nothing; tell what moved since the recordings were taken.")
@click.option("--interval", type=click.FloatRange(1), help="With --watch: again after so many seconds, until it moves.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def probe(
    upstream: str,
    config_file: Path,
    model: str | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    plan_only: bool,
    yes: bool,
    price: Price | None,
    allow_moderation: bool,
    moderation_text: TextIO | None,
    allow_burst: int | None,
    long_tokens: int,
    recordings: Path | None,
    pause: float,
    write_rules: bool,
    watch: bool,
    interval: float | None,
    as_json: bool,
) -> int:
    """Ask the vendor behind UPSTREAM, record what it says, and propose rules for it."""
    if watch and write_rules:
        raise click.UsageError("--watch writes nothing: leave --write out")
    if moderation_text is not None and not allow_moderation:
        raise click.UsageError("--moderation-text needs --allow-moderation")
    settings = load_config(config_file, secrets=not plan_only, upstream=upstream)
    one = _settings_of(settings, upstream, config_file)
    folder = settings.rules_dir or default_rules_dir()
    if write_rules and settings.rules_dir is None:
        reason = "--write needs a rules folder of your own: set `rules:`, at first to a copy of the shipped ones"
        raise ConfigError(str(config_file), None, reason)
    rules = load_rules(folder)
    if plan_only and one.api_key == Secret(""):  # its variable is not set; any key has the same plan
        one = replace(one, api_key=Secret(_ANY_KEY))
    subject = _subject(one, rules, model or _model_of(settings, upstream, config_file))
    bait = _bait(moderation_text) if allow_moderation else ()
    allowed = Allowed(subject.model, _key_of(one) or "", bait, allow_burst or 0, long_tokens)
    probes = chosen(catalogue(allowed), only, skip)
    plan = make_plan(probes, subject.upstream.dialect, subject.profile.request_fields, load_counter(), price)
    shown = Shown(upstream, subject, as_json)
    if plan_only or not (watch and yes):  # what a clock starts speaks only of what it found
        show_plan(shown, plan, plan_only)
    if plan_only:
        return 0
    _confirm(yes)
    place = recordings or _recordings_beside(settings, folder, config_file)
    job = _Job(subject, rules, folder, place, plan, Manners(pause_s=pause))
    return _watch(job, shown, interval) if watch else _learn(job, shown, write_rules)


def _bait(file: TextIO | None) -> tuple[str, ...]:
    if file is None:
        return BAIT
    if text := file.read().strip():
        return (text,)
    raise ConfigError("--moderation-text", None, "the file holds no text")


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SluiceError("nothing was sent: look at the plan, and say --yes where nobody can be asked")
    if not click.confirm("Send this?", err=True):
        raise click.Abort


# ---- who is asked ----------------------------------------------------------------------------------------------------


def _settings_of(settings: Settings, upstream: str, file: Path) -> UpstreamSettings:
    if upstream not in settings.upstreams:
        known = ", ".join(settings.upstreams)
        raise ConfigError(str(file), None, f"there is no upstream {upstream!r}; there are {known}")
    return settings.upstreams[upstream]


def _model_of(settings: Settings, upstream: str, file: Path) -> str:
    for targets in settings.models.values():
        for target in targets:
            if target.upstream == upstream:
                return target.model
    raise ConfigError(str(file), None, f"models: none goes to {upstream}; name one with --model")


def _key_of(one: UpstreamSettings) -> str | None:
    if one.api_key is not None:
        return one.api_key.reveal()
    value = next((value for name, value in one.headers.items() if name.lower() in _KEY_HEADERS), None)
    return value.rpartition(" ")[2] if value is not None else None


def _subject(one: UpstreamSettings, rules: RuleSet, model: str) -> Subject:
    profile = rules.profile(one.vendor)

    def with_key(key: str | None) -> Upstream:
        if one.api_key is not None:
            return upstream_of(replace(one, api_key=Secret(key) if key is not None else None), profile)
        headers = {
            name: value.removesuffix(_key_of(one) or "") + key if name.lower() in _KEY_HEADERS and key else value
            for name, value in one.headers.items()
            if key is not None or name.lower() not in _KEY_HEADERS
        }
        return upstream_of(replace(one, headers=headers), profile)

    values = (*one.headers.values(), *URL(one.base_url).query.values())
    secrets = tuple(value for value in values if len(value) >= _SECRET_CHARS)
    key = _key_of(one)
    return Subject(upstream_of(one, profile), with_key, profile, model, (*secrets, *((key,) if key else ())))


def _recordings_beside(settings: Settings, folder: Path, config_file: Path) -> Path:
    """Beside the rules; the shipped rules may lie where nothing should be written."""
    return (folder if settings.rules_dir is not None else config_file).resolve().parent / "recordings"


# ---- the run ---------------------------------------------------------------------------------------------------------


def _run(job: _Job) -> Run:
    with _progress(job.plan.requests) as tell, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_ask(job, tell))


async def _ask(job: _Job, tell: _Tell) -> Run:
    session = Session()
    try:
        prober = Prober(Asker(job.subject, session), job.subject.profile, job.manners, tell)
        return await prober.run(job.plan)
    finally:
        await session.close()


class _Tell:
    """Moves the bar, if there is one."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total) if progress is not None else None

    def __call__(self, what: str) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, advance=1, description=what)


@contextmanager
def _progress(total: int) -> Iterator[_Tell]:
    if not sys.stderr.isatty():
        yield _Tell(None, total)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Tell(progress, total)


def _learn(job: _Job, shown: Shown, write_rules: bool) -> int:
    known = known_of(job.rules, job.folder, job.recordings)
    run = _run(job)
    stopped = SluiceError(f"upstream {job.subject.upstream.name}: {run.stopped}")
    if not run.heard:
        raise stopped
    vendor = job.subject.profile.vendor
    looked = look(known, vendor, run.heard, job.recordings, job.subject.secrets)
    written = write_rules and not looked.change.is_empty
    if written:
        write_change(looked.change)
        after = judged_after(known, looked, vendor, run.heard)
        looked = replace(looked, outcomes=tuple(after))
    show_looked(shown, run, looked, written)
    if run.stopped is not None:
        raise stopped
    return 1 if looked.wrong else 0


def _watch(job: _Job, shown: Shown, interval: float | None) -> int:
    if not has_probes(job.subject.profile, job.recordings):
        raise SluiceError(f"{job.recordings}: holds no probe of this vendor yet: run it first without --watch")
    while True:
        run = _run(job)
        if run.stopped is not None:
            raise SluiceError(f"upstream {job.subject.upstream.name}: {run.stopped}")
        kept = compare(job.subject.profile, run.heard, job.recordings)
        moved = drifts(job.subject.profile, kept)
        show_drift(shown, moved, kept)
        if moved or interval is None:
            return 1 if moved else 0
        time.sleep(interval)
        profile = load_rules(job.folder).profile(job.subject.profile.vendor)  # an edit counts from the next look on
        job = replace(job, subject=replace(job.subject, profile=profile))
