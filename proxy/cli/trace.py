"""What each stage makes of each read of a recording, for `sluice replay PATH --trace` (contract C2).

In: a recording, and an observer that stands for the stages behind the wire. Out: steps in order, each with its moment,
its stage and one line of text; `trace_recording` writes them for a person. Bytes are shown as they are, but that a line
break, a control character and a byte that is no whole letter are written as escapes. Never: waits, or opens a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from proxy.errors import LimitExceeded
from proxy.stores.recordings import Recording
from proxy.wire.eventstream import EventStreamDecoder
from proxy.wire.frame import Frame
from proxy.wire.inflate import Inflater
from proxy.wire.jsonarray import JsonArrayDecoder
from proxy.wire.ndjson import NdjsonDecoder
from proxy.wire.sse import SseDecoder

#: What the stages behind the wire make of the frames of one read; `None` in place of frames is the end of input.
Observer = Callable[[list[Frame] | None, float], Iterable["Step"]]

_MAX_LINE_BYTES: Final = 8 << 20  # the product's default, limits.line_bytes
_SHOWN_CHARS: Final = 110
_SSE_BEGINS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x0A: "\\n",
    0x0D: "\\r",
    0x09: "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
    0xFEFF: "\\ufeff",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that one stage did. `t` is in seconds since the head."""

    t: float
    stage: str
    text: str


class _Decoder(Protocol):
    def feed(self, data: bytes) -> list[Frame]: ...

    def finish(self) -> list[Frame]: ...


def observe_nothing(frames: list[Frame] | None, now: float) -> Iterable[Step]:
    """For a trace of the wire alone."""
    return ()


def trace_recording(recording: Recording, observe: Observer = observe_nothing) -> Iterator[str]:
    """The steps as lines: the moment is written once per read, the stages stand under it."""
    yield f"{recording.key} ({recording.obtained}, {len(recording.reads)} reads, {len(recording.body)} bytes)"
    yield f"odd: {recording.odd}"
    before: float | None = None
    for step in trace_steps(recording, observe):
        moment = f"{step.t:8.3f}" if step.t != before or step.stage == "read" else " " * 8
        before = step.t
        yield f"{moment}  {step.stage:<9} {step.text}"


def trace_steps(recording: Recording, observe: Observer = observe_nothing) -> Iterator[Step]:
    """From the head to the end. A limit that is exceeded ends the trace, as it would end the stream."""
    headers = ", ".join(f"{name}: {value}" for name, value in recording.headers)
    yield Step(0.0, "head", f"{recording.status} {headers}".rstrip())
    wire = _Wire(recording)
    try:
        for read in recording.reads:
            yield Step(read.t, "read", f"{len(read.data):>5} bytes  {show(read.data)}")
            frames = wire.feed(read.data)
            yield from (Step(read.t, stage, text) for stage, text in wire.take_notes())
            yield from observe(frames, read.t)
        yield Step(recording.end_at, "end", recording.end)
        frames = wire.finish()
        yield from (Step(recording.end_at, stage, text) for stage, text in wire.take_notes())
        yield from observe(frames, recording.end_at) if frames else ()
        yield from observe(None, recording.end_at)
    except LimitExceeded as exceeded:
        yield Step(recording.end_at, "limit", str(exceeded))


class _Wire:
    """The first stages over one body, with notes on what they did."""

    def __init__(self, recording: Recording) -> None:
        coding = recording.header("content-encoding")
        self._inflater = Inflater(coding) if coding else None
        self._decoder = _choose_decoder(recording)
        self._notes: list[tuple[str, str]] = []
        self._seen: dict[str, int] = {}

    def feed(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        for piece in self._inflate(data):
            frames += self._decoder.feed(piece)
        self._note_counts()
        self._note_frames(frames)
        return frames

    def finish(self) -> list[Frame]:
        if self._inflater is not None and not self._inflater.finish():
            self._notes.append(("inflate", self._inflater.broken or "the compressed body is cut"))
        frames = self._decoder.finish()
        self._note_counts()
        self._note_frames(frames)
        if isinstance(self._decoder, SseDecoder) and self._decoder.aside:
            self._notes.append(("aside", f"kept for classification: {show(self._decoder.aside)}"))
        return frames

    def take_notes(self) -> list[tuple[str, str]]:
        notes, self._notes = self._notes, []
        return notes

    def _inflate(self, data: bytes) -> list[bytes]:
        if self._inflater is None:
            return [data]
        pieces = self._inflater.feed(data)
        self._notes.append(("inflate", f"{sum(map(len, pieces)):>5} bytes  {show(b''.join(pieces))}"))
        return pieces

    def _note_counts(self) -> None:
        for name, words in _COUNTERS.items():
            count = getattr(self._decoder, name, 0)
            if new := count - self._seen.get(name, 0):
                self._notes.append(("swallowed", f"{new} {words if new > 1 else words.removesuffix('s')}"))
            self._seen[name] = count

    def _note_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            name = f" event={show(frame.event.encode())}" if frame.event else ""
            lines = f" of {frame.lines} data lines" if frame.lines > 1 else ""
            ended = "" if frame.terminated else " not terminated"
            self._notes.append(("frame", f"{len(frame.data):>5} bytes{lines}{name}{ended}  {show(frame.data)}"))


#: The decoders' counters of what leaves no frame, in words.
_COUNTERS: Final[Mapping[str, str]] = {
    "comments": "comments",
    "empty_events": "empty events",
    "fields_ignored": "id or retry fields",
    "blank": "blank lines",
}


class _WholeBody:
    """A body that is no stream is one frame, at its end."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        self._pieces.append(data)
        return []

    def finish(self) -> list[Frame]:
        body = b"".join(self._pieces)
        return [Frame(body)] if body.strip() else []


def _choose_decoder(recording: Recording) -> _Decoder:
    """By content type, or by what the body begins with: some vendors send events under another type."""
    if recording.header("content-type").startswith(("application/x-ndjson", "application/jsonl")):
        return NdjsonDecoder(_MAX_LINE_BYTES)
    if "amazon.eventstream" in recording.header("content-type"):
        return EventStreamDecoder(_MAX_LINE_BYTES)
    if recording.asks_stream and recording.body.lstrip().startswith(b"["):
        return JsonArrayDecoder(_MAX_LINE_BYTES)
    if recording.is_event_stream or recording.body.lstrip().startswith(_SSE_BEGINS):
        return SseDecoder(_MAX_LINE_BYTES, _MAX_LINE_BYTES)
    return _WholeBody()


def show(data: bytes) -> str:
    """Bytes for a person, on one line: the middle of what is long is left out, half a letter at an edge is escaped."""
    text = data.decode("utf-8", "backslashreplace").translate(_ESCAPES)
    if len(text) <= _SHOWN_CHARS:
        return text
    # The end says more: an event's delta stands there, and the edge of the read.
    return f"{text[: _SHOWN_CHARS // 3]} … {text[-_SHOWN_CHARS * 2 // 3 :]}"
