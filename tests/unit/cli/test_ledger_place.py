"""A ledger that cannot be written is told before anything starts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.__main__ import run
from proxy.cli.ledger_place import make_ready
from proxy.config import LedgerSettings
from proxy.errors import LedgerUnavailable
from proxy.stores.schema import upgrade

pytestmark = pytest.mark.clause("C3", "C4")

CONFIG = """\
auth: {mode: none}
ledger: {url: "sqlite:///LEDGER", journal_dir: JOURNALS}
upstreams: {main: {vendor: openai, base_url: "http://127.0.0.1:9/v1"}}
models: {m: [{upstream: main, model: m}]}
"""


@pytest.fixture
def serve(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Starts `sluice serve`, which must end by itself; gives its exit code and what it said, without the folder."""

    def served(ledger: str, journals: str = "journals") -> tuple[int, str]:
        config = tmp_path / "sluice.yaml"
        config.write_text(CONFIG.replace("LEDGER", ledger).replace("JOURNALS", journals))
        code = run(["serve", "--config", str(config), "--port", "0"])
        return code, capfd.readouterr().err.replace(f"{tmp_path}/", "")

    return served


ADVICE = "name another place, or let the proxy's user write there\n"


def test_a_place_that_cannot_be_written_is_one_line_and_exit_code_two(
    serve: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """A file where a folder should be, a folder where the file should be, journals likewise."""
    (tmp_path / "دفتر").write_text("a file")
    (tmp_path / "账本").mkdir()
    assert serve("دفتر/ledger.db") == (
        2,
        f"sluice: sluice.yaml: ledger.url: دفتر/ledger.db cannot be written: Not a directory; {ADVICE}",
    )
    assert serve("账本") == (2, f"sluice: sluice.yaml: ledger.url: 账本 cannot be written: Is a directory; {ADVICE}")
    assert serve("ledger.db", "دفتر") == (
        2,
        f"sluice: sluice.yaml: ledger.journal_dir: دفتر cannot be written: Not a directory; {ADVICE}",
    )


def test_a_read_only_folder_is_refused(
    serve: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's own reason is told. (It is put in its mouth: nothing is read-only to root, who may run this.)"""

    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("proxy.cli.ledger_place.tempfile.TemporaryFile", refuse)
    (tmp_path / "locked").mkdir()
    code, said = serve("locked/ledger.db")
    assert (code, said) == (
        2,
        f"sluice: sluice.yaml: ledger.url: locked/ledger.db cannot be written: Permission denied; {ADVICE}",
    )


def test_a_missing_folder_is_made_and_what_is_there_is_left_alone(tmp_path: Path) -> None:
    """Folders are made with all above them; nothing is written into a file that is there."""
    url = f"sqlite:///{tmp_path}/नया/deeper/ledger.db"
    make_ready(LedgerSettings(url, tmp_path / "also" / "new", tmp_path / "inbox"), "sluice.yaml")
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "also",
        "also/new",
        "नया",
        "नया/deeper",
    ]
    other = tmp_path / "नया" / "deeper" / "ledger.db"
    other.write_bytes(b"not ours")
    make_ready(LedgerSettings(url, tmp_path / "also" / "new", tmp_path / "inbox"), "sluice.yaml")
    assert other.read_bytes() == b"not ours"


def test_what_is_no_database_is_told_in_one_line(tmp_path: Path) -> None:
    """The driver's own reason, without what is put around it."""
    (tmp_path / "ledger.db").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(LedgerUnavailable) as caught:
        upgrade(f"sqlite:///{tmp_path}/ledger.db")
    assert str(caught.value) == "the ledger's database cannot be brought up to date: file is not a database"
