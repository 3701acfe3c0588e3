"""Requests of token ids, folders of small models, and `sluice toon serve` as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from tests.support.client import fetch

#: Importing torch takes seconds, on a busy machine many.
START_S: Final = 90.0


def toon(
    ids: Sequence[int] = (5, 6, 7),
    *,
    version: str = "2.1",
    mask_type: str = "causal",
    scope: str = "full",
    fallback: str = "none",
    base: str = "rope",
    offset: int = 0,
    stride: int = 1,
    **more: object,
) -> dict[str, object]:
    """A request; `more` stands beside its four parts."""
    return {
        "tids": {"v": version, "ids": list(ids)},
        "mask": {"type": mask_type, "scope": scope, "fallback": fallback},
        "pos": {"base": base, "offset": offset, "stride": stride},
        "meta": {"trace_id": "trace-0001"},
        **more,
    }


REQUEST: Final = toon()


def made_models(folder: Path, *, model: str = "tiny", dtype: str = "float32", **engine: object) -> Path:
    """The registry of one tiny model, under this name; its weights are random. `engine` are settings of its engine."""
    from proxy.toon.tiny import make_tiny  # which needs the extra, as most tests do not

    registry = make_tiny(folder / "tiny", dtype=dtype) / "toon.yaml"
    told = yaml.safe_load(registry.read_text())
    told["models"] = {model: told["models"]["tiny"]}
    told["engine"] |= engine
    registry.write_text(yaml.safe_dump(told))
    return registry


@dataclass(slots=True)
class ToonService:
    """A `sluice toon serve` that answers on `port`."""

    registry: Path
    port: int
    process: subprocess.Popen[str]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def figures(self) -> dict[str, float]:
        """Of its one model, by the names of `EngineState`."""
        reply = await fetch(self.port, method="GET", path="/metrics")
        found = re.findall(r"^sluice_toon_(\w+)\{[^}]*\} (\S+)$", reply.body.decode(), re.MULTILINE)
        return {name: float(value) for name, value in found}


@contextmanager
def serving_toon(registry: Path) -> Iterator[ToonService]:
    """Until SIGTERM, after which it ends with 0."""
    log = registry.parent / "service.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "proxy", "toon", "serve", "--registry", str(registry), "--port", "0"],
            stdout=out,
            stderr=out,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        yield ToonService(registry, _port(process, log), process)
        process.terminate()
        assert process.wait(60) == 0, log.read_text()[-2000:]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[str], log: Path) -> int:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"listening on http://\S+:(\d+)$", log.read_text(), re.MULTILINE):
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(f"did not start:\n{log.read_text()[-2000:]}")
