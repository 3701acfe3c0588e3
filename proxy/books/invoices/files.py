"""The files of an export: text from bytes, rows from CSV, values from JSON.

In: a path: plain, gzipped, or one of several in a zip. Out: text or rows with their places. Names what a wrong file is
(a page of HTML, a workbook), so that nobody has to guess. Never: more than `MOST_JSON_BYTES` of JSON in memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from proxy.errors import InvoiceError

MOST_JSON_BYTES = 256 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_DELIMITERS = ",;\t|"
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
csv.field_size_limit(16 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class Source:
    """One file of an export. `name` is what places in it begin with."""

    path: Path
    name: str
    member: str | None = None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        try:
            if self.member is not None:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
                    yield io.BufferedReader(file)  # type: ignore[type-var]
                return
            with self.path.open("rb") as raw:
                if raw.peek(2)[:2] == _GZIP:
                    with gzip.open(raw) as file:
                        yield file  # type: ignore[misc]
                else:
                    yield raw
        except (OSError, EOFError, zipfile.BadZipFile) as error:
            raise InvoiceError(self.name, ((self.name, f"cannot be read: {error}"),)) from error

    def head(self) -> str:
        """The beginning as text, for looking at it."""
        with self.open() as file:
            return _decoded(self, file.read(_HEAD_BYTES), whole=False)

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
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
        if not files:
            raise InvoiceError(str(path), ((str(path), "the folder is empty"),))
        return [Source(one, one.name) for one in files]
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise InvoiceError(str(path), ((str(path), f"cannot be read: {error.strerror}"),)) from error
    if head == _ZIP:
        return _members(path)
    return [Source(path, path.name)]


def _members(path: Path) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if not name.endswith("/"))
    except zipfile.BadZipFile as error:
        raise InvoiceError(path.name, ((path.name, f"is a broken zip file: {error}"),)) from error
    if "[Content_Types].xml" in names:
        raise InvoiceError(path.name, ((path.name, "is a workbook; save it as CSV (UTF-8) and give that"),))
    return [Source(path, f"{path.name}/{name}", name) for name in names]


def _encoding(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8-sig"


def _decoded(source: Source, data: bytes, *, whole: bool) -> str:
    encoding = _encoding(data[:4])
    try:
        return data.decode(encoding, "strict" if whole else "ignore")
    except UnicodeDecodeError as error:
        raise source.fail("", f"is not text in {encoding}: byte {error.start}; save it as UTF-8") from error


def refuse_wrong(source: Source, head: str) -> None:
    """Raises for a file that is plainly something else."""
    text = head.lstrip()[:400].lower()
    if not text:
        raise source.fail("", "is empty")
    if text.startswith(("<!doctype", "<html")):
        raise source.fail("", "is a page of HTML, perhaps a login page, and no export")
    if text.startswith("%pdf"):
        raise source.fail("", "is a PDF; take the CSV or JSON export")


def rows(source: Source, delimiter: str | None = None) -> Iterator[tuple[str, dict[str, str]]]:
    """The place and the cells by their column, of each row of a CSV file. Empty rows are passed over."""
    with source.text() as file:
        try:
            first = file.readline()
            used = delimiter or _delimiter(first)
            names = [name.strip() for name in next(csv.reader([first], delimiter=used), [])]
            reader = csv.reader(file, delimiter=used)
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if len(cells) > len(names) and any(cell.strip() for cell in cells[len(names) :]):
                    reason = f"has {len(cells)} cells, and the heading {len(names)}: is a delimiter not quoted?"
                    raise source.fail(f":{reader.line_num + 1}", reason)
                yield f"{source.name}:{reader.line_num + 1}", dict(zip(names, cells, strict=False))
        except csv.Error as error:
            raise source.fail("", f"is no CSV: {error}") from error
        except UnicodeError as error:
            raise source.fail("", f"is not UTF-8 text: {error}; save it as CSV (UTF-8)") from error


def columns(head: str) -> list[str]:
    """The names in the first line of a CSV file."""
    first = head.splitlines()[0] if head.strip() else ""
    return [name.strip() for name in next(csv.reader([first], delimiter=_delimiter(first)), [])]


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=lambda one: (line.count(one), -_DELIMITERS.index(one)))


def values(source: Source) -> Iterator[tuple[str, object]]:
    """The place and value of each JSON document of a file: one, or one a line. Numbers are exact."""
    with source.open() as file:
        data = file.read(MOST_JSON_BYTES + 1)
    if len(data) > MOST_JSON_BYTES:
        raise source.fail("", f"is larger than {MOST_JSON_BYTES >> 20} MiB; ask for fewer days at a time")
    text = _decoded(source, data, whole=True)
    try:
        yield source.name, _parsed(text)
        return
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith("{"):
            raise source.fail("", f"is no JSON: {error}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{source.name}:{number}", _parsed(line)
            except (ValueError, RecursionError) as error:
                raise source.fail(f":{number}", f"is no JSON: {error}") from error


def _parsed(text: str) -> object:
    return json.loads(text, parse_float=Decimal, parse_constant=_refused)


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is no number")
