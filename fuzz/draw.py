"""Decisions out of a fuzzer's bytes: equal bytes decide equally, a small change decides a little otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Pick = TypeVar("Pick")


class Draw:
    """Makes decisions of bytes. When they are used up every decision is the first one there is."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def empty(self) -> bool:
        return self._at >= len(self._data)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1; big ones take two bytes."""
        size = 1 if bound <= 256 else 2
        taken = self.take(size)
        return int.from_bytes(taken, "big") % bound if taken else 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def pick(self, these: Sequence[Pick]) -> Pick:
        return these[self.below(len(these))]

    def flag(self) -> bool:
        return self.below(2) == 1
