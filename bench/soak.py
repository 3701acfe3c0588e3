"""Many streams through one worker: does it hold, and is everything where it was afterwards?

`python -m bench.soak steady` holds 1,000 streams open, one event per 250 ms each, and says what an open stream costs.
`python -m bench.soak churn` sends 2,000 streams of 50 chunks, of which a third is left by the client after 3 events and
a third is reset by the upstream, and compares memory, sockets and tasks before and after. The worker is the production
one in a process of its own (`soak_worker`); clients and upstream live in this one. Exits 1 if a bound is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import uvloop

from tests.support.answers import ROLE, STOP, VENDOR_USAGE, say
from tests.support.client import BodyEnd, Reply
from tests.support.proxy import PATIENCE_S, ROOT, Proxy, Row, chat, write_config
from tests.support.upstream import Play, ReplayUpstream, play_events

WORDS: Final = ("سلام، ", "حال شما ", "你好，", "世界！", "नमस्ते। ", "안녕하세요. ", "👩\u200d👧 ", "Hello ", "there. ")
MAX_GROWTH: Final = 0.10
SETTLE_S: Final = 10.0
#: What Python and asyncio say when something was not put away.
COMPLAINTS: Final = re.compile(r"unclosed|never retrieved|was never awaited|Traceback|was destroyed", re.IGNORECASE)
#: Each stream of `churn` is one of these, in turn.
KINDS: Final = ("whole", "left", "reset")


@dataclass(frozen=True, slots=True)
class Glance:
    """The worker at one moment, garbage collected; `collected_ms` is how long that took."""

    resident_kb: int
    sockets: int
    tasks: int
    collected_ms: float


@dataclass(slots=True)
class WatchedWorker(Proxy):
    """A worker that tells about itself."""

    process: subprocess.Popen[bytes]
    folder: Path

    async def glance(self) -> Glance:
        before = len(self._glances())
        self.process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if len(now := self._glances()) > before:
                    return now[-1]
                await asyncio.sleep(0.02)

    def _glances(self) -> list[Glance]:
        file = self.folder / "glances.jsonl"
        return [Glance(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []

    async def settled(self, idle: Glance) -> Glance:
        """The worker when it has as few sockets and tasks as at `idle`, or after some seconds."""
        end = asyncio.get_running_loop().time() + SETTLE_S
        while True:
            now = await self.glance()
            if (now.sockets <= idle.sockets and now.tasks <= idle.tasks) or asyncio.get_running_loop().time() > end:
                return now
            await asyncio.sleep(0.2)

    @property
    def complaints(self) -> list[str]:
        said = (self.folder / "stderr.log").read_text() + (self.folder / "stdout.log").read_text()
        return [line for line in said.splitlines() if COMPLAINTS.search(line)]


@asynccontextmanager
async def watched_worker(folder: Path, base_url: str) -> AsyncIterator[WatchedWorker]:
    config = write_config(folder, base_url)
    process = _start(config, folder)
    try:
        yield WatchedWorker(config, await asyncio.to_thread(_port_of, process, folder / "stderr.log"), process, folder)
        process.terminate()
        code = await asyncio.to_thread(process.wait, PATIENCE_S)
        assert code == 0, f"the worker ended with {code}"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _start(config: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "always", "-m", "bench.soak_worker", str(config), str(folder / "glances.jsonl")]
    with (folder / "stdout.log").open("wb") as out, (folder / "stderr.log").open("wb") as errors:
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)


def _port_of(process: subprocess.Popen[bytes], errors: Path) -> int:
    end = time.monotonic() + PATIENCE_S
    while not (found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", errors.read_text())):
        assert process.poll() is None and time.monotonic() < end, errors.read_text()
        time.sleep(0.02)
    return int(found[1])


def words(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield say(WORDS[number % len(WORDS)])


# ---- many at once --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Steady:
    """What holding many streams open came to."""

    streams: int
    events: int
    errors: int
    idle: Glance
    open: Glance
    median_gap_ms: float
    p95_gap_ms: float
    complaints: list[str]

    @property
    def kb_per_stream(self) -> float:
        return (self.open.resident_kb - self.idle.resident_kb) / self.streams

    @property
    def broken(self) -> list[str]:
        return [*([f"{self.errors} streams with an error"] if self.errors else []), *self.complaints]


async def steady(folder: Path, streams: int = 1000, seconds: float = 20.0, gap_s: float = 0.25) -> Steady:
    """All open at once, each one event per `gap_s`; they begin one after the other within the first seconds."""
    count = int(seconds / gap_s)
    play = play_events(ROLE, *words(count), STOP, VENDOR_USAGE, delay=gap_s)
    async with ReplayUpstream(play) as upstream, watched_worker(folder, upstream.base_url) as worker:
        _ = await worker.ask(leave_after_events=2)  # what is made at the first request is no stream's own
        idle = await worker.glance()
        ramp_s = min(4.0, seconds / 3)

        async def one(number: int) -> Reply:
            await asyncio.sleep(ramp_s * number / streams)
            return await worker.ask(timeout_s=seconds * 3 + 30)

        asked = [asyncio.create_task(one(number)) for number in range(streams)]
        await asyncio.sleep(ramp_s + (seconds - ramp_s) * 0.6)
        opened = await worker.glance()
        replies = await asyncio.gather(*asked)
        complaints = worker.complaints
    errors = sum(not (reply.is_done and reply.end is BodyEnd.WHOLE) for reply in replies)
    # The finish is told when the vendor has said its last word, so the last event of text is the last that is paced.
    gaps = sorted(late - early for reply in replies for early, late in pairwise(reply.event_times[:-2]))
    # Not beyond the 95th: one gap of each stream is as long as the glance above made it.
    median_ms, p95_ms = (round(gaps[int(len(gaps) * part)] * 1000, 1) for part in (0.5, 0.95))
    events = sum(len(reply.events) for reply in replies)
    return Steady(streams, events, errors, idle, opened, median_ms, p95_ms, complaints)


# ---- many one after the other --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Churn:
    """What many streams left behind. `early` is after a quarter of them, `late` after all."""

    streams: int
    idle: Glance
    early: Glance
    late: Glance
    after: Glance
    endings: dict[str, int]
    open_rows: int
    open_streams: float
    complaints: list[str] = field(default_factory=list)

    @property
    def growth(self) -> float:
        return self.late.resident_kb / self.early.resident_kb - 1

    @property
    def leaks(self) -> list[str]:
        """What did not go back to where it was, memory aside."""
        third = self.streams // len(KINDS)
        found = list(self.complaints)
        if (self.after.sockets, self.after.tasks) != (self.idle.sockets, self.idle.tasks):
            found.append(f"sockets and tasks went from {self.idle} to {self.after}")
        if self.open_rows or self.open_streams:
            found.append(f"{self.open_rows} rows and {self.open_streams} streams are still open")
        if sum(self.endings.values()) != self.streams or min(self.endings.values(), default=0) < third:
            found.append(f"endings {self.endings}")
        return found

    @property
    def broken(self) -> list[str]:
        grown = [f"memory grew by {self.growth:.1%}"] if self.growth >= MAX_GROWTH else []
        return [*grown, *self.leaks]


class Thirds(ReplayUpstream):
    """Resets the streams whose request says so, and plays the others to their end."""

    def __init__(self, chunks: int, gap_s: float) -> None:
        payloads = [ROLE, *words(chunks - 3), STOP, VENDOR_USAGE]
        self._whole = play_events(*payloads, delay=gap_s)
        half = list(self._whole.reads)[: chunks // 2]
        self._reset = Play(half, end="reset")
        super().__init__(self._whole)

    async def answer(self, connection, hit) -> bool:  # type: ignore[no-untyped-def]  # as the base class has it
        self.plays = [self._reset if hit.headers.get("x-request-id", "").startswith("reset") else self._whole]
        return await super().answer(connection, hit)


async def churn(folder: Path, streams: int = 2000, chunks: int = 50, at_once: int = 50, gap_s: float = 0.004) -> Churn:
    """A third whole, a third left by the client after 3 events, a third reset by the upstream."""
    upstream = Thirds(chunks, gap_s)
    await upstream.__aenter__()
    async with watched_worker(folder, upstream.base_url) as worker:
        idle = await worker.glance()
        await _crowd(worker, range(streams // 4), at_once)
        early = await worker.glance()
        await _crowd(worker, range(streams // 4, streams), at_once)
        late = await worker.glance()
        await upstream.stop()  # whose connections may be kept for the next request: now there is none
        after = await worker.settled(idle)
        open_streams = (await worker.metrics())["sluice_open_streams"]
        rows: list[Row] = await worker.rows_now()
        complaints = worker.complaints
    open_rows = sum(row["ending"] is None for row in rows)
    endings = dict(Counter(str(row["ending"]) for row in rows))
    return Churn(streams, idle, early, late, after, endings, open_rows, open_streams, complaints)


async def _crowd(worker: WatchedWorker, numbers: range, at_once: int) -> None:
    room = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        kind = KINDS[number % len(KINDS)]
        async with room:
            _ = await worker.ask(
                chat(),
                headers={"x-request-id": f"{kind}-{number}"},
                leave_after_events=3 if kind == "left" else None,
                timeout_s=60,
            )

    await asyncio.gather(*map(one, numbers))


# ---- the command ---------------------------------------------------------------------------------------------------


def allow_many_sockets() -> None:
    """Two per stream here, two in the worker, which inherits the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(16_384, hard), hard))


async def run(options: argparse.Namespace, folder: Path) -> Steady | Churn:
    if options.what == "steady":
        return await steady(folder, options.streams or 1000, options.seconds)
    return await churn(folder, options.streams or 2000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["steady", "churn"])
    parser.add_argument("--streams", type=int, help="default: 1000 (steady), 2000 (churn)")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each steady stream lasts")
    options = parser.parse_args()
    allow_many_sockets()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        report = runner.run(run(options, Path(folder)))
    print(json.dumps(asdict(report), indent=1))
    if isinstance(report, Steady):
        print(f"memory per open stream: {report.kb_per_stream:.1f} kB")
    else:
        print(f"memory from stream {report.streams // 4} to {report.streams}: {report.growth:+.1%}")
    for what in report.broken:
        print("broken:", what, file=sys.stderr)
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
