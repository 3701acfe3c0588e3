"""A file's next content put in its place in one step (contracts R2, R4).

In: a path and bytes. Out: whoever reads sees the old content or the new one, a watcher and a crash included. Never:
leaves half of a file, changes who may read it, or puts a file where a link was.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Raises OSError, and then has written nothing."""
    target = path.resolve()  # a link stays a link
    beside = target.with_name(f".{target.name}.{os.getpid()}")  # by its name nothing that anybody reads
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # or the name may outlive a crash, and what it names not
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
