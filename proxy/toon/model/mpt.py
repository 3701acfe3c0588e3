"""MPT: no positions, but scores that fall with the distance (ALiBi).

In: a configuration's fields and the weights by their names in a checkpoint. Out: a decoder. Distances are those of the
positions that are given, in both directions, where transformers' own MPT counts indices, and behind an id upwards.
`alibi_bias_max` is honoured, as by those who trained MPT; transformers takes 8 for any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, linear

from proxy.toon.model.alibi import distances, slopes
from proxy.toon.model.attention import attend
from proxy.toon.model.output import Output
from proxy.toon.model.step import KeyValues, Shape, Step
from proxy.toon.model.weights import Linear, Norm, UnsupportedModel, Weights

#: What changes the arithmetic, and the only value that this decoder has for it. (`no_bias`, `norm_type`, and
#: `expansion_ratio` show in the weights; `learned_pos_emb` says nothing beside ALiBi.)
_AS_USUAL: Final = {"alibi": True, "attn_type": "multihead_attention", "prefix_lm": False, "qk_ln": False}
_NORMS: Final = ("layernorm", "low_precision_layernorm")


@dataclass(frozen=True, slots=True)
class _Layer:
    before_attention: Norm
    qkv: Linear
    out: Linear
    before_mlp: Norm
    up: Linear
    down: Linear


class MptDecoder:
    def __init__(self, config: Any, weights: Weights) -> None:
        _check(config)
        self._embedding, head = weights.ends("transformer.wte.weight", "lm_head.weight")
        self._layers = tuple(_layer(weights, f"transformer.blocks.{at}") for at in range(config.n_layers))
        self._norm = weights.norm("transformer.norm_f")
        self._output = Output(head)
        weights.finish()
        attention = config.attn_config
        self._eps, self._width, self._heads = config.layer_norm_epsilon, (config.d_model,), config.n_heads
        self._clip, self._scale = attention.clip_qkv, attention.softmax_scale
        self.device, self.dtype = self._embedding.device, self._embedding.dtype
        precision = torch.float64 if self.dtype == torch.float64 else torch.float32
        self._slopes = slopes(config.n_heads, attention.alibi_bias_max).to(self.device, precision)
        vocab, head_dim = len(self._embedding), config.d_model // config.n_heads
        self.shape = Shape(config.n_layers, config.n_heads, head_dim, vocab, config.max_seq_len, "alibi")

    def run(self, step: Step, kv: KeyValues) -> Tensor:
        bias = self._bias(step)
        x = embedding(step.ids, self._embedding)
        for at, layer in enumerate(self._layers):
            x = x + self._attention(at, layer, self._normed(x, layer.before_attention), bias, kv)
            y = gelu(linear(self._normed(x, layer.before_mlp), *layer.up))
            x = x + linear(y, *layer.down)
        return self._output.of(x, step.wanted, lambda last: self._normed(last, self._norm))

    def _bias(self, step: Step) -> Tensor:
        """What is added to the scores of all layers. Here a mask that is not given has to be made."""
        length = step.ids.shape[1]
        seen = step.positions if step.key_positions is None else step.key_positions
        mask = step.mask
        if mask is None:
            if seen.shape[1] != length > 1:
                raise ValueError(
                    f"{length} new ids among {seen.shape[1]} need a mask: which of them is where is not known"
                )
            ones = torch.ones((length, seen.shape[1]), dtype=torch.bool, device=self.device)
            mask = ones if length == 1 else ones.tril()
        return distances(step.positions, seen, self._slopes, mask, self.dtype)

    def _normed(self, x: Tensor, norm: Norm) -> Tensor:
        return layer_norm(x, self._width, norm.weight, norm.bias, self._eps)

    def _attention(self, at: int, layer: _Layer, x: Tensor, bias: Tensor, kv: KeyValues) -> Tensor:
        rows, length = x.shape[:2]
        qkv = linear(x, *layer.qkv)
        if self._clip is not None:
            qkv = qkv.clamp(-self._clip, self._clip)
        q, k, v = qkv.view(rows, length, 3 * self._heads, -1).transpose(1, 2).chunk(3, 1)
        keys, values = kv.append(at, k, v)
        return linear(attend(q, keys, values, bias, self._scale), *layer.out)


def _layer(weights: Weights, name: str) -> _Layer:
    return _Layer(
        before_attention=weights.norm(f"{name}.norm_1"),
        qkv=weights.linear(f"{name}.attn.Wqkv"),
        out=weights.linear(f"{name}.attn.out_proj"),
        before_mlp=weights.norm(f"{name}.norm_2"),
        up=weights.linear(f"{name}.ffn.up_proj"),
        down=weights.linear(f"{name}.ffn.down_proj"),
    )


def _check(config: Any) -> None:
    for name, usual in _AS_USUAL.items():
        if getattr(config.attn_config, name, usual) != usual:
            raise UnsupportedModel(f"an MPT with `{name}` {getattr(config.attn_config, name)!r} is not supported")
    if config.logit_scale is not None:
        raise UnsupportedModel("an MPT with `logit_scale` is not supported")
    if config.norm_type not in _NORMS:
        raise UnsupportedModel(f"an MPT with the norm `{config.norm_type}` is not supported: {', '.join(_NORMS)} are")
