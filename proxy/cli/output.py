"""How a report leaves the command line: as a table, for a program, as a spreadsheet or a page (contract C3).

In: a document and what was asked with `--format`, `--json`, `--out`, `--table` and `--exact`. Out: bytes on standard
output, or a whole file. Never: a form that is nothing to read on a terminal, or half a file.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from proxy.books.document import Document
from proxy.stores.whole_file import write_whole

FORMATS: Final = ("table", "json", "csv", "xlsx", "parquet", "html")
_FOR_FILES: Final = ("xlsx", "parquet", "html")
_ENDINGS: Final = {"htm": "html", "txt": "table"}


@dataclass(frozen=True, slots=True)
class Output:
    """`form` is one of `FORMATS`; `out` None is standard output; `table` the only one to write, None all, or the first
    where a form has room for one; `exact` shows money to the last nano-unit where it is shown to a person."""

    form: str
    out: Path | None = None
    table: str | None = None
    exact: bool = False


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a report. The command is called with `output`, an `Output`, in their place."""

    @functools.wraps(command)
    def called(
        *arguments: Any, form: str | None, as_json: bool, out: Path | None, table: str | None, exact: bool, **rest: Any
    ) -> Any:
        return command(*arguments, output=_output(form, as_json, out, table, exact), **rest)

    options = (
        click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the ending of --out, or table."),
        click.option("--json", "as_json", is_flag=True, help="Short for --format json."),
        click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write to a file."),
        click.option("--table", metavar="NAME", help="Only this table; csv and parquet write the first if left out."),
        click.option("--exact", is_flag=True, help="Show money to its last digit, in tables and on pages."),
    )
    for option in reversed(options):
        called = option(called)
    return called


def _output(form: str | None, as_json: bool, out: Path | None, table: str | None, exact: bool) -> Output:
    """What was asked. Raises `click.UsageError` for what contradicts itself, before anything is computed."""
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} are two forms: take one")
    form = "json" if as_json else form
    if form is None and out is not None:
        ending = out.suffix.removeprefix(".").lower()
        form = _ENDINGS.get(ending, ending)
        if form not in FORMATS:
            raise click.UsageError(f"--out {out}: its ending names no form; add --format, one of {', '.join(FORMATS)}")
    form = form or "table"
    if out is None and form in _FOR_FILES and sys.stdout.isatty():
        raise click.UsageError(f"--format {form} is nothing to read on a terminal: add --out FILE.{form}")
    return Output(form, out, table, exact)


def write_document(document: Document, output: Output) -> None:
    """Write it, a file whole or not at all. Raises `click.ClickException` for a table that the document has not, one
    that the form cannot hold, and a file that cannot be written."""
    rendered = render(document, output)
    if output.out is not None:
        try:
            write_whole(output.out, rendered)
        except OSError as error:
            raise click.UsageError(f"--out {output.out}: {error.strerror or error}") from error
        return
    try:
        sys.stdout.buffer.write(rendered)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # `| head` has what it wanted; nor may Python, at its end, try to write the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def render(document: Document, output: Output) -> bytes:
    """The document in the form that was asked."""
    # Each form is imported where it is asked for: a table on a terminal need not wait for DuckDB and a spreadsheet's
    # writer to load.
    document = _narrowed(document, output.table)
    match output.form:
        case "json":
            from proxy.books.render.data import render_json

            return render_json(document)
        case "csv":
            from proxy.books.render.data import render_csv

            return render_csv(document.tables[0])
        case "parquet":
            from proxy.books.render.parquet import render_parquet

            return render_parquet(document.tables[0])
        case "xlsx":
            from proxy.books.render.xlsx import TooLarge, render_xlsx

            try:
                return render_xlsx(document)
            except TooLarge as error:
                raise click.UsageError(f"--format xlsx: {error}") from error
        case "html":
            from proxy.books.render.html import render_html

            return render_html(document, exact=output.exact).encode()
        case _:
            from proxy.books.render.terminal import render_text

            console = Console()
            is_terminal = output.out is None and console.is_terminal
            width = console.width if is_terminal else None
            colour = is_terminal and not console.no_color
            return render_text(document, width=width, colour=colour, exact=output.exact).encode()


def _narrowed(document: Document, name: str | None) -> Document:
    if name is None:
        return document
    tables = tuple(table for table in document.tables if table.name == name)
    if not tables:
        known = ", ".join(table.name for table in document.tables)
        raise click.UsageError(f"--table {name}: there is {known}")
    return replace(document, tables=tables)
