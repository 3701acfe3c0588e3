"""Every clause of the contract has a test, and the script that says so can be trusted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "clauses"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def test_every_clause_is_held_by_a_test() -> None:
    """The script finds no clause without a test and no mark that names no clause."""
    done = run()

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split("\n")) > 20


def test_what_is_missing_and_what_is_misspelt_is_told(tmp_path: Path) -> None:
    """Marks on a module, class, function or parameter set all count; the rest is named, and the exit code is 1."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_a.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.clause('W1')\n"
        "@pytest.mark.clause('W2', 'W3')\n"
        "class TestThis:\n"
        "    @pytest.mark.clause('W9')\n"
        "    async def test_it(self): ...\n"
        "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.clause('L1'))])\n"
        "def test_that(n): ...\n"
        "@pytest.mark.clause('Q1')\n"
        "def no_test(): ...\n"
    )

    done = run("--tests", str(folder), "W1", "W3", "L1")

    assert done.returncode == 1
    assert [line.strip() for line in done.stdout.split("\n") if "::" in line] == [
        "tests/test_a.py::TestThis::test_it",
        "tests/test_a.py::test_that",
        "tests/test_a.py::TestThis::test_it",
        "tests/test_a.py::test_that",
    ]
    told = done.stderr.split("\n")
    assert "W9 is no clause: tests/test_a.py::TestThis::test_it" in told
    assert "Q1 is held by no test" in told
    assert "W1 is held by no test" not in told
