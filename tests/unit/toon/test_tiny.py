"""`proxy.toon.tiny`: small models that transformers takes, the same each time, with answers that vary."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from proxy.toon.tiny import Family, make_tiny, write_tokenizer
from tests.support.toon_models import TinyModels

FAMILIES: tuple[Family, ...] = ("llama", "gpt2", "mpt")
PROMPTS = ("سلام دنیا", "你好，世界", "नमस्ते दुनिया", "🙂 hello")
NEW = 12


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def greedy(model: Any, ids: list[int]) -> list[int]:
    told = torch.tensor([ids])
    with torch.no_grad():
        for _ in range(NEW):
            told = torch.cat([told, model(told, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return [int(one) for one in told[0, len(ids) :]]


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_takes_every_weight(family: Family, tiny_models: TinyModels) -> None:
    """None is missing, none is left over, and all are of the asked precision."""
    model, loading = AutoModelForCausalLM.from_pretrained(tiny_models.folder(family), output_loading_info=True)
    assert {name: found for name, found in loading.items() if found} == {}
    assert {tensor.dtype for tensor in model.state_dict().values()} == {torch.float64}
    assert model.config.tokenizer_version == "2.1"


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_answers_vary(family: Family, tiny_models: TinyModels) -> None:
    """Else equality of two ways to compute them would prove little."""
    folder = tiny_models.folder(family)
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    answers = [greedy(model, tokenizer.encode(prompt).ids) for prompt in PROMPTS]
    assert len({tuple(answer) for answer in answers}) == len(PROMPTS)
    assert len({one for answer in answers for one in answer}) >= 2 * NEW
    assert all(len(set(answer)) >= NEW // 3 for answer in answers)


def test_the_same_arguments_give_the_same_files(tmp_path: Path) -> None:
    """So that a hash may stand in a file; another seed changes the weights alone."""
    ours = digests(make_tiny(tmp_path / "ours"))
    assert digests(make_tiny(tmp_path / "again")) == ours
    other = digests(make_tiny(tmp_path / "other", seed=1))
    assert {name for name in ours if ours[name] != other[name]} == {"model.safetensors"}


def test_another_process_trains_the_same_tokenizer(tiny_folder: Path, tmp_path: Path) -> None:
    """Whatever its threads and its hash seeds do."""
    script = "import sys, pathlib, proxy.toon.tiny as tiny; tiny.write_tokenizer(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    made = digests(tmp_path)
    assert made.items() <= digests(tiny_folder).items()
    assert len(made) == 3


def test_it_leaves_the_seed_of_others_alone(tmp_path: Path) -> None:
    """torch's own generator goes on as if nothing had been made."""
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    make_tiny(tmp_path / "made")
    assert torch.equal(torch.rand(1), expected)


def test_its_tokenizer_has_special_tokens_first_and_all_bytes(tiny_folder: Path) -> None:
    """Any text can be encoded and comes back."""
    tokenizer = Tokenizer.from_file(str(tiny_folder / "tokenizer.json"))
    assert [tokenizer.id_to_token(one) for one in range(3)] == ["<|pad|>", "<|im_start|>", "<|im_end|>"]
    assert tokenizer.get_vocab_size() == 512
    for text in (*PROMPTS, "\x00\x7f ÿ 𐍈 \U0010ffff"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.encode("<|im_start|>user").ids[0] == 1


def test_its_chat_template_is_the_one_that_transformers_uses(tiny_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder)
    told = tokenizer.apply_chat_template(
        [{"role": "user", "content": "سلام"}], tokenize=False, add_generation_prompt=True
    )
    assert told == "<|im_start|>user\nسلام<|im_end|>\n<|im_start|>assistant\n"


def test_another_vocabulary_is_another_tokenizer(tmp_path: Path) -> None:
    """So two versions of a tokenizer can be had, of which one moves ids."""
    for vocab in (300, 512):
        (tmp_path / str(vocab)).mkdir()
        write_tokenizer(tmp_path / str(vocab), vocab)
    few, many = (Tokenizer.from_file(str(tmp_path / name / "tokenizer.json")) for name in ("300", "512"))
    assert len(few.encode("سلام دنیا").ids) > len(many.encode("سلام دنیا").ids)
