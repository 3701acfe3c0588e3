"""How long bodies of token ids hold a worker's event loop: checked in a process beside, in a thread, and on the loop.

    python -m bench.toon_loop [--rounds 15] [--json]

Per body the median, over interleaved rounds, of the longest time that the loop's own thread was busy between two looks
(its CPU time, so that other programs do not count), and of the time until the body was checked. A thread shares the
interpreter's lock with the loop, which its CPU time does not show: for it the loop's standstill is the time itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Final

import orjson

from proxy.toon.card import Card
from proxy.toon.catalogue import TokenModels
from proxy.toon.intake import Intake
from proxy.upstream.tasks import Tasks

CARD: Final = Card("2.1", 50_000, 16_384, "rope", None, frozenset(), 1024, frozenset())


def bodies() -> dict[str, bytes]:
    """Of usual kinds, and of kinds that are made to be slow."""
    parts = {
        "tids": {"v": "2.1", "ids": list(range(1, 8193))},
        "mask": {"type": "causal", "scope": "full", "fallback": "none"},
        "pos": {"base": "rope", "offset": 0, "stride": 1},
    }
    return {
        "512 ids": orjson.dumps({**parts, "tids": {"v": "2.1", "ids": list(range(1, 513))}}),
        "8192 ids": orjson.dumps(parts),
        "8192 ids, one wrong": orjson.dumps({**parts, "tids": {"v": "2.1", "ids": [*range(1, 8192), True]}}),
        "8,000 objects for others": orjson.dumps({**parts, "x_a": [{} for _ in range(8000)]}),
        "56,000 numbers for others": orjson.dumps({**parts, "x_a": [1.5e-300] * 56_000}),
        "28,000 fields for others": orjson.dumps({**parts, **{f"x_{at}": 1 for at in range(28_000)}}),
        "800 kB of text for others": orjson.dumps({**parts, "x_a": "س" * 400_000}),
    }


class Watch:
    """Looks at the loop's thread as often as it may."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def run(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_s = max(self.longest_s, now - last)
            last = now


async def measure(rounds: int) -> list[dict[str, object]]:
    models, tasks = TokenModels({"m": CARD}), Tasks()
    beside, inline = Intake(models, tasks, inline_bytes=-1), Intake(models, tasks, inline_bytes=1 << 30)
    await beside.read(bodies()["8192 ids"])

    async def in_thread(body: bytes) -> object:
        return await asyncio.to_thread(models.read, body)

    ways: dict[str, Callable[[bytes], Awaitable[object]]] = {
        "beside": beside.read,
        "thread": in_thread,
        "loop": inline.read,
    }
    watch = Watch()
    watching = tasks.start(watch.run(), "watch")
    seen: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for name, body in bodies().items():
            for way, read in ways.items():
                await asyncio.sleep(0)
                watch.longest_s, begun = 0.0, time.perf_counter()
                await read(body)
                took_s = time.perf_counter() - begun
                await asyncio.sleep(0)
                seen.setdefault((name, way), []).append((watch.longest_s, took_s))
    watching.cancel()
    await beside.close()
    return [
        {
            "body": name,
            "bytes": len(body),
            "way": way,
            "busy_ms": round(median(one for one, _ in seen[name, way]) * 1000, 3),
            "checked_ms": round(median(one for _, one in seen[name, way]) * 1000, 3),
        }
        for name, body in bodies().items()
        for way in ways
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = asyncio.run(measure(options.rounds))
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'body':28} {'bytes':>8}  {'way':7} {'loop busy, ms':>14} {'checked, ms':>12}")
    for row in rows:
        print(f"{row['body']:28} {row['bytes']:>8}  {row['way']:7} {row['busy_ms']:>14} {row['checked_ms']:>12}")


if __name__ == "__main__":
    main()
