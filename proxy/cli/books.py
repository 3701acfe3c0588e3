"""What the commands over the books share: where the ledger is, which period, on what terms (contract C3).

In: options as they were given. Out: a place to read from, bounds in microseconds, facts for the head of a report. Bad
input is a `click.UsageError` that says what may be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from proxy.books.period import Period, parse_period, parse_zone
from proxy.books.source import LedgerPlace, LiveLedger, ParquetFolder
from proxy.config import load_config
from proxy.stores.ledger_rows import rfc3339, to_micros


def place_of(config: Path, ledger: Path | None) -> LedgerPlace:
    """The ledger that the configuration names, or an export."""
    if ledger is not None:
        if not ledger.is_dir():
            raise click.UsageError(f"--ledger {ledger}: is no folder; it is what `sluice ledger export --out` wrote")
        return ParquetFolder(ledger)
    settings = load_config(config, secrets=False).ledger
    return LiveLedger(settings.url, settings.journal_dir)


def period_of(text: str, zone: str) -> Period:
    try:
        return parse_period(text, parse_zone(zone))
    except ValueError as error:
        raise click.UsageError(f"--period: {error}") from error


def bounds_of(
    period: str | None, since: datetime | None, until: datetime | None, zone: str
) -> tuple[int | None, int | None, str]:
    """Microseconds from and up to, and the span in words."""
    try:
        parse_zone(zone)
    except ValueError as error:
        raise click.UsageError(f"--time-zone: {error}") from error
    if period is not None:
        if since is not None or until is not None:
            raise click.UsageError("--period and --since or --until say the same: take one")
        span = period_of(period, zone)
        return span.since, span.until, span.text
    first, last = None if since is None else to_micros(since), None if until is None else to_micros(until)
    if first is not None and last is not None and first >= last:
        raise click.UsageError("--since is not before --until")
    words = [
        *([f"from {rfc3339(first)}"] if first is not None else []),
        *([f"before {rfc3339(last)}"] if last is not None else []),
    ]
    return first, last, " and ".join(words) or "all"


@contextmanager
def working(about: str) -> Iterator[None]:
    """A sign of life on a terminal while something long is done."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        progress.add_task(about, total=None)
        yield
