"""docs/reports.md and docs/reconciling.md: their commands run, and their tables are those of the program."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bench.year import Year
from bench.year_faults import FAULTS
from proxy.__main__ import run
from proxy.books.grouping import KEYS
from proxy.books.reconciling.document import WORDS
from proxy.books.source import ParquetFolder
from proxy.books.usage_report import UsageQuestion, usage_report
from proxy.cli.output import FORMATS

pytestmark = [pytest.mark.clause("C3"), pytest.mark.timeout(120)]
DOCS = Path(__file__).resolve().parents[2] / "docs"
REPORTS, RECONCILING = ((DOCS / name).read_text(encoding="utf-8") for name in ("reports.md", "reconciling.md"))
COMMANDS = [
    line
    for page in (REPORTS, RECONCILING)
    for block in re.findall(r"```sh\n(.*?)\n```", page, re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A year as `sluice ledger export` leaves it, and its invoices."""
    folder = tmp_path_factory.mktemp("year")
    Year(2, 4_000, frozenset(FAULTS), folder / "export").run()
    return folder


@pytest.mark.parametrize("command", [one for one in COMMANDS if "--config" not in one])
def test_a_command_of_the_pages_runs(command: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands there, beside its files."""
    for file in (made / "export" / "invoices").iterdir():
        (made / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(made)
    words = shlex.split(command)
    assert words[0] == "sluice"
    assert run(words[1:]) in (0, 1)  # 1: it found what there is to find


def test_the_tables_of_the_pages_are_those_of_the_program(made: Path) -> None:
    """Columns, keys, forms and reasons, each by its name."""
    report = usage_report(ParquetFolder(made / "export"), UsageQuestion(("vendor",)))
    columns = {column.name for column in report.tables[0].columns} - {"vendor", "currency"}
    named = set(re.findall(r"`(\w+)`", REPORTS)) | {"vendor_output", "vendor_cache_read", "vendor_cache_write"}
    assert columns <= named
    listed = re.search(r"what `--by` names: `([\w\s]+)`, and one of `([\w\s]+)`", REPORTS)
    assert listed is not None
    assert tuple(f"{listed[1]} {listed[2]}".split()) == KEYS
    forms = re.findall(r"^\| `(\w+)`", REPORTS[REPORTS.index("| form |") :], re.MULTILINE)
    assert sorted(forms) == sorted(FORMATS)
    reasons = re.findall(r"^\| ([a-z' ]+) \|", RECONCILING, re.MULTILINE)
    assert reasons[1:] == list(WORDS.values()) or sorted(reasons[1:]) == sorted(WORDS.values())
