"""docs/reconciling.md is true: its example goes as it is told, and its tables have every reason and option."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.__main__ import run
from proxy.books.reconciling.document import WORDS
from proxy.cli.reconcile import reconcile
from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.stores.ledger_db import Ledger
from tests.support.books import PRICES
from tests.support.rows import closed, opened

pytestmark = pytest.mark.clause("C3")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reconciling.md").read_text(encoding="utf-8")
#: 2026-10-05T12:00:00Z
NOON = 1_791_201_600.0
CONFIG = """\
auth: {mode: none}
ledger: {url: "sqlite:///ledger.db"}
upstreams:
  main: {vendor: openrouter, base_url: "https://api.example.test/v1", api_key: "${KEY}"}
models:
  shop: [{upstream: main, model: deepseek/deepseek-chat-v3}]
"""
COSTS = ("cost_input", "cost_cache_read", "cost_cache_write", "cost_output")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def cells(title: str) -> list[list[str]]:
    """The body of a section's table."""
    rows = re.findall(r"^\| (.+) \|$", section(title), re.MULTILINE)
    return [[cell.strip().strip("`") for cell in row.split(" | ")] for row in rows[1:]]


def attempt(number: int, vendor_id: str, ending: str, tokens: tuple[int, int]) -> tuple[AttemptOpen, AttemptClose]:
    model = "deepseek/deepseek-chat-v3"
    row = opened(
        f"a-{number:04d}",
        started_at=NOON + number,
        tenant="فروشگاه",
        vendor="openrouter",
        model=model,
        request_bytes=4 * tokens[0],
        max_output=100,
        price_version="openrouter/deepseek-chat-v3@2026-01-01#1",
        currency="USD",
    )
    own = {"own_cost_input": tokens[0] * PRICES[0], "own_cost_output": tokens[1] * PRICES[3]}
    counts = {"counted_input": tokens[0], "counted_output": tokens[1]}
    told: dict[str, Any] = {"served_model": model, "vendor_response_id": vendor_id, "ending": ending, **counts, **own}
    if ending == "completed":
        told |= {"usage_state": "final", "usage_told": "rraaa", "usage_input": tokens[0], "usage_output": tokens[1]}
        told |= dict(zip(COSTS, (tokens[0] * PRICES[0], 0, 0, tokens[1] * PRICES[3]), strict=True))
    else:
        told |= {"usage_state": "lost", "usage_told": "aaaaa"}
        told |= dict.fromkeys(("usage_input", "usage_output", *COSTS))
    return row, closed(row, **told)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The ledger and the invoice that the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", "secret")
    (tmp_path / "sluice.yaml").write_text(CONFIG)
    (tmp_path / "activity.csv").write_text(blocks("csv")[0], encoding="utf-8")
    ledger = Ledger.start(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "ledger.db-journals", "host", "0")
    rows = cells("An example")

    async def write() -> None:
        for number, (vendor_id, ending, asked, made, *_) in enumerate(rows, start=1):
            row, end = attempt(number, vendor_id, ending, (int(asked), int(made)))
            ledger.open(row)
            await ledger.close(end)

    asyncio.run(write())
    yield tmp_path
    ledger.stop_now()


def is_shown(printed: str, shown: str) -> bool:
    """`…` stands for the rest of a word, and alone on a line for any lines."""
    lines = ["(?:.*\n)*" if line == "…" else re.escape(line).replace("…", r"\S+") + "\n" for line in shown.split("\n")]
    told = "\n".join(line.rstrip() for line in printed.split("\n"))
    return re.fullmatch("".join(lines), f"{told}\n") is not None


def test_the_example_goes_as_it_is_told(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each command prints what the page shows, and exits as it says."""
    commands = 0
    for block in blocks("console"):
        for part in block.split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            code = run(shlex.split(command.removesuffix("; echo $?"))[1:])
            printed = capfd.readouterr().out
            printed += f"{code}\n" if command.endswith("; echo $?") else ""
            assert is_shown(printed, shown), f"{command}\n{printed}"
            commands += 1
    assert commands == 3


def test_every_reason_is_in_the_table() -> None:
    """In the report's own words, and none that there is not."""
    assert sorted(row[0] for row in cells("The reasons")) == sorted(WORDS.values())


def test_every_option_is_named() -> None:
    """Those of the command itself; how a report is written is on another page."""
    options = {name for option in reconcile.params for name in option.opts if name.startswith("--")}
    named = {row[0].split()[0] for row in cells("The command")}
    assert named <= options
    assert options - named == {"--format", "--json", "--out", "--table", "--exact", "--config"}
