"""bench/reports.py runs, and measures what it says."""

from __future__ import annotations

from pathlib import Path

from bench.reports import QUESTIONS, make_sqlite, make_year, measure


def test_it_measures_one_report_over_parquet_and_over_sqlite(tmp_path: Path) -> None:
    """The same attempts give a report of the same size from both, in a process of its own with its own memory."""
    year = tmp_path / "year"
    count = make_year(year, 3_000, 1)
    assert make_year(year, 9_000, 1) == count  # a year that is there is taken as it is
    config, in_sqlite = make_sqlite(year, tmp_path / "lite", 1_000_000)
    assert in_sqlite == count
    question = QUESTIONS[1]
    assert question[-1] == "csv"
    parquet = measure("Parquet", count, ("--ledger", str(year), *question), 0)
    lite = measure("SQLite", count, ("--config", str(config), *question), 0)
    assert parquet.bytes == lite.bytes > 10_000
    assert parquet.question == lite.question == " ".join(question)
    assert all(one.wall_s > 0.1 and one.peak_mib > 20 for one in (parquet, lite))
    assert make_sqlite(year, tmp_path / "some", 100)[1] == 100
