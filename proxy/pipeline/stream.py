"""One attempt's stream, from the upstream's bytes to the client's, without I/O, clock or log of its own.

In: the response head, reads and the moments at which they came. Out: bytes for the client, and one `Closing` with the
facts for the ledger's row. The order is: intake (frames) -> reader (chunks) -> rules (errors) -> repeats -> per choice:
tool calls, fence, hold -> writer (events). Three things happen once: the commit point (first progress: from then on
errors are events), the verdict (the first error ends the stream), and the closing.

The row must be durable before the seal goes out: `finish` says what may be written before it, `seal` what after it.
Nothing is awaited here; a caller that loses its client or its upstream says so through `finish`. (contract W1-W6, L1)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson

from proxy.canon.chunk import (
    Chunk,
    Delta,
    EndMark,
    ErrorSeen,
    Heartbeat,
    Malformed,
    Parsed,
)
from proxy.canon.ending import TIMEOUTS, Ending, Stop
from proxy.canon.usage import Count, NormalUsage
from proxy.canon.verdict import ErrorClass, Observation, Phase, Verdict
from proxy.dialects.base import Framing, Reader
from proxy.dialects.errors import error_of
from proxy.dialects.openai.read import OpenAIReader
from proxy.dialects.openai.run import PlainShape, TextRun
from proxy.dialects.payload import BROKEN, as_mapping, encode_json, is_empty, parse_json
from proxy.dialects.registry import CLIENT_DIALECTS, VENDOR_DIALECTS
from proxy.dialects.signs import is_error, speaks_of_error
from proxy.dialects.toon.incoming import CLIENT as TOON
from proxy.dialects.toon.read import pointer_of
from proxy.errors import LimitExceeded
from proxy.metering.normal import End, normalise
from proxy.pipeline.answer import Answer
from proxy.pipeline.intake import Intake, Shape
from proxy.pipeline.repeats import Repeats
from proxy.pipeline.reports import UsageReports, recipe_of, understood
from proxy.pipeline.values import Asked, Closing, Facts, Head, Pieces, Setup
from proxy.semantics import verdicts
from proxy.semantics.classifier import classify
from proxy.semantics.completeness import finish_for, is_whole_json
from proxy.semantics.struck import struck_text
from proxy.wire.encode import event
from proxy.wire.frame import Frame

EVENT_STREAM = "text/event-stream; charset=utf-8"
_BITE = 2048  # a longer read holds many events: a run of them may be alike
_LEARNINGS = 4  # templates to learn in vain before a stream is known to have none
_MAX_ASIDE = 64 * 1024
_LINE_END = re.compile(rb"\r\n?|\n")


class Pipeline:
    """Fed with one upstream's answer. `committed`: the client's stream has begun. `over`: nothing more need be read."""

    def __init__(self, setup: Setup, asked: Asked) -> None:
        spoken = setup.dialect or setup.profile.dialect
        profile = setup.profile.speaking(spoken)
        self.setup = setup = setup if profile is setup.profile else replace(setup, profile=profile)
        self.asked = asked
        self.facts = Facts()
        self.committed = False
        self.over = False
        self.progress_at: float | None = None
        self.verdict: Verdict | None = None
        self._ending: Ending | None = None
        self._headers: Mapping[str, str] = {}
        self._dialect = VENDOR_DIALECTS[spoken]
        self._client = CLIENT_DIALECTS[asked.client]
        self._reader: Reader = self._dialect.reader(setup.sent)
        # Only this reader's events may pass unread, or as they came.
        self._openai = self._reader if isinstance(self._reader, OpenAIReader) else None
        self._writer = self._client.writer(setup.seed, int(setup.wall), setup.model, asked.body)
        is_native = self._dialect.native == asked.client
        self._answer = Answer(setup, asked, self._reader, self._writer, self.facts, is_native=is_native)
        self._intake: Intake | None = None
        self._run: TextRun | None = None
        self._plain: PlainShape | None = None
        self._alike = False
        self._many = False
        ways = profile.ways
        self._repeats = Repeats(ways.text_mode) if ways.text_mode != "delta" else None
        self._reports = UsageReports(ways.usage)
        # Where each event must be looked at, none may pass unread.
        self._learnings = _LEARNINGS if self._repeats is None and not self._reports.looks else 0
        self._end_mark = False
        self._stop: Stop | None = None
        self._is_whole = False
        self._is_torn = False
        self._aside_at_mark: bytes | None = None
        self._judged: Observation | None = None
        self._aside: list[bytes] = []
        self._aside_bytes = 0
        self._comments: tuple[str, ...] = ()
        self._is_left = False
        self._left: tuple[dict[int, Pieces], int] | None = None
        self._opened = False

    # ---- in ------------------------------------------------------------------------------------------------------

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """The response head has come; header names are lower case."""
        self.facts.upstream_status = status
        self._headers = headers
        self._intake = Intake(
            status,
            headers.get("content-type", "").lower(),
            headers.get("content-encoding", "").strip().lower(),
            self.setup.max_line_bytes,
            self.setup.max_answer_bytes,
            self._dialect.framings,
        )

    def feed(self, data: bytes, now: float) -> bytes:
        """What the client gets for this read; nothing before the commit point."""
        intake = self._intake
        assert intake is not None, "head comes before the body"
        self.facts.bytes_in += len(data)
        try:
            if self._answer.held:
                self._answer.tick(now)
            if intake.plain:
                self._feed(intake, data, now)
            else:
                for piece in intake.inflate(data):
                    if self.over:  # what is behind the end is not read, though it came along with it
                        break
                    self._feed(intake, piece, now)
                if intake.broken and not self.over:
                    self.over = True
        except LimitExceeded as limit:
            self._fail(verdicts.of_limit(limit, self.facts.upstream_status), Ending.LIMIT)
        if self.facts.received.ripe or self.facts.others:
            self.facts.fold()
        return self._answer.take() if self.committed else b""

    @property
    def deadline(self) -> float | None:
        """When a held tail must go, if there is one."""
        return self._answer.deadline if self.committed else None

    @property
    def answer_bytes(self) -> int:
        """How much text has been received."""
        return self._answer.size

    @property
    def finished(self) -> bool:
        """Every choice seen has its finish, and that can be relied on: only usage is waited for."""
        answer = self._answer
        if not answer.finished or self._is_marked:
            return answer.finished
        return self._reader.finish_is_last and not (answer.spoke_on or answer.is_doubted)

    @property
    def _is_marked(self) -> bool:
        """The end mark has come, of a vendor whose mark can be trusted."""
        return self._end_mark and self.setup.profile.end_mark_trusted

    def tick(self, now: float) -> bytes:
        """Held tails whose time has come."""
        if not self.committed or self.facts.ending is not None:
            return b""
        self._answer.tick(now)
        return self._answer.take()

    def _feed(self, intake: Intake, data: bytes, now: float) -> None:
        size = len(data)
        if size <= _BITE:
            if self._plain is not None and self._pass_one(intake, data, now):
                return
            if self._run is None:
                self._take(intake, data, now)
                return
        start = 0
        self._many = size > _BITE
        if not intake.is_sse:
            if intake.shape is Shape.UNKNOWN and size > _BITE and (found := data.find(b"\n\n")) >= 0:
                start = found + 2
                self._take(intake, data[:start], now)
            if not intake.is_sse:
                self._take(intake, data[start:], now)
                return
        while start < size and not self.over:
            if self._run is not None and intake.sse.at_boundary:
                start = self._pass_run(self._run, data, start, now)
                if start == size:
                    return
            cut = size
            if (self._learnings and size - start > _BITE) or (self._run is not None and not intake.sse.at_boundary):
                # To the end of this event: then the template is tried again, or learned.
                found = data.find(b"\n\n", start)
                cut = found + 2 if found >= 0 else size
            self._take(intake, data[start:cut] if cut - start < size else data, now)
            start = cut

    def _pass_one(self, intake: Intake, data: bytes, now: float) -> bool:
        """A read that is one event, as vendors send them: let it pass if it is plain text. One parse in any case."""
        if not intake.sse.at_boundary or not data.startswith(b"data: {") or not data.endswith(b"}\n\n"):
            return False
        if len(data) - 2 > self.setup.max_line_bytes:
            return False
        wire = data[6:-2]
        if b"\n" in wire or b"\r" in wire:
            return False
        try:
            value = orjson.loads(wire)
        except orjson.JSONDecodeError:
            return False
        if not self._say(value, data, now):
            assert self._openai is not None, "only its events have a shape that is known"
            self._payload(self._openai.read_value(value, wire, None), Frame(wire), now)
        return True

    def _say(self, value: object, data: bytes, now: float) -> bool:
        """The event `data` if it is nothing but text, of the shape that is known."""
        shape = self._plain
        text = shape.text_of(value) if shape is not None else None
        if shape is None or text is None or not self._answer.say(text, data, shape, as_mapping(value), now):
            return False
        self.progress_at = now
        return True

    def _pass_run(self, run: TextRun, data: bytes, start: int, now: float) -> int:
        """Let events pass that are the template with other text; returns where they end."""
        found = run.match(data, start) if self._answer.may_pass_run else None
        texts = self._answer.passing(found[0]) if found is not None else []
        if (
            found is not None
            and len(data) - start > self.setup.max_line_bytes
            and run.longest(found[1]) > self.setup.max_line_bytes
        ):
            texts = []
        if found is None or not texts:
            self._learnings -= 1
            self._run = None
            return start
        end = run.end_of(start, found[1][: len(texts)])
        self._answer.pass_run(texts, data[start:end] if end - start < len(data) else data)
        self._progress(now)
        self._learnings = _LEARNINGS
        return end

    # ---- frames --------------------------------------------------------------------------------------------------

    def _take(self, intake: Intake, data: bytes, now: float) -> None:
        """The frames of these bytes. What stands behind the end mark is never looked at, also where the same read
        brought it (contract W2): so where the mark may stand, bytes go in line by line."""
        start, size = 0, len(data)
        while start < size and not self.over:
            cut = size
            if intake.shape in (Shape.SSE, Shape.UNKNOWN):
                cut = _safe_cut(data, start, intake.sse.at_boundary, self._dialect.end_marks)
            self._frames(intake.feed(data[start:cut] if cut - start < size else data), now)
            start = cut

    def _frames(self, frames: list[Frame], now: float) -> None:
        for frame in frames:
            if self.over:
                return
            self._frame(frame, now)
        if self._intake is not None and (exceeded := self._intake.exceeded) is not None and not self.over:
            raise exceeded

    def _frame(self, frame: Frame, now: float) -> None:
        if self._end_mark:
            self._take_usage(frame)
            return
        if frame.comments:
            self._comments = tuple(c.decode("utf-8", "replace") for c in frame.comments)
            self.facts.notes.setdefault("comment", self._comments[0])
        if self._plain is not None and frame.lines == 1 and frame.event is None and self._plain_frame(frame, now):
            return
        self._answer.frame_bytes = len(frame.data)
        parsed = self._reader.read(frame.data, frame.event, frame.lines == 1)
        if isinstance(parsed, Malformed):
            self._malformed(parsed, frame, now)
            return
        self._payload(parsed, frame, now)

    def _plain_frame(self, frame: Frame, now: float) -> bool:
        """As `_pass_one`, for an event that did not come in a read of its own."""
        try:
            value = orjson.loads(frame.data)
        except orjson.JSONDecodeError:
            return False
        if not self._say(value, event(frame.data), now):
            assert self._openai is not None, "only its events have a shape that is known"
            self._payload(self._openai.read_value(value, frame.data, None), frame, now)
        return True

    def _payload(self, parsed: Parsed, frame: Frame, now: float) -> None:
        if self._reports.looks:
            parsed = self._reports.found(parsed, frame.data)
        match parsed:
            case Chunk():
                self.facts.events_in += 1
                self._trim(parsed)
                self._chunk(parsed, now)
                self._learn(parsed)
            case ErrorSeen() if parsed.is_vague and not self._knows(parsed, frame):
                self.facts.events_in += 1
                self.facts.heartbeats += 1
                self._keep_aside(parsed.data)
            case ErrorSeen():
                self.facts.events_in += 1
                finish = None
                if parsed.chunk is not None:
                    self._trim(parsed.chunk)
                    # what else it carried goes first; its finish belongs to the error
                    for delta in parsed.chunk.deltas:
                        finish, delta.finish = delta.finish or finish, None
                    self._chunk(parsed.chunk, now)
                    self._reports.with_error = parsed.chunk.usage is not None
                if self.verdict is None:
                    self._classify(parsed.payload, parsed.data, frame.event, finish)
            case EndMark():
                self._end_mark = True
                self._after_mark()
            case Heartbeat():
                self.facts.events_in += 1
                self._heartbeat(parsed.notes)
            case Malformed():
                self._keep_aside(parsed.data)

    def _trim(self, chunk: Chunk) -> None:
        """Take out what the vendor says again, where it does (`text_mode`)."""
        if self._repeats is not None:
            self._repeats.trim(chunk)
            if self._repeats.differs:
                self.facts.notes.setdefault("text_mode", "said again in other words")

    def _knows(self, seen: ErrorSeen, frame: Frame) -> bool:
        """Does a rule know these words? `{"message": "processing"}` is only talk."""
        phase = Phase.MID if self._answer.said else Phase.FIRST
        return self._verdict_of(phase, seen.payload, seen.data, frame.event).mapped

    def _after_mark(self) -> None:
        """The answer ends here, but some relays send its usage behind the mark: that alone is waited for, until the
        body ends or `after_finish` passes."""
        no_more = self.facts.vendor_usage is not None or self.setup.profile.ways.usage.scope == "absent"
        self.over = not self._answer.finished or no_more
        self._aside_at_mark = self._said_aside()
        self._plain, self._run, self._learnings = None, None, 0

    def _take_usage(self, frame: Frame) -> None:
        parsed = self._reports.found(self._reader.read(frame.data, frame.event, False), frame.data)
        if isinstance(parsed, Chunk) and parsed.usage is not None:
            self._report(parsed.usage)
            self._reports.with_finish = self.over = True

    def _report(self, usage: Mapping[str, object]) -> None:
        self.facts.vendor_usage = self._reports.joined(self.facts.vendor_usage, usage)

    def _malformed(self, parsed: Malformed, frame: Frame, now: float) -> None:
        """No JSON: several payloads without blank lines between them, the end of a cut stream, words, or a loss."""
        if frame.lines > 1:
            lines = frame.data.split(b"\n")
            several: list[Parsed] = []
            for line in lines:
                several.append(self._reader.read(line, frame.event))
                if isinstance(several[-1], Malformed):
                    break
            else:
                for line, one in zip(lines, several, strict=True):
                    if not self.over:
                        self._payload(one, Frame(line, frame.event), now)
                return
        if not frame.terminated and (not parsed.data or parsed.data.lstrip()[:1] in (b"{", b"[", b'"')):
            self._is_torn = True
            return
        # A binary message that is broken comes as one that has neither a name nor a byte.
        is_piece = parsed.data.lstrip()[:1] in (b"{", b"[") or (self._is_binary and not (frame.data or frame.event))
        if is_piece and not self.finished:
            self._fail(verdicts.malformed(self.facts.upstream_status), Ending.VENDOR_ERROR)
        else:
            self._keep_aside(parsed.data)

    @property
    def _is_binary(self) -> bool:
        return self._intake is not None and self._intake.shape is Shape.EVENTSTREAM

    def _chunk(self, chunk: Chunk, now: float) -> None:
        self._take_chunk(chunk, now)
        if chunk.usage is not None:
            self._reports.with_finish, self._reports.with_error = self._answer.finished, self.verdict is not None

    def _take_chunk(self, chunk: Chunk, now: float) -> None:
        facts = self.facts
        if chunk.usage is not None:
            self._report(chunk.usage)
        if chunk.model and facts.served_model is None:
            facts.served_model = chunk.model
        if chunk.id and facts.vendor_response_id is None:
            facts.vendor_response_id = chunk.id
        if chunk.extra:
            tier = chunk.extra.get("service_tier")
            if isinstance(tier, str) and facts.service_tier is None:
                facts.service_tier = tier
        if not self.committed:
            self._writer.adopt(chunk)
        if not chunk.deltas:
            if chunk.usage is None:
                self._heartbeat(chunk.extra)
            return
        for delta in chunk.deltas:
            if self.verdict is None:
                self._delta(chunk, delta, now)

    def _delta(self, chunk: Chunk, delta: Delta, now: float) -> None:
        finish = finish_for(delta.finish, self.setup.profile.finish_reasons) if delta.finish else None
        if self._is_left and self._left is None and self._goes_on(delta):
            self._stop_delivery()  # what looked finished when the client left was not
        if self._answer.feed(chunk, delta, finish if finish != "error" else None, now):
            self._progress(now)
        if finish == "error":
            payload = {"choices": [{**delta.choice_extra, "finish_reason": delta.finish}], **chunk.extra}
            self._classify(payload, chunk.wire or b"", None, delta.finish)
        elif finish == "content_filter" and not self._answer.said:
            self._fail(verdicts.content_filtered(self.facts.upstream_status), Ending.VENDOR_ERROR)
        elif not self.committed and self.facts.first_progress_at is not None and self._answer.decided:
            self._commit()

    def _progress(self, now: float) -> None:
        self.progress_at = now
        if self.facts.first_progress_at is None:
            self.facts.first_progress_at = now

    def _commit(self) -> None:
        """The commit point: the head may go, and everything that waited for it."""
        self._writer.settle()
        self.committed = self.asked.stream
        self._answer.commit()

    def _learn(self, chunk: Chunk) -> None:
        """Is this event the template of those to come? One event is no reason to ask, so the second of its kind is
        taken; the template of a run is proved only where a read brings many."""
        if self._learnings <= 0 or not self.committed or chunk.wire is None:
            return
        delta = chunk.deltas[0]
        content = delta.texts.get("content")
        if not content or delta.choice or len(delta.texts) > 1 or delta.role or delta.tools or delta.finish:
            return
        if delta.logprobs is not None or not self._writer.is_mine(chunk):
            return
        if self._plain is None and self._alike:
            self._plain = PlainShape.learn(chunk.wire, chunk)
        if self._run is None and self._many:
            self._run = TextRun.learn(chunk.wire, content)
            self._learnings -= self._run is None
        self._alike = True

    def _heartbeat(self, notes: Mapping[str, object]) -> None:
        self.facts.heartbeats += 1
        for name, value in notes.items():
            self.facts.note(name, value)

    def _keep_aside(self, data: bytes) -> None:
        """Words for the rules to look at when the input ends, unless the vendor's heartbeats are known to say them."""
        if any(known.search(data.decode("utf-8", "replace")) for known in self.setup.profile.heartbeats):
            self._heartbeat({})
            return
        if self._aside_bytes < _MAX_ASIDE:
            self._aside.append(data)
            self._aside_bytes += len(data) + 1

    # ---- errors --------------------------------------------------------------------------------------------------

    def _classify(self, payload: object, body: bytes, sse_event: str | None, finish: str | None = None) -> None:
        phase = Phase.MID if self._answer.said else Phase.FIRST
        self._fail(self._verdict_of(phase, payload, body, sse_event, finish), Ending.VENDOR_ERROR)

    def _verdict_of(
        self, phase: Phase, payload: object, body: bytes, sse_event: str | None = None, finish: str | None = None
    ) -> Verdict:
        observation = Observation(
            self.setup.profile.vendor,
            phase,
            self.facts.upstream_status,
            self._headers,
            body,
            payload,
            finish,
            sse_event,
            self._comments,
        )
        verdict = classify(self.setup.profile, observation, self.setup.wall)
        self._judged = observation
        return _without(self.setup.secrets, verdict) if self.setup.secrets else verdict

    def _fail(self, verdict: Verdict, ending: Ending) -> None:
        """The first error decides; nothing after it counts, nor after the end mark."""
        if self._end_mark:
            self.over = True
        elif self.verdict is None:
            self.verdict = verdict
            self._ending = ending
            self.over = True

    # ---- out -----------------------------------------------------------------------------------------------------

    def finish(self, stop: Stop, now: float) -> Closing:
        """The end, once: `stop` says why reading stopped. Afterwards `facts` is what the row will say."""
        assert self.facts.ending is None, "a stream ends once"
        self._stop = stop
        if stop in (Stop.EOF, Stop.CUT, Stop.AFTER_FINISH) or (stop in TIMEOUTS and self._is_refused):
            try:
                self._end_of_input(stop, now)
            except LimitExceeded as limit:
                self._fail(verdicts.of_limit(limit, self.facts.upstream_status), Ending.LIMIT)
        ending, verdict = self._outcome(stop)
        return self._close(ending, verdict)

    @property
    def _is_refused(self) -> bool:
        """The status says that the request failed: a body that never ends changes nothing about it."""
        return self._intake is not None and self._intake.shape is Shape.ERROR_BODY

    def _end_of_input(self, stop: Stop, now: float) -> None:
        intake = self._intake
        if intake is None or self.verdict is not None:
            return
        if not self.over:
            self._frames(intake.finish(), now)
        if intake.shape not in (Shape.UNKNOWN, Shape.BODY, Shape.ERROR_BODY) or self.verdict is not None:
            return
        body = intake.body
        if intake.shape is Shape.ERROR_BODY:
            parsed = self._reader.read_body(body)
            payload = parsed.payload if isinstance(parsed, ErrorSeen) else _json_or_none(body)
            self._fail(self._verdict_of(Phase.HEAD, payload, body), Ending.VENDOR_ERROR)
        elif body.strip():
            self._whole_body(body, stop, now)

    def _whole_body(self, body: bytes, stop: Stop, now: float) -> None:
        """A plain body under 200: a completion, an error, or a page from something in between."""
        parsed = self._reports.found(self._reader.read_body(body), body)
        match parsed:
            case Chunk() if parsed.deltas:
                if self._openai is not None and _says_nothing(body):
                    return
                self.facts.events_in += 1
                self._answer.keep_body(body)
                self._chunk(parsed, now)
                self._is_whole = True
            case ErrorSeen():
                self._fail(self._verdict_of(Phase.HEAD, parsed.payload, parsed.data), Ending.VENDOR_ERROR)
            case Malformed() if stop is Stop.CUT:
                return
            case _:
                lines = [line for line in body.split(b"\n") if line.strip()] if self._in_lines else []
                if len(lines) > 1 and all(isinstance(self._reader.read(line, None), Chunk) for line in lines[:-1]):
                    self._frames([*map(Frame, lines[:-1]), Frame(lines[-1], terminated=False)], now)
                    return
                verdict = self._verdict_of(Phase.HEAD, _json_or_none(body), body)
                if verdict.mapped or body.lstrip()[:1] not in (b"{", b"["):
                    self._fail(verdict, Ending.VENDOR_ERROR)

    @property
    def _in_lines(self) -> bool:
        """May a body that is no JSON be one JSON per line? The readers of these families may read a line twice."""
        return self._openai is not None or Framing.NDJSON in self._dialect.framings

    def leave(self) -> None:
        """The client has left, but the upstream is read to its end (contract W8, `drain`): nothing more is
        delivered."""
        self._is_left = True
        self._plain, self._run, self._learnings = None, None, 0  # there is nobody to be fast for
        if not self._answer.finished and self.verdict is None:
            self._stop_delivery()

    def _goes_on(self, delta: Delta) -> bool:
        if delta.texts or delta.tools or delta.logprobs is not None or not self._answer.knows(delta.choice):
            return True
        return not all(map(is_empty, delta.extra.values()))

    def _stop_delivery(self) -> None:
        before = self.facts.undeliver()
        self._left = (before if self.committed else {}, self.facts.events_out)

    def _outcome(self, stop: Stop) -> tuple[Ending, Verdict | None]:
        """Did it really end, and how? (contract W5, W6)"""
        if self._left is not None:
            return Ending.CLIENT_GONE, None
        if self.verdict is not None:
            return (self._ending or Ending.VENDOR_ERROR), self.verdict
        status = self.facts.upstream_status
        if self._intake is not None and (encoding := self._intake.unreadable) is not None:
            return Ending.VENDOR_ERROR, verdicts.unreadable(encoding, status)
        aside = self._verdict_aside()
        if aside is not None:
            return Ending.VENDOR_ERROR, aside
        if (self._answer.finished and self._is_proved(stop)) or self._inferred():
            return Ending.COMPLETED, None
        if stop is Stop.GONE:
            return Ending.CLIENT_GONE, None
        if stop in TIMEOUTS:
            return Ending.TIMEOUT, verdicts.of_stop(stop, status)
        if stop in (Stop.SHUTDOWN, Stop.INTERNAL):
            return Ending.INTERRUPTED, verdicts.of_stop(stop, status)
        if stop is Stop.CONNECT_FAILED:
            return Ending.VENDOR_ERROR, verdicts.of_stop(stop, status)
        return Ending.STREAM_CUT, verdicts.of_stop(stop, status)

    def _is_proved(self, stop: Stop) -> bool:
        """A finish that was said on the way, or may have been, proves nothing where the answer did not end by itself,
        or ended within an event. One that is doubted needs the end mark besides, or the body's own end where there is
        no mark."""
        if self._answer.is_doubted:
            is_closed = stop is Stop.EOF and not self._is_torn and self.setup.profile.ways.end_mark == "never"
            return self._is_marked or self._is_whole or is_closed
        if self._answer.spoke_on:
            return stop in (Stop.EOF, Stop.AFTER_FINISH) and not self._is_torn
        return self._reader.finish_is_last or not self._is_torn

    def _inferred(self) -> bool:
        """The end mark, or the end of a body that is one whole JSON, stands for the finish, where it can be trusted and
        nothing speaks against it."""
        if not (self._is_whole or self._is_marked) or not self._answer.said:
            return False
        if not all(is_whole_json(arguments) for arguments in self._answer.arguments()):
            return False
        self._answer.infer_finish()
        self.facts.finish_inferred = True
        return True

    def _said_aside(self) -> bytes:
        sse_aside = self._intake.sse.aside if self._intake is not None else b""
        return b"\n".join([part for part in (sse_aside, *self._aside) if part])

    def _verdict_aside(self) -> Verdict | None:
        """What lines and words without a frame of their own meant, if they meant an error."""
        text = self._said_aside() if self._aside_at_mark is None else self._aside_at_mark
        if not text:
            return None
        if b'"choices"' in text and b'"delta"' in text:  # an event behind a stray byte: what it said is lost
            return verdicts.malformed(self.facts.upstream_status)
        named = text.lstrip().startswith(b"error:")
        payload = _json_or_none(text.lstrip().removeprefix(b"error:").strip())
        verdict = self._verdict_of(Phase.END, payload, text)
        if named or (isinstance(payload, dict) and is_error(payload)):
            return verdict
        if not self.finished and isinstance(payload, dict) and speaks_of_error(payload):
            return verdict
        return verdict if verdict.mapped and not self.finished else None

    def _close(self, ending: Ending, verdict: Verdict | None) -> Closing:
        closing = self._closing(ending, verdict)
        self.facts.replaced = self._reader.replaced + self._answer.replaced
        return closing

    def _closing(self, ending: Ending, verdict: Verdict | None) -> Closing:
        facts = self.facts
        facts.ending = ending
        if self._intake is not None:
            sse = self._intake.sse
            facts.heartbeats += sse.comments + sse.empty_events
        if self._left is not None:
            self._answer.take()
            facts.redeliver(self._left[0])
            facts.events_out = self._left[1]
            facts.finish_reason = self._answer.finish_reason
            return Closing(ending, b"", verdict)
        if ending is Ending.COMPLETED:
            self._complete()
        elif verdict is not None:
            self._close_with(verdict)
        elif not self.committed:
            facts.undeliver()
        return Closing(ending, self._answer.take() if self.streaming else b"", verdict)

    def _complete(self) -> None:
        facts = self.facts
        if not self.committed and facts.first_progress_at is not None:
            self._commit()
        self._answer.end()
        facts.finish_reason = self._answer.finish_reason
        if facts.finish_reason == "content_filter":
            facts.error_class, facts.error_code = "content_blocked", "content_filter"
        if self.asked.stream:
            facts.events_out += self._writer.seal_events(wanted=self.asked.usage)

    def _close_with(self, verdict: Verdict) -> None:
        facts = self.facts
        facts.error_class, facts.error_code = verdict.error_class.value, verdict.code
        facts.rule_id, facts.unmapped = verdict.rule_id, not verdict.mapped
        facts.observation = self._judged if verdict.rule_id is not None or facts.unmapped else None
        self.verdict = verdict
        if not self.committed:
            facts.undeliver()
        else:
            self._answer.release()
        if self.streaming:
            facts.events_out += 1
            self._answer.append(self._writer.error_event(self._error(verdict)))

    def normal_usage(self) -> NormalUsage:
        """What the vendor said of usage, by its recipe. After `finish`."""
        told, ways = self.facts.vendor_usage, self.setup.profile.ways.usage
        usage = None if told is None else understood(told, self._reader, ways)
        return normalise(usage, recipe_of(ways), self._usage_end)

    @property
    def _usage_end(self) -> End:
        """A relay's end mark is an end too: after it no usage comes. Where a vendor always sends one, a body that ends
        without it was cut. A request that was refused, or that never left, owes nothing."""
        is_complete = self.facts.ending is Ending.COMPLETED or self._was_complete
        is_closed = self._stop is Stop.EOF and not self._is_torn
        is_closed = is_closed and (self._is_whole or self.setup.profile.ways.end_mark != "sent")
        may_have_worked = self.facts.ending is not Ending.VENDOR_ERROR and self._stop is not Stop.CONNECT
        return End(
            is_whole=is_complete and (self._end_mark or is_closed),
            is_settled=self._reports.with_error or (self._reports.with_finish and (is_complete or self.finished)),
            is_owed=self.facts.first_progress_at is not None or (may_have_worked and not self._is_refused),
        )

    @property
    def _was_complete(self) -> bool:
        """The client left before the end, and the answer came to it all the same (contract W8, `drain`)."""
        if self._left is None or self.verdict is not None or self._stop is None:
            return False
        return self._answer.finished and self._is_proved(self._stop)

    @property
    def streaming(self) -> bool:
        """Has the client's stream begun? Then errors are events (contract W6)."""
        return self.committed or self._opened

    def open_early(self) -> None:
        """A keep-alive sends the head before the commit point (contract W1)."""
        self._opened = True

    def client_head(self) -> Head:
        """Status and headers as they stand: at the commit point, or after `seal` for what never committed."""
        if self.verdict is not None and not self.streaming:
            return self._error_head(self.verdict)
        headers = dict(self.setup.headers)
        if self._answer.repaired:
            headers["x-sluice-repaired"] = "fences"
        return Head(200, EVENT_STREAM if self.asked.stream else self._client.media_type, headers)

    def seal(self, count: Count) -> bytes:
        """What may go out only when the row is durable: usage and the end mark, or the whole body of a plain answer.
        `count` stands in for a vendor that gave no usage."""
        if self.verdict is not None:
            return b"" if self.streaming else self.error_json(self.verdict)
        if self.facts.ending is not Ending.COMPLETED:
            return b""
        return self._answer.seal(count) if self.asked.stream else self._answer.body(count)

    def unrecorded(self) -> tuple[Head, bytes]:
        """The row could not be made durable: what the client gets instead of the seal (contract L1)."""
        return self._told(verdicts.ledger_unavailable())

    def broken(self) -> tuple[Head, bytes]:
        """What the client gets when an invariant of ours broke and the pipeline cannot be trusted any more."""
        return self._told(verdicts.of_stop(Stop.INTERNAL, self.facts.upstream_status))

    def _told(self, verdict: Verdict) -> tuple[Head, bytes]:
        if self.streaming:
            return self.client_head(), self._writer.error_event(self._error(verdict))
        return self._error_head(verdict), self.error_json(verdict)

    def _error_head(self, verdict: Verdict) -> Head:
        head = error_head(verdict)
        return replace(head, headers={**self.setup.headers, **head.headers})

    def _error(self, verdict: Verdict) -> dict[str, object]:
        param = None
        if self.asked.client == TOON and verdict.error_class is ErrorClass.INVALID_REQUEST and self._judged is not None:
            param = pointer_of(self._judged.payload)
        return error_of(verdict, trace_id=self.setup.trace_id, upstream=self.setup.upstream, param=param)

    def error_json(self, verdict: Verdict) -> bytes:
        """The error as a whole HTTP body, in the client's grammar."""
        return encode_json(self._client.error_body(self._error(verdict)))


def error_head(verdict: Verdict) -> Head:
    """Status and headers of an error that the client gets as an HTTP answer (contract E)."""
    headers = {"x-should-retry": "true" if verdict.retryable else "false"}
    if verdict.retry_after_s is not None:
        headers["retry-after"] = str(int(-(-verdict.retry_after_s // 1)))
    return Head(verdict.status, "application/json", headers)


def _safe_cut(data: bytes, start: int, at_boundary: bool, marks: tuple[bytes, ...]) -> int:
    """How far from `start` there is no end mark, or to the end of the line if it may be in this one."""
    if at_boundary:
        plain = data.lower()  # relays write it as they like
        mark = -1
        for word in marks:  # a generator would cost more than all the rest of this
            at = plain.find(word, start)
            if at >= 0 and (mark < 0 or at < mark):
                mark = at
        if mark < 0:
            return len(data)
        if (before := data.rfind(b"\n", start, mark) + 1) > start:
            return before
    end = _LINE_END.search(data, start)
    return end.end() if end is not None else len(data)


def _without(secrets: Sequence[str], verdict: Verdict) -> Verdict:
    """Vendors quote the key that they refuse."""
    return replace(
        verdict,
        message=struck_text(verdict.message, secrets) or "",
        vendor_code=struck_text(verdict.vendor_code, secrets),
        vendor_message=struck_text(verdict.vendor_message, secrets),
    )


def _says_nothing(body: bytes) -> bool:
    """A completion whose choices have no message at all."""
    choices = as_mapping(_json_or_none(body)).get("choices")
    return not any(
        isinstance(choice.get(name), dict | str)
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict)
        for name in ("message", "delta", "text")
    )


def _json_or_none(data: bytes) -> object:
    value, _ = parse_json(data)
    return None if value is BROKEN else value
