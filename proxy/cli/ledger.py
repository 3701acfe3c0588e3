"""`sluice ledger export`: the ledger as lines, a table or Parquet (contract C3, C5, L4).

In: a configuration file, without the vendors' keys, and a span of time. Out: one row per attempt on standard output,
ordered by its start, the same bytes for the same ledger and options; how many on standard error. It reads beside a
running proxy or after a dead one, takes no lock and writes nothing. Rows go out as they are read: memory does not grow
with the ledger.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Final

import click
import orjson
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from proxy.config import LedgerSettings, load_config
from proxy.stores.ledger_read import read_flat, read_json
from proxy.stores.ledger_rows import FLAT_COLUMNS, to_micros

_FLUSH_BYTES = 64 * 1024
_CANNOT = 2


class Moment(click.ParamType[datetime]):
    """A moment as RFC 3339 has it, or a day (its first moment). Without a zone it is UTC."""

    name = "moment"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no moment; write 2026-01-31 or 2026-01-31T12:00:00Z", param, ctx)


class _LazyLedger(click.Group):
    """Its further commands are imported when they are called: they need what an export does not."""

    _MORE: Final = {
        "prune": ("proxy.cli.ledger_prune", "ledger_prune"),
        "reprice": ("proxy.cli.ledger_reprice", "ledger_reprice"),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self._MORE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._MORE:
            return super().get_command(ctx, cmd_name)
        module, name = self._MORE[cmd_name]
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command), name
        return command


@click.group(cls=_LazyLedger)
def ledger() -> None:
    """Look into the ledger, export it, price it again, prune it."""


@ledger.command()
@click.option("--config", "config_file", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv", "parquet"]),
    default="jsonl",
    show_default=True,
    help="parquet is a folder with a file for each day.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where parquet goes.")
@click.option("--since", type=Moment(), metavar="T", help="Attempts that started at T or later.")
@click.option("--until", type=Moment(), metavar="T", help="Attempts that started before T.")
@click.option("--json", "as_json", is_flag=True, help="Say how many in JSON.")
def export(
    config_file: Path, form: str, out: Path | None, since: datetime | None, until: datetime | None, as_json: bool
) -> int:
    """Write the rows of the ledger to standard output, or days of Parquet to a folder."""
    if (form == "parquet") != (out is not None):
        click.echo("sluice: --format parquet and --out DIR go together", err=True)
        return _CANNOT
    if since is not None and until is not None and to_micros(since) > to_micros(until):
        click.echo(f"sluice: --since {since.isoformat()} is later than --until {until.isoformat()}", err=True)
        return _CANNOT
    place = load_config(config_file, secrets=False).ledger
    if out is not None:
        return _export_days(place, out, since, until, as_json)
    if form == "csv":
        blobs = csv_lines(read_flat(place.url, place.journal_dir, since, until))
    else:
        blobs = (line + b"\n" for line in read_json(place.url, place.journal_dir, since, until))
    try:
        lines = write_all(blobs, sys.stdout.buffer)
    except BrokenPipeError:  # `| head` has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    rows = lines - 1 if form == "csv" else lines
    if as_json:
        click.echo(orjson.dumps({"rows": rows}), err=True)
    elif sys.stderr.isatty():
        click.echo(f"{rows} attempts", err=True)
    return 0


def _export_days(
    place: LedgerSettings, out: Path, since: datetime | None, until: datetime | None, as_json: bool
) -> int:
    """Days that are over, unless --until says otherwise; one of which an attempt still runs is left for later."""
    from proxy.stores.parquet import export_parquet, today  # DuckDB, which the other forms do not need

    last = today() if until is None else to_micros(until)
    first = None if since is None else to_micros(since)
    try:
        done = export_parquet(place.url, place.journal_dir, out, first, last)
    except OSError as problem:
        click.echo(f"sluice: {out} cannot be written: {problem.strerror or problem}", err=True)
        return _CANNOT
    left = [str(day) for day in done.still_open]
    if as_json:
        days = {str(day): rows for day, rows in done.days}
        click.echo(orjson.dumps({"rows": done.rows, "days": days, "still_open": left}), err=True)
    elif sys.stderr.isatty() or left:
        click.echo(f"{done.rows} attempts of {len(done.days)} days in {out}", err=True)
        for day in left:
            click.echo(f"  {day} is left for later: attempts of it still run", err=True)
    return 0


def csv_lines(rows: Iterable[dict[str, object]]) -> Iterator[bytes]:
    """A line of names, then a line per row (RFC 4180). Null is empty, truth is `true` or `false`."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(FLAT_COLUMNS)
    yield _taken(buffer)
    for row in rows:
        writer.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in row.values()])
        yield _taken(buffer)


def _taken(buffer: io.StringIO) -> bytes:
    line = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return line


def write_all(blobs: Iterable[bytes], out: BinaryIO) -> int:
    """How many were written."""
    count, waiting, size = 0, [], 0
    with _counting() as progress:
        for count, blob in enumerate(blobs, start=1):
            waiting.append(blob)
            size += len(blob)
            if size >= _FLUSH_BYTES:
                out.write(b"".join(waiting))
                waiting, size = [], 0
                progress.update(progress.task_ids[0], completed=count)
        out.write(b"".join(waiting))
        out.flush()
    return count


@contextmanager
def _counting() -> Iterator[Progress]:
    """A count that moves, on a terminal only. There is no total: knowing it would mean reading all twice."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} attempts"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task("export", total=None)
        yield progress
