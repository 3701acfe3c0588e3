"""The answers that an engine writes, each a row of the batch, and which slot each one has.

In: tickets with their jobs. Out: for a row its ids and where each of them stands; for the batch, rows so seated that
those that decode have the first slots, and those whose prompt is still being read the next. Never: runs a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from proxy.toon.engine.job import Job, Ticket
from proxy.toon.engine.prefix import block_names
from proxy.toon.engine.slots import Slots


@dataclass(eq=False, slots=True)
class Row:
    """`ids` are the prompt's, then those written; the keys and values of the first `done` are in its slot. A row that
    was preempted has none, and reads both again as if all were prompt."""

    ticket: Ticket
    job: Job
    number: int = field(init=False)
    ids: list[int] = field(init=False)
    prompt_ids: int = field(init=False)
    unbroken: int = field(init=False)
    is_plain: bool = field(init=False)
    done: int = 0
    slot: int = -1
    cached_ids: int | None = None

    def __post_init__(self) -> None:
        plan = self.job.plan
        self.number, self.ids, self.prompt_ids = self.ticket.number, list(plan.ids), len(plan.ids)
        self.unbroken, self.is_plain = plan.sight.unbroken, not plan.sight.needs_mask

    @property
    def total(self) -> int:
        return len(self.ids)

    @property
    def made(self) -> int:
        return len(self.ids) - self.prompt_ids

    def positions(self, start: int, stop: int) -> list[int]:
        plan = self.job.plan
        first = plan.next_position + plan.stride * (max(start, self.prompt_ids) - self.prompt_ids)
        made = max(0, stop - max(start, self.prompt_ids))
        return [*plan.positions[start:stop], *range(first, first + plan.stride * made, plan.stride)]

    def names(self, stop: int) -> list[bytes]:
        """Of the blocks before `stop` that may be kept for others. What was written may be only where it saw what a
        prompt's ids would see."""
        if not self.job.plan.sight.is_prefix_stable:
            return []
        stop = stop if self.is_plain else min(stop, self.prompt_ids)
        return block_names(self.ids[:stop], self.positions(0, stop), self.job.plan.sight.key)


class Seating:
    """`rows[i]` has slot i; the first `running` of them decode."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.rows: list[Row] = []
        self.running = 0

    @property
    def decoding(self) -> list[Row]:
        return self.rows[: self.running]

    @property
    def filling(self) -> list[Row]:
        return self.rows[self.running :]

    @property
    def longest(self) -> int:
        return max((row.total for row in self.rows), default=0)

    def add(self, row: Row) -> None:
        """To be followed by a `resize` of the slots."""
        row.slot = len(self.rows)
        self.rows.append(row)

    def promote(self, row: Row) -> None:
        """Its prompt has been read."""
        other = self.rows[self.running]
        if other is not row:
            self._slots.swap(row.slot, other.slot, max(row.done, other.done))
            self.rows[row.slot], self.rows[other.slot] = other, row
            row.slot, other.slot = other.slot, row.slot
        self.running += 1

    def remove(self, row: Row) -> None:
        """Its hole is filled by the last of its kind."""
        hole = row.slot
        if hole < self.running:
            self.running -= 1
            self._move(self.running, hole)
            hole = self.running
        self._move(len(self.rows) - 1, hole)
        self.rows.pop()
        row.slot = -1

    def clear(self) -> list[Row]:
        rows, self.rows, self.running = self.rows, [], 0
        return rows

    def _move(self, source: int, target: int) -> None:
        if source != target:
            row = self.rows[source]
            self._slots.move(source, target, row.done)
            self.rows[target] = row
            row.slot = target
