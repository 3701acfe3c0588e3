"""`sluice ledger reprice` as docs/prices.md shows it: say what would change, change it, report it; never twice."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path

import pytest

from proxy.__main__ import run
from proxy.stores.ledger_db import Ledger
from tests.support.rows import closed, opened

pytestmark = pytest.mark.clause("C3", "L2")

#: 2026-10-05T12:00:00Z
NOON = 1_791_201_600.0
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "prices.md").read_text(encoding="utf-8")
CONFIG = """\
auth: {mode: none}
ledger: {url: "sqlite:///ledger.db"}
prices: prices
upstreams:
  main: {vendor: openai, base_url: "https://api.example.test/v1", api_key: "${KEY}"}
models:
  shop: [{upstream: main, model: acme-large}]
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The price file of the page, and three attempts: two that had no price yet, and one in yuan."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", "secret")
    (tmp_path / "sluice.yaml").write_text(CONFIG)
    (tmp_path / "prices").mkdir()
    (text,) = re.findall(r"```yaml prices/acme\.yaml\n(.*?)\n```", PAGE, re.DOTALL)
    (tmp_path / "prices" / "acme.yaml").write_text(text, encoding="utf-8")
    ledger = Ledger.start(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "ledger.db-journals", "host", "0")

    async def write() -> None:
        for number, tenant in enumerate(("فروشگاه", "商店", "दुकान")):
            priced = {"price_version": "acme/acme-large@2026-01-01#0", "currency": "CNY"} if number == 2 else {}
            row = opened(started_at=NOON + number, tenant=tenant, vendor="acme", model="acme-large", **priced)
            ledger.open(row)
            await ledger.close(
                closed(
                    row,
                    served_model="acme-large",
                    counted_input=1_000,
                    counted_output=100,
                    usage_state="final",
                    usage_told="rraaa",
                    usage_input=1_000,
                    usage_output=100,
                    **({"cost_input": 7_000_000, "cost_output": 1_000_000} if number == 2 else {}),
                )
            )

    asyncio.run(write())
    ledger.stop_now()
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], command: str) -> str:
    assert run(shlex.split(command)[1:]) == 0
    return capsys.readouterr().out


def test_the_commands_of_the_page_price_again_and_report_it(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As they stand there; 1000 tokens in and 100 out at 3 and 15 dollars a million are 0.0045 dollars."""
    section = PAGE.split("\n## Pricing again\n")[1]
    dry, wet, report = re.findall(r"```sh\n(.*?)\n```", section, re.DOTALL)[0].splitlines()
    told = said(capsys, dry)
    assert told == re.findall(r"```text\n(.*?)```", section, re.DOTALL)[0]
    assert said(capsys, wet) == told.replace("would be", "are")
    assert said(capsys, wet) == "0 attempts are priced again\n"
    priced = json.loads(said(capsys, f"{report} --json"))
    recorded = json.loads(said(capsys, f"{report.replace('latest', 'recorded')} --json"))
    assert "0.0135" in json.dumps(priced)
    assert "0.0135" not in json.dumps(recorded)


def test_the_changes_are_one_json_object(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Money in nano-units; what is not of that vendor or period is left out."""
    told = json.loads(
        said(capsys, "sluice ledger reprice --dry-run --json --model acme-large --since 2026-10-05T12:00:02Z")
    )
    (change,) = told["changes"]
    assert told["dry_run"] is True
    assert re.fullmatch(r"acme/acme-large@2026-01-01#[0-9a-f]{8}", change.pop("version"))
    assert change == {
        **{"vendor": "acme", "model": "acme-large", "currency": "USD", "currency_before": "CNY", "attempts": 1},
        **{"unpriced": 0, "before": 8_000_000, "after": 4_500_000, "own_before": 0, "own_after": 4_500_000},
    }
    assert json.loads(said(capsys, "sluice ledger reprice --json --period 2026-09"))["changes"] == []


def test_a_price_file_that_is_wrong_prices_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File and line, exit code two, and no row."""
    file = checkout / "prices" / "acme.yaml"
    file.write_text(file.read_text().replace("'3.00'", "3.00"))
    assert run(["ledger", "reprice"]) == 2
    assert "acme.yaml:14: " in capsys.readouterr().err
