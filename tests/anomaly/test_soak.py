"""Many streams through one worker, in the short size (`scripts/deep` has the full one): afterwards all is as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.soak import churn, steady


@pytest.mark.clause("W7", "W8", "L1")
async def test_left_reset_and_whole_streams_leave_nothing_behind(tmp_path: Path) -> None:
    """A third whole, a third left by the client, a third reset by the upstream: each has its row, no row and no stream
    stays open, sockets and tasks go back to the idle count, and nothing is said to be unclosed."""
    report = await churn(tmp_path, streams=60, chunks=20, at_once=20, gap_s=0.03)
    assert report.leaks == []
    assert report.endings == {"completed": 20, "client_gone": 20, "stream_cut": 20}


@pytest.mark.clause("W2", "W7")
async def test_many_streams_at_once_end_without_an_error(tmp_path: Path) -> None:
    """Each stream brings an event now and then; all are whole, and what one costs in memory is bounded."""
    report = await steady(tmp_path, streams=40, seconds=1.5, gap_s=0.1)
    assert report.broken == []
    assert report.events == 40 * (15 + 2)  # each with its role and its finish
    assert report.kb_per_stream < 256
