"""Every known form: what its sample says is what a person adds up (contract C3)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from proxy.books.invoice import InvoiceLine, PartKind
from proxy.books.invoices import FORMS, read_invoice, read_invoices
from proxy.errors import InvoiceError
from tests.support.invoices import SAMPLES, Sums, sums

pytestmark = pytest.mark.clause("C3")

#: Of each sample: the vendor, the form that it is told as, the zone of its days, and what it comes to.
EXPECTED: dict[str, tuple[str, str, str, Sums]] = {
    "openai-usage.json": (
        "openai",
        "openai-usage",
        "UTC",
        Sums(
            {"input": 600 + 50 + 900, "cache_read": 400, "output": 320},
            {},
            7 + 1 + 3,
            3,
            ("gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18", "text-embedding-3-small"),
            (),
        ),
    ),
    "openai-costs.json": (
        "openai",
        "openai-costs",
        "UTC",
        Sums(
            {},
            {"input": 1_500_000, "cache_read": 500_000, "output": 23_000_000, "other": 20_000_000, "all": 18_000},
            0,
            7,
            ("gpt-4o-2024-08-06", "gpt-5.1-2025-11-13", "text-embedding-3-small"),
            ("USD",),
        ),
    ),
    "anthropic-usage.json": (
        "anthropic",
        "anthropic-usage",
        "UTC",
        Sums(
            {"input": 1_600, "cache_write": 1_500, "cache_read": 200, "output": 540},
            {},
            0,
            2,
            ("claude-haiku-4-5-20251001", "claude-sonnet-4-5-20250929"),
            (),
        ),
    ),
    "anthropic-costs.json": (
        "anthropic",
        "anthropic-costs",
        "UTC",
        Sums(
            {},
            {
                "input": 4_500_000,
                "cache_read": 60_000,
                "cache_write": 7_875_000,
                "output": 7_500_000,
                "other": 100_000_000,
            },
            0,
            6,
            ("claude-sonnet-4-5-20250929",),
            ("USD",),
        ),
    ),
    "openrouter.csv": (
        "openrouter",
        "openrouter",
        "UTC",
        Sums(
            {"input": 260, "cache_read": 100, "output": 95},
            {"all": 6_200_000, "other": 20_000_000},
            3,
            4,
            ("deepseek/deepseek-chat-v3-0324", "openai/gpt-4o-mini", "qwen/qwen3-8b:free"),
            ("USD",),
        ),
    ),
    "openrouter-activity.json": (
        "openrouter",
        "openrouter-activity",
        "UTC",
        Sums({"input": 58, "output": 127}, {"all": 16_000_000}, 6, 2, ("openai/gpt-4.1-2025-04-14",), ("USD",)),
    ),
    "deepseek-amount.csv": (
        "deepseek",
        "deepseek-amount",
        "UTC",
        Sums(
            {"input": 1_500, "cache_read": 4_096, "output": 730},
            {},
            13,
            6,
            ("deepseek-chat", "deepseek-reasoner"),
            (),
        ),
    ),
    "deepseek-cost.csv": (
        "deepseek",
        "deepseek-cost",
        "UTC",
        Sums({}, {"all": 828_688 + 12_600}, 0, 3, ("deepseek-chat", "deepseek-reasoner"), ("USD",)),
    ),
    "deepseek-amount-zone.csv": (
        "deepseek",
        "deepseek-amount",
        "Asia/Shanghai",
        Sums({"input": 2_000, "output": 100}, {}, 4, 3, ("deepseek-v4-pro",), ()),
    ),
    "deepseek-cost-zone.csv": (
        "deepseek",
        "deepseek-cost",
        "Asia/Shanghai",
        Sums({}, {"all": 7_350_000}, 0, 1, ("deepseek-v4-pro",), ("CNY",)),
    ),
    "aws-cur1.csv": (
        "bedrock",
        "aws",
        "UTC",
        Sums(
            {"input": 1_500, "cache_read": 4_096, "cache_write": 2_000, "output": 250},
            {
                "input": 4_500_000,
                "cache_read": 1_228_800,
                "cache_write": 7_500_000,
                "output": 3_750_000,
                "other": 2_500_000,
            },
            0,
            6,
            ("claude-sonnet-4-5",),
            ("USD",),
        ),
    ),
    "aws-cur2.csv": (
        "bedrock",
        "aws",
        "UTC",
        Sums(
            {"input": 2_000, "output": 3_500},
            {"input": 6_000_000, "output": 11_600_000, "other": -2_000_000},
            0,
            4,
            ("Claude Sonnet 4.5", "Nova2Lite"),
            ("USD",),
        ),
    ),
    "azure.csv": (
        "azure_openai",
        "azure",
        "UTC",
        Sums(
            {"input": 12_500, "cache_read": 4_000, "output": 4_000},
            {"input": 28_750_000, "cache_read": 4_600_000, "output": 41_400_000, "other": 1_550_800_000},
            0,
            6,
            ("gpt-4o-0806", "gpt-5.4"),
            ("EUR",),
        ),
    ),
    "azure-older.csv": (
        "azure_openai",
        "azure",
        "UTC",
        Sums(
            {"input": 1_200_500, "output": 100_000},
            {"input": 198_083_000, "output": 66_000_000},
            0,
            2,
            ("gpt-4o-mini-0718",),
            ("USD",),
        ),
    ),
    "google-table.csv": (
        "gemini",
        "google",
        "America/Los_Angeles",
        Sums(
            {"input": 1_000_000, "cache_read": 200_000, "output": 400_000},
            {"input": 300_000_400, "cache_read": 6_000_000, "output": 1_000_000_000, "other": 690_000_000},
            0,
            5,
            ("gemini-2.5-flash",),
            ("USD",),
        ),
    ),
    "google-export.csv": (
        "vertex",
        "google",
        "America/Los_Angeles",
        Sums(
            {"input": 10_000, "output": 2_000},
            {"input": 11_500_000, "output": 20_000_000},
            0,
            3,
            ("PaLM Text Bison Input", "gemini-2.5-pro"),
            ("USD",),
        ),
    ),
}


@pytest.mark.parametrize("sample", EXPECTED)
def test_a_sample_comes_to_what_was_added_up_by_hand(sample: str) -> None:
    """Tokens, money, requests, models; and the form and the zone are told from the file."""
    vendor, form, zone, expected = EXPECTED[sample]
    invoice = read_invoice(SAMPLES / sample, vendor)
    assert (invoice.form, invoice.time_zone) == (form, zone)
    assert sums(invoice) == expected


@pytest.mark.parametrize("sample", EXPECTED)
def test_a_form_says_what_its_lines_have(sample: str) -> None:
    """`says_…` is true where some line has it, and false where none has."""
    vendor, _, _, expected = EXPECTED[sample]
    invoice = read_invoice(SAMPLES / sample, vendor)
    assert invoice.says_tokens == bool(expected.tokens)
    assert invoice.says_money == bool(expected.amounts)
    assert invoice.says_requests == bool(expected.requests)


@pytest.mark.parametrize("sample", EXPECTED)
def test_a_named_form_reads_the_same(sample: str) -> None:
    """`--form` is only needed where a file does not show it."""
    vendor, form, _, expected = EXPECTED[sample]
    assert sums(read_invoice(SAMPLES / sample, vendor, form=form)) == expected


def test_every_form_has_a_sample_and_every_sample_a_test() -> None:
    """No form is only described."""
    assert {form for _, form, _, _ in EXPECTED.values()} == set(FORMS)
    assert {path.name for path in SAMPLES.iterdir()} == {*EXPECTED, "README.md"}


def lines(sample: str) -> list[InvoiceLine]:
    return list(read_invoice(SAMPLES / sample, EXPECTED[sample][0]).lines)


def test_a_line_says_where_it_stands_and_of_when_it_is() -> None:
    """A line number of the file, or a path into its JSON; a bucket's bounds, a moment, or a day."""
    usage = lines("openai-usage.json")[0]
    assert usage.place == "openai-usage.json/data/0/results/0"
    assert (usage.at, usage.until) == (datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 2, tzinfo=UTC))
    table = lines("google-table.csv")[0]
    assert (table.place, table.day, table.at) == ("google-table.csv:8", date(2026, 10, 1), None)
    hour = lines("google-export.csv")[0]
    assert (hour.at, hour.day) == (datetime(2026, 10, 1, 7, tzinfo=UTC), None)
    one = lines("openrouter.csv")[0]
    assert (one.request_id, one.requests, one.at) == (
        "gen-1790812801-aaaa",
        1,
        datetime(2026, 10, 1, 0, 0, 1, 250_000, tzinfo=UTC),
    )
    assert lines("deepseek-amount.csv")[4].day == date(2026, 10, 2)
    assert lines("deepseek-amount-zone.csv")[0].day == date(2026, 10, 1)


def test_what_a_line_does_not_say_is_none() -> None:
    """An embedding has no output, some generations no cache, a cost no tokens: none of them is nought."""
    embedding = lines("openai-usage.json")[2]
    assert [part.kind for part in embedding.parts] == [PartKind.INPUT]
    free = lines("openrouter.csv")[3]
    assert PartKind.CACHE_READ not in [part.kind for part in free.parts]
    assert all(part.tokens is None for line in lines("openai-costs.json") for part in line.parts)
    palm = lines("google-export.csv")[2]
    assert (palm.parts[0].tokens, palm.parts[0].amount) == (None, 1_000_000)


def test_what_a_search_cost_is_a_line_of_its_own() -> None:
    """So that the generation's price is that of its tokens, and the fee is not joined with an attempt."""
    generation, fee = lines("openrouter.csv")[1:3]
    assert generation.place == fee.place == "openrouter.csv:3"
    assert [(part.kind, part.amount) for part in generation.parts if part.amount] == [(PartKind.ALL, 5_000_000)]
    assert [(part.kind, part.amount) for part in fee.parts] == [(PartKind.OTHER, 20_000_000)]
    assert (generation.requests, fee.request_id, fee.requests) == (1, None, None)


def test_a_tier_is_told_in_the_vendors_words() -> None:
    """Batch, priority, a long context: whatever makes the same tokens cost something else."""
    assert [line.tier for line in lines("openai-usage.json")] == [None, "batch", None]
    assert lines("openai-costs.json")[3].tier == "priority, long context"
    assert [line.tier for line in lines("anthropic-usage.json")] == [None, "batch, context 200k-1M"]
    assert [line.tier for line in lines("aws-cur2.csv")] == [None, None, "flex", None]


def test_the_precision_is_that_of_the_last_digit_written() -> None:
    """So that the comparison knows what rounding may have taken."""
    assert lines("azure.csv")[0].precision == 10_000  # 0.02875
    assert lines("google-table.csv")[4].precision == 10_000_000  # 0.19
    assert lines("anthropic-costs.json")[5].precision == 100_000  # 10 cents: digits are written as needed


def test_usage_and_costs_are_one_invoice(tmp_path: Path) -> None:
    """Two files, or a folder of them: the lines of both."""
    both = [SAMPLES / "openai-usage.json", SAMPLES / "openai-costs.json"]
    invoice = read_invoices(both, "openai")
    assert invoice.form == "openai-costs and openai-usage"
    assert (invoice.says_tokens, invoice.says_money, invoice.says_requests) == (True, True, True)
    found = sums(invoice)
    assert (found.tokens, found.amounts, found.lines) == (
        EXPECTED["openai-usage.json"][3].tokens,
        EXPECTED["openai-costs.json"][3].amounts,
        10,
    )
    for path in both:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert sums(read_invoice(tmp_path, "openai")) == found


def test_pages_may_be_one_a_line_or_a_list(tmp_path: Path) -> None:
    """As a script that follows `next_page` writes them."""
    page = json.loads((SAMPLES / "anthropic-usage.json").read_text())
    (tmp_path / "lines.jsonl").write_text(f"{json.dumps(page)}\n{json.dumps(page)}\n")
    (tmp_path / "list.json").write_text(json.dumps([page, page]))
    once = EXPECTED["anthropic-usage.json"][3]
    for name in ("lines.jsonl", "list.json"):
        found = sums(read_invoice(tmp_path / name, "anthropic"))
        assert found.tokens == {kind: 2 * count for kind, count in once.tokens.items()}
        assert found.lines == 4
    second = list(read_invoice(tmp_path / "list.json", "anthropic").lines)[2]
    assert second.place == "list.json/1/data/0/results/0"


def test_days_of_several_zones_are_no_one_invoice() -> None:
    """A day would mean two things."""
    with pytest.raises(InvoiceError, match=r"several zones \(Asia/Shanghai, UTC\)"):
        read_invoices([SAMPLES / "deepseek-amount.csv", SAMPLES / "deepseek-cost-zone.csv"], "deepseek")


@pytest.mark.parametrize(
    ("offset", "zone"),
    [("+08:00", "Asia/Shanghai"), ("Z", "UTC"), ("+00:00", "UTC"), ("-07:00", "Etc/GMT+7"), ("+05:30", None)],
)
def test_an_export_that_says_its_offset_says_its_zone(tmp_path: Path, offset: str, zone: str | None) -> None:
    """DeepSeek cuts days where its user asked for it."""
    text = (SAMPLES / "deepseek-cost-zone.csv").read_text(encoding="utf-8").replace("+08:00", offset)
    path = tmp_path / "cost.csv"
    path.write_text(text, encoding="utf-8")
    assert read_invoice(path, "deepseek").time_zone == zone
