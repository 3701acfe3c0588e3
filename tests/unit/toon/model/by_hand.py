"""Llama and MPT written down once more, in numpy and double precision, a head and an id at a time.

In: a model's configuration and weights, ids, positions, and which id may see which. Out: logits. Shares no code with
what it is compared with.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_erf = np.vectorize(math.erf)


def _weights(model: Any) -> dict[str, Array]:
    named = model.named_parameters(remove_duplicate=False)
    return {name: weight.detach().double().numpy() for name, weight in named}


def _turn(vector: Array, position: int, by_position: Array) -> Array:
    """Pairs (i, i + half) turned as points of a plane."""
    half = len(vector) // 2
    points = (vector[:half] + 1j * vector[half:]) * np.exp(1j * position * by_position)
    return np.concatenate((points.real, points.imag))


def _mixed(q: Array, k: Array, v: Array, seen: list[int], scale: float, bias: Array) -> Array:
    scores = np.array([scale * (q @ k[other]) for other in seen]) + bias
    shares = np.exp(scores - scores.max())
    mixed: Array = (shares / shares.sum()) @ v[seen]
    return mixed


def llama_logits(
    model: Any, ids: list[int], positions: list[int], sees: NDArray[np.bool_], by_position: Array
) -> Array:
    config, w = model.config, _weights(model)
    heads, kv_heads, head_dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim

    def norm(x: Array, weight: Array) -> Array:
        scaled: Array = x / np.sqrt((x * x).mean(-1, keepdims=True) + config.rms_norm_eps) * weight
        return scaled

    def linear(x: Array, name: str) -> Array:
        out: Array = x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", np.zeros(1))
        return out

    x = w["model.embed_tokens.weight"][ids]
    for layer in range(config.num_hidden_layers):
        at, y = f"model.layers.{layer}", norm(x, w[f"model.layers.{layer}.input_layernorm.weight"])
        q, k, v = (linear(y, f"{at}.self_attn.{name}_proj").reshape(len(ids), -1, head_dim) for name in "qkv")
        q = np.array(
            [[_turn(head, place, by_position) for head in one] for one, place in zip(q, positions, strict=True)]
        )
        k = np.array(
            [[_turn(head, place, by_position) for head in one] for one, place in zip(k, positions, strict=True)]
        )
        out = np.zeros((len(ids), heads, head_dim))
        for one in range(len(ids)):
            seen = np.flatnonzero(sees[one]).tolist()
            for head in range(heads):
                of = head // (heads // kv_heads)
                out[one, head] = _mixed(q[one, head], k[:, of], v[:, of], seen, head_dim**-0.5, np.zeros(len(seen)))
        x = x + linear(out.reshape(len(ids), -1), f"{at}.self_attn.o_proj")
        y = norm(x, w[f"{at}.post_attention_layernorm.weight"])
        gate = linear(y, f"{at}.mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, f"{at}.mlp.up_proj"), f"{at}.mlp.down_proj")
    logits: Array = norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T
    return logits


def mpt_logits(model: Any, ids: list[int], positions: list[int], sees: NDArray[np.bool_], slopes: list[float]) -> Array:
    config, w = model.config, _weights(model)
    heads, head_dim = config.n_heads, config.d_model // config.n_heads

    def norm(x: Array, weight: Array) -> Array:
        apart = x - x.mean(-1, keepdims=True)
        scaled: Array = apart / np.sqrt((apart * apart).mean(-1, keepdims=True) + config.layer_norm_epsilon) * weight
        return scaled

    x = w["transformer.wte.weight"][ids]
    for layer in range(config.n_layers):
        at = f"transformer.blocks.{layer}"
        qkv = norm(x, w[f"{at}.norm_1.weight"]) @ w[f"{at}.attn.Wqkv.weight"].T
        if config.attn_config.clip_qkv is not None:
            qkv = qkv.clip(-config.attn_config.clip_qkv, config.attn_config.clip_qkv)
        q, k, v = (part.reshape(len(ids), heads, head_dim) for part in np.split(qkv, 3, axis=-1))
        scale = config.attn_config.softmax_scale or head_dim**-0.5
        out = np.zeros((len(ids), heads, head_dim))
        for one in range(len(ids)):
            seen = np.flatnonzero(sees[one]).tolist()
            for head in range(heads):
                bias = np.array([-slopes[head] * abs(positions[one] - positions[other]) for other in seen])
                out[one, head] = _mixed(q[one, head], k[:, head], v[:, head], seen, scale, bias)
        x = x + out.reshape(len(ids), -1) @ w[f"{at}.attn.out_proj.weight"].T
        up = norm(x, w[f"{at}.norm_2.weight"]) @ w[f"{at}.ffn.up_proj.weight"].T
        x = x + (up * (1 + _erf(up / math.sqrt(2))) / 2) @ w[f"{at}.ffn.down_proj.weight"].T
    logits: Array = norm(x, w["transformer.norm_f.weight"]) @ w["transformer.wte.weight"].T
    return logits
