"""The real proxy for integration tests: configured by a file, run by the production worker, before a fake upstream.

`running_proxy` runs `proxy.app.Worker` inside the test's own event loop: quick to start, and held to the loop's rules
by the detector of blocking calls. `served_proxy` runs `sluice serve` as a process of its own, for what a process alone
can show: signals, exit codes, what it prints, several workers. Both are asked over real sockets, and both tell the
ledger's rows as `sluice ledger export` does.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from proxy.app import Worker
from proxy.cli.listening import bind
from proxy.config import load_config
from proxy.stores.ledger_read import read_json
from tests.support.client import RawStream, Reply, fetch, open_stream

ROOT: Final = Path(__file__).resolve().parents[2]
ALIAS: Final = "gpt-4o"
MODEL: Final = "gpt-4o-2024-11-20"
OUR_KEY: Final = "sk-ours-0123456789abcdef"
PATIENCE_S: Final = 20.0
Row = dict[str, Any]


def chat(text: str = "سلام", *, stream: bool = True, model: str = ALIAS, **more: Any) -> dict[str, object]:
    """A request as clients send it."""
    return {"model": model, "stream": stream, "messages": [{"role": "user", "content": text}], **more}


def write_config(
    folder: Path,
    urls: Mapping[str, str] | str,
    *,
    vendor: str = "openai",
    upstream: Mapping[str, object] | None = None,
    **top: object,
) -> Path:
    """`sluice.yaml` in `folder` for these base URLs. The alias of the first upstream is `ALIAS`, of each its name too.
    `upstream` goes to every upstream, `top` to the top of the file. JSON is YAML."""
    named = {"main": urls} if isinstance(urls, str) else urls
    common: dict[str, object] = {"vendor": vendor, "api_key": OUR_KEY, "credential": "main-key", **(upstream or {})}
    models = {name: [{"upstream": name, "model": MODEL}] for name in named}
    config = {
        "listen": {"host": "127.0.0.1", "port": 0},
        "auth": {"mode": "none"},
        "ledger": {"url": "sqlite:///ledger.db"},
        "rules": "rules",
        "upstreams": {name: {"base_url": url, **common} for name, url in named.items()},
        "models": {ALIAS: next(iter(models.values())), **models},
        **top,
    }
    if "rules" not in top:
        _copy_rules(folder / "rules", vendor)
    file = folder / "sluice.yaml"
    file.write_text(json.dumps(config, ensure_ascii=False, indent=1))
    return file


def _copy_rules(folder: Path, vendor: str) -> None:
    """The real rules of one vendor. Reading all of them would be most of the time that a test takes."""
    folder.mkdir(exist_ok=True)
    for path in (*(ROOT / "rules").glob("_*.yaml"), ROOT / "rules" / f"{vendor}.yaml"):
        shutil.copy(path, folder)


@dataclass(slots=True)
class Proxy:
    """A proxy that answers on `port`; `config` is its file."""

    config: Path
    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def ask(self, body: Mapping[str, object] | bytes | None = None, **how: Any) -> Reply:
        """One request, read to its end; a streamed chat if nothing else is said."""
        return await fetch(self.port, chat() if body is None else body, **how)

    async def get(self, path: str, **how: Any) -> Reply:
        return await fetch(self.port, method="GET", path=path, **how)

    def open(
        self, body: Mapping[str, object] | bytes | None = None, **how: Any
    ) -> AbstractAsyncContextManager[RawStream]:
        return open_stream(self.port, chat() if body is None else body, **how)

    async def rows(self, count: int = 1) -> list[Row]:
        """All rows of the ledger, once there are that many and all of them have ended."""
        async with asyncio.timeout(PATIENCE_S):
            while len(rows := await self.rows_now()) < count or not all(row["ending"] for row in rows):  # noqa: ASYNC110
                await asyncio.sleep(0.02)  # rows are written by threads and processes that tell nobody
        assert len(rows) == count
        return rows

    async def row(self) -> Row:
        """The one row there is."""
        return (await self.rows(1))[0]

    async def rows_now(self) -> list[Row]:
        """All rows of the ledger as they stand."""
        return await asyncio.to_thread(_read_rows, self.config)

    async def metrics(self) -> dict[str, float]:
        """Every sample of `/metrics`, by its name and labels as they stand there."""
        reply = await self.get("/metrics")
        assert reply.status == 200
        lines = [line for line in reply.body.decode().split("\n") if line and not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    async def wait_metric(self, name: str, value: float) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (await self.metrics()).get(name) != value:  # noqa: ASYNC110  # nobody tells of it but the metric
                await asyncio.sleep(0.02)


def _read_rows(config: Path) -> list[Row]:
    ledger = load_config(config).ledger
    return [json.loads(line) for line in read_json(ledger.url, ledger.journal_dir)]


@dataclass(slots=True)
class ServedProxy(Proxy):
    """A `sluice serve` of its own; `log` is its standard output, `errors` its standard error."""

    process: subprocess.Popen[bytes]
    log: Path
    errors: Path

    @property
    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1]]

    @property
    def workers(self) -> list[int]:
        """Process ids of all workers that ever served, oldest first."""
        return [line["pid"] for line in self.log_lines if line["event"] == "serving"]

    async def said(self, pattern: str, times: int = 1) -> list[str]:
        """What the pattern finds in both outputs, once it is there so often."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                text = self.errors.read_text() + self.log.read_text()
                if len(found := re.findall(pattern, text)) >= times:
                    return found
                assert self.process.poll() is None, text
                await asyncio.sleep(0.02)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, PATIENCE_S)

    async def export(self, *options: str) -> bytes:
        """What `sluice ledger export` prints."""
        return await asyncio.to_thread(_export, self.config, *options)


def _export(config: Path, *options: str) -> bytes:
    command = [sys.executable, "-m", "proxy", "ledger", "export", "--config", str(config), *options]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S).stdout


@asynccontextmanager
async def running_proxy(folder: Path, urls: Mapping[str, str] | str, **config: Any) -> AsyncIterator[Proxy]:
    """The production worker in this process, until the block ends; then it stops as at SIGTERM."""
    file = write_config(folder, urls, **config)
    sock = bind("127.0.0.1", 0)
    alive, end = os.pipe()
    # Reading the rules blocks, so it is done where no loop runs; so does production, before its loop is made.
    worker = await asyncio.to_thread(lambda: Worker(load_config(file), sock, 0, alive))
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(worker.run(lambda: ready.set_result(None)))
    await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
    try:
        if not running.done():
            yield Proxy(file, sock.getsockname()[1])
    finally:
        os.close(end)  # the parent is dead: the worker's other call to stop, and one that no other test can hear
        code = await running
        os.close(alive)
        assert code == 0


def _start(folder: Path, log: Path, errors: Path, *words: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as stdout, errors.open("wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "proxy", *words],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder)},
            start_new_session=True,
        )


@asynccontextmanager
async def served_proxy(
    folder: Path, urls: Mapping[str, str] | str, *, options: Sequence[str] = (), **config: Any
) -> AsyncIterator[ServedProxy]:
    """`sluice serve` until the block ends; a process that still runs then is told to stop, and must exit 0."""
    file = write_config(folder, urls, **config)
    log, errors = folder / "stdout.log", folder / "stderr.log"
    process = await asyncio.to_thread(_start, folder, log, errors, "serve", "--config", str(file), *options)
    served = ServedProxy(file, 0, process, log, errors)
    try:
        served.port = int((await served.said(r"listening on http://127\.0\.0\.1:(\d+)\n"))[0])
        yield served
        if process.poll() is None:
            served.signal()
            assert await served.exit_code() == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE_S)
