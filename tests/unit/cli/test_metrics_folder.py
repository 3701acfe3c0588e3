"""The folder of the workers' metrics: fresh, removed at the end, and a dead parent's is swept (contract C1)."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from proxy.cli.metrics_folder import fresh_metrics_folder, remove_abandoned

pytestmark = pytest.mark.clause("C1")
LATER_S = 3600.0


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_the_folder_is_empty_and_goes_at_the_end(tmp_path: Path) -> None:
    """Whatever the workers left in it goes too."""
    with fresh_metrics_folder() as folder:
        assert folder.parent == tmp_path
        assert list(folder.iterdir()) == []
        (folder / "counter_17.db").write_bytes(b"x")
    assert list(tmp_path.iterdir()) == []


def test_only_abandoned_folders_are_swept(tmp_path: Path) -> None:
    """A folder in use, one just made, and one that is not ours in name all stay."""
    abandoned, young = tmp_path / "sluice-metrics-a", tmp_path / "sluice-metrics-b"
    other = tmp_path / "other"
    for folder in (abandoned, young, other):
        folder.mkdir()
    now = time.time()
    os.utime(abandoned, (now - LATER_S, now - LATER_S))
    os.utime(other, (now - LATER_S, now - LATER_S))
    with fresh_metrics_folder() as mine:
        assert not abandoned.exists()
        os.utime(mine, (now - LATER_S, now - LATER_S))
        remove_abandoned(tmp_path, now)
        assert mine.is_dir()
    assert young.is_dir()
    assert other.is_dir()


def test_a_worker_that_outlives_its_parent_keeps_the_folder(tmp_path: Path) -> None:
    """The lock is inherited: it falls with the last process that has it."""
    folder = tmp_path / "sluice-metrics-c"
    folder.mkdir()
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    inherited = os.dup(lock)
    os.close(lock)
    remove_abandoned(tmp_path, time.time() + LATER_S)
    assert folder.is_dir()
    os.close(inherited)
    remove_abandoned(tmp_path, time.time() + LATER_S)
    assert not folder.exists()
