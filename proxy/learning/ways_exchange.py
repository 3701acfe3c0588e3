"""A recording read to its very end, through the same decoders and readers as a live answer.

In: a recording, the dialect of its vendor. Out: an `Exchange`: each event with the moment at which it was whole and
what its dialect's reader makes of it, each read without its compression, each line. Unlike the pipeline it goes on
after the end mark and after an error, since what a vendor sends there is asked too. Never: judges anything, waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final

from proxy.canon.chunk import Chunk, Delta, EndMark, ErrorSeen, Malformed, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.base import Reader
from proxy.dialects.payload import as_mapping, parse_json
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.errors import LimitExceeded
from proxy.learning.ways_repeats import increments_of
from proxy.pipeline.intake import Intake, Shape
from proxy.semantics.completeness import finish_for
from proxy.semantics.rule import VendorProfile
from proxy.stores.recordings import Recording
from proxy.wire.frame import Frame
from proxy.wire.lines import LineBuffer

_MAX_LINE: Final = 8 * 1024 * 1024
_MAX_ANSWER: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Event:
    """One payload. `t` is when its last byte came; `bad` counts the characters that bad UTF-8 cost, but for one that
    the end of input tore; `payload` is its JSON (`payload.BROKEN` where it is none)."""

    number: int
    t: float
    data: bytes
    name: str | None
    parsed: Parsed
    bad: int
    payload: object

    @property
    def chunk(self) -> Chunk | None:
        """What was understood, also of an event that speaks of an error."""
        if isinstance(self.parsed, ErrorSeen):
            return self.parsed.chunk
        return self.parsed if isinstance(self.parsed, Chunk) else None

    @property
    def deltas(self) -> list[Delta]:
        return self.chunk.deltas if self.chunk is not None else []

    @property
    def has_progress(self) -> bool:
        return any(delta.texts or delta.tools for delta in self.deltas)

    @property
    def is_mark(self) -> bool:
        """The family's end mark, or the one of chat completions that a relay wrote."""
        return isinstance(self.parsed, EndMark) or self.data.strip(b" \t\r\n;.\0").upper() == b"[DONE]"


@dataclass(frozen=True)
class Exchange:
    """One answered request. `reads` are without compression, one for each that came. A plain answer is a `body` with
    its JSON in `body_payload`, and has no events. `is_torn`: it could not be read to its end (a broken compression, a
    limit, an event that the end of input cut)."""

    recording: Recording
    dialect: str
    shape: Shape
    events: tuple[Event, ...]
    reads: tuple[tuple[float, bytes], ...]
    body: Chunk | None
    body_payload: object
    reader: Reader = field(repr=False)
    finish_words: dict[str, str] = field(repr=False)
    is_torn: bool = False

    @property
    def is_stream(self) -> bool:
        return bool(self.events)

    @property
    def asked(self) -> dict[str, object]:
        """The body that was sent."""
        body = self.recording.request.get("body")
        return body if isinstance(body, dict) else {}

    @cached_property
    def chunks(self) -> tuple[tuple[int, Chunk], ...]:
        """What was understood, with the number of its event (0: the plain body)."""
        told = [(event.number, event.chunk) for event in self.events]
        return tuple((number, chunk) for number, chunk in [*told, (0, self.body)] if chunk is not None)

    @cached_property
    def finishes(self) -> tuple[tuple[int, int, str], ...]:
        """Every finish that was said: event, choice, the vendor's word."""
        return tuple(
            (number, delta.choice, delta.finish)
            for number, chunk in self.chunks
            for delta in chunk.deltas
            if delta.finish
        )

    @cached_property
    def pieces(self) -> dict[tuple[int, str], list[tuple[int, str]]]:
        """The texts of the answer, by choice and field, each with the number of its event. A tool call's arguments are
        the field `call N`."""
        found: dict[tuple[int, str], list[tuple[int, str]]] = {}
        for number, chunk in self.chunks:
            for delta in chunk.deltas:
                calls = ((f"call {call.index or 0}", call.arguments) for call in delta.tools or ())
                for name, text in chain(delta.texts.items(), calls):
                    if text:
                        found.setdefault((delta.choice, name), []).append((number, text))
        return found

    @cached_property
    def said(self) -> dict[tuple[int, str], list[tuple[int, str]]]:
        """The same, without what was said again."""
        return {key: increments_of(pieces) for key, pieces in self.pieces.items()}

    @cached_property
    def error_at(self) -> int | None:
        """The number of the first event that is an error."""
        for event in self.events:
            if isinstance(event.parsed, ErrorSeen) and not event.parsed.is_vague:
                return event.number
            if any(d.finish and finish_for(d.finish, self.finish_words) == "error" for d in event.deltas):
                return event.number
        return None

    @cached_property
    def mark_at(self) -> int | None:
        """The number of the event that is the end mark."""
        return next((event.number for event in self.events if event.is_mark), None)

    @property
    def is_whole(self) -> bool:
        """Did a stream end as it should: no error, every choice with its finish, and a proper end?"""
        choices = {delta.choice for _, chunk in self.chunks for delta in chunk.deltas if delta.texts or delta.tools}
        finished = {choice for _, choice, _ in self.finishes}
        is_ended = bool(finished) and choices <= finished
        proper = self.recording.end == "close" or self.mark_at is not None
        return self.is_stream and self.error_at is None and is_ended and proper and not self.is_torn

    @property
    def is_bare(self) -> bool:
        """Did a stream end with its mark alone: no error, and no finish of any choice?"""
        is_said = any(event.has_progress for event in self.events)
        return self.mark_at is not None and self.error_at is None and not self.finishes and is_said

    @property
    def is_answer(self) -> bool:
        """Is there no sign that it was cut or failed?"""
        return self.body is not None or self.is_whole or self.is_bare

    def usage(self, told: object) -> Usage:
        """Figures of a usage object, by this dialect."""
        return self.reader.usage(as_mapping(told))

    def lines(self) -> Iterator[tuple[float, bytes]]:
        """Every line and the moment at which it was whole."""
        buffer = LineBuffer(_MAX_LINE)
        try:
            for t, data in self.reads:
                for line in buffer.feed(data):
                    yield t, line
        except LimitExceeded:  # whoever asks for lines has the events up to there too
            return

    def place(self, what: str, number: int) -> str:
        """Where something was seen, for a person."""
        return f"{self.recording.key}, {what} {number}"


def play(recording: Recording, profile: VendorProfile) -> Exchange:
    """Read a recording of a request that was answered (its status is no error)."""
    dialect = recording.dialect or profile.dialect
    sent = recording.request.get("body")
    reader = VENDOR_DIALECTS[dialect].reader(sent if isinstance(sent, dict) else {})
    return _Player(recording, dialect, reader).play(dict(profile.finish_reasons))


class _Player:
    def __init__(self, recording: Recording, dialect: str, reader: Reader) -> None:
        headers = dict(recording.headers)
        self._recording, self._dialect, self._reader = recording, dialect, reader
        self._intake = Intake(
            recording.status,
            headers.get("content-type", "").lower(),
            headers.get("content-encoding", "").strip().lower(),
            _MAX_LINE,
            _MAX_ANSWER,
            VENDOR_DIALECTS[dialect].framings,
        )
        self._events: list[Event] = []
        self._reads: list[tuple[float, bytes]] = []
        self._is_torn = False

    def play(self, finish_words: dict[str, str]) -> Exchange:
        try:
            for read in self._recording.reads:
                data = b"".join(self._intake.inflate(read.data))
                self._reads.append((read.t, data))
                self._take(self._intake.feed(data), read.t)
            self._take(self._intake.finish(), self._recording.end_at)
        except LimitExceeded:
            self._is_torn = True
        body = self._body()
        return Exchange(
            self._recording,
            self._dialect,
            self._intake.shape,
            tuple(self._events),
            tuple(self._reads),
            body,
            parse_json(self._intake.body)[0] if body is not None else None,
            self._reader,
            finish_words,
            self._is_torn or self._intake.broken is not None or self._intake.exceeded is not None,
        )

    def _take(self, frames: list[Frame], t: float) -> None:
        for frame in frames:
            before = self._reader.replaced
            parsed = self._reader.read(frame.data, frame.event, frame.lines == 1)
            if isinstance(parsed, Malformed) and frame.lines > 1:  # blank lines between payloads were lost
                self._take([Frame(line, frame.event) for line in frame.data.split(b"\n")], t)
                continue
            self._is_torn = self._is_torn or (isinstance(parsed, Malformed) and not frame.terminated)
            bad = self._reader.replaced - before if frame.terminated else 0
            payload, _ = parse_json(frame.data)
            self._events.append(Event(len(self._events) + 1, t, frame.data, frame.event, parsed, bad, payload))

    def _body(self) -> Chunk | None:
        """A plain answer, or the events of one that is a line of JSON each."""
        if self._intake.shape is not Shape.BODY or not self._intake.body.strip():
            return None
        parsed = self._reader.read_body(self._intake.body)
        lines = [line for line in self._intake.body.split(b"\n") if line.strip()]
        if isinstance(parsed, Chunk):
            return parsed
        if len(lines) > 1 and not isinstance(parsed, ErrorSeen):
            self._take([Frame(line) for line in lines], self._recording.end_at)
        return None
