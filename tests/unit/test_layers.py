"""The shape of the program: who may import whom, and what no source may contain (style: layout, habits)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "proxy").rglob("*.py"))
# Where a machine's own folders begin. Written in pieces, so that this file does not contain them.
MACHINE_FOLDERS = re.compile(r"(?<![\w.*}$])/(" + "|".join(("work", "home", "root", "Users", "farm")) + r")/\w")


def test_modules_import_from_lower_layers_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All contracts of `.importlinter` hold."""
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_lines_are_never_split_by_the_standard_library() -> None:
    """`splitlines` and `readline` also split at U+2028 and its like, which models write inside JSON strings."""
    assert [path for path in SOURCES if re.search(r"\.(splitlines|readlines?)\(", path.read_text())] == []


def test_no_source_names_a_folder_of_the_machine_it_was_written_on() -> None:
    """Every path is relative to the checkout, to the configuration file, or given."""
    files = [path for kind in ("py", "md", "yaml", "yml", "toml", "lock", "sh") for path in ROOT.rglob(f"*.{kind}")]
    files += [ROOT / "Makefile", ROOT / ".ci" / "run", *(ROOT / "scripts").iterdir()]
    own = [path for path in files if path.is_file() and not set(path.relative_to(ROOT).parts[:-1]) & NOT_OURS]
    assert [path for path in own if MACHINE_FOLDERS.search(path.read_text())] == []


#: Folders in a checkout that hold nothing of ours.
NOT_OURS = {".venv", ".git", "build", "node_modules", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
