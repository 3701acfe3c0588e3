"""Models of transformers that take ids with mask and positions, and remain what they were for all others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM

from proxy.dialects.toon.format import Mask, Pos, Tids
from proxy.toon.model.adapter import (
    ToonGPT2Config,
    ToonGPT2LMHeadModel,
    ToonLlamaConfig,
    ToonLlamaForCausalLM,
    ToonMptConfig,
    ToonMptForCausalLM,
)
from proxy.toon.model.loading import load_model
from tests.unit.toon.model.growing import IDS, apart, gpt2, llama, logits, mpt

TIDS: dict[str, Any] = {"v": "2.1", "ids": IDS}
CAUSAL = {"type": "causal", "scope": "full", "fallback": "none"}


def _of(standard: Any, config: Any, model: Any, **changes: Any) -> Any:
    """The same weights in a class of ours."""
    fields = {name: value for name, value in standard.config.to_dict().items() if name != "model_type"}
    made = model(config(**{**fields, "tokenizer_version": "2.1", **changes})).to(standard.dtype).eval()
    made.load_state_dict(standard.state_dict())
    return made


def toon_llama(dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    return _of(llama(dtype), ToonLlamaConfig, ToonLlamaForCausalLM, **changes)


KINDS: dict[str, tuple[Callable[..., Any], Any, Any, str]] = {
    "llama": (llama, ToonLlamaConfig, ToonLlamaForCausalLM, "rope"),
    "gpt2": (gpt2, ToonGPT2Config, ToonGPT2LMHeadModel, "learned"),
    "mpt": (mpt, ToonMptConfig, ToonMptForCausalLM, "alibi"),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def given(model: Any, **asked: Any) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(**asked).logits[0]
        return found


@kinds
def test_ids_give_the_logits_that_they_give_the_standard_way(kind: str) -> None:
    make, config, model, base = KINDS[kind]
    standard = make()
    ours = _of(standard, config, model)
    as_standard = given(standard, input_ids=torch.tensor([IDS]))
    pos = {"base": base, "offset": 0, "stride": 1}
    assert apart(as_standard, given(ours, tids=TIDS, mask=CAUSAL, pos=pos)) < 1e-5
    assert apart(as_standard, given(ours, tids=TIDS)) < 1e-5, "mask and positions are the plain ones unless given"
    assert apart(as_standard, given(ours, input_ids=torch.tensor([IDS]))) == 0, "as before for those who knew it before"


def test_it_takes_the_formats_values_as_well_as_mappings() -> None:
    model = toon_llama()
    values = given(model, tids=Tids("2.1", IDS), mask=Mask("bidirectional", "full", "none"), pos=Pos("rope", 3, 2))
    mask, pos = {**CAUSAL, "type": "bidirectional"}, {"base": "rope", "offset": 3, "stride": 2}
    assert apart(values, given(model, tids=TIDS, mask=mask, pos=pos)) == 0


def test_positions_are_offset_and_stride() -> None:
    model = toon_llama()
    pos = {"base": "rope", "offset": 50, "stride": 2}
    places = torch.arange(50, 50 + 2 * len(IDS), 2)[None]
    as_standard = given(model, input_ids=torch.tensor([IDS]), position_ids=places)
    assert apart(as_standard, given(model, tids=TIDS, mask=CAUSAL, pos=pos)) < 1e-4


def test_padding_segments_and_citations_are_masked() -> None:
    model = toon_llama(pad_token_id=2)
    is_shown = torch.tensor([[int(one != 2) for one in IDS]])
    padded = given(model, tids=TIDS, mask={**CAUSAL, "type": "padding"})
    as_standard = given(model, input_ids=torch.tensor([IDS]), attention_mask=is_shown)
    assert apart(as_standard[is_shown[0] == 1], padded[is_shown[0] == 1]) < 1e-5
    assert not padded.isnan().any()
    parts = [{"length": 5}, {"length": 4}, {"length": 3}]
    partial = given(model, tids=TIDS, mask={**CAUSAL, "scope": "partial"}, x_segments=parts)
    alone = given(model, tids={"v": "2.1", "ids": IDS[5:9]}, pos={"base": "rope", "offset": 5, "stride": 1})
    assert apart(alone, partial[5:9]) < 1e-9
    cites = {**CAUSAL, "type": "custom", "custom_def": {"name": "legal_citation", "citation_pattern": "§ ?[0-9]+"}}
    cited = given(model, tids=TIDS, mask=cites, text_of=lambda ids: ["a"] * (len(ids) - 1) + ["§7"])
    assert apart(cited[0], given(model, tids=TIDS)[0]) > 1e-2, "the first id sees the citation behind it"


def test_the_weights_are_the_models_own_and_gradients_go_through() -> None:
    model = toon_llama()
    before = given(model, tids=TIDS)
    model(tids=TIDS).logits.square().mean().backward()
    gradient = model.model.layers[0].self_attn.k_proj.weight.grad
    assert gradient is not None and gradient.abs().max() > 0
    with torch.no_grad():
        model.model.layers[0].self_attn.k_proj.weight -= 0.1 * gradient
    assert apart(before, given(model, tids=TIDS)) > 1e-9


def test_generate_works_as_before() -> None:
    model, standard = toon_llama(torch.float32), llama(torch.float32)
    asked = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    prompt = torch.tensor([IDS])
    assert model.generate(prompt, **asked).tolist() == standard.generate(prompt, **asked).tolist()


def test_the_signature_names_what_is_new_beside_what_was() -> None:
    names = list(inspect.signature(ToonLlamaForCausalLM.forward).parameters)
    assert {"tids", "mask", "pos"} < set(names)
    assert [name for name in names if name in inspect.signature(LlamaForCausalLM.forward).parameters] == list(
        inspect.signature(LlamaForCausalLM.forward).parameters
    )


@kinds
def test_class_and_version_survive_saving(kind: str, tmp_path: Path) -> None:
    make, config, model, _ = KINDS[kind]
    ours = _of(make(torch.float32), config, model)
    ours.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(loaded) is model
    assert (type(loaded.config), loaded.config.tokenizer_version) == (config, "2.1")
    assert type(AutoConfig.from_pretrained(tmp_path)) is config
    assert apart(given(ours, tids=TIDS), given(loaded, tids=TIDS)) == 0
    assert apart(given(ours, tids=TIDS), logits(load_model(tmp_path, device="cpu"))) < 1e-4


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"tids": {"v": "1.0", "ids": [5]}}, "unsupported_version at `/tids/v`: .* 2.1, and the ids are of 1.0"),
        ({"tids": {"v": "2.1", "ids": [5, 61]}}, "invalid_value at `/tids/ids/1`"),
        ({"tids": {"v": "2.1", "ids": [True]}}, "invalid_type at `/tids/ids/0`"),
        ({"tids": TIDS, "mask": {"type": "causal"}}, "missing_field at `/mask/scope`"),
        ({"tids": TIDS, "mask": {**CAUSAL, "scope": "partial"}}, "missing_field at `/x_segments`"),
        ({"tids": TIDS, "mask": {**CAUSAL, "type": "padding"}}, "invalid_value at `/mask/type`"),
        ({"tids": TIDS, "pos": {"base": "alibi", "offset": 0, "stride": 1}}, "unsupported_positions at `/pos/base`"),
        ({"tids": TIDS, "pos": {"base": "rope", "offset": 2**24, "stride": 1}}, "unsupported_positions"),
        ({"tids": {"v": "2.1", "ids": [5] * 129}}, "context_length_exceeded at `/tids/ids`"),
        ({"tids": TIDS, "input_ids": torch.tensor([IDS])}, "with `tids` go"),
        ({"pos": {"base": "rope", "offset": 0, "stride": 1}, "input_ids": torch.tensor([IDS])}, "goes with `tids`"),
    ],
)
def test_what_does_not_fit_the_model_is_an_error_that_says_where(asked: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        toon_llama(pad_token_id=None)(**asked)


def test_citations_need_the_text_of_the_ids() -> None:
    cites = {**CAUSAL, "type": "custom", "custom_def": {"name": "legal_citation", "citation_pattern": "§"}}
    with pytest.raises(ValueError, match="text_of"):
        toon_llama()(tids=TIDS, mask=cites)


def test_as_many_ids_as_the_context_has_are_taken() -> None:
    assert given(toon_llama(), tids={"v": "2.1", "ids": [5] * 128}).shape == (128, 61)
