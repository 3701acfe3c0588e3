"""`sluice report drift` over an export: what it says, in which form, and how it exits."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from proxy.__main__ import run
from proxy.books.source import insert_rows
from tests.support.books import attempt, ledger, values_of

pytestmark = pytest.mark.clause("C3")


def export(folder: Path, factor: float) -> Path:
    """October, as `sluice ledger export --format parquet` lays it out. From the 16th on the vendor counts `factor`
    times what it did."""
    chance = Random(3)
    rows = []
    for number in range(31):
        for _ in range(20):
            moment = datetime(2026, 10, 1, 12, tzinfo=UTC) + timedelta(days=number, seconds=chance.randrange(9999))
            counted = chance.randrange(100, 3000)
            told = round(counted * (factor if number >= 15 else 1) * (1 + chance.gauss(0, 0.004)))
            row = attempt(moment, (told, 0, 0, told), vendor="千帆", served_model="模型-一")
            rows.append(row | {"counted_input": counted, "counted_output": counted})
    day = folder / "attempts" / "day=2026-10-01"
    day.mkdir(parents=True)
    with ledger([]) as connection:
        insert_rows(connection, [values_of(row) for row in rows], folder / "rows.csv")
        connection.execute(f"COPY attempts TO '{day / 'attempts.parquet'}' (FORMAT parquet)")
    return folder


def said(capfdbinary: pytest.CaptureFixture[bytes], folder: Path, *more: str) -> tuple[int, bytes]:
    code = run(["report", "drift", "--ledger", str(folder), *more])
    return code, capfdbinary.readouterr().out


@pytest.mark.clause("L4")
def test_a_change_exits_with_one(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """It is named with its day and what it was before and after, in the same bytes each time."""
    folder = export(tmp_path, 1.07)
    code, first = said(capfdbinary, folder, "--period", "2026-10", "--vendor", "千帆", "--json")
    assert (code, first) == said(capfdbinary, folder, "--period", "2026-10", "--vendor", "千帆", "--json")
    assert code == 1
    changes = json.loads(first)["tables"]["changes"]
    assert [(one["model"], one["side"], one["day"]) for one in changes] == [
        ("模型-一", "input", "2026-10-16"),
        ("模型-一", "output", "2026-10-16"),
    ]
    assert [one["change"] for one in changes] == pytest.approx([0.07, 0.07], abs=0.004)
    assert "2026-10-16" in said(capfdbinary, folder)[1].decode()


def test_no_change_exits_with_nought(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """As do a vendor without attempts and the days before a change."""
    quiet, changed = export(tmp_path / "quiet", 1.0), export(tmp_path / "changed", 1.07)
    assert said(capfdbinary, quiet)[0] == 0
    assert said(capfdbinary, changed, "--vendor", "acme")[0] == 0
    assert said(capfdbinary, changed, "--period", "2026-10-01..2026-10-15")[0] == 0


def test_no_such_zone_exits_with_two(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """And says what one looks like."""
    assert run(["report", "drift", "--ledger", str(tmp_path), "--time-zone", "Mars/Olympus"]) == 2
    assert b"America/Los_Angeles" in capfdbinary.readouterr().err
