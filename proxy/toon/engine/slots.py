"""Keys and values of the rows that run, one slot each, so that a step of decoding reads them where they lie.

In: the new keys and values of each layer. Out: views of all that the rows hold. Per layer one tensor [2, slots, heads,
length, size]: the rows that decode are the first so many slots, so a batch is a view and no copy. What lies behind a
row's own length is never seen (masks hide it) but must be finite, since zero times NaN is NaN: new room is zero, and
whoever fails a row wipes its slot. Never: knows which row is where; `rows` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from proxy.toon.engine.scheduler import BLOCK, rectangle
from proxy.toon.model.step import Shape


def block_bytes(shape: Shape, dtype: torch.dtype) -> int:
    """What a block of ids costs, over all layers."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * BLOCK * dtype.itemsize


class Slots:
    def __init__(self, shape: Shape, device: torch.device, dtype: torch.dtype) -> None:
        self._shape, self._device, self._dtype = shape, device, dtype
        self.slots, self.length = 0, 0
        self.layers: list[Tensor] = []

    @property
    def blocks(self) -> int:
        return self.slots * self.length // BLOCK

    def covers(self, rows: int, longest: int) -> bool:
        slots, length = rectangle(rows, longest)
        return slots <= self.slots and length <= self.length

    def resize(self, rows: int, longest: int, used: Sequence[int]) -> None:
        """Room for so many rows of such a length; slot number i keeps its first `used[i]` ids. Layer by layer, so that
        only one layer is there twice. If memory ends half-way the layers done are larger, and all are usable."""
        slots, length = rectangle(rows, longest)
        if slots == 0:
            self.forget()
            return
        old, new = self.layers, list(self.layers) or [torch.empty(0)] * self._shape.layers
        for at in range(self._shape.layers):
            new[at] = self._zeros(slots, length)
            for slot, kept in enumerate(used):
                if kept:
                    new[at][:, slot, :, :kept] = old[at][:, slot, :, :kept]
            if old:
                old[at] = new[at]
        self.layers, self.slots, self.length = new, slots, length

    def forget(self) -> None:
        """Nothing is held, and nothing of what was is touched."""
        self.layers, self.slots, self.length = [], 0, 0

    def _zeros(self, slots: int, length: int) -> Tensor:
        size = (2, slots, self._shape.kv_heads, length, self._shape.head_dim)
        return torch.zeros(size, device=self._device, dtype=self._dtype)

    def move(self, source: int, target: int, length: int) -> None:
        for layer in self.layers if length else ():
            layer[:, target, :, :length] = layer[:, source, :, :length]

    def swap(self, one: int, other: int, length: int) -> None:
        """`length`: of the longer of the two."""
        for layer in self.layers:
            layer[:, [one, other], :, :length] = layer[:, [other, one], :, :length]

    def wipe(self, slot: int) -> None:
        """What a failed forward may have left. A row that memory was too short for has no slot yet."""
        for layer in self.layers if slot < self.slots else ():
            layer[:, slot] = 0

    def copied(self, slot: int, start: int, stop: int) -> Tensor:
        """[layers, 2, heads, ids, size], of its own memory."""
        return torch.stack([layer[:, slot, :, start:stop] for layer in self.layers])

    def paste(self, slot: int, start: int, kept: Tensor) -> None:
        for layer, part in zip(self.layers, kept, strict=True):
            layer[:, slot, :, start : start + part.shape[2]] = part


class Decoding:
    """The first so many slots, each one id longer: what `Decoder.run` appends to in a step of decoding."""

    def __init__(self, slots: Slots, lengths: Sequence[int]) -> None:
        self._slots, self._count = slots, len(lengths)
        self._width = max(lengths) + 1
        self._same = lengths[0] if min(lengths) == max(lengths) else None
        if self._same is None:
            device = slots.layers[0].device
            self._rows = torch.arange(len(lengths), device=device)
            self._lengths = torch.tensor(lengths, device=device)

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self._slots.layers[layer][:, : self._count]
        if self._same is not None:
            keys[:, :, self._same] = k[:, :, 0]
            values[:, :, self._same] = v[:, :, 0]
        else:
            keys[self._rows, :, self._lengths] = k[:, :, 0]
            values[self._rows, :, self._lengths] = v[:, :, 0]
        return keys[:, :, : self._width], values[:, :, : self._width]


class Filling:
    """Chunks of prompts, each in its slot, padded behind to one length. Padding is never kept. Rows that begin need
    nothing of what lies in their slots and get their own keys and values back."""

    def __init__(self, slots: Slots, at: Sequence[int], starts: Sequence[int], stops: Sequence[int]) -> None:
        self._slots, self._at, self._starts, self._stops = slots, at, starts, stops
        self._begins = max(starts) == 0
        self._width = max(stops)

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        held = self._slots.layers[layer]
        for row, (slot, start, stop) in enumerate(zip(self._at, self._starts, self._stops, strict=True)):
            held[0, slot, :, start:stop] = k[row, :, : stop - start]
            held[1, slot, :, start:stop] = v[row, :, : stop - start]
        if self._begins:
            return k, v
        if len(self._at) == 1:
            keys, values = held[:, self._at[0] : self._at[0] + 1, :, : self._width]
        else:
            keys, values = held[:, list(self._at), :, : self._width]
        return keys, values
