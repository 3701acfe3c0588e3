"""A small random model with a tokenizer of its own, in a moment, for tests and benchmarks: no download, no meaning.

In: a folder, a family of models, a seed. Out: a Hugging Face folder (`config.json`, `model.safetensors`,
`tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`) and a `toon.yaml` that names it. The same arguments
give the same tokenizer to the byte, and the same weights. Its greedy answers vary with what it is asked, which small
weights would not do. Never: touches torch's own seed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple

import orjson
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from proxy.toon.corpus import read_corpus
from proxy.toon.fingerprint import fingerprint

Family = Literal["llama", "gpt2", "mpt"]

PAD: Final = "<|pad|>"
START: Final = "<|im_start|>"
END: Final = "<|im_end|>"
_SPECIAL: Final = (PAD, START, END)
_HIDDEN: Final = 32
_HEADS: Final = 4
_LAYERS: Final = 2
#: What a layer adds, against what it is given: so much that any id before changes what comes next.
_SPREAD: Final = 2.0

TEMPLATE: Final = (
    "{% for message in messages %}"
    "{{ bos_token + message['role'] + '\n' + message['content'] + eos_token + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ bos_token + 'assistant\n' }}{% endif %}"
)


def make_tiny(
    folder: Path,
    *,
    family: Family = "llama",
    version: str = "2.1",
    seed: int = 0,
    dtype: str = "float32",
    vocab: int = 512,
    context: int = 512,
) -> Path:
    """Writes the model and `toon.yaml` into `folder`, which it returns. `vocab` is at least 259: all bytes, and three
    special tokens; another one is another tokenizer. `context` is the model's, its window too."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, vocab)
    kind = _KINDS[family]
    (folder / "config.json").write_bytes(_json(kind.config(vocab, context) | _shared(version, dtype)))
    _write_weights(folder / "model.safetensors", kind.weights(vocab, context), seed, dtype)
    (folder / "toon.yaml").write_text(_REGISTRY.format(version=version, sha256=fingerprint(folder), dtype=dtype))
    return folder


def write_tokenizer(folder: Path, vocab: int = 512) -> None:
    """Byte-level pairs as the shipped corpus has them, special tokens first, and a chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([line for lines in read_corpus().values() for line in lines], trainer)
    assert tokenizer.get_vocab_size() == vocab, "the corpus has too few pairs for so many ids"
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": START, "eos_token": END, "pad_token": PAD}
    (folder / "tokenizer_config.json").write_bytes(_json(described))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


_REGISTRY: Final = """\
tokenizers:
  "{version}": {{folder: ., sha256: {sha256}}}
models:
  tiny: {{folder: ., tokenizer: "{version}"}}
engine: {{device: cpu, dtype: {dtype}, cache_mib: 64, rows: 8, waiting: 32, threads: 1}}
listen: {{host: 127.0.0.1, port: 0}}
"""


def _shared(version: str, dtype: str) -> dict[str, object]:
    ids = {name: _SPECIAL.index(token) for name, token in (("pad", PAD), ("bos", START), ("eos", END))}
    return {
        **{f"{name}_token_id": one for name, one in ids.items()},
        **{"tokenizer_version": version, "dtype": dtype, "tie_word_embeddings": False},
    }


# -- the families: what `config.json` says, and which weights go with it ----------------------------------------------

Shapes = dict[str, tuple[int, ...]]


class _Kind(NamedTuple):
    config: Callable[[int, int], dict[str, object]]
    weights: Callable[[int, int], Shapes]


def _llama(vocab: int, context: int) -> dict[str, object]:
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": vocab,
        "hidden_size": _HIDDEN,
        "intermediate_size": 2 * _HIDDEN,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _HEADS // 2,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
    }


def _llama_weights(vocab: int, _: int) -> Shapes:
    shapes: Shapes = {"model.embed_tokens.weight": (vocab, _HIDDEN)}
    for layer in range(_LAYERS):
        shapes |= {
            f"model.layers.{layer}.{name}.weight": shape
            for name, shape in {
                "self_attn.q_proj": (_HIDDEN, _HIDDEN),
                "self_attn.k_proj": (_HIDDEN // 2, _HIDDEN),
                "self_attn.v_proj": (_HIDDEN // 2, _HIDDEN),
                "self_attn.o_proj": (_HIDDEN, _HIDDEN),
                "mlp.gate_proj": (2 * _HIDDEN, _HIDDEN),
                "mlp.up_proj": (2 * _HIDDEN, _HIDDEN),
                "mlp.down_proj": (_HIDDEN, 2 * _HIDDEN),
                "input_layernorm": (_HIDDEN,),
                "post_attention_layernorm": (_HIDDEN,),
            }.items()
        }
    return shapes | {"model.norm.weight": (_HIDDEN,), "lm_head.weight": (vocab, _HIDDEN)}


def _gpt2(vocab: int, context: int) -> dict[str, object]:
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocab,
        "n_embd": _HIDDEN,
        "n_layer": _LAYERS,
        "n_head": _HEADS,
        "n_positions": context,
        **{"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    }


def _gpt2_weights(vocab: int, context: int) -> Shapes:
    shapes: Shapes = {"transformer.wte.weight": (vocab, _HIDDEN), "transformer.wpe.weight": (context, _HIDDEN)}
    for layer in range(_LAYERS):
        for name, shape in {
            "ln_1": (_HIDDEN,),
            "attn.c_attn": (_HIDDEN, 3 * _HIDDEN),
            "attn.c_proj": (_HIDDEN, _HIDDEN),
            "ln_2": (_HIDDEN,),
            "mlp.c_fc": (_HIDDEN, 4 * _HIDDEN),
            "mlp.c_proj": (4 * _HIDDEN, _HIDDEN),
        }.items():
            shapes[f"transformer.h.{layer}.{name}.weight"] = shape
            shapes[f"transformer.h.{layer}.{name}.bias"] = shape[-1:]
    ends = {"transformer.ln_f.weight": (_HIDDEN,), "transformer.ln_f.bias": (_HIDDEN,)}
    return shapes | ends | {"lm_head.weight": (vocab, _HIDDEN)}


def _mpt(vocab: int, context: int) -> dict[str, object]:
    return {
        "model_type": "mpt",
        "architectures": ["MptForCausalLM"],
        "vocab_size": vocab,
        "d_model": _HIDDEN,
        "n_layers": _LAYERS,
        "n_heads": _HEADS,
        "max_seq_len": context,
        "attn_config": {"alibi": True, "alibi_bias_max": 8},
    }


def _mpt_weights(vocab: int, _: int) -> Shapes:
    shapes: Shapes = {"transformer.wte.weight": (vocab, _HIDDEN)}
    for layer in range(_LAYERS):
        shapes |= {
            f"transformer.blocks.{layer}.{name}.weight": shape
            for name, shape in {
                "norm_1": (_HIDDEN,),
                "attn.Wqkv": (3 * _HIDDEN, _HIDDEN),
                "attn.out_proj": (_HIDDEN, _HIDDEN),
                "norm_2": (_HIDDEN,),
                "ffn.up_proj": (4 * _HIDDEN, _HIDDEN),
                "ffn.down_proj": (_HIDDEN, 4 * _HIDDEN),
            }.items()
        }
    return shapes | {"transformer.norm_f.weight": (_HIDDEN,), "lm_head.weight": (vocab, _HIDDEN)}


_KINDS: Final = {
    "llama": _Kind(_llama, _llama_weights),
    "gpt2": _Kind(_gpt2, _gpt2_weights),
    "mpt": _Kind(_mpt, _mpt_weights),
}


def _write_weights(file: Path, shapes: Shapes, seed: int, dtype: str) -> None:
    # imported late: a tokenizer alone, which needs no torch, is made in a tenth of a second
    import torch
    from safetensors.torch import save_file

    chance = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes.items():
        drawn = torch.randn(shape, generator=chance, dtype=torch.float64)
        if len(shape) == 1:  # of a norm, or a bias
            drawn = 0.02 * drawn + (1.0 if name.endswith("weight") else 0.0)
        elif not name.endswith(("wte.weight", "wpe.weight", "embed_tokens.weight")):
            taken = 0 if ".c_" in name else 1  # GPT-2 has its matrices the other way round
            # without a mean, for what all ids have in common would answer all of them alike
            drawn = (drawn - drawn.mean(taken, keepdim=True)) * _SPREAD * shape[taken] ** -0.5
        weights[name] = drawn.to(getattr(torch, dtype))
    save_file(weights, file, metadata={"format": "pt"})


def _json(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"
