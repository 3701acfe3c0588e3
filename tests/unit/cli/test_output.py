"""The options that every report has: which form, where to, and what cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from proxy.cli.output import Output, output_options, render, write_document
from tests.support.documents import report

pytestmark = pytest.mark.clause("C3")


@click.command()
@click.option("--by")
@output_options
def command(by: str | None, output: Output) -> tuple[str | None, Output]:
    """What a report's command is given."""
    return by, output


def asked(*arguments: str) -> Output:
    found = command.main(arguments, standalone_mode=False)
    assert isinstance(found, tuple)
    assert isinstance(found[1], Output)
    return found[1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), Output("table")),
        (("--json",), Output("json")),
        (("--json", "--format", "json"), Output("json")),
        (("--format", "csv", "--table", "open"), Output("csv", None, "open")),
        (("--out", "october.XLSX"), Output("xlsx", Path("october.XLSX"))),
        (("--out", "october.htm", "--exact"), Output("html", Path("october.htm"), None, True)),
        (("--out", "october.txt"), Output("table", Path("october.txt"))),
        (("--out", "october", "--format", "parquet"), Output("parquet", Path("october"))),
        (("--out", "october.csv", "--json"), Output("json", Path("october.csv"))),
    ],
)
def test_the_form_is_what_is_asked_or_what_the_file_is_called(arguments: tuple[str, ...], expected: Output) -> None:
    """A form that is named goes before the ending; beside it, the command's own options arrive too."""
    assert asked(*arguments) == expected
    assert command.main(["--by", "day", *arguments], standalone_mode=False) == ("day", expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--json", "--format", "html"), "--json and --format html are two forms"),
        (("--out", "october.doc"), "its ending names no form; add --format, one of table, json"),
        (("--out", "october"), "its ending names no form"),
        (("--format", "pdf"), "'pdf' is not one of"),
    ],
)
def test_what_contradicts_itself_is_told(arguments: tuple[str, ...], words: str) -> None:
    """Before anything is computed."""
    with pytest.raises(click.UsageError, match=words):
        asked(*arguments)


@pytest.mark.parametrize("form", ["xlsx", "parquet", "html"])
def test_a_form_that_is_no_text_is_not_written_to_a_terminal(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how to get a file instead; a pipe gets it."""
    assert asked("--format", form) == Output(form)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(click.UsageError, match=f"add --out FILE.{form}"):
        asked("--format", form)
    assert asked("--format", form, "--out", "x") == Output(form, Path("x"))
    assert asked("--format", "csv") == Output("csv")


@pytest.mark.clause("L4")
@pytest.mark.parametrize("form", ["table", "json", "csv", "xlsx", "parquet", "html"])
def test_a_file_has_the_bytes_of_standard_output(
    form: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Whole, in the place of what was there, and with its rights."""
    write_document(report(), Output(form))
    told = capfdbinary.readouterr().out
    assert told == render(report(), Output(form))
    file = tmp_path / "report"
    file.write_text("old")
    file.chmod(0o640)
    write_document(report(), Output(form, file))
    assert file.read_bytes() == told
    assert file.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["report"]


def test_one_table_may_be_asked_for_in_any_form() -> None:
    """The others are left out; a name that there is not is told with those that there are."""
    assert list(json.loads(render(report(), Output("json", table="usage2")))["tables"]) == ["usage2"]
    assert render(report(), Output("csv", table="usage2")) == b"a,n\r\nx,1.5\r\n"
    assert b"Nothing/to" not in render(report(), Output("table", table="usage2"))
    with pytest.raises(click.UsageError, match="--table prices: there is usage, empty, usage2"):
        render(report(), Output("json", table="prices"))


def test_exact_is_for_what_a_person_reads() -> None:
    """A table and a page; the other forms are exact anyway."""
    for form in ("table", "html"):
        assert b"12.345678901" not in render(report(), Output(form))
        assert b"12.345678901" in render(report(), Output(form, exact=True))


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With its name and the reason."""
    with pytest.raises(click.UsageError, match=r"nowhere/report\.csv: No such file or directory"):
        write_document(report(), Output("csv", tmp_path / "nowhere" / "report.csv"))


def test_a_table_too_large_for_a_sheet_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the forms that can hold it."""
    monkeypatch.setattr("proxy.books.render.xlsx.MOST_ROWS", 1)
    with pytest.raises(click.UsageError, match="take csv or parquet"):
        render(report(), Output("xlsx"))


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    """As `sluice report … | head -1` does."""
    code = (
        "import sys; from proxy.cli.output import Output, write_document; from tests.support.documents import report\n"
        "sys.stdin.read(); write_document(report(), Output('html'))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None and process.stderr is not None
    process.stdout.close()  # before it writes, which it does when its input ends
    process.stdin.close()
    with process.stderr:
        assert (process.stderr.read(), process.wait()) == (b"", 0)
