"""Counting off the event loop: texts in, their number of tokens out (design: never more than 0.2 ms on the loop).

Short texts are counted on the spot, which is cheaper than a hop to a thread; the rest goes to one thread, the joining
included. The counter releases the GIL, so one thread is enough to keep up and never more than one core is taken.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from proxy.metering.meter import INLINE_WIDE_CHARS, PART_CHARS, RunningCount, count_parts, is_short, short_text
from proxy.metering.prompt import read_prompt
from proxy.metering.tokens import TokenCounter


class CountingPool:
    """Counts for one worker. Make it after the fork; `close` when the loop ends."""

    def __init__(self, counter: TokenCounter, threads: int = 1) -> None:
        self.counter = counter
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="count")

    async def count(self, pieces: list[str]) -> int:
        """The count of all pieces as one text. The list must not change before this returns."""
        if (text := short_text(pieces)) is not None:
            return self.counter.count(text)
        return await self._in_thread(pieces)

    async def count_prompt(self, body: dict[str, object], body_bytes: int) -> int:
        """The count of a chat request whose JSON has `body_bytes`: walking a large one is itself work for a thread."""
        if body_bytes <= INLINE_WIDE_CHARS and is_short((prompt := read_prompt(body)).pieces):
            return self.counter.count(prompt.text) + prompt.extra
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._count_prompt, body)

    def growing(self) -> GrowingCount:
        return GrowingCount(self.counter, self._executor)

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

    async def _in_thread(self, pieces: list[str]) -> int:
        return await asyncio.get_running_loop().run_in_executor(self._executor, count_parts, self.counter, pieces)

    def _count_prompt(self, body: dict[str, object]) -> int:
        prompt = read_prompt(body)
        separated = [part for piece in prompt.pieces for part in (piece, "\n")][:-1]
        return count_parts(self.counter, separated) + prompt.extra


class GrowingCount:
    """The count of an answer that is still being written, made in the pool's thread as it grows, so that its end does
    not wait for all of it. `take` and `total` are for the event loop's thread."""

    def __init__(self, counter: TokenCounter, executor: ThreadPoolExecutor) -> None:
        self._running = RunningCount(counter)
        self._executor = executor
        self._taken = 0

    def take(self, pieces: list[str], settled: int) -> None:
        """The first `settled` of `pieces` will not change any more."""
        # one thread: what is given first is counted first
        self._executor.submit(self._add, pieces[self._taken : settled])
        self._taken = settled

    async def total(self, pieces: list[str]) -> int:
        """The exact count of all of them."""
        rest = pieces[self._taken :]
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._finish, rest)

    def _add(self, texts: list[str]) -> None:
        running = self._running
        for text in texts:
            for start in range(0, len(text), PART_CHARS):
                running.add(text[start : start + PART_CHARS])
                if running.ripe:
                    running.fold()

    def _finish(self, texts: list[str]) -> int:
        self._add(texts)
        return self._running.total()
