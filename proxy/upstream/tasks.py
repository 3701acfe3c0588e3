"""The one place that spawns tasks. The event loop keeps only weak references: a task that nobody holds may vanish."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

log = structlog.get_logger()

T = TypeVar("T")


class Tasks:
    """Holds what runs beside the requests, and logs what failed there."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        _ = self.start(work, name)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """As `spawn`, for one who will cancel it or wants what it gives."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task failed", task=task.get_name(), error=type(error).__name__, exc_info=error)

    async def join(self, timeout_s: float) -> None:
        """Wait for what runs; cancel what has not ended by then."""
        if not self._running:
            return
        _, late = await asyncio.wait(set(self._running), timeout=timeout_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1.0)
