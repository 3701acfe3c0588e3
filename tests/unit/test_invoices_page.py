"""docs/invoices.md is true: its examples are read as what it says they are, and its tables have every form and key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxy.books.invoice import InvoiceLine, Part, PartKind
from proxy.books.invoices import FORMS, read_invoice
from proxy.books.invoices.mapping import Mapped
from proxy.books.invoices.meters import aws_meter, azure_meter, google_meter

pytestmark = pytest.mark.clause("C3")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "invoices.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SAMPLES = [text for kind, text in FENCES if kind in ("csv", "json")]
MAPPINGS = [text for kind, text in FENCES if kind == "yaml"]


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(title: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)`", section(title), re.MULTILINE)


def test_every_form_is_in_the_table() -> None:
    """And none that there is not."""
    assert sorted(first_cells("Where to get one")) == sorted(FORMS)


def test_every_key_of_a_mapping_is_in_the_table() -> None:
    """And none that there is not."""
    assert sorted(first_cells("Anything else: a mapping")) == sorted(Mapped.model_fields)


@pytest.mark.parametrize(
    ("number", "form", "lines"),
    [
        (0, "openai-usage", 1),
        (1, "openai-costs", 1),
        (2, "anthropic-usage", 1),
        (3, "anthropic-costs", 1),
        (4, "deepseek-amount", 4),
        (5, "deepseek-cost", 1),
        (6, "openrouter", 1),
        (7, "aws", 2),
        (8, "azure", 1),
        (9, "google", 1),
    ],
)
def test_every_sample_is_read_as_its_form(number: int, form: str, lines: int, tmp_path: Path) -> None:
    """By its content alone."""
    path = tmp_path / "sample"
    path.write_text(SAMPLES[number], encoding="utf-8")
    invoice = read_invoice(path, "any")
    assert (invoice.form, len(list(invoice.lines))) == (form, lines)


def mapped(tmp_path: Path, mapping: str, text: str) -> list[InvoiceLine]:
    (tmp_path / "mapping.yaml").write_text(mapping, encoding="utf-8")
    (tmp_path / "invoice").write_text(text, encoding="utf-8")
    return list(read_invoice(tmp_path / "invoice", "any", mapping=tmp_path / "mapping.yaml").lines)


def test_the_mappings_read_what_stands_below_them(tmp_path: Path) -> None:
    """Figures as the text says them."""
    names, table, paths = MAPPINGS
    (line,) = mapped(tmp_path, table, SAMPLES[10])
    assert line.parts == (
        Part(PartKind.INPUT, 1_234_500),
        Part(PartKind.OUTPUT, 2_000),
        Part(PartKind.ALL, None, 10_502_500_000),
    )
    assert (line.requests, line.currency) == (1_200, "EUR")
    (line,) = mapped(tmp_path, paths, SAMPLES[11])
    assert [part.tokens for part in line.parts] == [70, 30, 12, None]
    assert line.request_id == "گفت-1"
    (line,) = mapped(tmp_path, names, SAMPLES[8])
    assert line.model == "gpt-4o-2024-08-06"


def test_the_meters_mean_what_the_table_says() -> None:
    """Each row: what it counts, and of which model."""
    rows = re.findall(r"^\| `([^`]+)`(?:, of `([^`]+)`)? \| ([\w ]+) of `([^`]+)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 6
    for meter, product, kind, model in rows:
        found = azure_meter(meter, product)
        if meter.startswith("USE1"):
            found = aws_meter(meter, product).meter
        elif "gemini" in meter:
            found = google_meter(meter)
        assert (found.kind.value, found.model) == (kind.replace(" ", "_"), model)
