"""What the stages behind the wire make of a recording: the observer of `sluice replay PATH --trace` (contract C2).

In: a recording, the rules of its vendor, and the frames of one read after the other. Out: steps: what the dialect reads
in each frame, what the client gets and when, what an error means, and how the answer ends: the tail, the row, and what
may go out only after it. The client is the recorded request; the clock is the recording's own, so tails that fall due
between two reads leave then. Never: waits, opens a socket, or writes a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, assert_never

from proxy.canon.chunk import Chunk, Delta, EndMark, ErrorSeen, Heartbeat, Malformed, Parsed
from proxy.canon.ending import Stop
from proxy.canon.usage import Count
from proxy.cli.trace import Step, show
from proxy.dialects.payload import encode_json
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.metering.prompt import count_prompt
from proxy.metering.tokens import load_counter
from proxy.pipeline.stream import Pipeline
from proxy.pipeline.values import Asked, Setup
from proxy.semantics.ruleset import RuleSet
from proxy.stores.recordings import Read, Recording
from proxy.wire.frame import Frame

_STOPS: Final = {"close": Stop.EOF, "reset": Stop.CUT, "abort": Stop.CUT, "hang": Stop.STALL}
#: The rules of a vendor that has none of its own.
_ANY_VENDOR: Final = "openai_compatible"


class Stages:
    """Called with the frames of each read, then with `None` at the end of input; fit for one recording."""

    def __init__(self, recording: Recording, rules: RuleSet) -> None:
        body = recording.request.get("body")
        self._request: dict[str, object] = body if isinstance(body, dict) else {}
        options = self._request.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True
        vendor = recording.vendor if recording.vendor in rules.vendors else _ANY_VENDOR
        profile = rules.profile(vendor)
        dialect = recording.dialect or profile.dialect
        setup = Setup(profile, "trace", recording.name, "0" * 32, "trace", 0.0, dialect=dialect, sent=self._request)
        self._recording = recording
        self._pipeline = Pipeline(setup, Asked(recording.asks_stream, usage))
        self._pipeline.head(recording.status, dict(recording.headers))
        self._reader = VENDOR_DIALECTS[dialect].reader(self._request)
        self._reads = list(recording.reads)

    def __call__(self, frames: list[Frame] | None, now: float) -> Iterable[Step]:
        if frames is None:
            yield from self._end(now)
            return
        for frame in frames:
            yield Step(now, "chunk", describe(self._reader.read(frame.data, frame.event, frame.lines == 1)))
        if self._reads:
            yield from self._feed(self._reads.pop(0))

    def _feed(self, read: Read) -> Iterator[Step]:
        pipeline = self._pipeline
        if pipeline.over:
            return
        yield from _client(read.t, pipeline.feed(read.data, read.t))
        upcoming = self._reads[0].t if self._reads else self._recording.end_at
        while (due := pipeline.deadline) is not None and due <= upcoming:
            yield Step(due, "due", "a tail has waited long enough")
            yield from _client(due, pipeline.tick(due))

    def _end(self, now: float) -> Iterator[Step]:
        pipeline = self._pipeline
        closing = pipeline.finish(Stop.AFTER_FINISH if pipeline.over else _STOPS[self._recording.end], now)
        facts, verdict = pipeline.facts, closing.verdict
        if verdict is not None:
            rule = f" by {verdict.rule_id}" if verdict.rule_id else ""
            yield Step(now, "verdict", f"{verdict.error_class.value} {verdict.code}{rule}")
        yield from _client(now, closing.tail)
        counter = load_counter()
        received, delivered = (
            sum(counter.count("".join(pieces)) for pieces in texts)
            for texts in (facts.all_received(), facts.all_delivered())
        )
        count = Count(count_prompt(counter, self._request), received)
        told: dict[str, object] = {
            "ending": str(closing.ending),
            "error_class": facts.error_class,
            "finish_reason": facts.finish_reason,
            "vendor_usage": facts.vendor_usage,
            "counted": {"input": count.input, "output": count.output},
            "delivered_output": delivered,
        }
        yield Step(now, "row", encode_json(told).decode())
        yield from _client(now, pipeline.seal(count))


def _client(t: float, data: bytes) -> Iterator[Step]:
    """One step per event; a body is one."""
    for event in data.split(b"\n\n") if data.startswith((b"data:", b":")) else [data]:
        if event:
            yield Step(t, "client", show(event))


def describe(parsed: Parsed) -> str:
    """What the dialect understood, in a line."""
    match parsed:
        case Chunk():
            parts = [part for delta in parsed.deltas for part in _delta(delta)]
            if parsed.usage is not None:
                parts.append(f"usage {_json(parsed.usage)}")
            return ", ".join(parts) or "nothing"
        case ErrorSeen():
            return f"error candidate {show(parsed.data)}"
        case EndMark():
            return "end mark"
        case Heartbeat():
            return f"heartbeat {_json(parsed.notes)}" if parsed.notes else "heartbeat"
        case Malformed():
            return f"no JSON: {show(parsed.data)}"
        case _:
            assert_never(parsed)


def _delta(delta: Delta) -> Iterator[str]:
    where = f"choice {delta.choice} " if delta.choice else ""
    if delta.role:
        yield f"{where}role {delta.role}"
    for field, text in delta.texts.items():
        yield f"{where}{field} {show(_json(text).encode())}"
    for tool in delta.tools or ():
        told = [str(part) for part in (tool.index, tool.id, tool.name) if part is not None]
        yield f"{where}tool call {' '.join(told)} {show(_json(tool.arguments).encode())}"
    if delta.finish:
        yield f"{where}finish {delta.finish}"


def _json(value: Mapping[str, object] | str) -> str:
    """Half a surrogate pair is shown as the escape that it came as."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
