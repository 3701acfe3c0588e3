"""The first forwards of a model, before anybody waits for them: threads, buffers and kernels are then made.

In: a decoder. Out: how fast it reads a prompt. Never: touches an engine's own memory.
"""

from __future__ import annotations

import time

import torch

from proxy.toon.engine.scheduler import Limits
from proxy.toon.engine.slots import Decoding, Filling, Slots
from proxy.toon.model.step import Decoder, Step


@torch.inference_mode()
def warm_up(decoder: Decoder, limits: Limits) -> tuple[int, float]:
    """A short prompt and an id behind it, alone and together, with a mask and without; then a longer one: its ids, and
    the seconds it took."""
    for rows in sorted({1, min(2, limits.rows), min(8, limits.rows)}):
        _once(decoder, rows, min(16, decoder.shape.context - 2))
    length = min(128, decoder.shape.context - 2)
    began = time.monotonic()
    _once(decoder, 1, length)
    return length, time.monotonic() - began


def _once(decoder: Decoder, rows: int, length: int) -> None:
    slots, device = Slots(decoder.shape, decoder.device, decoder.dtype), decoder.device
    slots.resize(rows, length + 2, [])
    places = torch.arange(length + 2, device=device).expand(rows, -1)
    alibi = decoder.shape.base == "alibi"
    ids = torch.zeros((rows, length), dtype=torch.int64, device=device)
    last = torch.full((rows,), length - 1, device=device)
    filling = Filling(slots, range(rows), [0] * rows, [length] * rows)
    decoder.run(Step(ids, places[:, :length], None, places[:, :length] if alibi else None, last), filling)
    for at, is_masked in ((length, False), (length + 1, True)):
        mask = torch.ones((rows, 1, 1, at + 1), dtype=torch.bool, device=device) if is_masked else None
        keys = places[:, : at + 1] if alibi else None
        step = Step(ids[:, :1], places[:, at : at + 1], mask, keys, last * 0)
        logits = decoder.run(step, Decoding(slots, [at] * rows))
        logits.max(dim=1)[1].tolist()
