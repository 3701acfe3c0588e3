"""What an engine has done since it started: plain counts, written by its thread, read by any.

In: events. Out: counts, and how fast ids are being written. Never: locks; a reader may see a count of a moment ago.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: Seconds over which speed is measured.
_SPAN: Final = 1.0


@dataclass(slots=True)
class Speed:
    """Ids per second over the last whole span; none if that was long ago."""

    _since: float = 0.0
    _count: int = 0
    _last: tuple[float, float] = (0.0, 0.0)

    def add(self, count: int, now: float) -> None:
        if now - self._since >= _SPAN:
            if self._count and now - self._since < 10 * _SPAN:
                self._last = (now, self._count / (now - self._since))
            self._since, self._count = now, 0
        self._count += count

    def at(self, now: float) -> float:
        ended, speed = self._last
        return speed if now - ended < 3 * _SPAN else 0.0


@dataclass(slots=True)
class Tally:
    steps: int = 0
    prompt_ids: int = 0
    cached_ids: int = 0
    completion_ids: int = 0
    finished: int = 0
    cancelled: int = 0
    failed: int = 0
    preempted: int = 0
    speed: Speed = field(default_factory=Speed)
