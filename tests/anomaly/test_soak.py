"""Many streams through one worker, in the short size (`scripts/deep` runs the full one): afterwards all is as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from bench.soak import allow_many_sockets, churn, steady

IS_DEEP: Final = os.environ.get("SLUICE_DEEP") == "1"


@pytest.mark.clause("W7", "W8", "L1")
@pytest.mark.timeout(300)
async def test_left_reset_and_whole_streams_leave_nothing_behind(tmp_path: Path) -> None:
    """A third whole, a third left by the client, a third reset by the upstream: each has its row, no row and no stream
    stays open, sockets and tasks go back to the idle count, and nothing is said to be unclosed. In the full size memory
    grows by less than a tenth from the first quarter to the end."""
    if not IS_DEEP:
        report = await churn(tmp_path, streams=60, chunks=20, at_once=20)
        assert report.leaks == []
    else:
        allow_many_sockets()
        report = await churn(tmp_path)
        assert report.broken == []
    assert report.endings == dict.fromkeys(report.endings, report.streams // 3) | {
        "completed": report.streams // 3 + (report.streams % 3 > 0),
        "client_gone": report.streams // 3 + (report.streams % 3 > 1),
    }


@pytest.mark.clause("W2", "W7")
@pytest.mark.timeout(300)
async def test_many_streams_at_once_end_without_an_error(tmp_path: Path) -> None:
    """Each stream brings an event now and then; all are whole, and what one costs in memory is bounded."""
    if not IS_DEEP:
        report = await steady(tmp_path, streams=40, seconds=1.5, gap_s=0.1)
    else:
        allow_many_sockets()
        report = await steady(tmp_path)
    assert report.broken == []
    assert report.events == report.streams * (int((1.5 / 0.1) if not IS_DEEP else 20 / 0.25) + 2)
    assert report.kb_per_stream < 256
