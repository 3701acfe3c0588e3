"""From the engine's thread to the requests that wait for it, one hand-over per step (docs/toon.md).

In: batches of pieces, in the engine's thread. Out: for each job an `Answering`, read on the event loop. A slow reader's
pieces are joined, so that what waits for it is a list of ids and no list of events. Never: holds the engine up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from proxy.toon.engine.engine import Engine
from proxy.toon.engine.job import Failure, IdLogprob, Job, Piece, Ticket


@dataclass(slots=True)
class Gathered:
    """What has come since the last look: ids with their log probabilities, and how it ended, if it has."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[IdLogprob] = field(default_factory=list)
    finish: str | None = None
    stop_id: int | None = None
    cached_ids: int = 0
    failure: Failure | None = None

    @property
    def is_last(self) -> bool:
        return self.finish is not None or self.failure is not None

    def add(self, piece: Piece) -> None:
        self.ids += piece.ids
        self.logprobs += piece.logprobs or ()
        self.finish, self.stop_id = piece.finish, piece.stop_id
        self.cached_ids = max(self.cached_ids, piece.cached_ids)


class Answering:
    """One job's answer as it grows. `next` waits for more; nothing comes after one that `is_last`."""

    def __init__(self) -> None:
        self._gathered = Gathered()
        self._came = asyncio.Event()

    def put(self, item: Piece | Failure) -> None:
        if isinstance(item, Failure):
            self._gathered.failure = item
        else:
            self._gathered.add(item)
        self._came.set()

    async def next(self) -> Gathered:
        await self._came.wait()
        self._came.clear()
        gathered, self._gathered = self._gathered, Gathered()
        return gathered


class Switchboard:
    """One engine's answers by ticket. `deliver` is called in the engine's thread; all else on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: dict[Ticket, Answering] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def deliver(self, items: Sequence[tuple[Ticket, Piece | Failure]]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, list(items))

    def _spread(self, items: list[tuple[Ticket, Piece | Failure]]) -> None:
        for ticket, item in items:
            if (answering := self._open.get(ticket)) is not None:
                answering.put(item)

    def ask(self, engine: Engine, job: Job) -> tuple[Ticket, Answering]:
        """Submit a job; called on the loop, so what is delivered meanwhile waits for the loop's next turn."""
        ticket = engine.submit(job)
        self._open[ticket] = answering = Answering()
        self._idle.clear()
        return ticket, answering

    def forget(self, ticket: Ticket) -> None:
        self._open.pop(ticket, None)
        if not self._open:
            self._idle.set()

    async def wait_idle(self) -> None:
        """Until nobody waits for an answer."""
        await self._idle.wait()
