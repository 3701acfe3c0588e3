"""From a folder to a decoder: what is loaded, in which precision and where, and what is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from proxy.toon.model.families import decoder_of, named_of
from proxy.toon.model.loading import choose_device, choose_dtype, load_model
from proxy.toon.model.step import Shape
from proxy.toon.model.weights import UnsupportedModel, Weights
from tests.unit.toon.model.growing import VOCAB, apart, decoder, gpt2, llama, logits, mpt

ROPE: dict[str, object] = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (llama(torch.float32), Shape(2, 2, 8, VOCAB, 128, "rope")),
        (llama(torch.float32, tie_word_embeddings=True), Shape(2, 2, 8, VOCAB, 128, "rope")),
        (gpt2(torch.float32), Shape(2, 4, 8, VOCAB, 64, "learned")),
        (mpt(torch.float32), Shape(2, 4, 8, VOCAB, 64, "alibi")),
    ],
    ids=["llama", "tied llama", "gpt2", "mpt"],
)
def test_a_saved_model_gives_the_logits_it_gave_before(model: Any, shape: Shape, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    loaded = load_model(tmp_path, device="cpu")
    assert loaded.shape == shape
    assert (loaded.device, loaded.dtype) == (torch.device("cpu"), torch.float32)
    assert apart(logits(decoder(model)), logits(loaded)) < 1e-5


def test_tied_weights_are_held_once() -> None:
    weights = Weights(named_of(llama(tie_word_embeddings=True)), torch.device("cpu"), join=True)
    embedding, head = weights.ends("model.embed_tokens.weight", "lm_head.weight")
    assert embedding.data_ptr() == head.data_ptr()


def test_a_precision_is_what_the_weights_are_in_and_logits_are_single_at_least(tmp_path: Path) -> None:
    model = llama()
    model.save_pretrained(tmp_path)
    exact = logits(decoder(model))
    half, double = load_model(tmp_path, dtype="bfloat16", device="cpu"), load_model(tmp_path, dtype="float64")
    assert half.dtype == torch.bfloat16 and logits(half).dtype == torch.float32
    assert apart(exact, logits(half).double()) < 0.5
    assert double.dtype == torch.float64 and logits(double).dtype == torch.float64
    assert apart(exact, logits(double)) < 1e-9


def test_the_device_and_precision_are_chosen_by_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")
    with pytest.raises(UnsupportedModel, match="no GPU"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert choose_dtype("auto", torch.device("cuda")) == torch.bfloat16
    assert choose_dtype("auto", torch.device("cpu")) == torch.float32
    assert choose_dtype("float16", torch.device("cpu")) == torch.float16


@pytest.mark.parametrize("device", ["mps", "nonsense"])
def test_a_device_that_is_not_supported_is_refused(device: str) -> None:
    with pytest.raises(UnsupportedModel, match=device):
        choose_device(device)


def test_a_precision_that_is_not_supported_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="int8"):
        choose_dtype("int8", torch.device("cpu"))


@pytest.mark.parametrize(
    ("make", "changes", "reason"),
    [
        (llama, {"hidden_act": "gelu"}, "gelu"),
        (llama, {"sliding_window": 8}, "sliding window"),
        (llama, {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "dynamic"),
        (llama, {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 0.0}}, "factor"),
        (llama, {"rope_parameters": ROPE | {"high_freq_factor": 1.0}}, "high_freq_factor"),
        (llama, {"rope_parameters": ROPE | {"partial_rotary_factor": 0.5}}, "part of each head"),
        (llama, {"quantization_config": {"quant_method": "none"}}, "packed"),
        (gpt2, {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        (gpt2, {"activation_function": "tanh"}, "tanh"),
        (mpt, {"logit_scale": 0.5}, "logit_scale"),
        (mpt, {"norm_type": "rmsnorm"}, "rmsnorm"),
        (mpt, {"attn_config": {"alibi": False}}, "alibi"),
        (mpt, {"attn_config": {"qk_ln": True}}, "qk_ln"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_would_change_the_arithmetic_is_refused(
    make: Callable[..., Any], changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnsupportedModel, match=reason):
        decoder(make(**changes))


def test_weights_that_nobody_understands_or_that_are_missing_are_refused() -> None:
    model = llama()
    named = named_of(model)
    extra = {**named, "model.layers.0.self_attn.q_norm.weight": torch.ones(8)}
    with pytest.raises(UnsupportedModel, match="q_norm"):
        decoder_of(model.config, Weights(extra))
    del named["model.norm.weight"]
    with pytest.raises(UnsupportedModel, match=r"model\.norm"):
        decoder_of(model.config, Weights(named))


def test_packed_weights_are_refused() -> None:
    model = llama()
    packed = {**named_of(model), "model.layers.0.self_attn.q_proj.weight": torch.ones(32, 32, dtype=torch.int8)}
    with pytest.raises(UnsupportedModel, match="int8"):
        decoder_of(model.config, Weights(packed))


@pytest.mark.parametrize(
    "config", [{"model_type": "bloom"}, {"model_type": "no_such_model"}, {}], ids=["other", "unknown", "none"]
)
def test_a_folder_of_another_kind_is_refused(config: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModel):
        load_model(tmp_path)


def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=str(tmp_path)):
        load_model(tmp_path / "missing")
    llama().config.save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match="does not load"):
        load_model(tmp_path)


def test_a_checkpoint_with_a_weight_missing_or_too_many_is_refused(tmp_path: Path) -> None:
    """transformers would make up what is missing, and answer nonsense."""
    model = llama(torch.float32)
    for name, reason in (("model.norm.weight", "missing"), (None, "unexpected")):
        kept = {key: weight for key, weight in model.state_dict().items() if key != name}
        if name is None:
            kept["model.layers.0.self_attn.q_norm.weight"] = torch.ones(8)
        model.save_pretrained(tmp_path, state_dict=kept)
        with pytest.raises(UnsupportedModel, match=f"1 weights are {reason}"):
            load_model(tmp_path)
