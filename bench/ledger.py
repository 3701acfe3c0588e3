#!/usr/bin/env python3
"""How fast the ledger takes rows: from the journal into each database, and until a close is durable.

    .venv/bin/python bench/ledger.py [--rows 30000] [--postgresql postgresql://…]

Prints, for SQLite and PostgreSQL, finished attempts a second that one drain brings into the database (an open and a
close line each, with a vendor's usage, as the proxy writes them) and its CPU share, and how long a close takes to be
durable with 1 and 256 closers at a time while the drain runs.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import uvloop

from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.stores import drain as drain_module
from proxy.stores.drain import Drain
from proxy.stores.journal import Journal
from proxy.stores.ledger_db import Ledger
from proxy.stores.schema import upgrade

_USAGE = {
    "prompt_tokens": 1203,
    "completion_tokens": 214,
    "total_tokens": 1417,
    "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 128, "accepted_prediction_tokens": 0},
}


def attempt(number: int) -> tuple[AttemptOpen, AttemptClose]:
    """As large as those of a real proxy."""
    row = AttemptOpen(
        f"{uuid4().hex}",
        f"r-{number}",
        uuid4().hex,
        1,
        "فروشگاه",
        "/v1/chat/completions",
        True,
        time.time(),
        "main",
        "openai",
        "OPENAI_API_KEY",
        "shop",
        "gpt-4o-2024-11-20",
        5213,
        4096,
        "openai/gpt-4o-2024-11-20@2026-11-01#3690133d",
        "USD",
        53_992_500,
    )
    figures: dict[str, Any] = {
        **{"served_model": "gpt-4o-2024-11-20", "vendor_response_id": f"chatcmpl-{uuid4().hex[:24]}"},
        **{"upstream_status": 200, "finish_reason": "stop", "vendor_usage": _USAGE, "counted_input": 1190},
        **{"counted_output": 212, "delivered_output": 212, "tokenizer": "o200k_base/446a9538/quicktok-v1-0.4.0"},
        **{"bytes_in": 61_000, "bytes_out": 60_000, "events_in": 216, "events_out": 217, "counted_reasoning": 120},
        **{"count_formula": "prompt-1", "usage_state": "final", "usage_told": "rrrar", "usage_input": 1203},
        **{"usage_output": 214, "usage_cache_read": 1024, "usage_reasoning": 128, "usage_total": 1417},
        **{"price_tier": "standard", "cost_input": 447_500, "cost_cache_read": 1_280_000, "cost_cache_write": 0},
        **{"cost_output": 2_140_000, "own_cost_input": 2_975_000, "own_cost_output": 2_120_000},
    }
    return row, AttemptClose(row.attempt_id, time.time(), "completed", 5120.4, 410.2, **figures)


async def fill(journal: Journal, rows: int) -> None:
    for start in range(0, rows, 500):
        pairs = [attempt(number) for number in range(start, min(start + 500, rows))]
        for row, _ in pairs:
            journal.open(row)
        await asyncio.gather(*(journal.close(end) for _, end in pairs))


def ingest(url: str, folder: Path, rows: int) -> tuple[float, float]:
    """Attempts a second, and CPU seconds for each second of the drain."""
    upgrade(url)
    drain_module.INTERVAL_S = 3600.0
    journal = Journal(folder, "bench")
    asyncio.run(fill(journal, rows))
    drain = Drain(url, journal, "bench")
    wall, cpu = time.perf_counter(), time.process_time()
    while drain.rows < rows:
        if not drain.cycle(time.monotonic()):
            raise SystemExit("the database refused")
    taken, used = time.perf_counter() - wall, time.process_time() - cpu
    journal.finish()
    drain.finish()
    journal.release()
    return rows / taken, used / taken


async def closing(url: str, folder: Path, closers: int, rows: int) -> tuple[float, float]:
    """Milliseconds until a close is durable: the median and the 99th of a hundred."""
    drain_module.INTERVAL_S = 0.5
    ledger = Ledger.start(url, folder, "bench", "0")
    taken: list[float] = []

    async def close(count: int) -> None:
        for number in range(count):
            row, end = attempt(number)
            ledger.open(row)
            await asyncio.sleep(0.002)
            begun = time.perf_counter()
            await ledger.close(end)
            taken.append(1000 * (time.perf_counter() - begun))

    await asyncio.gather(*(close(max(1, rows // closers)) for _ in range(closers)))
    await ledger.stop()
    return median(taken), quantiles(taken, n=100)[98] if len(taken) > 1 else taken[0]


def measure(name: str, url: str, folder: Path, rows: int) -> None:
    speed, share = ingest(url, folder / "ingest", rows)
    print(f"{name:<11} {speed:>8,.0f} attempts a second into the database, {100 * share:.0f} % of a core")
    for closers in (1, 256):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            middle, late = runner.run(closing(url, folder / f"close-{closers}", closers, min(rows, 20 * closers + 200)))
        print(f"{'':<11} {closers:>4} closers: durable after {middle:.2f} ms at the median, {late:.2f} ms at p99")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--postgresql", help="its URL; a schema of its own is made and dropped again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
        folder = Path(scratch)
        measure("SQLite", f"sqlite:///{folder}/ledger.db", folder / "lite", asked.rows)
        if asked.postgresql:
            import psycopg

            schema = f"sluice_{uuid4().hex[:12]}"
            with psycopg.connect(asked.postgresql, autocommit=True) as admin:
                admin.execute(f"CREATE SCHEMA {schema}".encode())
                url = f"{asked.postgresql}?options={quote(f'-csearch_path={schema}')}"
                measure("PostgreSQL", url, folder / "pg", asked.rows)
                admin.execute(f"DROP SCHEMA {schema} CASCADE".encode())


if __name__ == "__main__":
    main()
