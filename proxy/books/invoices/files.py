"""The files of an export, opened: text of bytes, and JSON values.

In: a path: plain, gzipped, a folder, or a zip. Out: text, or values with their places. Names what a wrong file is (a
page of HTML, a workbook), so that nobody has to guess. Never: more than `MOST_JSON_BYTES` of JSON in memory.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, Final, cast

from proxy.errors import InvoiceError

MOST_JSON_BYTES: Final = 256 * 1024 * 1024
_HEAD_BYTES: Final = 64 * 1024
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_BROKEN = (OSError, EOFError, zlib.error, zipfile.BadZipFile)
#: What a zip made by a desktop has beside the export.
_NO_EXPORT: Final = ("__MACOSX/", ".DS_Store", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True, slots=True)
class Source:
    """One file of an export. `name` is what places in it begin with."""

    path: Path
    name: str
    member: str | None = None

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        with ExitStack() as stack:
            try:
                file = self._opened(stack)
            except _BROKEN as error:
                raise self.fail("", f"cannot be read: {error}") from error
            except (RuntimeError, NotImplementedError) as error:
                # zipfile's words for a password and for an unknown compression
                raise self.fail("", f"cannot be unpacked: {error}; unpack it by hand and give the file") from error
            try:
                yield file
            except _BROKEN as error:
                raise self.fail("", f"cannot be read to its end: {error}") from error

    def _opened(self, stack: ExitStack) -> IO[bytes]:
        if self.member is not None:
            return stack.enter_context(stack.enter_context(zipfile.ZipFile(self.path)).open(self.member))
        raw = stack.enter_context(self.path.open("rb"))
        if raw.peek(2)[:2] == _GZIP:
            # typeshed makes it no IO[bytes], though it has all of it
            return cast("IO[bytes]", stack.enter_context(gzip.open(raw)))
        return raw

    def head(self) -> str:
        """The beginning as text, for looking at it; what is no text is replaced."""
        with self.open() as file:
            data = file.read(_HEAD_BYTES)
        return data.decode(_encoding(data[:4]), "replace").removeprefix("\ufeff")

    @contextmanager
    def text(self) -> Iterator[io.TextIOWrapper]:
        with self.open() as file:
            encoding = _encoding(file.read(4))
        with self.open() as file:
            yield io.TextIOWrapper(file, encoding=encoding, errors="strict", newline="")

    def fail(self, place: str, reason: str) -> InvoiceError:
        return InvoiceError(self.name, ((f"{self.name}{place}", reason),))


def sources_of(path: Path) -> list[Source]:
    """The file, or those in a folder or a zip, by name. Raises `InvoiceError`."""
    try:
        if path.is_dir():
            files = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
            if not files:
                raise InvoiceError(str(path), ((str(path), "the folder is empty"),))
            return [Source(one, one.name) for one in files]
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise InvoiceError(str(path), ((str(path), f"cannot be read: {error.strerror}"),)) from error
    return _members(path) if head == _ZIP else [Source(path, path.name)]


def _members(path: Path) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if not name.endswith("/"))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InvoiceError(path.name, ((path.name, f"is a broken zip file: {error}"),)) from error
    if "[Content_Types].xml" in names:
        reason = "is a workbook and no text; in the spreadsheet save it as CSV (UTF-8), and give that"
        raise InvoiceError(path.name, ((path.name, reason),))
    names = [name for name in names if not name.startswith(_NO_EXPORT) and not name.endswith(_NO_EXPORT)]
    if not names:
        raise InvoiceError(path.name, ((path.name, "the zip file is empty"),))
    return [Source(path, f"{path.name}/{name}", name) for name in names]


def _encoding(head: bytes) -> str:
    """By its first bytes. Spreadsheets save "Unicode text" as UTF-16; not all of them mark it."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if len(head) >= 4 and head[1] == head[3] == 0 and head[0] and head[2]:
        return "utf-16-le"
    if len(head) >= 4 and head[0] == head[2] == 0 and head[1] and head[3]:
        return "utf-16-be"
    return "utf-8-sig"


def refuse_wrong(source: Source, head: str) -> None:
    """Raises for a file that is plainly something else."""
    text = head.lstrip()[:400].lower()
    if not text:
        raise source.fail("", "is empty")
    if text.startswith(("<!doctype", "<html", "<?xml", "<head")):
        raise source.fail("", "is a page of HTML, perhaps of a login, and no export; download it again")
    if text.startswith("%pdf"):
        raise source.fail("", "is a PDF; take the CSV or JSON export")
    if text.startswith("par1"):
        raise source.fail("", "is Parquet; write it as CSV: COPY (FROM 'file.parquet') TO 'file.csv' in DuckDB")
    if text.startswith(("\ufffd\ufffd\x11\ufffd", "version https://git-lfs")) or "\x00" in text:
        raise source.fail("", "is no text, perhaps an old workbook; save it as CSV (UTF-8), and give that")


def values(source: Source) -> Iterator[tuple[str, object]]:
    """The place and value of each JSON document of a file: one, a list of pages, or one a line. Numbers are exact."""
    with source.open() as file:
        data = file.read(MOST_JSON_BYTES + 1)
    if len(data) > MOST_JSON_BYTES:
        raise source.fail("", f"is larger than {MOST_JSON_BYTES >> 20} MiB; ask for fewer days at a time")
    text = _decoded(source, data)
    try:
        yield source.name, parsed(text)
        return
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith("{") or not lines[0].rstrip().endswith("}"):
            raise source.fail("", f"is no JSON: {error}; was it downloaded to its end?") from error
    for at, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{source.name}:{at}", parsed(line)
            except (ValueError, RecursionError) as error:
                raise source.fail(f":{at}", f"is no JSON: {error}") from error


def _decoded(source: Source, data: bytes) -> str:
    encoding = _encoding(data[:4])
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise source.fail("", f"is not text in {encoding}: byte {error.start}; save it as UTF-8") from error


def parsed(text: str) -> object:
    """JSON with exact numbers. Raises `ValueError` and `RecursionError`."""
    return json.loads(text, parse_float=_decimal, parse_constant=_refused)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text[:60]} is no number that an invoice can have") from None


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is no number")
