"""One attempt: reads, deadlines and the client's leaving go into the pipeline, its bytes go to the client.

The pump owns no decision. It awaits two things only, a read and a write, so a slow client slows its own upstream (W7);
it is told of passed deadlines and due tails by the clock, synchronously; cancellation means that the client has left
(W8). Whatever happens, the attempt ends once: `Pipeline.finish`, the counts, the ledger's row, and only then the seal
(L1).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import structlog

from proxy.canon.ending import Ending, Stop
from proxy.canon.usage import Count
from proxy.errors import LedgerUnavailable
from proxy.metering.ledger import AttemptClose, AttemptOpen, LedgerStore
from proxy.metering.prices import Price
from proxy.metering.pricing import Counted, price
from proxy.pipeline import EVENT_STREAM, Closing, Facts, Head, Pipeline
from proxy.semantics.struck import struck, struck_text
from proxy.upstream.clock import Clock
from proxy.upstream.session import Exchange, Stopped, Timeouts
from proxy.upstream.tasks import Tasks
from proxy.wire.encode import KEEP_ALIVE

log = structlog.get_logger()

_RETRY_S = 0.01
# What an answer grows by before it is counted so far, while it is written: some 5 ms of work in a thread at most, which
# is what is left for its end.
_GROW_BYTES = 256 * 1024
# More tokens than this in a prompt counted at the end, and the loop gets its turn before the answer is counted.
_LONG_PROMPT_TOKENS = 500
_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-ms-request-id", "cf-ray")


class Client(Protocol):
    """The one who asked. Every method may raise ConnectionError: it has left."""

    async def start(self, head: Head) -> None:
        """Begin a stream."""

    async def write(self, data: bytes) -> None:
        """Write, and wait while the client does not read."""

    @property
    def ready(self) -> bool:
        """Everything written so far has left: a little more can be written without waiting."""

    def start_now(self, head: Head) -> None:
        """Begin a stream without waiting."""

    def write_now(self, data: bytes) -> None:
        """Write without waiting; only while `ready`."""

    async def finish(self, data: bytes) -> None:
        """Write the last bytes of a stream and end it."""

    def answer(self, head: Head, body: bytes) -> None:
        """Answer with one body; nothing was started."""


class Growing(Protocol):
    """The counts of an answer's texts while they are written."""

    def take(self, texts: Sequence[list[str]]) -> None:
        """No piece of these will change any more, though more will follow: they may be counted."""

    async def totals(self, texts: Sequence[list[str]]) -> list[int]:
        """The exact count of each."""


class Counter(Protocol):
    """The shared tokenizer, off the event loop where a text is long. `formula` names how prompts are counted."""

    name: str
    formula: str

    def growing(self) -> Growing:
        """For an answer that has grown long."""

    def count_now(self, texts: Sequence[list[str]]) -> list[int] | None:
        """The count of each text if all are quick together, None if it is work for a thread."""

    async def count(self, texts: Sequence[list[str]]) -> list[int]: ...


# Gives our count of a request's prompt, when it is asked for at the end.
PromptCount = Callable[[], Awaitable[int] | int]


class Watcher(Protocol):
    """Metrics: told once per attempt."""

    def opened(self, upstream: str) -> None: ...

    def closed(self, open_row: AttemptOpen, row: AttemptClose, facts: Facts, added_delay_s: float) -> None: ...


@dataclass(slots=True)
class Services:
    """What every attempt of a worker shares."""

    ledger: LedgerStore
    counter: Counter
    clock: Clock
    tasks: Tasks
    watcher: Watcher
    keepalive_s: float = 0.0


class _At(Enum):
    """What the pump waits for."""

    READ = auto()
    WRITE = auto()
    NOTHING = auto()


class Pump:
    """Runs one attempt from the open exchange to its closing. `input_count` is our count of the prompt, in the
    making; `price_of_model` what a token costs, None where nobody knows."""

    def __init__(
        self,
        pipeline: Pipeline,
        client: Client,
        row: AttemptOpen,
        timeouts: Timeouts,
        services: Services,
        input_count: PromptCount,
        price_of_model: Price | None = None,
        *,
        drain: bool = False,
    ) -> None:
        self._pipeline, self._client, self._row, self._timeouts = pipeline, client, row, timeouts
        self._services, self._input_count, self._drain = services, input_count, drain
        self._price = price_of_model
        self._exchange: Exchange | None = None
        self._at = _At.NOTHING
        self._started = False
        self._gone = False
        self._bytes_out = 0
        self._added_delay_s = 0.0
        self._loop = asyncio.get_running_loop()
        self._begun_at = self._last_byte_at = self._last_write_at = self._loop.time()
        self._kept_alive_at = 0.0
        self._late = False
        self._closing: Closing | None = None
        self._row_sent = False
        self._shutting_down = False
        self._waiting: asyncio.Timeout | None = None
        self._growing: Growing | None = None
        self._grow_at = _GROW_BYTES

    # ---- the run -------------------------------------------------------------------------------------------------

    async def run(self, opening: Coroutine[None, None, Exchange | Stop]) -> None:
        """Wait for the head, read to the end, then close. Cancelled: the client has left."""
        try:
            opened = await self._wait_for_head(opening)
            if isinstance(opened, Stop):
                await self._close(opened, b"")
            else:
                await self._run(opened)
        except asyncio.CancelledError:
            self.leave()
            raise
        except ConnectionError:
            self.leave()
        except Exception as error:  # an invariant of ours broke: this one stream ends, loudly
            log.error("attempt failed", trace_id=self._row.trace_id, error=type(error).__name__, exc_info=error)
            await self._close_broken()

    async def _wait_for_head(self, opening: Coroutine[None, None, Exchange | Stop]) -> Exchange | Stop:
        """What opening gave. The client may leave meanwhile, keep-alives may be due, and the process may shut down."""
        services = self._services
        # A request that is to be drained outlives its client (W8), so it must not be cancelled with it.
        opened = services.tasks.start(opening, "open") if self._drain else None
        if services.keepalive_s:
            self._at = _At.READ
            services.clock.add(self)
        wait_s, late = self._timeouts.head()
        try:
            async with asyncio.timeout(wait_s) as self._waiting:
                return await (asyncio.shield(opened) if opened is not None else opening)
        except TimeoutError:
            if opened is not None:
                opened.cancel()
            return Stop.SHUTDOWN if self._shutting_down else late
        except asyncio.CancelledError:
            self._leave_early(opened)
            raise
        finally:
            self._waiting = None
            self._at = _At.NOTHING
            services.clock.remove(self)

    def _leave_early(self, opened: asyncio.Task[Exchange | Stop] | None) -> None:
        """The client has left before the head came."""
        if opened is None:
            self.leave()
            return
        self._gone = True
        self._pipeline.leave()
        self._services.tasks.spawn(self._drain_from_head(opened), "drain")

    async def _run(self, exchange: Exchange) -> None:
        self._exchange = exchange
        clock = self._services.clock
        self._pipeline.head(exchange.status, exchange.headers)
        self._last_byte_at = self._loop.time()
        clock.add(self)
        try:
            stop, rest = await self._relay(exchange)
            await self._close(stop, rest)
        except (asyncio.CancelledError, ConnectionError):
            self.leave()
            raise
        finally:
            if not self._draining:
                clock.remove(self)
                exchange.close()

    @property
    def _draining(self) -> bool:
        return self._gone and self._drain and self._pipeline.facts.ending is None

    async def _relay(self, exchange: Exchange) -> tuple[Stop, bytes]:
        """Reads to the client. Returns why it stopped, and what was not written yet."""
        pipeline, loop = self._pipeline, self._loop
        while True:
            self._at = _At.READ
            try:
                data = await exchange.read()
            except Stopped as stopped:
                return stopped.stop, b""
            finally:
                self._at = _At.NOTHING
            if not data:
                return Stop.EOF, b""
            read_at = time.perf_counter()  # uvloop's own clock counts in milliseconds
            now = self._last_byte_at = loop.time()
            out = pipeline.feed(data, now)
            if pipeline.answer_bytes >= self._grow_at:
                self._count_grown()
            if pipeline.over:
                return Stop.AFTER_FINISH, out
            if out:
                await self._write(out)
                delay_s = time.perf_counter() - read_at
                if delay_s > self._added_delay_s:
                    self._added_delay_s = delay_s
            due = pipeline.deadline
            if due is not None:
                self._services.clock.hold(self, due)

    async def _write(self, data: bytes) -> None:
        self._at = _At.WRITE
        try:
            if not self._started:
                await self._start()
            self._bytes_out += len(data)
            await self._client.write(data)
        finally:
            self._at = _At.NOTHING
        # While the client was slow nothing was read: its time is not the upstream's silence.
        self._last_write_at = self._last_byte_at = self._loop.time()

    async def _start(self) -> None:
        self._started = True
        await self._client.start(self._pipeline.client_head())

    # ---- the clock -----------------------------------------------------------------------------------------------

    def check_deadlines(self, now: float) -> None:
        """A passed deadline ends the waiting read (contract C4, W6). Called by the clock."""
        limits, exchange = self._timeouts, self._exchange
        if limits.total and now - self._begun_at >= limits.total and not self._late:
            self._late = True
            if self._at is _At.WRITE and exchange is not None:
                # The client does not read, perhaps never again: its upstream is not held any longer.
                exchange.abandon(Stop.TOTAL)
        if self._at is not _At.READ:
            return
        if exchange is not None and (stop := self._passed(now)) is not None:
            exchange.interrupt(stop)
            return
        silent = now - max(self._last_write_at, self._kept_alive_at)
        if self._services.keepalive_s and self._pipeline.asked.stream and silent >= self._services.keepalive_s:
            self._keep_alive(now)

    def _passed(self, now: float) -> Stop | None:
        limits, pipeline = self._timeouts, self._pipeline
        if self._late:
            return Stop.TOTAL
        if not pipeline.asked.stream:
            return None  # for a plain answer only connect, first_byte to the head, and total apply
        progress = pipeline.progress_at
        if pipeline.finished and progress is not None:
            return Stop.AFTER_FINISH if now - max(progress, self._last_write_at) >= limits.after_finish else None
        if progress is None:
            if limits.first_byte and now - self._begun_at >= limits.first_byte:
                return Stop.FIRST_BYTE
        elif limits.stall and now - max(progress, self._last_write_at) >= limits.stall:
            return Stop.STALL
        if limits.idle and now - self._last_byte_at >= limits.idle:
            return Stop.IDLE
        return None

    def check_hold(self, now: float) -> float | None:
        """Write tails whose time has come; not to a client that is behind. Called by the clock."""
        if self._at is not _At.READ or self._gone or not self._started:
            return None
        due = self._pipeline.deadline
        if due is None or due > now:
            return due
        if not self._client.ready:
            return now + _RETRY_S
        if data := self._pipeline.tick(now):
            self._bytes_out += len(data)
            self._client.write_now(data)
        return self._pipeline.deadline

    def _keep_alive(self, now: float) -> None:
        """Say that the stream lives; before the commit point this sends the head (contract W1)."""
        if not self._client.ready:
            return
        self._kept_alive_at = now  # not a write of the answer: the upstream's deadlines run on
        if not self._started:
            self._started = True
            self._pipeline.open_early()
            self._client.start_now(self._pipeline.client_head())
        self._bytes_out += len(KEEP_ALIVE)
        self._client.write_now(KEEP_ALIVE)

    def interrupt(self, stop: Stop) -> None:
        """End the attempt from outside: the process is shutting down."""
        self._shutting_down = True
        if self._exchange is not None:
            self._exchange.interrupt(stop)
        elif self._waiting is not None:
            self._waiting.reschedule(self._loop.time())

    # ---- the end -------------------------------------------------------------------------------------------------

    async def _close(self, stop: Stop, rest: bytes) -> None:
        self._closing = closing = self._pipeline.finish(stop, self._loop.time())
        if out := rest + closing.tail:
            await self._write(out)
        head, seal = await self._record(closing)
        if self._started:
            await self._client.finish(seal)
        elif head.content_type == EVENT_STREAM:
            await self._client.start(head)
            await self._client.finish(seal)
        else:
            self._client.answer(head, seal)

    async def _record(self, closing: Closing) -> tuple[Head, bytes]:
        """Count, write the row and wait until it is durable. Returns what the client may get now."""
        pipeline = self._pipeline
        count, delivered = await self._count()
        seal = pipeline.seal(count) if not self._gone else b""
        row = self._close_row(closing, count, delivered, len(seal))
        self._row_sent = True
        durable = self._services.ledger.close(row)
        pipeline.facts.forget()
        self._services.watcher.closed(self._row, row, pipeline.facts, self._added_delay_s)
        try:
            await asyncio.shield(durable)
        except LedgerUnavailable as error:
            log.error("row not durable", trace_id=self._row.trace_id, attempt_id=row.attempt_id, error=str(error))
            return pipeline.unrecorded()
        return pipeline.client_head(), seal

    def _count_grown(self) -> None:
        """A long answer is counted in a thread as it grows: its end does not wait for all of it."""
        if self._growing is None:
            self._growing = self._services.counter.growing()
        texts = [pieces for group in self._pipeline.facts.counted() for pieces in group]
        for pieces in texts:
            pieces.settle()
        self._growing.take(texts)
        self._grow_at = self._pipeline.answer_bytes + _GROW_BYTES

    async def _count(self) -> tuple[Count, int]:
        """Our count of prompt and answer, and of what the client got of it (contract L2)."""
        facts = self._pipeline.facts
        asked = self._input_count()
        prompt = asked if isinstance(asked, int) else await asked
        if prompt > _LONG_PROMPT_TOKENS:
            await asyncio.sleep(0)
        received, reasoned, delivered = facts.counted()
        counts = await self._count_texts([*received, *reasoned, *delivered])
        output = sum(counts[: len(received)])
        of_reasoning = sum(counts[len(received) : len(received) + len(reasoned)])
        of_delivered = sum(counts[len(received) + len(reasoned) :]) if facts.altered else output
        return Count(prompt, output, min(of_reasoning, output)), of_delivered

    async def _count_texts(self, texts: Sequence[list[str]]) -> list[int]:
        if self._growing is not None:
            return await self._growing.totals(texts)
        quick = self._services.counter.count_now(texts)
        return quick if quick is not None else await self._services.counter.count(texts)

    def _close_row(self, closing: Closing, count: Count, delivered: int, seal_bytes: int) -> AttemptClose:
        facts = self._pipeline.facts
        now = self._loop.time()
        first = facts.first_progress_at
        headers = self._exchange.headers if self._exchange is not None else {}
        normal = self._pipeline.normal_usage()
        row = AttemptClose(
            attempt_id=self._row.attempt_id,
            ended_at=time.time(),
            ending=closing.ending,
            duration_ms=round((now - self._begun_at) * 1000, 3),
            ttft_ms=round((first - self._begun_at) * 1000, 3) if first is not None else None,
            served_model=facts.served_model,
            service_tier=facts.service_tier,
            vendor_request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None),
            vendor_response_id=facts.vendor_response_id,
            upstream_status=facts.upstream_status,
            rule_id=facts.rule_id,
            error_class=facts.error_class,
            error_code=facts.error_code,
            finish_reason=facts.finish_reason,
            finish_inferred=facts.finish_inferred,
            vendor_usage=facts.vendor_usage,
            counted_input=count.input,
            counted_output=count.output,
            counted_reasoning=count.reasoning,
            delivered_output=delivered,
            tokenizer=self._services.counter.name,
            count_formula=self._services.counter.formula,
            bytes_in=facts.bytes_in,
            bytes_out=self._bytes_out + seal_bytes,
            events_in=facts.events_in,
            events_out=facts.events_out,
            notes=facts.notes,
            usage_state=normal.state,
            usage_told=normal.told,
            usage_input=normal.input,
            usage_output=normal.output,
            usage_cache_read=normal.cache_read,
            usage_cache_write=normal.cache_write,
            usage_reasoning=normal.reasoning,
            usage_total=normal.total,
            billed_input=normal.billed_input,
            billed_output=normal.billed_output,
        )
        if self._price is not None:
            counted = Counted(count.input, count.output, row.counted_reasoning)
            costs = price(self._price, normal, counted, facts.service_tier)
            row.price_tier = costs.tier
            row.cost_input, row.cost_output = costs.input, costs.output
            row.cost_cache_read, row.cost_cache_write = costs.cache_read, costs.cache_write
            row.own_cost_input, row.own_cost_output = costs.own_input, costs.own_output
        if secrets := self._pipeline.setup.secrets:
            _strike_out(row, secrets)
        return row

    def leave(self) -> None:
        """The client has left: end the upstream request, or read it to its end, and close the row (contract W8)."""
        if self._gone:
            return
        self._gone = True
        services = self._services
        if self._closing is not None:
            if not self._row_sent:
                services.tasks.spawn(self._record_alone(self._closing), "row of a client that left")
        elif self._drain and self._exchange is not None:
            self._pipeline.leave()
            services.tasks.spawn(self._drain_rest(self._exchange), "drain")
        else:
            stop = Stop.SHUTDOWN if self._shutting_down else Stop.GONE
            self._closing = self._pipeline.finish(stop, self._loop.time())
            services.tasks.spawn(self._record_alone(self._closing), "row of a client that left")

    async def _record_alone(self, closing: Closing) -> None:
        await self._record(closing)

    async def _drain_from_head(self, opened: asyncio.Task[Exchange | Stop]) -> None:
        wait_s, late = self._timeouts.head()
        exchange: Exchange | Stop
        try:
            async with asyncio.timeout(wait_s):
                exchange = await opened
        except TimeoutError:
            exchange = late
        if isinstance(exchange, Stop):
            self._closing = self._pipeline.finish(exchange, self._loop.time())
            await self._record(self._closing)
            return
        self._exchange = exchange
        self._pipeline.head(exchange.status, exchange.headers)
        self._last_byte_at = self._loop.time()
        self._services.clock.add(self)
        await self._drain_rest(exchange)

    async def _drain_rest(self, exchange: Exchange) -> None:
        """Read on for the vendor's usage; nobody is there to write to."""
        stop = Stop.EOF
        try:
            while not self._pipeline.over:
                self._at = _At.READ
                data = await exchange.read()
                self._at = _At.NOTHING
                if not data:
                    break
                self._last_byte_at = self._loop.time()
                self._pipeline.feed(data, self._last_byte_at)
                if self._pipeline.answer_bytes >= self._grow_at:
                    self._count_grown()
        except Stopped as stopped:
            stop = stopped.stop
        self._services.clock.remove(self)
        exchange.close()
        self._closing = self._pipeline.finish(stop, self._loop.time())
        await self._record(self._closing)

    async def _close_broken(self) -> None:
        """An invariant broke. The row must be closed and the client told, with the least that can be relied on."""
        if self._closing is None:
            try:
                await self._close(Stop.INTERNAL, b"")
                return
            except Exception as error:
                log.error("closing failed", trace_id=self._row.trace_id, error=type(error).__name__, exc_info=error)
        if not self._row_sent:
            self._row_sent = True
            broken = AttemptClose(
                attempt_id=self._row.attempt_id,
                ended_at=time.time(),
                ending=Ending.INTERRUPTED,
                duration_ms=round((self._loop.time() - self._begun_at) * 1000, 3),
                error_class="model_unavailable",
                error_code=Stop.INTERNAL.value,
            )
            self._services.watcher.closed(self._row, broken, self._pipeline.facts, self._added_delay_s)
            try:
                await asyncio.shield(self._services.ledger.close(broken))
            except LedgerUnavailable as error:
                log.error(
                    "row not durable", trace_id=self._row.trace_id, attempt_id=broken.attempt_id, error=str(error)
                )
        head, body = self._pipeline.broken()
        if self._started:
            await self._client.finish(body)
        else:
            self._client.answer(head, body)


def _strike_out(row: AttemptClose, secrets: Sequence[str]) -> None:
    """A vendor may throw our key back wherever it may write."""
    row.served_model = struck_text(row.served_model, secrets)
    row.service_tier = struck_text(row.service_tier, secrets)
    row.vendor_request_id = struck_text(row.vendor_request_id, secrets)
    row.vendor_response_id = struck_text(row.vendor_response_id, secrets)
    row.finish_reason = struck_text(row.finish_reason, secrets)
    row.vendor_usage = struck(row.vendor_usage, secrets)
    if row.notes:
        row.notes = {struck_text(name, secrets) or "": struck(note, secrets) for name, note in row.notes.items()}
