"""How a report leaves the command line: as a table, for a program, as a spreadsheet or a page (contract C3).

In: a document and what was asked with `--format`, `--json`, `--out` and `--table`. Out: bytes on standard output or a
whole file. A form that is no text is not written to a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from proxy.books.document import Document, Table
from proxy.stores.whole_file import write_whole

FORMATS: Final = ("table", "json", "csv", "xlsx", "parquet", "html")
_BINARY: Final = ("xlsx", "parquet")


@dataclass(frozen=True, slots=True)
class Output:
    """`form` is one of `FORMATS`; `out` None is standard output; `table` the one to write where a form has room for one
    only, None the first."""

    form: str
    out: Path | None = None
    table: str | None = None


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--format --json --out --table`, as the parameters `form`, `as_json`, `out` and `table`."""
    for option in reversed(
        (
            click.option(
                "--format", "form", type=click.Choice(FORMATS), help="Default: by the ending of --out, or table."
            ),
            click.option("--json", "as_json", is_flag=True, help="Short for --format json."),
            click.option(
                "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write to a file."
            ),
            click.option("--table", metavar="NAME", help="Which table csv and parquet write; the first if left out."),
        )
    ):
        command = option(command)
    return command


def output_of(form: str | None, as_json: bool, out: Path | None, table: str | None) -> Output:
    """What was asked. Raises `click.UsageError` for what contradicts itself."""
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} are two forms: take one")
    if as_json:
        form = "json"
    if form is None and out is not None:
        ending = out.suffix.removeprefix(".").lower()
        form = {"htm": "html", "txt": "table"}.get(ending, ending)
        if form not in FORMATS:
            raise click.UsageError(f"--out {out}: its ending names no form; add --format, one of {', '.join(FORMATS)}")
    form = form or "table"
    if form in _BINARY and out is None and sys.stdout.isatty():
        raise click.UsageError(f"--format {form} is nothing to read on a terminal: add --out FILE.{form}")
    return Output(form, out, table)


def write_document(document: Document, output: Output) -> None:
    """Write it, a file whole or not at all. Raises `click.UsageError` for a table that the document has not, `OSError`
    if the file cannot be written."""
    data = render(document, output)
    if output.out is not None:
        write_whole(output.out, data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def render(document: Document, output: Output) -> bytes:
    """The document in the form that was asked."""
    match output.form:
        case "json":
            from proxy.books.render.data import render_json

            return render_json(document)
        case "csv":
            from proxy.books.render.data import render_csv

            return render_csv(_one_table(document, output.table))
        case "parquet":
            from proxy.books.render.parquet import render_parquet

            return render_parquet(_one_table(document, output.table))
        case "xlsx":
            from proxy.books.render.xlsx import render_xlsx

            return render_xlsx(document)
        case "html":
            from proxy.books.render.html import render_html

            return render_html(document).encode()
        case _:
            from proxy.books.render.terminal import render_text

            console = Console()
            is_terminal = output.out is None and console.is_terminal
            return render_text(document, width=console.width if is_terminal else 160, colour=is_terminal).encode()


def _one_table(document: Document, name: str | None) -> Table:
    if name is None:
        return document.tables[0]
    for table in document.tables:
        if table.name == name:
            return table
    raise click.UsageError(f"--table {name}: there is {', '.join(table.name for table in document.tables)}")
