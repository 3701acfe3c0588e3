"""docs/usage.md and docs/prices.md: what they show is what happens."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from proxy.__main__ import run
from proxy.canon.usage import FIGURES, UsageState
from proxy.stores.price_files import load_prices
from tests.support.pipelines import shipped_rules
from tests.support.usage import CUT, WHOLE, normal_of
from tests.support.ways import profile_with

DOCS = Path(__file__).resolve().parents[2] / "docs"
USAGE = (DOCS / "usage.md").read_text(encoding="utf-8")
PRICES = (DOCS / "prices.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```json (\w+) (\w+)( cut)?\n(.*?)\n```\n\n([^`]*): `(\w+)`, (.*?)\.\n", USAGE, re.DOTALL)
RECIPE = re.findall(r"```yaml rules/acme\.yaml\nvendor: acme\n(.*?)\n```", USAGE, re.DOTALL)[0]
TOLD = {"r": "reported", "d": "derived", "a": "absent"}


@pytest.mark.clause("L2")
@pytest.mark.parametrize(("vendor", "dialect", "cut", "told", "why", "state", "figures"), EXAMPLES)
def test_an_example_of_usage_is_read_as_the_page_says(
    vendor: str, dialect: str, cut: str, told: str, why: str, state: str, figures: str
) -> None:
    """State, and each figure with how it is known."""
    profile = profile_with(RECIPE) if vendor == "acme" else shipped_rules().profile(vendor)
    found = normal_of(json.loads(told), profile, dialect, CUT if cut else WHOLE)
    assert found.state == state
    known = {name: TOLD[letter] for name, letter in zip(FIGURES, found.told, strict=True)}
    for part in re.split(r",\s+", figures.replace("\n", " ")):
        if missing := re.fullmatch(r"no (\w+)", part):
            assert known[missing[1]] == "absent"
            continue
        name, figure, *how = part.split()
        assert getattr(found, name) == int(figure)
        assert how in ([], [known.get(name)])


def test_the_page_names_every_state() -> None:
    """And every figure."""
    assert len(EXAMPLES) == USAGE.count("```json") == 11
    assert set(re.findall(r"^\| `(\w+)` \| ", USAGE, re.MULTILINE)) >= set(get_args(UsageState)) - set(FIGURES)
    assert all(f"`{name}`" in USAGE for name in FIGURES)


@pytest.mark.clause("L2", "C3")
def test_the_price_file_of_the_page_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It loads, and what the page says of a mistake is what is said."""
    text = re.findall(r"```yaml prices/acme\.yaml\n(.*?)\n```", PRICES, re.DOTALL)[0]
    folder = tmp_path / "prices"
    folder.mkdir()
    file = folder / "acme.yaml"
    file.write_text(text, encoding="utf-8")
    book = load_prices(folder)
    october = 1_790_812_800_000_000
    before = book.find("acme", ("acme-large-2026-05",), october)
    after = book.find("acme", ("acme-large",), october + 20 * 86_400_000_000)
    assert before is not None
    assert after is not None
    assert (before.rates.input, after.rates.input, before.max_output) == (3 * 10**9, 25 * 10**8, 8192)
    assert re.fullmatch(r"acme/acme-large@2026-10-15#[0-9a-f]{8}", after.version)
    assert run(["check-prices", "--prices", str(folder)]) == 0
    file.write_text(text.replace("input: '3.00'", "input: 3.00"), encoding="utf-8")
    assert run(["check-prices", "--prices", str(folder)]) == 2
    told = re.findall(r"`(prices/acme\.yaml:\d+: .*?)`\.", PRICES, re.DOTALL)[0].replace("\n", " ")
    assert capsys.readouterr().err.strip().removeprefix(f"sluice: {tmp_path}/") == told


def test_the_commands_of_the_prices_page_are_commands() -> None:
    """Each is understood; without a ledger it says that the configuration is missing."""
    commands = [line for block in re.findall(r"```sh\n(.*?)\n```", PRICES, re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 4
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "sluice"
        assert run([*words[1:3], "--help"] if words[1] in ("ledger", "report") else [words[1], "--help"]) == 0
