"""The decoders against transformers, which has other code for the same weights.

Single precision inside transformers (angles, norms) bounds what can be equal: 1e-5 of logits of about 6 in a model of
double precision, and 1e-4 in one of single. Against arithmetic written down by hand it is 1e-9 (`test_positions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from proxy.toon.model.masks import Part, Sight, View
from proxy.toon.model.step import Decoder, Step
from tests.unit.toon.model.growing import IDS, Growing, apart, decoder, gpt2, llama, logits, mpt

COUNT = len(IDS)
PARTS = (Part(2, True), Part(4, False), Part(4, False), Part(2, False))
CAUSAL_VIEWS = {
    "causal": View(COUNT, 20),
    "sliding window": View(COUNT, 20, back=3),
    "partial": View(COUNT, 20, parts=PARTS, by_part=True),
    "dynamic": View(COUNT, 20, parts=PARTS, around=2),
    "partial sliding window": View(COUNT, 20, parts=PARTS, by_part=True, back=2),
    "dynamic sliding window": View(COUNT, 20, parts=PARTS, around=4, back=6),
}
AHEAD_VIEWS = {
    "bidirectional": View(COUNT, 20, looks_ahead=True),
    "partial bidirectional": View(COUNT, 20, looks_ahead=True, parts=PARTS, by_part=True),
    "dynamic bidirectional": View(COUNT, 20, looks_ahead=True, around=3),
    "citations": View(COUNT, 20, cited=(4, 9)),
    "partial citations": View(COUNT, 20, cited=(4, 9), parts=PARTS, by_part=True),
    "dynamic citations": View(COUNT, 20, cited=(4, 9), around=2),
}
VIEWS = CAUSAL_VIEWS | AHEAD_VIEWS
FAMILIES: dict[str, Callable[..., Any]] = {"llama": llama, "gpt2": gpt2, "mpt": mpt}
families = pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES.keys())
views = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())


def standard(model: Any, **asked: Any) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(torch.tensor([IDS]), **asked).logits[0]
        return found


def rows(view: View) -> Tensor:
    return Sight(view).rows(0, COUNT, COUNT)


@families
def test_a_causal_prompt_gives_the_logits_that_transformers_gives(make: Callable[..., Any]) -> None:
    model = make()
    assert apart(standard(model), logits(decoder(model))) < 1e-5


@families
def test_so_it_does_in_single_precision(make: Callable[..., Any]) -> None:
    model = make(torch.float32)
    of_ours = logits(decoder(model))
    assert of_ours.dtype == torch.float32
    assert apart(standard(model), of_ours) < 1e-4


@pytest.mark.parametrize(
    "changes",
    [
        {"num_key_value_heads": 4},
        {"num_key_value_heads": 1},
        {"tie_word_embeddings": True},
        {"attention_bias": True, "mlp_bias": True},
        {"head_dim": 16, "rms_norm_eps": 1e-3},
    ],
    ids=lambda changes: ", ".join(changes),
)
def test_every_shape_of_a_llama_gives_the_logits_that_transformers_gives(changes: dict[str, Any]) -> None:
    model = llama(**changes)
    assert apart(standard(model), logits(decoder(model))) < 1e-5
    assert apart(logits(decoder(model)), logits(decoder(model, join=False))) < 1e-9


@views
@pytest.mark.parametrize("make", [llama, gpt2], ids=["llama", "gpt2"])
def test_every_mask_gives_the_logits_that_transformers_gives_for_the_same_one(
    make: Callable[..., Any], view: View
) -> None:
    model = make()
    as_standard = standard(model, attention_mask=rows(view)[None, None])
    assert apart(as_standard, logits(decoder(model), mask=rows(view))) < 1e-5
    if view is not VIEWS["causal"]:
        assert apart(as_standard, standard(model)) > 1e-2, "the mask matters"


@pytest.mark.parametrize("view", CAUSAL_VIEWS.values(), ids=CAUSAL_VIEWS.keys())
def test_so_does_an_mpt_where_nobody_looks_ahead(view: View) -> None:
    """Its own code takes True for what is hidden. Behind an id it has no distances (`test_positions` has)."""
    model = mpt()
    as_standard = standard(model, attention_mask=~rows(view)[None, None])
    assert apart(as_standard, logits(decoder(model), mask=rows(view))) < 1e-5


@families
@pytest.mark.parametrize("hidden", [(0, 1, 2), (9, 10, 11), (0, 5, 11)], ids=["left", "right", "both"])
def test_padding_is_seen_by_nobody(make: Callable[..., Any], hidden: tuple[int, ...]) -> None:
    """As transformers has it (in single precision: in double, its MPT makes NaN of the rows of padding); and as it is
    without the padding, at the same positions."""
    view, shown = View(COUNT, 20, hidden=hidden), [at for at in range(COUNT) if at not in hidden]
    is_shown = torch.tensor([[int(at not in hidden) for at in range(COUNT)]])
    single = make(torch.float32)
    as_standard = standard(single, attention_mask=is_shown)
    assert apart(as_standard[shown], logits(decoder(single), mask=rows(view))[shown]) < 1e-4
    of = decoder(make())
    of_ours, without = logits(of, mask=rows(view)), logits(of, [IDS[at] for at in shown], shown)
    assert apart(without, of_ours[shown]) < 1e-9
    assert not of_ours.isnan().any(), "padding sees itself"


def _in_chunks(of: Decoder, view: View, stops: list[int], *, needs_mask: bool) -> Tensor:
    """As an engine runs it: a part of the prompt at a time, over what was kept."""
    kept, found, start = Growing(), [], 0
    for stop in stops:
        ids, places = torch.tensor([IDS[start:stop]]), torch.arange(start, stop)[None]
        mask = Sight(view).rows(start, stop, stop)[None, None] if needs_mask else None
        with torch.inference_mode():
            found.append(of.run(Step(ids, places, mask, torch.arange(stop)[None]), kept)[0])
        start = stop
    return torch.cat(found)


@families
@views
def test_a_prompt_in_chunks_gives_what_it_gives_whole(make: Callable[..., Any], view: View) -> None:
    of, unbroken = decoder(make()), Sight(view).unbroken
    whole = logits(of, mask=rows(view))
    stops = [stop for stop in (5, 6, 9, 10, 11) if stop >= unbroken]
    assert apart(whole, _in_chunks(of, view, [*stops, COUNT], needs_mask=True)) < 1e-9


@families
@views
def test_generated_ids_one_at_a_time_give_what_all_give_at_once(make: Callable[..., Any], view: View) -> None:
    """Nothing that was kept of the prompt depends on what is generated: the last five ids are."""
    of = decoder(make())
    parts = (*PARTS[:2], Part(1, False)) if view.parts else ()
    shorter = replace(view, count=7, parts=parts, cited=tuple(at for at in view.cited if at < 7))
    whole = logits(of, mask=rows(shorter))
    assert apart(whole, _in_chunks(of, shorter, list(range(7, COUNT + 1)), needs_mask=True)) < 1e-9


@families
def test_an_id_at_a_time_needs_no_mask(make: Callable[..., Any]) -> None:
    of, plain = decoder(make()), VIEWS["causal"]
    stops = list(range(1, COUNT + 1))
    assert apart(logits(of), _in_chunks(of, plain, stops, needs_mask=False)) < 1e-9


@families
def test_new_ids_among_others_without_a_mask_are_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="need a mask"):
        _in_chunks(decoder(make()), VIEWS["causal"], [5, COUNT], needs_mask=False)


@families
def test_rows_of_different_lengths_in_one_call_give_what_each_gives_alone(make: Callable[..., Any]) -> None:
    """Two rows, the second padded behind: its padding sees something, and nobody sees it."""
    of, short = decoder(make()), 7
    ids = torch.tensor([IDS, IDS[:short] + [0] * (COUNT - short)])
    places = torch.tensor([list(range(COUNT)), list(range(20, 20 + short)) + [0] * (COUNT - short)])
    mask = rows(VIEWS["causal"]).expand(2, 1, COUNT, COUNT)
    kept, wanted = Growing(), torch.tensor([COUNT, short]) - 1
    with torch.inference_mode():
        found = of.run(Step(ids, places, mask, wanted=wanted), kept)
    alone = [logits(of)[-1], logits(of, IDS[:short], range(20, 20 + short))[-1]]
    assert apart(found, torch.stack(alone)) < 1e-9


@families
def test_steps_of_rows_of_different_lengths_give_what_each_gives_alone(make: Callable[..., Any]) -> None:
    of, lengths = decoder(make()), (COUNT - 1, 6)
    ids = torch.tensor([IDS[:-1], IDS[:6] + [0] * (COUNT - 7)])
    mask, kept = rows(VIEWS["causal"])[:-1, :-1].expand(2, 1, COUNT - 1, COUNT - 1), Growing()
    places = torch.arange(COUNT - 1).expand(2, -1)
    with torch.inference_mode():
        of.run(Step(ids, places, mask), kept)
        seen = torch.tensor([[at <= length for at in range(COUNT)] for length in lengths])
        seen[1, 6:] = torch.tensor([False] * (COUNT - 7) + [True])  # its padding, then the new id
        key_places = torch.tensor([list(range(COUNT)), [*range(6), *[0] * (COUNT - 7), 6]])
        last = torch.tensor([[IDS[-1]], [IDS[6]]])
        step = Step(last, torch.tensor([[COUNT - 1], [6]]), seen[:, None, None], key_places, torch.tensor([0, 0]))
        found = of.run(step, kept)
    assert apart(found, torch.stack([logits(of)[-1], logits(of, IDS[:7])[-1]])) < 1e-9
