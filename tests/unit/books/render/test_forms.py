"""What holds for a document in every form."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from proxy.books.document import Document
from proxy.books.render.data import render_csv, render_json, render_lines
from proxy.books.render.html import render_html
from proxy.books.render.parquet import render_parquet
from proxy.books.render.terminal import render_text
from proxy.books.render.xlsx import render_xlsx
from tests.support.documents import report

pytestmark = pytest.mark.clause("L4")

FORMS: Final[dict[str, Callable[[Document], bytes]]] = {
    "json": render_json,
    "jsonl": lambda document: render_lines(document.tables[0]),
    "csv": lambda document: render_csv(document.tables[0]),
    "parquet": lambda document: render_parquet(document.tables[0]),
    "xlsx": render_xlsx,
    "html": lambda document: render_html(document).encode(),
    "text": lambda document: render_text(document).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_document_is_always_the_same_bytes(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made twice, from two documents that are equal, and in another zone, width and language of the terminal."""
    first = FORMS[form](report())
    for name, value in (("TZ", "Asia/Kathmandu"), ("COLUMNS", "40"), ("NO_COLOR", "1"), ("LC_ALL", "fa_IR.UTF-8")):
        monkeypatch.setenv(name, value)
    assert FORMS[form](report()) == first


def test_a_spreadsheet_does_not_say_when_it_was_made() -> None:
    """Every date in it, and in the archive that it is, is a fixed one."""
    archive = zipfile.ZipFile(io.BytesIO(render_xlsx(report())))
    assert {entry.date_time[:3] for entry in archive.infolist()} == {(1980, 1, 1)}
    told = archive.read("docProps/core.xml").decode()
    assert told.count("2000-01-01T00:00:00Z") == 2
    assert told.count("Z</dcterms") == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_document_with_nothing_in_it_has_every_form(form: str) -> None:
    """No rows, no headlines, no charts, no notes."""
    document = report()
    empty = replace(document.tables[0], rows=())
    bare = Document("usage", "Usage", (), (), (empty,), (), ())
    assert FORMS[form](bare) or form == "jsonl"
