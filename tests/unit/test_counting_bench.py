"""bench/counting.py runs, and measures what it says."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from bench.counting import _WARM_UP, SCRIPTS, parts, run, scripts
from proxy.metering.tokens import load_counter, load_reference


@pytest.mark.parametrize("counting", [True, False])
def test_the_proxy_counts_each_answer_of_a_burst_or_none(counting: bool, tmp_path: Path) -> None:
    """The two runs that are compared differ in this alone: with counting each row has it, without no row has."""
    assert asyncio.run(run(3, counting, tmp_path)) >= 0
    ledger = sqlite3.connect(next(tmp_path.glob("*.db")))
    rows = ledger.execute("select ending, counted_input > 0, counted_output > 0 from attempts").fetchall()
    ledger.close()
    assert rows == [("completed", counting, counting)] * (_WARM_UP + 3)


def test_it_measures_ten_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each, over texts that both counters count alike."""
    scripts()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SCRIPTS)
    assert len(SCRIPTS) == 10
    assert all(load_counter().count(text) == load_reference().count(text) for text in SCRIPTS.values())


def test_it_measures_the_counts_of_one_stream(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each, warm and cold."""
    parts()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" us")[0].split()[-2] for line in lines] == ["pieces", "answer", "prompt"]
    assert all(line.endswith("with cold caches") for line in lines)
