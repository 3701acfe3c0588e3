"""`sluice replay` as a person runs it: a process, its address on standard error, a signal, an exit code."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from proxy.stores.recordings import load_recording
from tests.support.client import BodyEnd, fetch, open_stream

RECORDINGS = Path(__file__).parents[2] / "recordings"
DEMO = load_recording(RECORDINGS / "openai" / "demo-many-scripts.jsonl")


@asynccontextmanager
async def sluice_replay(*arguments: str) -> AsyncIterator[Process]:
    command = [sys.executable, "-m", "proxy", "replay", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, cwd=RECORDINGS.parent)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def read_line(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    async with asyncio.timeout(20):
        return (await stream.readline()).decode().rstrip("\n")


@pytest.mark.clause("C2")
async def test_recordings_are_served_until_a_signal() -> None:
    """The address is printed, a recording is played by name with its bytes, SIGTERM ends it with 0 though one hangs."""
    async with sluice_replay(str(RECORDINGS), "--port", "0", "--speed", "0", "--json") as process:
        announced = await read_line(process.stderr)
        told = json.loads(await read_line(process.stdout))
        port = int(announced.rpartition(":")[2])

        models = await fetch(port, method="GET", path="/v1/models")
        demo = await fetch(port, {"model": "demo-many-scripts", "stream": True})
        async with open_stream(port, {"model": "deepseek/hang-after-heartbeats", "stream": True}) as hanging:
            await hanging.read_head()
            process.send_signal(signal.SIGTERM)
            code = await process.wait()

    count = len(told["recordings"])
    assert announced == f"replaying {count} recordings on {told['url']}"
    assert len(models.json["data"]) == count  # type: ignore[arg-type]  # JSON
    assert (demo.end, demo.headers["x-sluice-simulated"]) == (BodyEnd.WHOLE, "true")
    assert demo.body == DEMO.body
    assert code == 0


@pytest.mark.clause("C2")
async def test_a_trace_is_printed_instead() -> None:
    """For a person as lines, for a program as one JSON object per step."""
    async with sluice_replay(str(DEMO.path), "--trace") as process:
        lines = (await process.communicate())[0].decode().splitlines()
    async with sluice_replay(str(DEMO.path), "--trace", "--json") as process:
        steps = [json.loads(line) for line in (await process.communicate())[0].decode().splitlines()]

    assert process.returncode == 0
    assert lines[0].startswith("openai/demo-many-scripts (composed, ")
    assert {step["recording"] for step in steps} == {"openai/demo-many-scripts"}
    assert {"head", "read", "swallowed", "frame", "end"} <= {step["stage"] for step in steps}
    assert len(lines) == len(steps) + 2


@pytest.mark.clause("C3")
@pytest.mark.parametrize(
    ("text", "reason"),
    [("{}\n", ":1: the first line is not a head"), (None, "no such file or folder")],
    ids=["no recording", "no file"],
)
async def test_what_is_no_recording_is_told_with_its_place(tmp_path: Path, text: str | None, reason: str) -> None:
    """Exit code 2, file, line and reason; nothing is served."""
    path = tmp_path / "a.jsonl"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    async with sluice_replay(str(path)) as process:
        _, told = await process.communicate()

    assert process.returncode == 2
    assert f"{path}{reason}" in told.decode() or f"{path}: {reason}" in told.decode()
