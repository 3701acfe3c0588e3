"""The inbox as a folder: how often each answer came, which go when it is full, and reading it (contract E).

In: `<folder>/<vendor>/<name>.jsonl`, one recording per distinct answer, and beside each a `<name>.count` that is as
many bytes long as the answer came times: one byte is appended each time, which several processes can do at once without
a lock and without losing one. The recording's file time is when it came last. Out: `Kept`s; room for one more. Never:
more than the limits for longer than it takes to notice, a failure because another process took a file away.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import Final

from proxy.stores.recordings import Recording, RecordingError, load_recording

LIMIT_FILES: Final = 500
LIMIT_BYTES: Final = 16 * 1024 * 1024
#: From here on an answer came "this often or more": 500 counts of this size are no more than 50 MB.
LIMIT_COUNT: Final = 100_000
# No recording that the inbox writes is longer: 16 KiB of an answer, a few headers, all of it escaped.
_LIMIT_ONE: Final = 1024 * 1024
_COUNT: Final = ".count"
# A file that a process began to write and never renamed: the process is dead.
_STALE_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer of the inbox. `count`: how often it came, `LIMIT_COUNT` for that or more; `first` is a day as in the
    recording (empty if it does not say), `last` a moment."""

    recording: Recording
    count: int
    first: str
    last: datetime


def read_inbox(folder: Path) -> list[Kept]:
    """By vendor, and what came most often first. None if there is no folder yet. Raises RecordingError for what the
    inbox did not write; what another process takes away meanwhile is left out."""
    kept = [one for path in folder.glob("*/*.jsonl") if (one := _read(path)) is not None]
    return sorted(kept, key=lambda one: (one.recording.vendor, -one.count, one.recording.name))


def _read(path: Path) -> Kept | None:
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode) or found.st_size > _LIMIT_ONE:
            raise RecordingError(str(path), None, "is none that the proxy wrote: take it out of the inbox")
        recording = load_recording(path)
        last = found.st_mtime
    except (RecordingError, OSError):
        if path.exists():
            raise
        return None
    return Kept(recording, times_seen(path), recording.at, datetime.fromtimestamp(last, UTC))


def times_seen(path: Path) -> int:
    """How often the answer of this recording came."""
    try:
        return max(1, path.with_suffix(_COUNT).stat().st_size)
    except OSError:
        return 1


def see_again(path: Path, at: float) -> bool:
    """The answer came once more. False if its recording is gone."""
    try:
        os.utime(path, (at, at))
    except FileNotFoundError:
        return False
    if times_seen(path) < LIMIT_COUNT:
        # One small write of an appending descriptor is whole, whoever else appends.
        with path.with_suffix(_COUNT).open("ab", buffering=0) as file:
            file.write(b".")
    return True


def remove(path: Path) -> None:
    """The recording first: a count alone says nothing, and is taken away when room is made."""
    path.unlink(missing_ok=True)
    path.with_suffix(_COUNT).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    is_repeated: bool
    last: float
    size: int


def make_room(folder: Path, limit_files: int, limit_bytes: int, needed: int) -> int:
    """Room for one more recording of `needed` bytes. How many had to go: first those that came but once, so that a
    flood of answers that are never the same drives out itself and not what comes every day; among equals those that
    were not seen for the longest."""
    entries = sorted(_entries(folder), key=lambda one: (one.is_repeated, one.last))
    too_many = len(entries) + 1 - limit_files
    too_long = sum(one.size for one in entries) + needed - limit_bytes
    gone = 0
    for entry in entries:
        if gone >= too_many and too_long <= 0:
            break
        remove(entry.path)
        gone += 1
        too_long -= entry.size
    return gone


def _entries(folder: Path) -> Iterator[_Entry]:
    counts: dict[str, int] = {}
    recordings: list[os.DirEntry[str]] = []
    for vendor in _scan(folder):
        for file in _scan(Path(vendor.path)) if vendor.is_dir() else ():
            if file.name.endswith(_COUNT):
                counts[file.path.removesuffix(_COUNT)] = _stat(file).st_size
            elif file.name.startswith("."):
                _remove_stale(file)
            elif file.name.endswith(".jsonl"):
                recordings.append(file)
    for file in recordings:
        count = counts.pop(file.path.removesuffix(".jsonl"), 1)
        stat = _stat(file)
        yield _Entry(Path(file.path), count > 1, stat.st_mtime, stat.st_size + count)
    for stem in counts:
        Path(stem + _COUNT).unlink(missing_ok=True)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _stat(file: os.DirEntry[str]) -> os.stat_result:
    try:
        return file.stat()
    except FileNotFoundError:  # taken away just now: as good as empty and old
        return os.stat_result((0,) * 10)


def _remove_stale(file: os.DirEntry[str]) -> None:
    if _stat(file).st_mtime < time.time() - _STALE_S:
        Path(file.path).unlink(missing_ok=True)
