"""One coarse timer for every deadline of every stream of a worker: no timer, task or future per event.

Deadlines of seconds are looked at five times a second. Held tails (contract W3) fall due in the order in which they
were held, because `hold_ms` is the same for all, so a queue and one timer for its head are enough. The timer stops
when nothing is registered. Calls are synchronous: what is due decides for itself whether it can be served now.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

_PERIOD_S = 0.2
_HOLD_GRAIN_S = 0.005


class Timed(Protocol):
    """A stream, as the clock sees it."""

    def check_deadlines(self, now: float) -> None:
        """End the stream if one of its deadlines has passed."""

    def check_hold(self, now: float) -> float | None:
        """Write held tails that are due; the moment at which the next is, or None."""


class Clock:
    """`now` is the loop's monotonic time, as everywhere."""

    def __init__(self) -> None:
        self._streams: set[Timed] = set()
        self._holds: deque[tuple[float, Timed]] = deque()
        self._holding: set[Timed] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._hold_timer: asyncio.TimerHandle | None = None

    def add(self, stream: Timed) -> None:
        self._streams.add(stream)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PERIOD_S, self._tick)

    def remove(self, stream: Timed) -> None:
        self._streams.discard(stream)
        self._holding.discard(stream)

    def hold(self, stream: Timed, due: float) -> None:
        """A tail of this stream is due then. Asking again before that is free."""
        if stream in self._holding:
            return
        self._holding.add(stream)
        self._holds.append((due, stream))
        if self._hold_timer is None:
            self._hold_timer = asyncio.get_running_loop().call_at(due, self._release)

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for stream in tuple(self._streams):
            stream.check_deadlines(now)
        self._timer = loop.call_later(_PERIOD_S, self._tick) if self._streams else None

    def _release(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._holds and self._holds[0][0] <= now:
            _, stream = self._holds.popleft()
            if stream in self._holding:
                self._holding.discard(stream)
                if (due := stream.check_hold(now)) is not None:
                    self._holding.add(stream)
                    self._holds.append((due, stream))
        self._hold_timer = None
        if self._holds:
            at = max(self._holds[0][0], now + _HOLD_GRAIN_S)
            self._hold_timer = loop.call_at(at, self._release)
