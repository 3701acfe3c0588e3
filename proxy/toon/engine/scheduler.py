"""Who runs, who waits, who must leave: decisions over lengths and numbers, without torch and without a clock.

In: rows by their lengths, and limits. Out: how many to admit, which ids to run next and in which company, whom to
preempt. Keys and values lie in a rectangle of slots by ids (`slots`), so what a batch costs is the number of its rows
times its longest: `rectangle` is that sum, the same for admission, growth and the tensors. Never: holds state, but for
`Pace`, which remembers how fast prompts have been read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

#: Ids in a block: what the budget, the prefix cache and `cached_ids` count in. vLLM's default too.
BLOCK: Final = 16
#: Slots get longer by so many ids at a time: a copy of all that they hold, once in so many steps.
GROWTH: Final = 64
#: Prompts up to this length are run together whatever their lengths: padding costs less than another call.
_SHORT_BITS: Final = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """`blocks` for keys and values of running rows and of cached prefixes; at most `rows` run and `waiting` wait. A
    step reads at most `step_ids` of prompts, `chunk` of each; about `stall_s` of time where answers are written."""

    blocks: int
    rows: int = 16
    waiting: int = 256
    chunk: int = 512
    step_ids: int = 1024
    stall_s: float = 0.5


class Span(Protocol):
    """A row, as far as these decisions go. `number`: its order of arrival. Of its `total` ids `done` have been run; the
    first `unbroken` must be run in one piece. `is_plain`: it sees what a causal mask lets it see."""

    number: int
    done: int
    unbroken: int
    is_plain: bool

    @property
    def total(self) -> int: ...


Row = TypeVar("Row", bound=Span)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[Row]):
    row: Row
    start: int
    stop: int

    @property
    def is_mask_free(self) -> bool:
        return self.row.is_plain and self.start == 0


def rectangle(rows: int, longest: int) -> tuple[int, int]:
    """The slots and their length for so many rows: slots are 1, 2, and then fours; lengths grow by `GROWTH`."""
    slots = rows if rows <= 2 else -(-rows // 4) * 4
    return slots, -(-longest // GROWTH) * GROWTH


def blocks_of(rows: int, longest: int) -> int:
    slots, length = rectangle(rows, longest)
    return slots * length // BLOCK


def can_ever_run(ids: int, limits: Limits) -> bool:
    """Would a job of so many ids, its answer included, fit if it were alone?"""
    return blocks_of(1, ids) <= limits.blocks


def admitted(waiting: Iterable[Span], held: Sequence[Span], limits: Limits) -> int:
    """How many of those who wait may come in, in their order. With others a row must have room to grow, or it would be
    preempted before it has written anything. Cached prefixes do not count: they give way."""
    rows, longest, count = len(held), max((row.total for row in held), default=0), 0
    for row in waiting:
        room = row.total + 1 if rows == 0 else row.total + GROWTH
        if rows == limits.rows or blocks_of(rows + 1, max(longest, room)) > limits.blocks:
            break
        rows, longest, count = rows + 1, max(longest, room), count + 1
    return count


def victims(held: Sequence[Row], limits: Limits) -> list[Row]:
    """Who must leave so that every other can write one id more: the youngest first, and never the last one."""
    left = sorted(held, key=lambda row: row.number)
    leaving: list[Row] = []
    while len(left) > 1 and blocks_of(len(left), max(row.total for row in left)) > limits.blocks:
        leaving.append(left.pop())
    return leaving


def chunks(filling: Sequence[Row], step_ids: int, limits: Limits) -> list[Chunk[Row]]:
    """What of the prompts to run in this step. The oldest is read to its end if that can be; else it gets half, so that
    it never starves, and the rest is for those with the least left: a short prompt does not wait for a long one."""
    if not filling:
        return []
    oldest = min(filling, key=lambda row: row.number)
    others = sorted((row for row in filling if row is not oldest), key=lambda row: (row.total - row.done, row.number))
    wanted: list[Chunk[Row]] = []
    left = step_ids
    for row in (oldest, *others):
        shares = row is oldest and others and row.total - row.done > left
        most = left // 2 if shares else left
        chunk = _chunk(row, min(limits.chunk, max(most, 1 if row is oldest else 0)))
        if chunk.stop > chunk.start and (not wanted or chunk.stop - chunk.start <= left):
            wanted.append(chunk)
            left -= chunk.stop - chunk.start
    return wanted


def _chunk(row: Row, most: int) -> Chunk[Row]:
    stop = min(row.done + most, row.total)
    return Chunk(row, row.done, max(stop, row.unbroken) if most and row.done < row.unbroken else stop)


def companies(wanted: Sequence[Chunk[Row]]) -> list[list[Chunk[Row]]]:
    """Chunks that are run in one call: of one kind of mask, and of lengths within a factor of two, since each is padded
    to the longest."""
    together: dict[tuple[bool, int, int], list[Chunk[Row]]] = {}
    for chunk in wanted:
        width = 0 if chunk.is_mask_free else _bits(chunk.stop)
        together.setdefault((chunk.is_mask_free, _bits(chunk.stop - chunk.start), width), []).append(chunk)
    return list(together.values())


def _bits(length: int) -> int:
    return max(_SHORT_BITS, (length - 1).bit_length())


class Pace:
    """How many ids of prompts a step may read so that running answers do not stand still for longer than `stall_s`.
    Where none runs a step may last longer, but not so long that whoever comes or leaves in the meantime has to wait."""

    #: Less than this costs more calls than it saves time.
    LEAST: Final = 64
    #: So many times `stall_s`.
    IDLE: Final = 2

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._per_second: float | None = None

    def took(self, ids: int, seconds: float) -> None:
        """Short reads are mostly the cost of a call, and tell little about long ones."""
        if ids >= self.LEAST and seconds > 0:
            seen = ids / seconds
            self._per_second = seen if self._per_second is None else 0.7 * self._per_second + 0.3 * seen

    def step_ids(self, *, is_writing: bool) -> int:
        if self._per_second is None:
            return self._limits.step_ids
        seconds = self._limits.stall_s if is_writing else self.IDLE * self._limits.stall_s
        return max(self.LEAST, min(self._limits.step_ids, int(self._per_second * seconds)))
