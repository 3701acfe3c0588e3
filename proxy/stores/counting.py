"""Counting off the event loop: texts in, their number of tokens out (design: never more than 0.2 ms on the loop).

Short texts are counted on the spot, which is cheaper than a hop to a thread; the rest goes to one thread, the joining
included. The counter releases the GIL, so one thread is enough to keep up and never more than one core is taken.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from proxy.metering.meter import INLINE_WIDE_CHARS, count_parts, is_short, prompt_pieces
from proxy.metering.tokens import TokenCounter


class CountingPool:
    """Counts for one worker. Make it after the fork; `close` when the loop ends."""

    def __init__(self, counter: TokenCounter, threads: int = 1) -> None:
        self.counter = counter
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="count")

    async def count(self, pieces: list[str]) -> int:
        """The count of all pieces as one text. The list must not change before this returns."""
        if is_short(pieces):
            return self.counter.count("".join(pieces))
        return await self._in_thread(pieces)

    async def count_prompt(self, body: dict[str, object], body_bytes: int) -> int:
        """The count of a chat request whose JSON has `body_bytes`: walking a large one is itself work for a thread."""
        if body_bytes <= INLINE_WIDE_CHARS and is_short(pieces := prompt_pieces(body)):
            return self.counter.count("\n".join(pieces))
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._count_prompt, body)

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

    async def _in_thread(self, pieces: list[str]) -> int:
        return await asyncio.get_running_loop().run_in_executor(self._executor, count_parts, self.counter, pieces)

    def _count_prompt(self, body: dict[str, object]) -> int:
        pieces = prompt_pieces(body)
        separated = [piece for pair in zip(pieces, ["\n"] * len(pieces), strict=True) for piece in pair][:-1]
        return count_parts(self.counter, separated)
