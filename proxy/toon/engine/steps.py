"""What a decoder is to run: tensors from rows.

In: rows with their ids, places and sights. Out: a `Step`, and where its keys and values go. A mask is made only where
it says anything: prompts that begin and see what stands before them need none, nor do rows of one length that see all.
Never: changes a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from proxy.toon.engine.rows import Row
from proxy.toon.engine.scheduler import Chunk
from proxy.toon.engine.slots import Decoding, Filling, Slots
from proxy.toon.model.step import Decoder, KeyValues, Step

Made = tuple[Step, KeyValues]


def decoding(rows: Sequence[Row], decoder: Decoder, slots: Slots) -> Made:
    """One id more of each; the rows have the first slots."""
    lengths = [row.done for row in rows]
    step = Step(
        ids=torch.tensor([[row.ids[-1]] for row in rows], device=decoder.device),
        positions=torch.tensor([row.positions(row.done, row.total) for row in rows], device=decoder.device),
        mask=_decoding_mask(rows, lengths, decoder.device),
        key_positions=_key_positions(rows, [row.total for row in rows], decoder),
        wanted=torch.zeros(len(rows), dtype=torch.int64, device=decoder.device),
    )
    return step, Decoding(slots, lengths)


def filling(chunks: Sequence[Chunk[Row]], decoder: Decoder, slots: Slots) -> Made:
    """Parts of prompts of one kind (`scheduler.companies`), padded behind."""
    lengths = [chunk.stop - chunk.start for chunk in chunks]
    longest = max(lengths)
    ids = [_padded(chunk.row.ids[chunk.start : chunk.stop], longest) for chunk in chunks]
    places = [_padded(chunk.row.positions(chunk.start, chunk.stop), longest) for chunk in chunks]
    step = Step(
        ids=torch.tensor(ids, device=decoder.device),
        positions=torch.tensor(places, device=decoder.device),
        mask=None if chunks[0].is_mask_free else _filling_mask(chunks, longest).to(decoder.device),
        key_positions=_key_positions([chunk.row for chunk in chunks], [chunk.stop for chunk in chunks], decoder),
        wanted=torch.tensor(lengths, device=decoder.device) - 1,
    )
    slot_of = [chunk.row.slot for chunk in chunks]
    return step, Filling(slots, slot_of, [chunk.start for chunk in chunks], [chunk.stop for chunk in chunks])


def _decoding_mask(rows: Sequence[Row], lengths: Sequence[int], device: torch.device) -> Tensor | None:
    """[B, 1, 1, S]. A row sees as far as it is long, its new id included."""
    if min(lengths) == max(lengths) and all(row.is_plain for row in rows):
        return None
    width = max(lengths) + 1
    mask = torch.arange(width) <= torch.tensor(lengths)[:, None]
    for at, row in enumerate(rows):
        if not row.is_plain:
            mask[at] = row.job.plan.sight.rows(row.done, row.total, width)[0]
    return mask[:, None, None].to(device)


def _filling_mask(chunks: Sequence[Chunk[Row]], longest: int) -> Tensor:
    """[B, 1, T, S]. Padding sees the first id, since nothing can be made of seeing none."""
    width = max(chunk.stop for chunk in chunks)
    mask = torch.zeros((len(chunks), 1, longest, width), dtype=torch.bool)
    columns = torch.arange(width)
    for at, chunk in enumerate(chunks):
        rows = torch.arange(chunk.start, chunk.stop)[:, None]
        plain = chunk.row.is_plain
        sight = columns <= rows if plain else chunk.row.job.plan.sight.rows(chunk.start, chunk.stop, width)
        mask[at, 0, : chunk.stop - chunk.start] = sight
        mask[at, 0, chunk.stop - chunk.start :, 0] = True
    return mask


def _key_positions(rows: Sequence[Row], stops: Sequence[int], decoder: Decoder) -> Tensor | None:
    """Only what sees distances needs to know where keys stand."""
    if decoder.shape.base != "alibi":
        return None
    longest = max(stops)
    places = [_padded(row.positions(0, stop), longest) for row, stop in zip(rows, stops, strict=True)]
    return torch.tensor(places, device=decoder.device)


def _padded(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))
