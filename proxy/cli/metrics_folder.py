"""The folder through which workers add up their metrics (contract C1: `/metrics` sums over workers).

In: nothing. Out: a fresh, empty folder that is removed at the end. A parent that was killed cannot remove its own; the
next one does. Never: touch a folder that a living process uses. The proof is a file lock, which the kernel releases
when the parent and every worker that inherited it are gone; a process id proves nothing across containers.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PREFIX: Final = "sluice-metrics-"
# Between its making and its locking a folder looks abandoned.
_TOO_YOUNG_S: Final = 60.0


@contextmanager
def fresh_metrics_folder() -> Iterator[Path]:
    remove_abandoned(Path(tempfile.gettempdir()), time.time())
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path, now: float) -> None:
    """Removes the metrics folders of this user that no process holds any more."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            about = folder.stat(follow_symlinks=False)
            if about.st_uid == os.getuid() and now - about.st_mtime > _TOO_YOUNG_S:
                _remove_if_free(folder)
        except OSError:
            continue  # gone meanwhile, or not ours to read: then it is not ours to remove either


def _remove_if_free(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
