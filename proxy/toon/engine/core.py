"""The engine without its thread: one step after another, over all that was asked.

In: rows. Out: pieces and failures, handed to `tell` once after prompts were read and once after a round of decoding.
A step: cancelled rows leave; whoever waits comes in if there is room; prompts are read up to the step's measure; every
running answer grows by one id. A row that had to leave for the memory waits in front of all others, and later reads
again what it had. Never: blocks, locks, or raises for what a step brings: that fails its rows, and the next step is
another one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import structlog
import torch
from torch import Tensor

from proxy.toon.engine import steps
from proxy.toon.engine.job import Failure, Piece, Ticket
from proxy.toon.engine.memory import Memory
from proxy.toon.engine.rows import Row
from proxy.toon.engine.scheduler import Chunk, Limits, Pace, admitted, chunks, companies
from proxy.toon.engine.slots import Slots
from proxy.toon.engine.tally import Tally
from proxy.toon.engine.writing import written
from proxy.toon.model.step import Decoder

log = structlog.get_logger()

Told = list[tuple[Ticket, Piece | Failure]]


class Core:
    """Everything here is for one thread, but for reading counts."""

    def __init__(
        self, decoder: Decoder, tell: Callable[[Told], None], limits: Limits, *, is_caching: bool = True
    ) -> None:
        self._decoder, self._tell, self._limits = decoder, tell, limits
        self.memory = Memory(Slots(decoder.shape, decoder.device, decoder.dtype), limits, is_caching=is_caching)
        self._seating = self.memory.seating
        self.pace = Pace(limits)
        self._told: Told = []
        self.waiting: deque[Row] = deque()
        self.tally = Tally()

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self._seating.rows)

    @torch.inference_mode()
    def step(self) -> None:
        """What fails where no row is to blame fails all that run, and the memory begins anew; if it is the memory that
        is short, the newest row alone."""
        self.tally.steps += 1
        try:
            self._leave_cancelled()
            self._admit()
            self._grow()
            self._fill()
            self._flush()
            self._decode()
        except Exception as error:
            log.exception("engine step failed")
            failure = _failure(error)
            if failure.code == "out_of_memory" and self._seating.rows:
                self._relieve(failure)
            else:
                self._fail_running(failure)
        self._flush()

    def end(self, failure: Failure) -> None:
        """All who run or wait are told so, and nothing is left."""
        self._fail_running(failure)
        self._told += [(row.ticket, failure) for row in self.waiting]
        self.waiting.clear()
        self._flush()

    def _flush(self) -> None:
        told = [(ticket, item) for ticket, item in self._told if not ticket.is_cancelled]
        self._told = []
        if told:
            self._tell(told)

    # Who comes and goes

    def _leave_cancelled(self) -> None:
        for row in [row for row in self._seating.rows if row.ticket.is_cancelled]:
            self._leave(row)
            self.tally.cancelled += 1
        left = sum(row.ticket.is_cancelled for row in self.waiting)
        if left:
            self.waiting = deque(row for row in self.waiting if not row.ticket.is_cancelled)
            self.tally.cancelled += left

    def _admit(self) -> None:
        count = admitted(self.waiting, self._seating.rows, self._limits)
        if count:
            coming = [self.waiting.popleft() for _ in range(count)]
            self.tally.cached_ids += self.memory.seat(coming)

    def _grow(self) -> None:
        leaving = self.memory.grow()
        self.waiting.extendleft(leaving)
        self.tally.preempted += len(leaving)

    def _leave(self, row: Row) -> None:
        """What it has read and written may serve others."""
        self.memory.keep(row)
        self.memory.leave(row)

    def _fail(self, row: Row, failure: Failure) -> None:
        """What it has in memory may be no numbers, which must not come near others."""
        self.memory.slots.wipe(row.slot)
        self.memory.leave(row)
        self._told.append((row.ticket, failure))
        self.tally.failed += 1

    def _fail_running(self, failure: Failure) -> None:
        rows = self.memory.clear()
        self._told += [(row.ticket, failure) for row in rows]
        self.tally.failed += len(rows)

    # What is run

    def _fill(self) -> None:
        most = self.pace.step_ids(is_writing=self._seating.running > 0)
        for company in companies(chunks(self._seating.filling, most, self._limits)):
            self._read([chunk for chunk in company if chunk.row.slot >= 0])

    def _read(self, company: Sequence[Chunk[Row]]) -> None:
        """`company` may be empty: a failure before may have made its rows leave."""
        if not company:
            return
        rows, began = [chunk.row for chunk in company], time.monotonic()
        logits = self._forward(rows, lambda: steps.filling(company, self._decoder, self.memory.slots))
        if logits is None:
            return
        read = sum(chunk.stop - chunk.start for chunk in company)
        self.tally.prompt_ids += read
        self.pace.took(read, time.monotonic() - began)
        for chunk in company:
            chunk.row.done = chunk.stop
        whole = [at for at, chunk in enumerate(company) if chunk.stop == chunk.row.total]
        for at in whole:
            self._seating.promote(rows[at])
        if whole:
            self._write([rows[at] for at in whole], logits[whole])
        for row in [rows[at] for at in whole if rows[at].slot >= 0]:  # numbers, then; others may begin alike at once
            self.memory.keep(row)

    def _decode(self) -> None:
        self._grow()
        rows = self._seating.decoding
        if not rows:
            return
        logits = self._forward(rows, lambda: steps.decoding(rows, self._decoder, self.memory.slots))
        if logits is not None:
            for row in rows:
                row.done += 1
            self._write(rows, logits)

    def _forward(self, rows: Sequence[Row], made: Callable[[], steps.Made]) -> Tensor | None:
        """None if it failed; those who had to leave for it have left. No row has grown then, so whoever is left can be
        run again."""
        try:
            return self._decoder.run(*made())
        except Exception as error:
            log.exception("forward failed", rows=len(rows))
            failure = _failure(error)
            if failure.code == "out_of_memory":
                self._relieve(failure)
            else:
                for row in rows:
                    self._fail(row, failure)
            return None

    def _relieve(self, failure: Failure) -> None:
        """The newest row leaves, and all that is cached."""
        self.memory.cache.drop(self.memory.cache.blocks)
        self._fail(max(self._seating.rows, key=lambda row: row.number), failure)
        if self._decoder.device.type == "cuda":
            torch.cuda.empty_cache()

    def _write(self, rows: Sequence[Row], logits: Tensor) -> None:
        now = time.monotonic()
        for row, item in zip(rows, written(rows, logits), strict=True):
            if isinstance(item, Failure):
                self._fail(row, item)
                continue
            self._told.append((row.ticket, item))
            self.tally.completion_ids += len(item.ids)
            self.tally.speed.add(len(item.ids), now)
            if item.finish is not None:
                self.tally.finished += 1
                self._leave(row)


def _failure(error: Exception) -> Failure:
    """What the caller is told; what went wrong is in the log."""
    # CPUs have no exception of their own for it, but these words.
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error):
        return Failure("out_of_memory", "The engine had not enough memory left for this request.")
    return Failure("engine_failed", "The engine failed while it worked on this request.")
