"""Llama: rotary positions, keys shared by groups of heads, gated layers.

In: a configuration's fields and the weights by their names in a checkpoint. Out: a decoder. What of a configuration is
not understood is refused, not ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn.functional import embedding, linear, rms_norm, silu

from proxy.toon.model.attention import attend
from proxy.toon.model.output import Output
from proxy.toon.model.rotary import Turns, frequencies, turned, turns_of
from proxy.toon.model.step import KeyValues, Shape, Step
from proxy.toon.model.weights import Linear, Parts, UnsupportedModel, Weights, project


@dataclass(frozen=True, slots=True)
class _Layer:
    before_attention: Tensor
    qkv: Parts
    out: Linear
    before_gate: Tensor
    gate_up: Parts
    down: Linear


class LlamaDecoder:
    def __init__(self, config: Any, weights: Weights) -> None:
        _check(config)
        heads = config.num_attention_heads
        kv_heads = config.num_key_value_heads or heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        self._embedding, head = weights.ends("model.embed_tokens.weight", "lm_head.weight")
        self._layers = tuple(_layer(weights, f"model.layers.{at}") for at in range(config.num_hidden_layers))
        self._output = Output(head)
        self._norm = weights.take("model.norm.weight")
        weights.finish()
        self._eps, self._width = config.rms_norm_eps, (config.hidden_size,)
        self._heads = (heads, kv_heads)
        self.device, self.dtype = self._embedding.device, self._embedding.dtype
        self._by_position = frequencies(_rope(config), head_dim).to(self.device)
        context = config.max_position_embeddings
        vocab = len(self._embedding)
        self.shape = Shape(config.num_hidden_layers, kv_heads, head_dim, vocab, context, "rope")

    def run(self, step: Step, kv: KeyValues) -> Tensor:
        turns = turns_of(step.positions, self._by_position, self.dtype)
        x = embedding(step.ids, self._embedding)
        for at, layer in enumerate(self._layers):
            x = x + self._attention(
                at, layer, rms_norm(x, self._width, layer.before_attention, self._eps), turns, step, kv
            )
            y = rms_norm(x, self._width, layer.before_gate, self._eps)
            gate, up = project(y, layer.gate_up).chunk(2, -1)
            x = x + linear(silu(gate) * up, *layer.down)
        return self._output.of(x, step.wanted, lambda last: rms_norm(last, self._width, self._norm, self._eps))

    def _attention(self, at: int, layer: _Layer, x: Tensor, turns: Turns, step: Step, kv: KeyValues) -> Tensor:
        rows, length = step.ids.shape
        heads, kv_heads = self._heads
        qkv = project(x, layer.qkv).view(rows, length, heads + 2 * kv_heads, -1)
        qk = turned(qkv[:, :, :-kv_heads], turns).transpose(1, 2)
        q, k, v = qk[:, :heads], qk[:, heads:], qkv[:, :, -kv_heads:].transpose(1, 2)
        keys, values = kv.append(at, k, v)
        return linear(attend(q, keys, values, step.mask), *layer.out)


def _layer(weights: Weights, name: str) -> _Layer:
    attention, mlp = f"{name}.self_attn", f"{name}.mlp"
    return _Layer(
        before_attention=weights.take(f"{name}.input_layernorm.weight"),
        qkv=weights.parts(f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"),
        out=weights.linear(f"{attention}.o_proj"),
        before_gate=weights.take(f"{name}.post_attention_layernorm.weight"),
        gate_up=weights.parts(f"{mlp}.gate_proj", f"{mlp}.up_proj"),
        down=weights.linear(f"{mlp}.down_proj"),
    )


def _check(config: Any) -> None:
    if config.hidden_act not in ("silu", "swish"):
        raise UnsupportedModel(f"a Llama with the activation `{config.hidden_act}` is not supported: silu is")
    if getattr(config, "sliding_window", None) is not None:
        raise UnsupportedModel("a Llama with a sliding window of its own is not supported")


def _rope(config: Any) -> dict[str, object]:
    """Where transformers 5 has `rope_parameters`, older configurations have `rope_scaling` beside `rope_theta`."""
    parameters = getattr(config, "rope_parameters", None) or {}
    old = getattr(config, "rope_scaling", None) or {}
    return {"rope_theta": getattr(config, "rope_theta", 10000.0), **old, **parameters}
