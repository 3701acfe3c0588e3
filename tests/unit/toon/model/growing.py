"""What the tests of the decoders share: small random models, and keys and values that simply grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MptConfig, MptForCausalLM

from proxy.toon.model.families import decoder_of, named_of
from proxy.toon.model.step import Decoder, Step
from proxy.toon.model.weights import Weights

VOCAB = 61
IDS = [7, 3, 50, 11, 2, 2, 33, 60, 19, 5, 28, 41]


class Growing:
    """Keeps all, in one tensor a layer."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if layer in self._kept:
            before_k, before_v = self._kept[layer]
            k, v = torch.cat((before_k, k), 2), torch.cat((before_v, v), 2)
        self._kept[layer] = (k, v)
        return k, v


def _random(model: Any, dtype: torch.dtype) -> Any:
    """Weights a good deal larger than a fresh model's, so that what an id sees shows in its logits."""
    torch.manual_seed(11)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            spread = 0.3 if weight.dim() > 1 else 0.1
            weight.normal_(1.0 if weight.dim() == 1 and name.endswith("weight") else 0.0, spread)
    return model.to(dtype).eval()


def llama(dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "attn_implementation": "sdpa",
    }
    return _random(LlamaForCausalLM(LlamaConfig(**{**fields, **changes})), dtype)


def gpt2(dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "vocab_size": VOCAB,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "attn_implementation": "sdpa",
    }
    return _random(GPT2LMHeadModel(GPT2Config(**{**fields, **changes})), dtype)


def mpt(dtype: torch.dtype = torch.float64, **changes: Any) -> Any:
    fields: dict[str, Any] = {"vocab_size": VOCAB, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}
    return _random(MptForCausalLM(MptConfig(**{**fields, **changes})), dtype)


def decoder(model: Any, *, join: bool = True) -> Decoder:
    return decoder_of(model.config, Weights(named_of(model), torch.device("cpu"), join=join))


def logits(
    of: Decoder,
    ids: Sequence[int] = IDS,
    positions: Sequence[int] | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """[T, vocab] of one row that is run whole; `mask` is [T, T]."""
    places = list(range(len(ids))) if positions is None else list(positions)
    step = Step(torch.tensor([list(ids)]), torch.tensor([places]), None if mask is None else mask[None, None])
    with torch.inference_mode():
        return of.run(step, Growing())[0]


def apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())
