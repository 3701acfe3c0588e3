"""Keys and values of prompt beginnings that were run before, so that they need not be run again.

In: ids with their places and the key of their sight, and blocks of keys and values. Out: the longest beginning that is
known, as one tensor. A block's name is a hash of its ids, their places, what they see, and the block before it: equal
names mean equal keys and values. The least recently used block goes first, and never before those that follow it: a
match touches its blocks from the last to the first. Never: holds what a prompt said, but for its keys and values.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor

from proxy.toon.engine.scheduler import BLOCK


def block_names(ids: Sequence[int], positions: Sequence[int], sight: bytes) -> list[bytes]:
    """Of each whole block, in order."""
    name, names = hashlib.sha256(sight).digest(), []
    for start in range(0, len(ids) - len(ids) % BLOCK, BLOCK):
        told = array("q", ids[start : start + BLOCK]) + array("q", positions[start : start + BLOCK])
        name = hashlib.sha256(name + told.tobytes()).digest()
        names.append(name)
    return names


class PrefixCache:
    """Each block is [layers, 2, heads, BLOCK, size]."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[bytes, Tensor] = OrderedDict()

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    def matched(self, names: Sequence[bytes]) -> list[Tensor]:
        """The blocks known from the first on without a gap. They stay whole in the caller's hands, also if dropped."""
        found: list[Tensor] = []
        for name in names:
            block = self._blocks.get(name)
            if block is None:
                break
            found.append(block)
        self._touch(names[: len(found)])
        return found

    def keep(self, names: Sequence[bytes], first: int, kept: Tensor) -> None:
        """`kept` holds the blocks of `names[first:]`, one behind the other."""
        for at, part in enumerate(torch.split(kept, BLOCK, dim=3), first):
            self._blocks[names[at]] = part.clone()
        self._touch(names)

    def drop(self, count: int) -> None:
        for _ in range(min(max(count, 0), len(self._blocks))):
            self._blocks.popitem(last=False)

    def _touch(self, names: Sequence[bytes]) -> None:
        for name in reversed(names):
            self._blocks.move_to_end(name)


def joined(blocks: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(blocks), dim=3)
