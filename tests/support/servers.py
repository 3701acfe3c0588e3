"""Servers that imitate vendors and that nobody here wrote, each as a process of its own on a free port of loopback.

`katan`: the package llm-katan (Anthropic's and OpenAI's APIs among others, an echo for a model, keys that are checked,
failures on demand). `llmock`: the package llmock (ten vendors, each with its own error envelope; faults are scripted
over `POST /_llmock/scenario`). In: a folder for the log, options of the server's own command line. Out: its address
without a path, once it answers. Never: reaches outside this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.upstream import HOST, find_refusing_port

KATAN_KEY: Final = "katan-key-0123456789"
_PATIENCE_S: Final = 40.0


@contextmanager
def katan(folder: Path, *options: str) -> Iterator[str]:
    """Its key is `KATAN_KEY`; any model is served."""
    port = find_refusing_port()
    command = ["llm-katan", "--model", "echo-model", "--backend", "echo", "--providers", "openai,anthropic"]
    command += ["--validate-keys", "--api-keys", f"openai={KATAN_KEY},anthropic={KATAN_KEY}", "--disable-dashboard"]
    command += ["--stats-file", str(folder / "katan-stats.json"), "--max-concurrent", "64"]
    with _serving(folder, [*command, "--host", HOST, "--port", str(port), *options], port):
        yield f"http://{HOST}:{port}"


@contextmanager
def llmock(folder: Path, *options: str) -> Iterator[str]:
    """It takes any key and any model."""
    port = find_refusing_port()
    with _serving(folder, ["llmock", "serve", "--host", HOST, "--port", str(port), *options], port):
        yield f"http://{HOST}:{port}"


def script(url: str, *behaviors: Mapping[str, object]) -> None:
    """What llmock is to do with the next requests, instead of what it was told before."""
    _post(f"{url}/_llmock/reset", {})
    if behaviors:
        _post(f"{url}/_llmock/scenario", {"behaviors": list(behaviors)})


def _post(url: str, body: Mapping[str, object]) -> None:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"}, method="POST")
    with urllib.request.urlopen(asked, timeout=_PATIENCE_S) as answer:
        answer.read()


@contextmanager
def _serving(folder: Path, command: list[str], port: int) -> Iterator[None]:
    log = folder / f"{command[0]}.log"
    # Nothing of the machine's own settings for these servers, and nothing in its home.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LLM_KATAN_", "LLMOCK_"))}
    script_file = str(Path(sys.executable).with_name(command[0]))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [script_file, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**env, "HOME": str(folder)},
        )
    try:
        _wait_healthy(process, port, log)
        yield
    finally:
        process.kill()  # some streams of theirs would hold a polite stop up
        process.wait(_PATIENCE_S)


def _wait_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=_PATIENCE_S):
                return
        except (urllib.error.URLError, ConnectionError):
            told = log.read_text(errors="replace")
            assert process.poll() is None, told
            assert time.monotonic() < until, f"not up after {_PATIENCE_S} s: {told}"
            time.sleep(0.05)  # it tells nobody when it listens
