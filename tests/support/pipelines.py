"""A whole pipeline driven without I/O: reads in, a transcript of what the client got out.

`run` plays the pump's part as far as bytes go: reads until the pipeline says `over`, ticks where a held tail is due,
then the closing in its order (tail, seal). The clock stands still unless `times` are given. Rules are the shipped ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from proxy.canon.ending import Stop
from proxy.canon.usage import Count
from proxy.pipeline import Asked, Closing, Facts, Head, Pipeline, Setup
from proxy.semantics.ruleset import RuleSet
from proxy.stores.recordings import Recording, load_recording
from proxy.stores.rules import default_rules_dir, load_rules
from tests.support.cuts import cut

ROOT: Final = Path(__file__).parents[2]
RECORDINGS: Final = ROOT / "recordings"
SSE: Final = {"content-type": "text/event-stream"}
STREAM: Final = Asked(stream=True, usage=True)
PLAIN: Final = Asked(stream=False, usage=True)
DONE: Final = b"data: [DONE]\n\n"
OUR_COUNT: Final = Count(input=7, output=11)
_STOPS: Final = {"close": Stop.EOF, "abort": Stop.CUT, "reset": Stop.CUT, "hang": Stop.IDLE}


@cache
def shipped_rules() -> RuleSet:
    return load_rules(default_rules_dir())


@cache
def recordings() -> tuple[Recording, ...]:
    """Every recorded answer; the evidence of single rules (`errors/`) is the rules' own matter."""
    return tuple(load_recording(path) for path in sorted(RECORDINGS.glob("*/*.jsonl")))


@dataclass(frozen=True, slots=True)
class Transcript:
    """What happened: `client` is every byte the client got, tail and seal included, `head` the head that it got."""

    client: bytes
    head: Head
    closing: Closing
    facts: Facts
    pipeline: Pipeline

    @property
    def is_done(self) -> bool:
        return self.client.endswith(DONE)

    @property
    def payloads(self) -> list[dict[str, object]]:
        """The JSON of each event of a stream, `[DONE]` left out."""
        events = [event.removeprefix(b"data: ") for event in self.client.split(b"\n\n")[:-1]]
        return [json.loads(event) for event in events if event != b"[DONE]"]

    @property
    def body(self) -> dict[str, object]:
        """The JSON of a plain answer."""
        value = json.loads(self.client)
        assert isinstance(value, dict)
        return value

    @property
    def error(self) -> dict[str, object] | None:
        """The error that the client was told, as an event or as a body."""
        told = self.payloads[-1:] if self.head.content_type.startswith("text/event-stream") else [self.body]
        error = told[0].get("error") if told else None
        assert error is None or isinstance(error, dict)
        return error


def setup(vendor: str = "openai_compatible", **changes: object) -> Setup:
    fields: dict[str, object] = {
        "profile": shipped_rules().vendors[vendor],
        "upstream": "main",
        "model": "model-asked-for",
        "trace_id": "trace-1",
        "seed": "5eed",
        "wall": 1_772_000_000.0,
    }
    return Setup(**{**fields, **changes})  # type: ignore[arg-type]  # a test names the fields that it means


def begin(
    asked: Asked = STREAM,
    *,
    vendor: str = "openai_compatible",
    status: int = 200,
    headers: Mapping[str, str] = SSE,
    fast: bool = True,
    **changes: object,
) -> Pipeline:
    """A pipeline that has seen its head. `fast=False` keeps it from learning templates, so that all is read."""
    pipeline = Pipeline(setup(vendor, **changes), asked)
    if not fast:
        pipeline._learnings = 0
    pipeline.head(status, headers)
    return pipeline


def run(
    reads: Iterable[bytes],
    asked: Asked = STREAM,
    *,
    times: Sequence[float] | None = None,
    stop: Stop = Stop.EOF,
    vendor: str = "openai_compatible",
    status: int = 200,
    headers: Mapping[str, str] = SSE,
    fast: bool = True,
    **changes: object,
) -> Transcript:
    """One answer from head to seal. `times` says when each read comes; between reads tails that are due are let go."""
    pipeline = begin(asked, vendor=vendor, status=status, headers=headers, fast=fast, **changes)
    out: list[bytes] = []
    now = 0.0
    for number, data in enumerate(reads):
        if times is not None:
            now = _wait(pipeline, max(now, times[number]), out)
        out.append(pipeline.feed(data, now))
        if pipeline.over:
            stop = Stop.AFTER_FINISH
            break
    if stop is Stop.IDLE and pipeline.finished:
        stop = Stop.AFTER_FINISH
    return finish(pipeline, stop, now, out)


def _wait(pipeline: Pipeline, until: float, out: list[bytes]) -> float:
    while (due := pipeline.deadline) is not None and due <= until:
        out.append(pipeline.tick(due))
    return until


def finish(pipeline: Pipeline, stop: Stop, now: float, out: list[bytes]) -> Transcript:
    """The closing in its order, with a ledger that always says yes."""
    closing = pipeline.finish(stop, now)
    out.append(closing.tail)
    seal = pipeline.seal(OUR_COUNT)
    return Transcript(b"".join((*out, seal)), pipeline.client_head(), closing, pipeline.facts, pipeline)


def play(
    recording: Recording,
    asked: Asked | None = None,
    *,
    at: Iterable[int] | None = None,
    as_recorded: bool = False,
    **changes: object,
) -> Transcript:
    """A recording, in its own reads or cut `at` other places; `as_recorded` moves the clock too."""
    reads = [read.data for read in recording.reads] if at is None else cut(recording.body, at)
    return run(
        reads,
        asked if asked is not None else asked_by(recording),
        times=[read.t for read in recording.reads] if as_recorded else None,
        stop=_STOPS[recording.end],
        vendor=recording.vendor,
        status=recording.status,
        headers=dict(recording.headers),
        **{"dialect": recording.dialect or None, "sent": recording.request.get("body") or {}, **changes},  # type: ignore[arg-type]  # as above
    )


def asked_by(recording: Recording) -> Asked:
    """As the recorded request asked, and always with usage, so that it is seen."""
    return Asked(stream=recording.asks_stream, usage=True)
