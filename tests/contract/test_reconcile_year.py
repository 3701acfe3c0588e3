"""A year with known truth: reconciling names each injected fault, and nothing else (contract C3).

The generator is `bench/year.py`; the same year with ten million attempts is measured in `bench/RESULTS.md`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import pytest

from bench.year import Year
from bench.year_faults import FAULTS, Truth
from bench.year_traffic import VENDORS
from proxy.books.drift import counted_differently, find_drift
from proxy.books.finding import Finding, Reason
from proxy.books.invoices import read_invoices
from proxy.books.period import parse_period
from proxy.books.reconciling.engine import reconcile
from proxy.books.reconciling.result import MARGIN, Question, Reconciliation
from proxy.books.source import ParquetFolder, duck_attempts
from tests.support.books import check_sums

pytestmark = [pytest.mark.clause("C3"), pytest.mark.timeout(180)]

ATTEMPTS: Final = 40_000
#: What an honest invoice has as well.
DULL: Final = (Reason.MATCHED, Reason.ROUNDED, Reason.INTERRUPTED)
ZONES: Final = {vendor.name: vendor.zone for vendor in VENDORS}


@dataclass(frozen=True)
class Made:
    folder: Path
    truths: dict[str, Truth]


@pytest.fixture(scope="module", params=[1, 7])
def faulty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("faulty")
    truths = Year(request.param, ATTEMPTS, frozenset(FAULTS), folder).run()
    return Made(folder, {truth.fault: truth for truth in truths})


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("honest")
    assert Year(3, ATTEMPTS, frozenset(), folder).run() == []
    return Made(folder, {})


def month(made: Made, vendor: str, number: int) -> tuple[Reconciliation, list[Finding]]:
    """One vendor's invoice of one month, and what its tokenizer did meanwhile."""
    files = sorted(made.folder.glob(f"invoices/{vendor}-{number:02d}*"))
    assert files, vendor
    invoice = read_invoices(files, vendor)
    zone = invoice.time_zone or ZONES[vendor]
    period = parse_period(f"2026-{number:02d}", zone)
    margin = MARGIN // timedelta(microseconds=1)
    question = Question(vendor, period.first_day, period.last_day, zone)
    with duck_attempts(ParquetFolder(made.folder), period.since - margin, period.until + margin, vendor) as connection:
        result = reconcile(connection, invoice, question)
        span = question.span(result.zone)
        drift = counted_differently(find_drift(connection, result.zone), span.since, span.until, result.zone)
    check_sums(result)
    return result, drift


def notable(findings: list[Finding]) -> Iterator[tuple[Reason, str | None, date, date]]:
    for one in findings:
        if one.reason not in DULL:
            yield one.reason, one.model, one.first_day, one.last_day


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_each_fault_is_named_with_its_model_and_its_days(fault: str, faulty: Made) -> None:
    """In the month in which it stands, and with nothing beside it."""
    vendor, number = FAULTS[fault]
    truth = faulty.truths[fault]
    result, drift = month(faulty, vendor, number)
    assert (result.unexplained, result.unexplained_tokens) == (0, 0)
    first, last = date(2026, number, 1), (date(2026, number, 28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    days = [day for day in truth.days if first <= day <= last] or [first, last]
    found = list(notable([*result.findings, *drift]))
    assert found == [(Reason(truth.reason), truth.model, min(days), max(days))]
    if fault in ("missing_there", "missing_here", "retried", "missing_there_by_id", "retried_by_id"):
        (one,) = [one for one in result.findings if one.reason not in DULL]
        assert one.requests in (truth.requests, 0)  # nought where the invoice counts none
        assert abs(one.tokens - truth.tokens) <= max(60, abs(truth.tokens) // 20)


@pytest.mark.parametrize("vendor", [vendor.name for vendor in VENDORS])
def test_an_honest_year_has_no_finding(vendor: str, honest: Made) -> None:
    """Matched, rounded and interrupted, and not one thing else, in any month; a drift that is none is not seen."""
    seen: dict[Reason, int] = defaultdict(int)
    for number in range(1, 13, 1 if vendor == "openai" else 4):
        result, drift = month(honest, vendor, number)
        assert list(notable([*result.findings, *drift])) == []
        assert (result.unexplained, result.unexplained_tokens) == (0, 0)
        for one in result.entries:
            seen[one.reason] += 1
    assert seen[Reason.MATCHED]
    assert seen[Reason.INTERRUPTED]


@pytest.mark.clause("L4")
def test_the_same_seed_makes_the_same_year(tmp_path: Path) -> None:
    """Byte by byte, truth and invoices included."""
    for name in ("one", "other"):
        Year(5, 2_000, frozenset(FAULTS), tmp_path / name).run()
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) > 365
    assert all((tmp_path / "one" / path).read_bytes() == (tmp_path / "other" / path).read_bytes() for path in files)
