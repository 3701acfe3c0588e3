"""GPT-2: positions that are looked up in a table.

In: a configuration's fields and the weights by their names in a checkpoint. Out: a decoder. Positions must be in its
table: who plans a request sees to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, linear, relu, silu

from proxy.toon.model.attention import attend
from proxy.toon.model.output import Output
from proxy.toon.model.step import KeyValues, Shape, Step
from proxy.toon.model.weights import Linear, Norm, UnsupportedModel, Weights

_tanh_gelu = partial(gelu, approximate="tanh")
_ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "gelu_new": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "gelu": gelu,
    "relu": relu,
    "silu": silu,
}
#: What changes the arithmetic, and the only value that this decoder has for it.
_AS_USUAL: Final = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "add_cross_attention": False,
}


@dataclass(frozen=True, slots=True)
class _Layer:
    before_attention: Norm
    qkv: Linear
    out: Linear
    before_mlp: Norm
    up: Linear
    down: Linear


class Gpt2Decoder:
    def __init__(self, config: Any, weights: Weights) -> None:
        _check(config)
        self._embedding, head = weights.ends("transformer.wte.weight", "lm_head.weight")
        self._places = weights.take("transformer.wpe.weight")
        self._layers = tuple(_layer(weights, f"transformer.h.{at}") for at in range(config.n_layer))
        self._norm = weights.norm("transformer.ln_f")
        self._output = Output(head)
        weights.finish()
        self._act = _ACTIVATIONS[config.activation_function]
        self._eps, self._width, self._heads = config.layer_norm_epsilon, (config.n_embd,), config.n_head
        self.device, self.dtype = self._embedding.device, self._embedding.dtype
        vocab, context = len(self._embedding), len(self._places)
        self.shape = Shape(config.n_layer, config.n_head, config.n_embd // config.n_head, vocab, context, "learned")

    def run(self, step: Step, kv: KeyValues) -> Tensor:
        x = embedding(step.ids, self._embedding) + embedding(step.positions, self._places)
        for at, layer in enumerate(self._layers):
            x = x + self._attention(at, layer, self._normed(x, layer.before_attention), step, kv)
            y = self._act(linear(self._normed(x, layer.before_mlp), *layer.up))
            x = x + linear(y, *layer.down)
        return self._output.of(x, step.wanted, lambda last: self._normed(last, self._norm))

    def _normed(self, x: Tensor, norm: Norm) -> Tensor:
        return layer_norm(x, self._width, norm.weight, norm.bias, self._eps)

    def _attention(self, at: int, layer: _Layer, x: Tensor, step: Step, kv: KeyValues) -> Tensor:
        rows, length = step.ids.shape
        q, k, v = linear(x, *layer.qkv).view(rows, length, 3 * self._heads, -1).transpose(1, 2).chunk(3, 1)
        keys, values = kv.append(at, k, v)
        return linear(attend(q, keys, values, step.mask), *layer.out)


def _layer(weights: Weights, name: str) -> _Layer:
    return _Layer(
        before_attention=weights.norm(f"{name}.ln_1"),
        qkv=weights.turned(f"{name}.attn.c_attn"),
        out=weights.turned(f"{name}.attn.c_proj"),
        before_mlp=weights.norm(f"{name}.ln_2"),
        up=weights.turned(f"{name}.mlp.c_fc"),
        down=weights.turned(f"{name}.mlp.c_proj"),
    )


def _check(config: Any) -> None:
    for name, usual in _AS_USUAL.items():
        if getattr(config, name, usual) != usual:
            raise UnsupportedModel(f"a GPT-2 with `{name}` {getattr(config, name)!r} is not supported")
    if config.activation_function not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise UnsupportedModel(f"the activation `{config.activation_function}` is not supported: {known} are")
