"""The recordings that came with the package: evidence of the rules that came with it (contracts R1, R4).

In: nothing. Out: recordings by the path that `evidence:` writes, such as `recordings/acme/errors/rate.jsonl`. An
operator who edits a copy of the rules elsewhere need not copy them: what a folder does not hold itself is sought here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from proxy.stores.recordings import Recording, find_recordings


def shipped_recordings_dir() -> Path:
    """Data of the wheel, or `recordings/` beside the package in a checkout."""
    package = Path(str(files("proxy")))
    shipped = package / "_recordings"
    return shipped if shipped.is_dir() else package.parent / "recordings"


@cache
def shipped_recordings() -> Mapping[str, Recording]:
    """By place. Raises RecordingError for a file that is broken."""
    folder = shipped_recordings_dir()
    found = find_recordings([folder])
    return MappingProxyType({f"recordings/{one.path.relative_to(folder).as_posix()}": one for one in found})
