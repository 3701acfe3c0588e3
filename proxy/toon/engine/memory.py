"""The keys and values of an engine: those of the rows that run and those of prompts' beginnings, within one budget.

In: rows that come, grow and leave. Out: who must leave for the others to grow. What is too much makes cached
beginnings leave first, then the youngest rows. After each call slots and cache together are within the budget, in
blocks as they are really allocated. Never: runs a model, or knows who waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from proxy.toon.engine.prefix import PrefixCache, joined
from proxy.toon.engine.rows import Row, Seating
from proxy.toon.engine.scheduler import BLOCK, Limits, blocks_of, victims
from proxy.toon.engine.slots import Slots


class Memory:
    """`is_caching`: keep beginnings of prompts for those that begin alike."""

    def __init__(self, slots: Slots, limits: Limits, *, is_caching: bool) -> None:
        self.slots, self.seating, self.cache = slots, Seating(slots), PrefixCache()
        self._limits, self._is_caching = limits, is_caching

    @property
    def used(self) -> int:
        """Blocks."""
        return self.slots.blocks + self.cache.blocks

    def seat(self, coming: Sequence[Row]) -> int:
        """Rows for whom there is room (`scheduler.admitted`). How many of their ids need not be run again."""
        known = [self._known(row) for row in coming]
        for row in coming:
            self.seating.add(row)
        self._fit()
        for row, blocks in zip(coming, known, strict=True):
            if blocks:
                self.slots.paste(row.slot, 0, joined(blocks))
                row.done = len(blocks) * BLOCK
            row.cached_ids = row.done if row.cached_ids is None else row.cached_ids
        return sum(row.done for row in coming)

    def grow(self) -> list[Row]:
        """Room for every id that there is. Those who must leave for it have left, the youngest first."""
        leaving = victims(self.seating.rows, self._limits)
        for row in leaving:
            self.seating.remove(row)
            row.done = 0
        self._fit()
        return leaving

    def keep(self, row: Row) -> None:
        """As many of its blocks as fit beside the running rows, in place of those that were used longest ago."""
        if not self._is_caching:
            return
        names = row.names(row.done)
        first = len(self.cache.matched(names))
        room = self._limits.blocks - self.slots.blocks
        names = names[: max(first, room)]
        if len(names) > first:
            self.cache.drop(self.cache.blocks + len(names) - first - room)
            self.cache.keep(names, first, self.slots.copied(row.slot, first * BLOCK, len(names) * BLOCK))

    def leave(self, row: Row) -> None:
        self.seating.remove(row)
        if not self.seating.rows:
            self._fit()

    def clear(self) -> list[Row]:
        """Nothing is kept: what was in memory may be broken. Touches no tensor."""
        self.slots.forget()
        self.cache = PrefixCache()
        return self.seating.clear()

    def _known(self, row: Row) -> list[Tensor]:
        """Blocks of the row's beginning; never all of it, since its last id says what comes next."""
        return self.cache.matched(row.names(row.total - 1)) if self._is_caching else []

    def _fit(self) -> None:
        rows, longest = len(self.seating.rows), self.seating.longest
        if rows and self.slots.covers(rows, longest) and self.used <= self._limits.blocks:
            return
        self.cache.drop(blocks_of(rows, longest) + self.cache.blocks - self._limits.blocks)
        self.slots.resize(rows, longest, [row.done for row in self.seating.rows])
