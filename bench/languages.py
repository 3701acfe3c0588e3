"""The cost of whole characters: English beside Persian, paced and in bursts, through Sluice and through a naive proxy.

    BENCH=FOLDER BENCH_HOME=FOLDER python bench/languages.py [--rounds 3] [--seconds 5]

`BENCH` is the folder of the benchmark harness (`mock_vendor.py`, `load.py`, `peers/`), `BENCH_HOME` where its
environments are; run it with the interpreter of `venvs/base` there. In Persian nearly every delta ends in a letter
that a combining sign may follow, so Sluice rewrites every event and, at a pause longer than `hold_ms`, sends the held
letter by itself: the second line of the table says what that costs. CPU is per event of the *vendor*, since the client
gets more. Targets run in turn, each freshly started, on core 0; vendor and load on core 1. Loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import uvloop

HARNESS = Path(os.environ.get("BENCH", "."))
HOME = Path(os.environ.get("BENCH_HOME", "."))
sys.path.insert(0, str(HARNESS))

PERSIAN = (
    " می‌خواهم که شعری برای باران بخوانی و از کوچه‌های قدیمی شهر بگذری تا بوی خاک خیس را به یاد بیاوری"
    " و آرام کنار پنجره بنشینی و به صدای قطره‌ها گوش بدهی"
)
SHAPES = {
    "paced": "--mode paced --n 40 --ms 100 -c 300 --warmup 1",
    "burst": "--mode burst --n 256 -c 16 --warmup 1",
}
CONFIG = """
auth: {mode: none}
ledger: {url: "sqlite:///ledger.db"}
upstreams: {main: {vendor: openai, base_url: "http://127.0.0.1:%d/v1"}}
models: {mock-1: [{upstream: main, model: mock-1}]}
"""


def vendor() -> None:
    """The harness's vendor, speaking Persian."""
    import mock_vendor

    words = [" " + word for word in PERSIAN.split()]
    mock_vendor.TOKENS = words
    mock_vendor.CONTENT = [mock_vendor.chunk(mock_vendor.frame(mock_vendor.delta({"content": w}))) for w in words]
    mock_vendor.SPLIT = [tuple(c.split(mock_vendor.STAMP)) for c in mock_vendor.CONTENT]
    sys.argv = ["mock_vendor.py", *sys.argv[2:]]
    uvloop.install()
    asyncio.run(mock_vendor.main())


def loaded() -> None:
    """The harness's load generator, for which a stream is whole at its `[DONE]`: held letters make more events."""
    import load

    options = load.parser().parse_args(sys.argv[2:])
    load.content_events = lambda body: options.n
    uvloop.install()
    print(json.dumps(asyncio.run(load.load(options))))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_for(url: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=1).read()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{url} does not answer")


def start(core: int, *command: str, cwd: str | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["taskset", "-c", str(core), *command], cwd=cwd, stdout=subprocess.DEVNULL, stderr=2)


def measure(target: str, language: str, shape: str, seconds: float, folder: str) -> float:
    """CPU microseconds of the proxy per event of the vendor."""
    python, vendor_port, port = sys.executable, free_port(), free_port()
    Path(folder, "bench.yaml").write_text(CONFIG % vendor_port)
    speak = [python, __file__, "vendor"] if language == "persian" else [python, str(HARNESS / "mock_vendor.py")]
    upstream = start(1, *speak, "--port", str(vendor_port))
    wait_for(f"http://127.0.0.1:{vendor_port}/health")
    if target == "sluice":
        proxy = start(0, "sluice", "serve", "--config", f"{folder}/bench.yaml", "--port", str(port))
        wait_for(f"http://127.0.0.1:{port}/readyz")
    else:
        peer = str(HARNESS / "peers/naive_aiohttp.py")
        proxy = start(0, python, peer, "--port", str(port), "--upstream", f"http://127.0.0.1:{vendor_port}", "--uvloop")
        time.sleep(1.5)
    try:
        options = [*SHAPES[shape].split(), "--duration", str(seconds), "--model", "mock-1", "--pid", str(proxy.pid)]
        command = ["taskset", "-c", "1", python, __file__, "load", f"http://127.0.0.1:{port}", *options]
        told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        if told["errors"]:
            raise SystemExit(f"{target} {language} {shape}: {told['errors']}")
        return float(told["cpu_us_per_request"]) / (told["n"] + 4)
    finally:
        for process in (proxy, upstream):
            process.terminate()
            process.wait(15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    found: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for shape in SHAPES:
                for language in ("english", "persian"):
                    for target in ("naive", "sluice"):
                        cpu = measure(target, language, shape, options.seconds, folder)
                        found.setdefault((shape, language, target), []).append(cpu)
    print("| shape | language | naive us/event | sluice us/event | ratio |\n|---|---|--:|--:|--:|")
    for shape in SHAPES:
        for language in ("english", "persian"):
            naive, ours = (statistics.median(found[shape, language, target]) for target in ("naive", "sluice"))
            print(f"| {shape} | {language} | {naive:.2f} | {ours:.2f} | {ours / naive:.2f}x |")


if __name__ == "__main__":
    {"vendor": vendor, "load": loaded}.get(sys.argv[1] if len(sys.argv) > 1 else "", main)()
