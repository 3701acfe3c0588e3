"""Rule files read and replaced as they stand on disk (contracts R2, R3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.errors import RuleError
from proxy.stores.rule_writing import read_rule_text, write_rule_text

pytestmark = pytest.mark.clause("R2", "R3")


def test_text_keeps_its_line_ends_and_the_file_its_mode(tmp_path: Path) -> None:
    """Read and written to the byte."""
    file = tmp_path / "acme.yaml"
    file.write_bytes("vendor: acme\r\n# ملاحظه".encode())
    file.chmod(0o604)
    text = read_rule_text(file)
    assert text == "vendor: acme\r\n# ملاحظه"
    write_rule_text(file, text, text + "\r\nrules: []\r\n")
    assert file.read_bytes() == "vendor: acme\r\n# ملاحظه\r\nrules: []\r\n".encode()
    assert file.stat().st_mode & 0o777 == 0o604
    assert [path.name for path in tmp_path.iterdir()] == ["acme.yaml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Deployments link their rules from elsewhere."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "acme.yaml").write_text("a")
    link = tmp_path / "acme.yaml"
    link.symlink_to("real/acme.yaml")
    write_rule_text(link, "a", "b")
    assert link.is_symlink() and (tmp_path / "real" / "acme.yaml").read_text() == "b"


def test_what_cannot_be_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    """Changed meanwhile, gone, no UTF-8, a folder that takes no file."""
    file = tmp_path / "acme.yaml"
    file.write_text("by hand")
    with pytest.raises(RuleError, match=r"acme\.yaml: was changed by somebody else meanwhile"):
        write_rule_text(file, "before", "after")
    file.write_bytes(b"vendor: acme\n# \xff\n")
    with pytest.raises(RuleError, match=r"acme\.yaml:2: is not UTF-8"):
        read_rule_text(file)
    with pytest.raises(RuleError, match=r"none\.yaml: cannot be read: No such file"):
        write_rule_text(tmp_path / "none.yaml", "a", "b")
    assert [path.name for path in tmp_path.iterdir()] == ["acme.yaml"]


def test_a_write_that_fails_leaves_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: the file is whole, and nothing lies beside it."""
    file = tmp_path / "acme.yaml"
    file.write_text("a")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RuleError, match=r"acme\.yaml: cannot be written: No space left on device"):
        write_rule_text(file, "a", "b")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["a"]
