"""Counting off the event loop: texts in, their number of tokens out (design: never more than 0.2 ms on the loop).

Short texts are counted on the spot, which is cheaper than a hop to a thread; the rest goes to one thread, the joining
included. The counter releases the GIL, so one thread is enough to keep up and never more than one core is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from proxy.metering.meter import INLINE_WIDE_CHARS, PART_CHARS, RunningCount, count_parts, is_short, short_texts
from proxy.metering.prompt import is_quick, read_prompt
from proxy.metering.tokens import TokenCounter


class CountingPool:
    """Counts for one worker. Make it after the fork; `close` when the loop ends."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        # one, for what is given first is to be counted first
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="count")

    async def count(self, texts: Sequence[list[str]]) -> list[int]:
        """The count of each text, which is given in pieces. The lists must not change before this returns."""
        if (short := short_texts(texts)) is not None:
            return [self.counter.count(text) for text in short]
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._count, texts)

    async def count_prompt(self, body: dict[str, object], body_bytes: int) -> int:
        """The count of a chat request whose JSON has `body_bytes`: walking a large one is itself work for a thread."""
        if body_bytes <= INLINE_WIDE_CHARS and is_quick(body) and is_short((prompt := read_prompt(body)).pieces):
            return self.counter.count(prompt.text) + prompt.extra
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._count_prompt, body)

    def growing(self) -> GrowingCount:
        return GrowingCount(self.counter, self._executor)

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _count(self, texts: Sequence[list[str]]) -> list[int]:
        return [count_parts(self.counter, pieces) for pieces in texts]

    def _count_prompt(self, body: dict[str, object]) -> int:
        prompt = read_prompt(body)
        separated = [part for piece in prompt.pieces for part in (piece, "\n")][:-1]
        return count_parts(self.counter, separated) + prompt.extra


class _Grown:
    """One text: `taken` of its pieces have been given to the thread."""

    __slots__ = ("pieces", "running", "taken")

    def __init__(self, pieces: list[str], counter: TokenCounter) -> None:
        self.pieces, self.running, self.taken = pieces, RunningCount(counter), 0

    def take(self) -> list[str]:
        fresh = self.pieces[self.taken :]
        self.taken = len(self.pieces)
        return fresh

    def add(self, texts: list[str]) -> None:
        running = self.running
        for text in texts:
            for start in range(0, len(text), PART_CHARS):
                running.add(text[start : start + PART_CHARS])
                if running.ripe:
                    running.fold()


class GrowingCount:
    """The counts of an answer that is still being written, made in the pool's thread as it grows, so that its end does
    not wait for all of it. A text is known by its list, which only grows. `take` and `totals` are for the event loop's
    thread, and copy no text there."""

    def __init__(self, counter: TokenCounter, executor: ThreadPoolExecutor) -> None:
        self._counter, self._executor = counter, executor
        self._grown: dict[int, _Grown] = {}  # by the list's address, which it keeps: it is held here
        self._added: list[Future[None]] = []

    def take(self, texts: Sequence[list[str]]) -> None:
        """No piece of `texts` will change any more, though more will follow: they may be counted."""
        fresh = [(grown, new) for grown in map(self._of, texts) if (new := grown.take())]
        if fresh:
            self._added.append(self._executor.submit(_add, fresh))

    async def totals(self, texts: Sequence[list[str]]) -> list[int]:
        """The exact count of each, whether it was taken before or not. One that is cancelled can be asked again: the
        client may leave meanwhile, and what has been taken is added once."""
        self.take(texts)
        asked = [self._of(pieces) for pieces in texts]
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._totals, asked)

    def _of(self, pieces: list[str]) -> _Grown:
        grown = self._grown.get(id(pieces))
        if grown is None:
            grown = self._grown[id(pieces)] = _Grown(pieces, self._counter)
        return grown

    def _totals(self, asked: list[_Grown]) -> list[int]:
        for added in self._added:
            added.result()  # all are done, for there is one thread; one that failed must not be counted over
        return [grown.running.total() for grown in asked]


def _add(fresh: list[tuple[_Grown, list[str]]]) -> None:
    for grown, texts in fresh:
        grown.add(texts)
