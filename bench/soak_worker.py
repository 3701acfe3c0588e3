"""The production worker with a window: at SIGUSR1 it collects garbage and tells its memory, sockets and tasks.

`python -m bench.soak_worker CONFIG GLANCES`: prints where it listens to standard error, appends one line of JSON to
GLANCES at each SIGUSR1, and stops at SIGTERM as `sluice serve` does.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import time
from pathlib import Path

import uvloop

from proxy.app import Worker, preload
from proxy.cli.listening import bind, url_of
from proxy.config import load_config
from proxy.stores.logs import configure_logging


def resident_kb() -> int:
    """Memory that is really there."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def open_sockets() -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    return count


def tell(glances: Path) -> None:
    began = time.perf_counter()
    gc.collect()
    collected_ms = round((time.perf_counter() - began) * 1000, 1)
    gc.collect()  # what a finalizer let go of
    glance = {
        "resident_kb": resident_kb(),
        "sockets": open_sockets(),
        "tasks": len(asyncio.all_tasks()),
        "collected_ms": collected_ms,
    }
    with glances.open("a") as file:
        file.write(json.dumps(glance) + "\n")


async def serve(config: Path, glances: Path) -> int:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell, glances)
    sock = bind("127.0.0.1", 0)
    worker = Worker(load_config(config), sock, 0, None)
    return await worker.run(lambda: print("listening on", url_of(sock), file=sys.stderr, flush=True))


def main() -> int:
    configure_logging([])
    preload()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    sys.exit(main())
