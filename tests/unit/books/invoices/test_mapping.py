"""The mapping file: any other CSV or JSON, names of models, and mistakes in it (contract C3)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from proxy.books.invoice import Invoice, InvoiceLine, Part, PartKind
from proxy.books.invoices import read_invoice
from proxy.errors import ConfigError, InvoiceError
from tests.support.invoices import SAMPLES, sums

pytestmark = pytest.mark.clause("C3")

GERMAN = """\
format: csv
decimal_comma: true
time_zone: Europe/Berlin
currency: EUR
day: {column: Datum, form: '%d.%m.%Y'}
model: {column: Modell}
requests: {column: Anfragen}
tokens: {input: {column: Eingabe, unit: 1000}, output: {column: Ausgabe, unit: 1000}}
amounts: {all: {column: Betrag, scale: '0.01'}}
only: {Dienst: [LLM]}
skip: {Modell: [Summe, Gesamt]}
models: {haus-modell-2: gpt-4o-2024-08-06}
"""
TABLE = """\
Datum;Dienst;Modell;Anfragen;Eingabe;Ausgabe;Betrag
05.10.2026;LLM;haus-modell-2;1.200;1.234,5;2;1.050,25
06.10.2026;LLM;größer;;0,001;;0,5
06.10.2026;Speicher;größer;;;;99
07.10.2026;LLM;Summe;1.200;1.234,501;2;1.050,75
"""


def read(folder: Path, mapping: str, text: str) -> Invoice:
    (folder / "mapping.yaml").write_text(mapping, encoding="utf-8")
    (folder / "bill").write_text(text, encoding="utf-8")
    return read_invoice(folder / "bill", "house", mapping=folder / "mapping.yaml")


def lines(folder: Path, mapping: str, text: str) -> list[InvoiceLine]:
    return list(read(folder, mapping, text).lines)


def test_a_table_of_another_country(tmp_path: Path) -> None:
    """Commas, cents, thousands, a sum at the end, rows of something else, a name that means one of ours."""
    invoice = read(tmp_path, GERMAN, TABLE)
    assert (invoice.form, invoice.time_zone) == ("mapping", "Europe/Berlin")
    assert (invoice.says_tokens, invoice.says_money, invoice.says_requests) == (True, True, True)
    first, second = invoice.lines
    assert first == InvoiceLine(
        "bill:2",
        (
            Part(PartKind.INPUT, 1_234_500),
            Part(PartKind.OUTPUT, 2_000),
            Part(PartKind.ALL, None, 10_502_500_000),
        ),
        "gpt-4o-2024-08-06",
        day=date(2026, 10, 5),
        requests=1_200,
        currency="EUR",
        precision=100_000,
    )
    assert second.parts == (Part(PartKind.INPUT, 1), Part(PartKind.ALL, None, 5_000_000))
    assert (second.model, second.requests) == ("größer", None)


JSON = """\
format: json
rows: report.items
at: {column: when.ms, form: unix_ms}
model: deepseek-chat
request_id: {column: id}
requests: 1
tier: {column: tier}
currency: {column: cost.ccy}
tokens:
  input: {column: usage.in}
  cache_read: {column: usage.cached}
  output: {column: usage.out}
  reasoning: {column: usage.thought}
amounts:
  input: {column: cost.in}
  output: {column: cost.out}
input_is_fresh: false
output_is_whole: false
"""


def test_json_by_paths(tmp_path: Path) -> None:
    """A list somewhere inside; input that holds the cache, output that leaves reasoning out; exact amounts."""
    item = {
        "id": "گفت-1",
        "when": {"ms": 1_791_201_600_250},
        "tier": "flex",
        "usage": {"in": 100, "cached": 30, "out": 7, "thought": 5},
    }
    text = json.dumps({"report": {"items": [item | {"cost": {"in": "0.1", "out": 0.2, "ccy": "cny"}}]}})
    (line,) = lines(tmp_path, JSON, text)
    assert line == InvoiceLine(
        "bill/report/items/0",
        (
            Part(PartKind.INPUT, 70, 100_000_000),
            Part(PartKind.CACHE_READ, 30),
            Part(PartKind.OUTPUT, 12, 200_000_000),
        ),
        "deepseek-chat",
        at=datetime(2026, 10, 5, 12, 0, 0, 250_000, tzinfo=UTC),
        request_id="گفت-1",
        requests=1,
        currency="CNY",
        tier="flex",
        precision=100_000_000,
    )


def test_json_lines_are_rows(tmp_path: Path) -> None:
    """One object a line needs no `rows`."""
    mapping = "format: json\nday: {column: d}\ntokens: {output: {column: n}}\n"
    found = lines(tmp_path, mapping, '{"d": "2026-10-05", "n": 3}\n{"d": "2026-10-06", "n": 4}\n')
    assert [(line.place, line.day, line.parts[0].tokens) for line in found] == [
        ("bill:1/0", date(2026, 10, 5), 3),
        ("bill:2/0", date(2026, 10, 6), 4),
    ]


def test_names_of_a_known_form(tmp_path: Path) -> None:
    """A mapping of `models` alone says what a meter or a deployment is in the ledger."""
    mapping = tmp_path / "names.yaml"
    mapping.write_text("format: azure\nmodels: {gpt-4o-0806: gpt-4o-2024-08-06}\n")
    invoice = read_invoice(SAMPLES / "azure.csv", "azure_openai", mapping=mapping)
    assert (invoice.form, invoice.time_zone) == ("azure", "UTC")
    assert sums(invoice).models == ("gpt-4o-2024-08-06", "gpt-5.4")


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("format: csv", "format: cvs", 1, "format: 'cvs' is not known; the nearest valid one is 'csv'"),
        ("format: csv", "format: azuer", 1, "the nearest valid one is 'azure'"),
        ("Europe/Berlin", "Europe/Berlni", 3, "time_zone: 'Europe/Berlni' is no time zone"),
        ("day: {column", "day: {colum", 5, "day.colum: unknown key; the nearest valid one is 'column'"),
        ("tokens: {input", "tokens: {inptu", 8, "tokens.inptu: unknown key; the nearest valid one is 'input'"),
        ("tokens: {input", "tokens: {all", 8, "tokens.all: unknown key; 'all' stands under amounts"),
        ("requests:", "request:", 7, "request: unknown key; the nearest valid one is 'requests'"),
        ("unit: 1000", "unit: none", 8, "tokens.input.unit: must be a whole number"),
        ("scale: '0.01'", "scale: cents", 9, "amounts.all.scale: 'cents' is no decimal number in quotes"),
        ("currency: EUR\n", "", None, "currency is missing: what are the amounts in?"),
        ("day: {column: Datum, form: '%d.%m.%Y'}\n", "", None, "day or at is missing: when is a line of?"),
        ("amounts: {", "amounts: [", 9, "is not YAML"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: int | None, reason: str) -> None:
    """File, line, the wrong word, the nearest right one."""
    assert old in GERMAN
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, GERMAN.replace(old, new), TABLE)
    assert caught.value.file == str(tmp_path / "mapping.yaml")
    assert reason in caught.value.reason
    assert line is None or caught.value.line == line


def test_a_mapping_that_is_none(tmp_path: Path) -> None:
    """Not there, or a list."""
    with pytest.raises(ConfigError, match="cannot be read"):
        read_invoice(SAMPLES / "azure.csv", "house", mapping=tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="must be a mapping with keys"):
        read(tmp_path, "- format\n", TABLE)


def test_a_column_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    """With the nearest that is, not once for each row."""
    with pytest.raises(InvoiceError) as caught:
        read(tmp_path, GERMAN.replace("column: Betrag", "column: Betrga"), TABLE)
    ((place, reason),) = caught.value.problems
    assert place == "bill:1"
    assert reason.startswith("has no column 'Betrga', which the mapping names; the nearest is 'Betrag' (of Datum, ")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("05.10.2026", "2026-10-05", "'2026-10-05' is no day such as %d.%m.%Y"),
        ("1.234,5", "1.23.4,5", "is no number"),
        ("1.200", "1,5", "Anfragen is '1,5', and must be a whole number"),
        ("0,001;;0,5", ";;", "says neither tokens nor an amount"),
        ("06.10.2026;LLM", ";LLM", "Datum is empty, or there is no such column"),
    ],
)
def test_a_row_that_cannot_be_read_is_told_with_its_place(tmp_path: Path, old: str, new: str, reason: str) -> None:
    """As in the forms that are known."""
    assert old in TABLE
    with pytest.raises(InvoiceError) as caught:
        lines(tmp_path, GERMAN, TABLE.replace(old, new, 1))
    assert reason in str(caught.value)
    assert caught.value.problems[0][0].startswith("bill:")


def test_more_from_the_cache_than_there_was_is_a_mistake(tmp_path: Path) -> None:
    """`input_is_fresh: false` on an export whose input is fresh shows at once."""
    item = {"id": "a", "when": {"ms": 1_791_201_600_250}, "usage": {"in": 1, "cached": 30, "out": 7}}
    with pytest.raises(InvoiceError, match=r"more tokens from the cache \(30\) than input \(1\)"):
        lines(tmp_path, JSON, json.dumps({"report": {"items": [item]}}))
    with pytest.raises(InvoiceError, match=r"there is no list at report\.items"):
        lines(tmp_path, JSON, json.dumps({"report": []}))
