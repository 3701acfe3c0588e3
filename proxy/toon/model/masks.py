"""What each id of one request may see (docs/toon.md, `mask`).

In: the request's mask, once, and what of its ids the mask looks at. Out: rows of booleans for as many ids as are run at
a time; for plain causal sight, that none are needed. An id always sees itself, so that no row is empty. Never: a loop
over ids, or a square of the whole prompt that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import torch
from torch import Tensor

#: What a moving window always keeps in sight: attention rests on the first ids, whatever they say (arXiv 2309.17453).
_FIRST: Final = 4


@dataclass(frozen=True, slots=True)
class Part:
    """So many ids in a row that came together; `is_system`: they say how the model is to behave."""

    length: int
    is_system: bool


@dataclass(frozen=True, slots=True)
class View:
    """What a mask says of a prompt of `count` ids, which an answer makes at most `most` ids.

    `looks_ahead`: ids of the prompt see what stands behind them too. `back`: an id of the prompt sees so many, up to
    itself. `around`: any id sees what is fewer ids away, the first ones, and what `is_system`. `by_part`: an id sees
    its own part and what `is_system`; the last part and generated ids see all. `cited` and `hidden` are indices in
    order, of what everybody sees and of what nobody does. Hidden ids count in no window.
    """

    count: int
    most: int
    looks_ahead: bool = False
    back: int | None = None
    around: int | None = None
    parts: tuple[Part, ...] = ()
    by_part: bool = False
    cited: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()


class Sight:
    """`needs_mask`: it is not plain causal. `is_prefix_stable`: keys and values of a beginning of the prompt depend on
    that beginning alone; where not, the first `unbroken` ids must be run in one piece. Where the `key` of two sights is
    the same, equal beginnings see the same of themselves."""

    __slots__ = ("_view", "is_prefix_stable", "key", "needs_mask", "unbroken")

    def __init__(self, view: View) -> None:
        self._view = view = _plainest(view)
        self.unbroken = view.count if view.looks_ahead else view.cited[-1] + 1 if view.cited else 0
        self.is_prefix_stable = self.unbroken == 0
        is_narrow = view.back is not None or view.around is not None or view.by_part
        self.needs_mask = is_narrow or not self.is_prefix_stable or bool(view.hidden)
        self.key = _key(view) if self.needs_mask else b""

    def rows(self, start: int, stop: int, width: int) -> Tensor:
        """[stop - start, width]. Row i is the id at start + i, a column the id that is seen: the prompt's, then those
        generated."""
        view, ids, seen = self._view, torch.arange(start, stop)[:, None], torch.arange(width)
        sight = seen <= ids
        if self.needs_mask and (start < view.count or view.around is not None or view.hidden):
            sight = self._narrowed(sight, ids, seen)
        return sight

    def _narrowed(self, sight: Tensor, ids: Tensor, seen: Tensor) -> Tensor:
        view = self._view
        of_prompt, width = ids < view.count, len(seen)
        if view.looks_ahead:
            sight = sight | (of_prompt & (seen < view.count))
        if view.back is not None:
            sight = sight & (self._is_near(ids, seen, view.back) | ~of_prompt)
        if view.around is not None:
            is_first = self._rank(seen) < _FIRST
            sight = sight & (self._is_near(ids, seen, view.around) | is_first | self._is_system(width))
        if view.by_part:
            sight = sight & (self._is_own(ids, seen) | self._is_system(width))
        if view.cited:
            sight = sight | _marked(view.cited, width)
        if view.hidden:
            sight = sight & ~_marked(view.hidden, width)
        return sight | (ids == seen)

    def _is_near(self, ids: Tensor, seen: Tensor, window: int) -> Tensor:
        """Fewer ids away than `window`, hidden ones not counted."""
        of_ids, of_seen = self._rank(ids), self._rank(seen)
        return (of_seen > of_ids - window) & (of_seen < of_ids + window)

    def _is_system(self, width: int) -> Tensor:
        parts = self._view.parts
        flags = torch.tensor([part.is_system for part in parts], dtype=torch.bool)
        return _widened(flags.repeat_interleave(_lengths(parts)), width)

    def _is_own(self, ids: Tensor, seen: Tensor) -> Tensor:
        """Of its own part; the last part and what is generated see all."""
        parts = self._view.parts
        last = len(parts) - 1
        numbers = torch.arange(len(parts)).repeat_interleave(_lengths(parts))
        of_seen = torch.where(seen < self._view.count, _widened(numbers, len(seen)), last)
        of_ids = torch.where(ids < self._view.count, numbers[ids.clamp_max(self._view.count - 1)], last)
        return (of_ids == of_seen) | (of_ids == last)

    def _rank(self, ids: Tensor) -> Tensor:
        """Which of the ids that can be seen."""
        hidden = self._view.hidden
        return ids - torch.searchsorted(torch.tensor(hidden), ids) if hidden else ids


def _plainest(view: View) -> View:
    """The same sight, said with less: what narrows nothing is left out."""
    parts = tuple(part for part in view.parts if part.length)
    return View(
        count=view.count,
        most=view.most,
        looks_ahead=view.looks_ahead and view.count > 1,
        back=None if view.back is None or view.back >= view.count else view.back,
        around=None if view.around is None or view.around >= view.most else view.around,
        parts=parts if view.by_part or any(part.is_system for part in parts) else (),
        by_part=view.by_part and not all(part.is_system for part in parts[:-1]),
        cited=view.cited,
        hidden=view.hidden,
    )


def _key(view: View) -> bytes:
    told = (view.looks_ahead, view.back, view.around, view.parts, view.by_part, view.cited, view.hidden)
    return blake2b(repr(told).encode(), digest_size=16).digest()


def _lengths(parts: Sequence[Part]) -> Tensor:
    return torch.tensor([part.length for part in parts], dtype=torch.int64)


def _marked(places: Sequence[int], width: int) -> Tensor:
    marks = torch.zeros(max(width, places[-1] + 1), dtype=torch.bool)
    marks[torch.tensor(places)] = True
    return marks[:width]


def _widened(of_prompt: Tensor, width: int) -> Tensor:
    """Of generated ids, zero."""
    missing = width - len(of_prompt)
    return of_prompt[:width] if missing <= 0 else torch.cat((of_prompt, of_prompt.new_zeros(missing)))
