"""An engine: one model, one thread, and all the requests that it serves together (docs/toon.md).

In: jobs and cancellations, from any thread. Out: per step one list of pieces and failures, given to `deliver` in the
engine's own thread. transformers has a batching manager of its own; it takes neither masks nor places nor strides, and
was measured slower on CPUs than one batch that is run by hand, so this is our own. Never: makes a caller wait, but for
`start` and `stop`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count

import structlog
import torch

from proxy.toon.engine.core import Core, Told
from proxy.toon.engine.job import EngineState, Failure, Job, Ticket
from proxy.toon.engine.rows import Row
from proxy.toon.engine.scheduler import Limits, can_ever_run
from proxy.toon.engine.slots import block_bytes
from proxy.toon.engine.warmup import warm_up
from proxy.toon.model.step import Decoder

log = structlog.get_logger()
_STOPPED = Failure("engine_stopped", "The engine was stopped before this answer was complete.")


class Overloaded(Exception):
    """As many jobs wait as may, or the engine is being stopped. Ask again later."""


class JobTooLarge(ValueError):
    """The job with its whole answer is beyond what this engine may keep; it never will fit."""


def limits_for(decoder: Decoder, cache_mib: int, rows: int = 16, waiting: int = 256) -> Limits:
    """A budget in memory as blocks of this model. A GPU reads long parts of prompts as fast as short ones."""
    blocks = cache_mib * 2**20 // block_bytes(decoder.shape, decoder.dtype)
    if decoder.device.type == "cpu":
        return Limits(blocks=blocks, rows=rows, waiting=waiting)
    return Limits(blocks=blocks, rows=rows, waiting=waiting, chunk=2048, step_ids=8192)


class Engine:
    """`threads`: how many a forward may use; None leaves it to torch. `deliver` should only pass on what it gets; what
    it raises is logged, and the engine goes on."""

    def __init__(
        self,
        decoder: Decoder,
        deliver: Callable[[Told], None],
        limits: Limits,
        *,
        is_caching: bool = True,
        is_warming: bool = True,
        threads: int | None = None,
    ) -> None:
        self._decoder, self._deliver, self._limits = decoder, deliver, limits
        self._is_warming, self._threads = is_warming, threads
        self._core = Core(decoder, self._tell, limits, is_caching=is_caching)
        self._changed = threading.Condition()
        self._inbox: list[Row] = []
        self._is_stopping = False
        self._numbers = count()
        self._thread = threading.Thread(target=self._work, name="toon-engine", daemon=True)
        self._started = threading.Event()
        self._broken: Exception | None = None

    def start(self) -> None:
        """Returns when the engine is warm; raises what its first forwards raised."""
        self._thread.start()
        self._started.wait()
        if self._broken is not None:
            self._thread.join()
            raise self._broken

    def submit(self, job: Job) -> Ticket:
        """Pieces can be delivered before this returns. `Overloaded`, `JobTooLarge`."""
        self._check(job)
        with self._changed:
            if self._is_stopping:
                raise Overloaded("The engine is being stopped.")
            if len(self._inbox) + len(self._core.waiting) >= self._limits.waiting:
                raise Overloaded(f"{self._limits.waiting} requests are waiting, which is the most that may.")
            ticket = Ticket(next(self._numbers))
            self._inbox.append(Row(ticket, job))
            self._changed.notify()
        return ticket

    def _check(self, job: Job) -> None:
        ids, context = len(job.plan.ids) + job.max_tokens, self._decoder.shape.context
        if not job.plan.ids or job.max_tokens < 1:
            raise ValueError("A job has at least one id, and asks for at least one.")
        if job.seed < 0 or (job.logprobs or 0) < 0 or job.temperature < 0 or not 0 < job.top_p <= 1:
            raise ValueError("A job's seed, logprobs and temperature are 0 or more, its top_p above 0 and at most 1.")
        if ids > context:
            raise JobTooLarge(f"The ids and max_tokens are {ids}, beyond this model's context of {context}.")
        if not can_ever_run(ids, self._limits):
            raise JobTooLarge(
                f"The ids and max_tokens are {ids}, beyond the {self._limits.blocks} blocks of this engine."
            )

    def cancel(self, ticket: Ticket) -> None:
        """Nothing more is delivered for it once the step that runs has ended. Harmless when it has ended already."""
        ticket.is_cancelled = True

    def stop(self) -> None:
        """Whatever is open fails with `engine_stopped`; the thread has ended when this returns."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def state(self) -> EngineState:
        core, tally = self._core, self._core.tally
        return EngineState(
            is_alive=self._thread.is_alive() and self._started.is_set(),
            running=len(core.memory.seating.rows),
            waiting=len(core.waiting) + len(self._inbox),
            blocks=self._limits.blocks,
            free_blocks=self._limits.blocks - core.memory.used,
            cached_blocks=core.memory.cache.blocks,
            ids_per_second=tally.speed.at(time.monotonic()),
            steps_total=tally.steps,
            prompt_ids_total=tally.prompt_ids,
            cached_ids_total=tally.cached_ids,
            completion_ids_total=tally.completion_ids,
            finished_total=tally.finished,
            cancelled_total=tally.cancelled,
            failed_total=tally.failed,
            preempted_total=tally.preempted,
        )

    def _work(self) -> None:
        try:
            if self._threads is not None:
                torch.set_num_threads(self._threads)
            if self._is_warming:
                self._core.pace.took(*warm_up(self._decoder, self._limits))
        except Exception as error:
            log.exception("engine did not start")
            self._broken = error
            return
        finally:
            self._started.set()
        while self._takes_in():
            self._core.step()
        self._core.end(_STOPPED)

    def _takes_in(self) -> bool:
        """Waits until there is something to do; False when the engine is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._inbox or self._core.has_work or self._is_stopping)
            self._core.waiting.extend(self._inbox)
            self._inbox = []
            return not self._is_stopping

    def _tell(self, told: Told) -> None:
        try:
            self._deliver(told)
        except Exception:
            log.exception("delivery failed", items=len(told))
