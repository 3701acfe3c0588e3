"""`sluice serve` and `make run` as a person starts them: real processes, real signals (contract C1)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

pytestmark = pytest.mark.clause("C1")

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 40.0
CONFIG = """\
auth: {mode: none}
upstreams: {main: {vendor: openai, base_url: "http://127.0.0.1:9/v1"}}
models: {m: [{upstream: main, model: m}]}
"""


class Process:
    """A command of ours in the background, its output in a file."""

    def __init__(self, words: Sequence[str], log: Path, **variables: str) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env={**os.environ, **variables},
                start_new_session=True,
            )

    def wait_for(self, pattern: str) -> str:
        """Waits until it has said something, and gives the pattern's group."""
        end = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.log.read_text(), re.MULTILINE)):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)
        return found[1]

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Process] = []

    def started(*words: str, **variables: str) -> Process:
        running.append(Process(words, tmp_path / f"{len(running)}.log", **variables))
        return running[-1]

    yield started
    for each in running:
        if each.process.poll() is None:
            each.stop(signal.SIGTERM)


def ask(port: str, method: str, path: str, body: object = None) -> tuple[int, str]:
    """One request on a connection of its own: the kernel picks the worker anew."""
    connection = HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE_S)
    try:
        connection.request(method, path, json.dumps(body) if body else None, {"content-type": "application/json"})
        response: HTTPResponse = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_says_where_answers_and_stops(start: Start, tmp_path: Path, workers: str, number: int) -> None:
    """Ready when it says so, alone and with workers; exit 0 at SIGTERM and at Ctrl-C."""
    (tmp_path / "sluice.yaml").write_text(CONFIG)
    proxy = start("-m", "proxy", "serve", "--config", f"{tmp_path}/sluice.yaml", "--port", "0", "--workers", workers)
    port = proxy.wait_for(r"^listening on http://127\.0\.0\.1:(\d+)$")
    assert ask(port, "GET", "/healthz")[0] == 200
    assert ask(port, "GET", "/readyz")[0] == 200
    assert proxy.stop(number) == 0
    assert proxy.log.read_text().count("listening on") == 1


def test_metrics_are_the_sum_over_workers_dead_ones_too(start: Start, tmp_path: Path) -> None:
    """What a worker counted before it was killed stays in the sum, whoever is asked, and its place is taken."""
    (tmp_path / "sluice.yaml").write_text(CONFIG)
    proxy = start("-m", "proxy", "serve", "--config", f"{tmp_path}/sluice.yaml", "--port", "0", "--workers", "2")
    port = proxy.wait_for(r"^listening on http://127\.0\.0\.1:(\d+)$")
    requests = 8
    for _ in range(requests):
        status, _ = ask(
            port, "POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        )
        assert status >= 400  # nobody listens on the upstream's port
    assert {counted(port) for _ in range(4)} == {requests}
    workers = [int(pid) for pid in re.findall(r'"pid": ?(\d+)', proxy.log.read_text())]
    os.kill(workers[0], signal.SIGKILL)
    proxy.wait_for(rf"\(process ({workers[0]})\) was ended by SIGKILL; starting another")
    assert {counted(port) for _ in range(4)} == {requests}
    assert proxy.stop(signal.SIGTERM) == 0


def counted(port: str) -> float:
    """All attempts, by the metrics of whichever worker answers."""
    _, text = ask(port, "GET", "/metrics")
    return sum(float(value) for value in re.findall(r"^sluice_attempts_total\{.*\} (\S+)$", text, re.MULTILINE))


def test_make_run_prints_what_to_paste_and_it_works(start: Start, tmp_path: Path) -> None:
    """The first streamed answer is whole and speaks Persian, Chinese and emoji; Ctrl-C ends simulator and proxy."""
    demo = start("scripts/run", RUN_DIR=str(tmp_path / "run"))
    port = demo.wait_for(r"curl -N http://127\.0\.0\.1:(\d+)/v1/chat/completions")
    demo.wait_for(r"(Ctrl-C stops both)")
    ask_for = {"model": "demo", "stream": True, "messages": [{"role": "user", "content": "سلام"}]}
    status, body = ask(port, "POST", "/v1/chat/completions", ask_for)
    assert status == 200
    assert body.endswith("data: [DONE]\n\n")
    events = [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: {")]
    text = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
    assert re.search("[\u0600-\u06ff]{2}", text)
    assert re.search("[\u4e00-\u9fff]{2}", text)
    assert re.search("[\U0001f300-\U0001faff]", text)
    assert ask(port, "GET", "/metrics")[0] == 200
    simulator = re.findall(r"on http://127\.0\.0\.1:(\d+)", (tmp_path / "run" / "simulator.log").read_text())[0]
    assert demo.stop(signal.SIGINT) == 0
    for each in (port, simulator):
        with pytest.raises(ConnectionRefusedError):
            ask(each, "GET", "/healthz")
