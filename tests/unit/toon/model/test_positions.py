"""Where an id stands is what the model sees: against arithmetic by hand (`by_hand`), to 1e-9 in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from proxy.toon.model.masks import Part, Sight, View
from tests.unit.toon.model.by_hand import Array, llama_logits, mpt_logits
from tests.unit.toon.model.growing import IDS, apart, decoder, gpt2, llama, logits, mpt

COUNT = len(IDS)
CAUSAL = np.tril(np.ones((COUNT, COUNT), dtype=np.bool_))
PLAIN = np.array([10000.0 ** (-2 * at / 8) for at in range(4)])
#: The slopes of four heads: 2^-2, 2^-4, 2^-6, 2^-8.
SLOPES = [0.25, 0.0625, 0.015625, 0.00390625]
PLACES = {
    "as they come": list(range(COUNT)),
    "with an offset": list(range(4000, 4000 + COUNT)),
    "with a stride": list(range(0, 3 * COUNT, 3)),
    "with both": list(range(90_000, 90_000 + 7 * COUNT, 7)),
    "with gaps": [0, 1, 2, 9, 10, 11, 12, 30, 31, 32, 33, 99],
}
places = pytest.mark.parametrize("positions", PLACES.values(), ids=PLACES.keys())


def _llama3(theta: float, factor: float, low: float, high: float, trained: int) -> Array:
    """The three cases of Llama 3.1, one frequency at a time."""
    scaled = []
    for plain in (theta ** (-2 * at / 8) for at in range(4)):
        length = 2 * math.pi / plain
        if length < trained / high:
            scaled.append(plain)
        elif length > trained / low:
            scaled.append(plain / factor)
        else:
            smooth = (trained / length - low) / (high - low)
            scaled.append((1 - smooth) * plain / factor + smooth * plain)
    return np.array(scaled)


_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
ROPES: dict[str, tuple[dict[str, Any], Array]] = {
    "default": ({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}, PLAIN),
    "linear": ({"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}, PLAIN / 4),
    "linear, as it was written": (
        {"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}},
        PLAIN / 4,
    ),
    "llama3": ({"rope_parameters": _LLAMA3}, _llama3(500.0, 8.0, 1.0, 4.0, 64)),
}


@places
def test_rotary_positions_are_those_that_were_given(positions: list[int]) -> None:
    model = llama()
    by_hand = llama_logits(model, IDS, positions, CAUSAL, PLAIN)
    assert apart(torch.from_numpy(by_hand), logits(decoder(model), positions=positions)) < 1e-9


@pytest.mark.parametrize("kind", ROPES)
def test_each_kind_of_rotary_positions_is_what_its_paper_says(kind: str) -> None:
    fields, by_position = ROPES[kind]
    model = llama(**fields)
    positions = PLACES["with a stride"]
    by_hand = llama_logits(model, IDS, positions, CAUSAL, by_position)
    of_ours = logits(decoder(model), positions=positions)
    with torch.no_grad():
        standard = model(torch.tensor([IDS]), position_ids=torch.tensor([positions])).logits[0]
    assert apart(torch.from_numpy(by_hand), of_ours) < 1e-9
    assert apart(standard, of_ours) < 1e-4, "transformers turns in single precision"


def test_a_shift_of_all_rotary_positions_changes_nothing_even_far_out() -> None:
    of = decoder(llama())
    near = logits(of)
    assert apart(near, logits(of, positions=range(1000, 1000 + COUNT))) < 1e-9
    assert apart(near, logits(of, positions=range(2**24 - COUNT, 2**24))) < 1e-6
    assert apart(near, logits(of, positions=range(0, 2 * COUNT, 2))) > 1e-2
    single = decoder(llama(torch.float32))
    assert apart(logits(single), logits(single, positions=range(2**24 - COUNT, 2**24))) < 1e-4


@places
def test_with_alibi_distances_are_those_of_the_positions(positions: list[int]) -> None:
    model = mpt()
    by_hand = mpt_logits(model, IDS, positions, CAUSAL, SLOPES)
    assert apart(torch.from_numpy(by_hand), logits(decoder(model), positions=positions)) < 1e-9


def test_with_alibi_an_offset_changes_nothing_and_a_stride_of_two_doubles_the_slopes() -> None:
    model = mpt()
    of = decoder(model)
    assert apart(logits(of), logits(of, positions=range(50, 50 + COUNT))) == 0
    doubled = mpt_logits(model, IDS, list(range(COUNT)), CAUSAL, [2 * slope for slope in SLOPES])
    assert apart(torch.from_numpy(doubled), logits(of, positions=range(0, 2 * COUNT, 2))) < 1e-9


@pytest.mark.parametrize("bias_max", [8, 4])
def test_with_alibi_the_quirks_of_a_configuration_are_honoured(bias_max: int) -> None:
    """Six heads take every second slope of eight, then the others. transformers takes 8 for every `alibi_bias_max`."""
    attention = {"clip_qkv": 1.5, "softmax_scale": 0.2, "alibi_bias_max": bias_max}
    model = mpt(d_model=48, n_heads=6, attn_config=attention, no_bias=False, norm_type="layernorm")
    slopes = [2.0 ** (-bias_max * part / 8) for part in (2, 4, 6, 8, 1, 3)]
    by_hand = mpt_logits(model, IDS, list(range(COUNT)), CAUSAL, slopes)
    of_ours = logits(decoder(model))
    assert apart(torch.from_numpy(by_hand), of_ours) < 1e-9
    if bias_max == 8:
        with torch.no_grad():
            standard = model(torch.tensor([IDS])).logits[0]
        assert apart(standard, of_ours) < 1e-5


@pytest.mark.parametrize("view", [View(COUNT, 20, looks_ahead=True), View(COUNT, 20, cited=(8,))], ids=["all", "cited"])
def test_distances_are_the_same_before_and_behind(view: View) -> None:
    model, mask = mpt(), Sight(view).rows(0, COUNT, COUNT)
    by_hand = mpt_logits(model, IDS, PLACES["with gaps"], mask.numpy(), SLOPES)
    assert apart(torch.from_numpy(by_hand), logits(decoder(model), positions=PLACES["with gaps"], mask=mask)) < 1e-9


@pytest.mark.parametrize(
    "view",
    [
        View(COUNT, 20, looks_ahead=True),
        View(COUNT, 20, parts=(Part(3, True), Part(4, False), Part(5, False)), around=2),
    ],
    ids=["bidirectional", "dynamic"],
)
def test_masks_and_positions_go_together(view: View) -> None:
    model, mask = llama(), Sight(view).rows(0, COUNT, COUNT)
    by_hand = llama_logits(model, IDS, PLACES["with both"], mask.numpy(), PLAIN)
    assert apart(torch.from_numpy(by_hand), logits(decoder(model), positions=PLACES["with both"], mask=mask)) < 1e-9


def test_learned_positions_are_looked_up() -> None:
    model = gpt2()
    positions = list(range(11, 11 + 4 * COUNT, 4))
    with torch.no_grad():
        standard = model(torch.tensor([IDS]), position_ids=torch.tensor([positions])).logits[0]
    of_ours = logits(decoder(model), positions=positions)
    assert apart(standard, of_ours) < 1e-9
    assert apart(of_ours, logits(decoder(model))) > 1e-2
