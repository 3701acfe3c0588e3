"""Price files: read exactly, and every mistake told with file, line and what is right."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from proxy.errors import ConfigError
from proxy.metering.prices import PriceBook
from proxy.stores.price_files import default_prices_dir, load_prices, parse_prices
from proxy.stores.rules import default_rules_dir

pytestmark = pytest.mark.clause("L2")

GOOD = """\
vendor: acme
currency: CNY
time_zone: Asia/Shanghai
source: the contract of 2026
seen: 2026-12-01
proof: contract
models:
  m-1:
    names: [m-1-*, modèle]
    max_output: 4096
    prices:
      - {from: 2026-10-15, input: '3.00', output: '12', cache_read: '0.30'}
      - from: 2026-01-01
        input: '2.00'
        output: '8'
        tiers:
          Batch: {input: '1', output: '4'}
        long: {above: 200000, input: '4', output: '16'}
"""


def book(text: str = GOOD) -> PriceBook:
    return parse_prices({"acme.yaml": textwrap.dedent(text)})


def micros(day: int, hour: int = 0) -> int:
    """Of October 2026, UTC."""
    return (1_790_812_800 + (day - 1) * 86_400 + hour * 3_600) * 1_000_000


def test_a_file_is_read_exactly() -> None:
    """Decimal texts to integers, days in their zone, names and prefixes, defaults of what is left out."""
    prices = book()
    before = prices.find("acme", ("m-1",), micros(14, 15))
    after = prices.find("acme", ("modèle",), micros(14, 16))
    assert before is not None
    assert after is not None
    assert (before.rates.input, before.rates.cache_read, before.rates.reasoning) == (2 * 10**9, 2 * 10**9, 8 * 10**9)
    assert (before.long_above, before.long and before.long.output, before.max_output) == (200_000, 16 * 10**9, 4096)
    assert before.tiers["batch"].output == 4 * 10**9
    assert (after.rates.input, after.rates.cache_read, after.currency) == (3 * 10**9, 3 * 10**8, "CNY")
    assert prices.find("acme", ("m-1-2026",), micros(20)) == after


def test_another_text_of_the_figures_is_another_version() -> None:
    """And nothing else is: an end, a name or a comment leave it as it is."""

    def version(text: str) -> str:
        found = book(text).find("acme", ("m-1",), micros(20))
        assert found is not None
        return found.version

    assert version(GOOD) == version(GOOD.replace("max_output: 4096", "max_output: 9").replace("modèle", "モデル"))
    assert version(GOOD) != version(GOOD.replace("'3.00'", "'3.01'"))
    assert version(GOOD) != version(GOOD.replace("CNY", "EUR"))
    assert version(GOOD).startswith("acme/m-1@2026-10-15#")


@pytest.mark.parametrize(
    ("wrong", "right", "line", "words"),
    [
        ("currency: CNY", "currency: Yuan", 2, "no currency"),
        ("time_zone: Asia/Shanghai", "time_zone: Asia/Shangai", 3, "no time zone"),
        ("proof: contract", "proof: guess", 6, "valid are published"),
        ("input: '3.00'", "input: 3.00", 12, "put it in quotes"),
        ("input: '3.00'", "input: '-3.00'", 12, "must not be negative"),
        ("input: '3.00'", "input: '0.0000000001'", 12, "nine digits"),
        ("cache_read: '0.30'", "cache_reed: '0.30'", 12, "'cache_read'"),
        ("max_output: 4096", "max_outputs: 4096", 10, "'max_output'"),
        ("seen: 2026-12-01", "seen: yesterday", 5, "date"),
        ("vendor: acme", "vendor: acne", 1, "called as its file"),
        ("from: 2026-10-15", "from: 2026-01-01", 12, "overlaps"),
        ("      - from: 2026-01-01", "      - from: 2026-01-01\n        until: 2026-11-01", 13, "overlaps"),
        ("from: 2026-10-15,", "from: 2026-10-15, until: 2026-10-15,", 12, "not after"),
        ("names: [m-1-*, modèle]", "names: [m-*-1]", 8, "at its end alone"),
        ("names: [m-1-*, modèle]", "names: [m-1]", 8, "stands twice"),
        ("long: {above: 200000,", "long: {abowe: 200000,", 18, "'above'"),
        ("models:", "models: [", 9, "opened on line 7"),
    ],
)
def test_a_mistake_is_told_with_its_line(wrong: str, right: str, line: int, words: str) -> None:
    """The file, the line, and what would be right."""
    with pytest.raises(ConfigError) as caught:
        book(GOOD.replace(wrong, right, 1))
    assert (caught.value.file, words in caught.value.reason) == ("acme.yaml", True), caught.value.reason
    assert caught.value.line in (line, line + 1)


def test_two_files_of_one_vendor_are_refused() -> None:
    """Which of them would be right?"""
    with pytest.raises(ConfigError, match="another file has"):
        parse_prices({"acme.yaml": GOOD, "old/acme.yaml": GOOD})


def test_the_shipped_prices_are_of_vendors_with_rules() -> None:
    """Each file loads, says where it is from, and its vendor has a rule file."""
    shipped = load_prices(default_prices_dir())
    rules = {path.stem for path in default_rules_dir().glob("*.yaml")}
    assert set(shipped.vendors) <= rules
    assert all("source: https://" in path.read_text() for path in default_prices_dir().glob("*.yaml"))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """And so is a file that is no text."""
    with pytest.raises(ConfigError, match="cannot be read"):
        load_prices(tmp_path / "nowhere")
    (tmp_path / "acme.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match=r"acme\.yaml"):
        load_prices(tmp_path)
