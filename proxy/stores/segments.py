"""The journal's files: what they are called, what a line is, who is alive (contract L1).

A folder holds, for each writer, a lock file and numbered segments:

    <writer>.lock               locked (flock) by the writer as long as its process lives
    <writer>.00000001.journal   lines, appended; a later number means that no more comes here

A line is `crc32 kind json LF`, the checksum in 8 hex digits over `kind json`:

    h {"journal":1,"writer":...}     the first line of each segment
    o {...}                          an AttemptOpen
    c [{...},{...}]                  the AttemptOpen again and its AttemptClose: one line makes a whole row, whatever
                                     became of the others

A last line without its LF, or one whose checksum is wrong, was torn by a power cut or a full disk. Nobody was promised
anything about it; it is dropped and counted.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import socket
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import orjson

FORMAT = 1
HEADER, OPEN, CLOSE = b"h", b"o", b"c"
_SEGMENT = re.compile(r"(?P<writer>.+)\.(?P<number>\d{8})\.journal")
_READ_BYTES = 256 * 1024
# Head of a line: 8 hex digits, a space, the kind, a space.
_HEAD = 11


class Files(Protocol):
    """The system calls a journal makes, so that a test can let the Nth one fail. All raise `OSError`."""

    def create(self, path: Path) -> int: ...
    def write(self, descriptor: int, blob: bytes) -> int: ...
    def sync(self, descriptor: int) -> None: ...
    def sync_folder(self, folder: Path) -> None: ...
    def close(self, descriptor: int) -> None: ...


class RealFiles:
    """`Files` on the disk."""

    def create(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o640)

    def write(self, descriptor: int, blob: bytes) -> int:
        return os.write(descriptor, blob)

    def sync(self, descriptor: int) -> None:
        getattr(os, "fdatasync", os.fsync)(descriptor)  # macOS has only fsync

    def sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a journal. Its `name` is unique over all hosts and times."""

    writer: str
    number: int
    path: Path

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True)
class Line:
    """A whole line with a right checksum; `end` is the offset behind it. A dropped one has kind `b""`."""

    kind: bytes
    payload: bytes
    end: int


def writer_id(instance: str, worker: str) -> str:
    """A new name for a writer: instance, worker and this boot. It is safe in a file name and never used again."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", instance)[:80]
    return f"{safe}-{worker}-{secrets.token_hex(6)}"


def segment_of(folder: Path, writer: str, number: int) -> Segment:
    return Segment(writer, number, folder / f"{writer}.{number:08d}.journal")


def lock_path(folder: Path, writer: str) -> Path:
    return folder / f"{writer}.lock"


def list_segments(folder: Path) -> list[Segment]:
    """All segments, oldest first within a writer."""
    found = ((path, _SEGMENT.fullmatch(path.name)) for path in folder.glob("*.journal"))
    segments = [Segment(match["writer"], int(match["number"]), path) for path, match in found if match]
    return sorted(segments, key=lambda segment: (segment.writer, segment.number))


def list_locks(folder: Path) -> list[str]:
    """The writers that have a lock file, alive or dead."""
    return sorted(path.name.removesuffix(".lock") for path in folder.glob("*.lock") if not path.name.startswith("."))


def encode_line(kind: bytes, payload: bytes) -> bytes:
    body = b"%b %b" % (kind, payload)
    return b"%08x %b\n" % (zlib.crc32(body), body)


def encode_header(writer: str, number: int) -> bytes:
    head = {"journal": FORMAT, "writer": writer, "number": number, "host": socket.gethostname()}
    return encode_line(HEADER, orjson.dumps(head))


def parse_line(raw: bytes, end: int) -> Line:
    """`raw` is without its LF."""
    if len(raw) >= _HEAD and raw[8:9] == b" " and raw[:8] == b"%08x" % zlib.crc32(raw[9:]):
        return Line(raw[9:10], raw[_HEAD:], end)
    return Line(b"", b"", end)


def read_lines(read: Callable[[int, int], bytes], offset: int, limit: int) -> Iterator[Line]:
    """The whole lines from `offset` on, about `limit` bytes of them. `read(size, offset)` is a `pread`. What is behind
    the last LF is left alone: its writer may be about to finish it."""
    stop = offset + limit
    rest = b""
    while offset < stop:
        blob = read(_READ_BYTES, offset + len(rest))
        if not blob:
            return
        *lines, rest = (rest + blob).split(b"\n")
        for raw in lines:
            offset += len(raw) + 1
            yield parse_line(raw, offset)


def hold_lock(folder: Path, writer: str) -> int:
    """Make a writer's lock file. It appears under its name already locked, so that nobody can take it for a dead
    writer's. Returns the descriptor; closing it, or the death of the process, is the release. Raises `OSError`."""
    hidden = folder / f".{writer}.{secrets.token_hex(4)}.lock"
    descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.link(hidden, lock_path(folder, writer))  # unlike a rename, this fails when there is one
    except OSError:
        os.close(descriptor)
        raise
    finally:
        hidden.unlink()
    return descriptor


def take_over(folder: Path, writer: str) -> int | None:
    """The lock of a dead writer, or None: it lives, or another process was faster. Segments whose lock file is missing
    (restored from a copy, say) belong to a dead writer: a living one has its lock file before its first segment."""
    try:
        descriptor = os.open(lock_path(folder, writer), os.O_RDWR)
    except FileNotFoundError:
        try:
            return hold_lock(folder, writer)
        except FileExistsError:
            return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    if os.fstat(descriptor).st_nlink == 0:  # the one who had it before us has cleared it away
        os.close(descriptor)
        return None
    return descriptor


def is_alive(folder: Path, writer: str) -> bool | None:
    """Whether a writer's lock is held; None if there is no lock file in this folder. Holds nothing afterwards."""
    try:
        descriptor = os.open(lock_path(folder, writer), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def last_sign_of_life(segments: list[Segment]) -> float:
    """When the writer of `segments` last wrote, in unix seconds; 0 if it left none. A dead writer's open attempts are
    said to have ended then: nobody knows better, and the answer is the same whoever asks and whenever."""
    return max((segment.path.stat().st_mtime for segment in segments), default=0.0)
