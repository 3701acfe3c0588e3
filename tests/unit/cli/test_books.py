"""The commands over the books, on a real ledger: reports, reconciling, exports, in every form."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proxy.__main__ import run
from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.stores.ledger_db import Ledger
from tests.support.books import PRICES
from tests.support.rows import closed, opened

pytestmark = pytest.mark.clause("C3")

#: 2026-10-05T12:00:00Z
NOON = 1_791_201_600.0
CONFIG = """\
auth: {mode: none}
ledger: {url: "sqlite:///ledger.db"}
upstreams:
  main: {vendor: openai, base_url: "https://api.example.test/v1", api_key: "${KEY}"}
models:
  shop: [{upstream: main, model: gpt-4o-2024-08-06}]
"""


def attempt(number: int, tokens: tuple[int, int] = (100, 20), **fields: Any) -> tuple[AttemptOpen, AttemptClose]:
    """One that its vendor reported, priced by input and output."""
    row = opened(
        f"a-{number:04d}",
        started_at=NOON + number,
        tenant=fields.pop("tenant", "فروشگاه"),
        model="gpt-4o-2024-08-06",
        request_bytes=400,
        max_output=50,
        price_version="openai/gpt-4o@2026-01-01#1",
        currency="USD",
        cost_bound=400 * PRICES[0] + 50 * PRICES[3],
    )
    told: dict[str, Any] = {
        "served_model": "gpt-4o-2024-08-06",
        "vendor_response_id": f"chatcmpl-{number}",
        "counted_input": tokens[0] - 2,
        "counted_output": tokens[1],
        "usage_state": "final",
        "usage_told": "rraaa",
        "usage_input": tokens[0],
        "usage_output": tokens[1],
        "price_tier": "standard",
        "cost_input": tokens[0] * PRICES[0],
        "cost_cache_read": 0,
        "cost_cache_write": 0,
        "cost_output": tokens[1] * PRICES[3],
        "own_cost_input": (tokens[0] - 2) * PRICES[0],
        "own_cost_output": tokens[1] * PRICES[3],
    }
    return row, closed(row, **(told | fields))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ledger of ten attempts of two tenants, one that was cut, and one that still runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", "secret")
    file = tmp_path / "sluice.yaml"
    file.write_text(CONFIG)
    ledger = Ledger.start(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "ledger.db-journals", "host", "0")

    async def write() -> None:
        rows = [attempt(number, (100 + number, 20), tenant="商店" if number % 2 else "فروشگاه") for number in range(10)]
        lost: dict[str, Any] = dict.fromkeys(("usage_input", "usage_output", "cost_input", "cost_output"))
        rows.append(attempt(10, ending="client_gone", usage_state="lost", usage_told="aaaaa", **lost))
        for row, end in rows:
            ledger.open(row)
            await ledger.close(end)
        ledger.open(attempt(11)[0])

    asyncio.run(write())
    yield file
    ledger.stop_now()


def said(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str, code: int = 0) -> bytes:
    assert run(arguments) == code, capfdbinary.readouterr().err.decode()
    return capfdbinary.readouterr().out


def test_a_usage_report_has_our_count_the_vendors_and_the_difference(
    config: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """By tenant and day; the difference is over attempts that have both, and the open ones stand apart."""
    told = json.loads(said(capfdbinary, "report", "usage", "--by", "tenant,day", "--period", "2026-10", "--json"))
    rows = {row["tenant"]: row for row in told["tables"]["usage"]}
    assert {row["day"] for row in rows.values()} == {"2026-10-05"}
    chinese = rows["商店"]
    assert (chinese["requests"], chinese["reported"]) == (5, 5)
    assert chinese["vendor_input"] == sum(100 + number for number in range(1, 10, 2))
    assert (chinese["input_difference"], chinese["output_difference"]) == (10, 0)
    assert chinese["vendor_cost"] - chinese["own_cost"] == chinese["cost_difference"] == 10 * PRICES[0]
    persian = rows["فروشگاه"]
    assert (persian["requests"], persian["reported"]) == (7, 5)
    early = told["tables"]["open"]
    assert [(row["ending"], row["requests"], row["at_least"]) for row in early] == [
        ("client_gone", 1, 98 * PRICES[0] + 20 * PRICES[3]),
        ("open", 1, 0),
    ]
    assert {row["at_most"] for row in early} == {400 * PRICES[0] + 50 * PRICES[3]}
    assert told["headlines"]["open"]["value"] == 2


@pytest.mark.clause("L4")
@pytest.mark.parametrize("form", ["table", "json", "csv", "xlsx", "parquet", "html"])
def test_the_same_question_gives_the_same_bytes(
    form: str, config: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """In every form, to a file as well as to standard output."""
    question = ("report", "usage", "--by", "tenant,model,week", "--period", "2026-Q4", "--format", form)
    first = said(capfdbinary, *question)
    assert first
    assert said(capfdbinary, *question) == first
    assert said(capfdbinary, *question, "--out", str(tmp_path / "report")) == b""
    assert (tmp_path / "report").read_bytes() == first
    if form == "xlsx":
        assert "xl/workbook.xml" in zipfile.ZipFile(io.BytesIO(first)).namelist()
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(first.decode())))
        assert {row["week"] for row in rows} == {"2026-W41"}


@pytest.mark.clause("L4")
def test_an_export_of_days_gives_the_same_report(
    config: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Parquet by day; a day of which an attempt still runs is left for later, and then written whole."""
    out = tmp_path / "export"
    said(capfdbinary, "ledger", "export", "--format", "parquet", "--out", str(out), "--until", "2026-10-07")
    assert not list(out.glob("attempts/*/*.parquet"))
    said(capfdbinary, "report", "usage", "--ledger", str(out), code=2)


def write_invoice(path: Path, skip: int | None = None) -> None:
    """What OpenAI would charge, as its own API reports it: usage and costs of one day."""
    figures = [(100 + number, 20) for number in range(10) if number != skip]
    asked, made = sum(one for one, _ in figures), sum(one for _, one in figures)
    bucket = {"object": "bucket", "start_time": 1_791_158_400, "end_time": 1_791_244_800}
    model = "gpt-4o-2024-08-06"
    usage = {
        "object": "organization.usage.completions.result",
        **{"input_tokens": asked, "output_tokens": made, "input_cached_tokens": 0},
        **{"num_model_requests": len(figures), "model": model, "batch": False},
    }
    costs = [
        {
            "object": "organization.costs.result",
            "amount": {"value": tokens * price / 1e9, "currency": "usd"},
            "line_item": f"{model}, {what}",
        }
        for what, tokens, price in (("input", asked, PRICES[0]), ("output", made, PRICES[3]))
    ]
    pages = [{"object": "page", "data": [{**bucket, "results": [usage]}]}, {"data": [{**bucket, "results": costs}]}]
    path.with_suffix(".usage.json").write_text(json.dumps(pages[0]))
    path.with_suffix(".costs.json").write_text(json.dumps(pages[1]))


def reconcile(path: Path, *more: str) -> tuple[str, ...]:
    files = ("--invoice", str(path.with_suffix(".usage.json")), "--invoice", str(path.with_suffix(".costs.json")))
    return ("reconcile", "--vendor", "openai", *files, "--period", "2026-10", *more)


def test_an_invoice_that_is_right_reconciles(
    config: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Usage and costs of one vendor, from two files, by model and day."""
    write_invoice(tmp_path / "invoice")
    told = json.loads(said(capfdbinary, *reconcile(tmp_path / "invoice", "--json")))
    assert told["headlines"]["unexplained"]["value"] == 0
    assert told["headlines"]["invoice"]["value"] == told["headlines"]["ledger"]["value"] > 0
    assert [row["reason"] for row in told["tables"]["findings"]] == []


def test_what_is_not_explained_decides_the_exit_code(
    config: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """An attempt left out is explained; tokens that nothing explains are over the tolerance, or within a wide one."""
    write_invoice(tmp_path / "invoice", skip=3)
    told = json.loads(said(capfdbinary, *reconcile(tmp_path / "invoice", "--json")))
    assert [(row["reason"], row["requests"], row["tokens"]) for row in told["tables"]["findings"]] == [
        ("missing there", -1, -123)
    ]
    file = tmp_path / "invoice.usage.json"
    file.write_text(file.read_text().replace('"output_tokens": 180', '"output_tokens": 1180'))
    assert b"Unexplained" in said(capfdbinary, *reconcile(tmp_path / "invoice"), code=1)
    said(capfdbinary, *reconcile(tmp_path / "invoice", "--tolerance", "1000"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "usage", "--by", "planet"), "'planet' is nothing to group by"),
        (("report", "usage", "--by", "day,week"), "one span of time is enough"),
        (("report", "usage", "--period", "2026-13"), "'2026-13' is no period"),
        (("report", "usage", "--time-zone", "Mars/Olympus"), "is no time zone"),
        (("report", "usage", "--json", "--format", "csv"), "two forms"),
        (("report", "usage", "--format", "csv", "--table", "prices"), "there is usage, open"),
        (("report", "usage", "--out", "report.doc"), "names no form"),
        (("report", "usage", "--ledger", "nowhere"), "is no folder"),
        (("report", "usage", "--config", "nowhere.yaml"), "nowhere.yaml"),
        (("reconcile", "--vendor", "openai", "--invoice", "nowhere.csv", "--period", "2026-10"), "nowhere.csv"),
        (("reconcile", "--vendor", "openai", "--invoice", "sluice.yaml", "--period", "2026-10"), "--mapping"),
        (
            ("reconcile", "--vendor", "x", "--invoice", "sluice.yaml", "--period", "2026-10", "--tolerance", "much"),
            "neither an amount",
        ),
        (("ledger", "export", "--format", "parquet"), "go together"),
    ],
)
def test_what_cannot_be_done_is_told_with_exit_code_two(
    arguments: tuple[str, ...], words: str, config: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What, where, and what may be written."""
    assert run(arguments) == 2
    assert words in capfdbinary.readouterr().err.decode()


def test_prices_are_checked_against_the_configured_models(
    config: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The shipped ones have this model; a folder without it says which is left out."""
    told = json.loads(said(capfdbinary, "check-prices", "--config", str(config), "--json"))
    assert (told["unpriced"], told["gaps"]) == ([], [])
    empty = tmp_path / "prices"
    empty.mkdir()
    assert b"shop (openai/gpt-4o-2024-08-06)" in said(
        capfdbinary, "check-prices", "--config", str(config), "--prices", str(empty), code=1
    )


def test_an_export_that_is_over_holds_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a ledger that nobody writes any more: typed columns, the same bytes again, and the same report from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", "secret")
    (tmp_path / "sluice.yaml").write_text(CONFIG)
    ledger = Ledger.start(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "ledger.db-journals", "host", "0")

    async def write() -> None:
        for number in range(20):
            row, end = attempt(number * 9_000)
            ledger.open(row)
            await ledger.close(end)

    asyncio.run(write())
    ledger.stop_now()
    command = ("ledger", "export", "--format", "parquet", "--out", "export", "--until", "2026-10-09")
    assert run(command) == 0
    files = sorted((tmp_path / "export").glob("attempts/*/*.parquet"))
    before = [file.read_bytes() for file in files]
    assert [file.parent.name for file in files] == ["day=2026-10-05", "day=2026-10-06", "day=2026-10-07"]
    assert run(command) == 0
    assert [file.read_bytes() for file in files] == before
    with duckdb.connect() as connection:
        (row,) = connection.execute(
            "SELECT count(*), min(started), sum(usage_input), bool_and(streamed), min(tenant) "
            "FROM 'export/attempts/*/*.parquet'"
        ).fetchall()
    assert (row[0], str(row[1]), row[2], row[3], row[4]) == (20, "2026-10-05 12:00:00", 2000, True, "فروشگاه")
    question = ("report", "usage", "--by", "tenant,day", "--time-zone", "Asia/Kathmandu", "--json", "--out")
    assert run((*question, "live.json")) == 0
    assert run((*question, "parquet.json", "--ledger", "export")) == 0
    assert (tmp_path / "live.json").read_bytes() == (tmp_path / "parquet.json").read_bytes()
