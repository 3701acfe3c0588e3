"""`proxy.toon.registry`: what `toon.yaml` names is there and agrees, or the operator is told what does not."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.errors import ConfigError
from proxy.toon.fingerprint import fingerprint
from proxy.toon.registry import Registry, load_registry
from tests.support.toon_models import TinyModels

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def place(tiny_models: TinyModels, tmp_path: Path) -> Path:
    """Folders `one` and `two`, of the versions 2.1 and 3.0, without weights: nobody reads them here."""
    for name, version, vocab in (("one", "2.1", 512), ("two", "3.0", 400)):
        source = tiny_models.folder(version=version, vocab=vocab)
        (tmp_path / name).mkdir()
        for file in source.glob("*"):
            if file.suffix in (".json", ".jinja"):
                shutil.copy(file, tmp_path / name)
    return tmp_path


def write(place: Path, models: str, more: str = "", one: str = "", two: str = "") -> Path:
    """A file with both tokenizers, as they are."""
    text = f"""\
tokenizers:
  "2.1": {{folder: one, sha256: {one or fingerprint(place / "one")}}}
  "3.0": {{folder: two, sha256: {two or fingerprint(place / "two")}}}
models:
{models}
{more}
"""
    (place / "toon.yaml").write_text(text)
    return place / "toon.yaml"


def change(file: Path, how: Change) -> None:
    value = json.loads(file.read_text())
    how(value)
    file.write_text(json.dumps(value))


def fault(file: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_registry(file)
    return caught.value


ONE = '  one: {folder: one, tokenizer: "2.1"}'


def test_models_of_several_versions_and_several_of_one(place: Path) -> None:
    """In the file's order, each with what its own files say."""
    shutil.copytree(place / "one", place / "more")
    models = f'{ONE}\n  more: {{folder: more, tokenizer: "2.1", window: 8}}\n  two: {{folder: two, tokenizer: "3.0"}}'
    registry = load_registry(write(place, models))
    assert list(registry.models) == ["one", "more", "two"]
    assert [model.card().version for model in registry.models.values()] == ["2.1", "2.1", "3.0"]
    assert [model.window for model in registry.models.values()] == [512, 8, 512]
    one, two = registry.models["one"].card(), registry.models["two"].card()
    assert (one.vocab, two.vocab) == (512, 400)
    assert (one.context, one.base, one.pad) == (512, "rope", 0)
    assert (set(one.eos), set(one.special)) == ({2}, {0, 1, 2})
    assert registry.models["one"].bos == 1
    assert registry.tokenizers["2.1"].folder == (place / "one").resolve()


def test_the_engine_and_the_port_have_defaults(place: Path) -> None:
    registry = load_registry(write(place, ONE))
    engine = registry.engine
    told = (engine.device, engine.dtype, engine.cache_mib, engine.rows, engine.waiting, engine.threads)
    assert told == ("auto", "float32", 512, 32, 256, 0)
    assert (registry.listen.host, registry.listen.port) == ("127.0.0.1", 8090)
    more = "engine: {device: 'cuda:1', dtype: bfloat16, rows: 4}\nlisten: {port: 0}"
    assert load_registry(write(place, ONE, more)).engine.device == "cuda:1"


@pytest.mark.parametrize(("family", "base"), [("llama", "rope"), ("gpt2", "learned"), ("mpt", "alibi")])
def test_the_family_says_what_positions_are(family: Any, base: str, tiny_models: TinyModels) -> None:
    (model,) = load_registry(tiny_models.folder(family) / "toon.yaml").models.values()
    assert (model.base, model.context, model.vocab) == (base, 512, 512)


def test_a_model_may_share_the_tokenizer_of_its_version(place: Path) -> None:
    """Its folder then holds no tokenizer of its own."""
    (place / "one-b").mkdir()
    shutil.copy(place / "one" / "config.json", place / "one-b")
    registry = load_registry(write(place, ONE + '\n  b: {folder: one-b, tokenizer: "2.1"}'))
    assert registry.models["b"].special == registry.models["one"].special


def test_ids_that_end_an_answer_come_from_all_files(place: Path) -> None:
    """`generation_config.json` and the tokenizer's own `eos_token` name some that `config.json` does not."""
    change(place / "one" / "config.json", lambda config: config.update(eos_token_id=[7], pad_token_id=None))
    (place / "one" / "generation_config.json").write_text('{"eos_token_id": 9}')
    model = load_registry(write(place, ONE)).models["one"]
    assert model.eos == {2, 7, 9}
    assert model.pad == 0, "the tokenizer says which token it is"
    assert model.special == {0, 1, 2, 7, 9}


def test_the_hash_is_what_sha256sum_says(place: Path) -> None:
    """So that it can be computed without this program."""
    names = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
    lines = [f"{hashlib.sha256((place / 'one' / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    assert fingerprint(place / "one") == hashlib.sha256("".join(lines).encode()).hexdigest()
    (place / "one" / "chat_template.jinja").unlink()
    assert fingerprint(place / "one") == hashlib.sha256("".join(lines[:2]).encode()).hexdigest()


# -- the three that must agree ----------------------------------------------------------------------------------------


@pytest.mark.clause("T3")
def test_files_that_changed_are_told_from_what_was_registered(place: Path) -> None:
    """One more token in `tokenizer.json`, and its hash is another."""
    file = write(place, ONE)
    was = fingerprint(place / "one")
    change(place / "one" / "tokenizer_config.json", lambda config: config.update(clean_up=True))
    problem = fault(file)
    assert problem.line == 2
    assert problem.reason.startswith(f"tokenizers.2.1.sha256: is {was}, ")
    assert fingerprint(place / "one") in problem.reason
    assert "sluice toon adopt one" in problem.reason


@pytest.mark.clause("T3")
def test_config_json_may_be_the_one_that_differs(place: Path) -> None:
    change(place / "one" / "config.json", lambda config: config.update(tokenizer_version="3.0"))
    problem = fault(write(place, ONE))
    assert problem.line == 5
    assert problem.reason.startswith("models.one.tokenizer: config.json differs: its tokenizer_version is 3.0, ")
    assert "say 2.1" in problem.reason
    assert "`sluice toon adopt one --version 2.1`" in problem.reason


def test_the_registry_may_be_the_one_that_differs(place: Path) -> None:
    problem = fault(write(place, '  one: {folder: one, tokenizer: "3.0"}'))
    assert problem.reason.startswith("models.one.tokenizer: this file differs: it says 3.0, ")
    assert problem.reason.endswith("say 2.1. Write `tokenizer: '2.1'` here")


def test_the_files_may_be_the_ones_that_differ(place: Path) -> None:
    """The model's folder got the tokenizer of another version."""
    shutil.copytree(place / "one", place / "mixed")
    shutil.copy(place / "two" / "tokenizer.json", place / "mixed")
    shutil.copy(place / "two" / "tokenizer_config.json", place / "mixed")
    problem = fault(write(place, '  mixed: {folder: mixed, tokenizer: "2.1"}'))
    assert "the tokenizer's files differ: this file and config.json say 2.1, whose hash is" in problem.reason
    assert "that of version 3.0" in problem.reason
    change(place / "mixed" / "tokenizer_config.json", lambda config: config.update(clean_up=True))
    assert "that of no version named here" in fault(place / "toon.yaml").reason


def test_nothing_may_agree(place: Path) -> None:
    shutil.copytree(place / "one", place / "mixed")
    change(place / "mixed" / "config.json", lambda config: config.update(tokenizer_version="4.0"))
    change(place / "mixed" / "tokenizer_config.json", lambda config: config.update(clean_up=True))
    reason = fault(write(place, '  mixed: {folder: mixed, tokenizer: "2.1"}')).reason
    assert "nothing agrees: this file says 2.1, config.json says 4.0" in reason
    assert fingerprint(place / "mixed") in reason


def test_a_model_without_a_version_is_not_served(place: Path) -> None:
    """A guess would be right until the day on which it is not."""
    change(place / "one" / "config.json", lambda config: config.pop("tokenizer_version"))
    reason = fault(write(place, ONE)).reason
    assert "one/config.json has no tokenizer_version, and this file says 2.1" in reason
    assert "`sluice toon adopt one --version 2.1`" in reason


# -- files that are wrong ---------------------------------------------------------------------------------------------

WRONG = {
    "an unknown key at the top": (ONE, "modles: {}", 6, "modles: unknown key; the nearest valid one is 'models'"),
    "an unknown key of a model": (
        '  one: {folder: one, tokeniser: "2.1"}',
        "",
        5,
        "models.one.tokeniser: unknown key; the nearest valid one is 'tokenizer'",
    ),
    "a missing key": ("  one: {folder: one}", "", 5, "models.one.tokenizer: is missing"),
    "a number for a version": ("  one: {folder: one, tokenizer: 2.1}", "", 5, "put it in quotes"),
    "no version": ('  one: {folder: one, tokenizer: "2.10"}', "", 5, "'2.10' is no version"),
    "an unregistered version": (
        '  one: {folder: one, tokenizer: "2.2"}',
        "",
        5,
        "models.one.tokenizer: there is no version 2.2; the nearest valid one is '2.1'",
    ),
    "a missing folder": (
        '  one: {folder: nowhere, tokenizer: "2.1"}',
        "",
        5,
        "models.one.folder: there is no folder nowhere",
    ),
    "a window beyond the model": (
        '  one: {folder: one, tokenizer: "2.1", window: 513}',
        "",
        5,
        "window: 513 is more than the model's context of 512",
    ),
    "a window of nothing": ('  one: {folder: one, tokenizer: "2.1", window: 0}', "", 5, "greater than or equal to 1"),
    "no name": ('  "مدل": {folder: one, tokenizer: "2.1"}', "", 5, "'مدل' is no name"),
    "an unknown device": (ONE, "engine: {device: gpu}", 6, "engine.device: 'gpu' is no device"),
    "an unknown precision": (ONE, "engine: {dtype: float31}", 6, "the nearest valid one is 'float32'"),
    "no port": (ONE, "listen: {port: 65536}", 6, "listen.port: Input should be less than or equal to 65535"),
    "no number": (ONE, "engine: {rows: true}", 6, "engine.rows: must be a whole number"),
    "no YAML": (ONE, "engine: {rows: 1", None, "is not YAML"),
}


@pytest.mark.parametrize(("models", "more", "line", "reason"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_with_its_line(
    models: str, more: str, line: int | None, reason: str, place: Path
) -> None:
    problem = fault(write(place, models, more))
    assert reason in problem.reason
    assert problem.file == str(place / "toon.yaml")
    assert line is None or problem.line == line


def test_a_version_as_a_key_needs_quotes(place: Path) -> None:
    """YAML reads 2.10 as 2.1, so a number is refused."""
    text = write(place, ONE).read_text().replace('"2.1": ', "2.1: ")
    (place / "toon.yaml").write_text(text)
    problem = fault(place / "toon.yaml")
    assert (problem.line, problem.reason.split(" (")[0]) == (2, "tokenizers.2.1: put the key in quotes: '2.1'")


def test_an_empty_registry_serves_nobody(place: Path) -> None:
    (place / "toon.yaml").write_text("tokenizers: {}\nmodels: {}\n")
    assert fault(place / "toon.yaml").reason == "tokenizers: must name at least one"
    (place / "toon.yaml").write_text("- one\n")
    assert "must be a mapping" in fault(place / "toon.yaml").reason
    assert "cannot be read" in fault(place / "nowhere.yaml").reason


def test_a_promise_of_equality_names_another_registered_version(place: Path) -> None:
    file = write(place, ONE)
    text = file.read_text()
    file.write_text(text.replace("{folder: two,", '{compatible_with: "2.1", folder: two,'))
    assert load_registry(file).tokenizers["3.0"].compatible_with == "2.1"
    for other, told in (("3.0", "names this very version"), ("1.0", "there is no version 1.0; ")):
        file.write_text(text.replace("{folder: two,", f'{{compatible_with: "{other}", folder: two,'))
        assert told in fault(file).reason


def test_no_hash_is_told_as_such(place: Path) -> None:
    problem = fault(write(place, ONE, two="b179c952"))
    assert (problem.line, "'b179c952' is no hash" in problem.reason) == (3, True)


def _renamed_model(config: dict[str, Any]) -> None:
    config["model_type"] = "bloom"


FOLDERS: dict[str, tuple[str, Change | str, str]] = {
    "not JSON": ("config.json", "{", "is not JSON"),
    "no object": ("config.json", "[]", "must hold a JSON object"),
    "another family": ("config.json", _renamed_model, "model_type: 'bloom' is no family whose positions are known"),
    "no vocabulary": ("config.json", lambda config: config.pop("vocab_size"), "vocab_size: is missing"),
    "no context": (
        "config.json",
        lambda config: config.update(max_position_embeddings="512"),
        "max_position_embeddings: must be a whole number of 1 or more, not '512'",
    ),
    "a version that is a number": (
        "config.json",
        lambda config: config.update(tokenizer_version=2.1),
        'tokenizer_version: must be text such as "2.1", not 2.1',
    ),
    "no id": ("config.json", lambda config: config.update(eos_token_id="2"), "eos_token_id: must be an id"),
    "too small a vocabulary": (
        "config.json",
        lambda config: config.update(vocab_size=300),
        "vocab_size: is 300, and the tokenizer has the id 511: they are not of one model",
    ),
    "no tokenizer": ("tokenizer.json", "{}", "model.vocab: is no vocabulary"),
    "no token": (
        "tokenizer.json",
        lambda tokenizer: tokenizer.update(added_tokens=[{"id": 1}]),
        "added_tokens: each needs an `id` and a `content`",
    ),
}


@pytest.mark.parametrize(("name", "how", "reason"), FOLDERS.values(), ids=FOLDERS.keys())
def test_a_folder_that_is_wrong_is_told_by_its_file(name: str, how: Change | str, reason: str, place: Path) -> None:
    if isinstance(how, str):
        (place / "one" / name).write_text(how)
    else:
        change(place / "one" / name, how)
    problem = fault(write(place, ONE))
    assert reason in problem.reason
    assert problem.file == str((place / "one" / name).resolve())


def test_a_folder_that_lacks_a_file_is_told(place: Path) -> None:
    file = write(place, ONE)
    (place / "one" / "config.json").unlink()
    assert fault(file).reason == "models.one.folder: one has no config.json"
    (place / "one" / "tokenizer.json").unlink()
    assert fault(file).reason == "tokenizers.2.1.folder: one has no tokenizer.json"


def test_a_registry_is_read_without_torch(tiny_folder: Path) -> None:
    """The proxy reads it too, and needs none of the extra."""
    script = (
        "import sys, pathlib; from proxy.toon.registry import load_registry; load_registry(pathlib.Path(sys.argv[1])); "
        "print(*sorted({'torch', 'transformers', 'tokenizers', 'numpy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script, str(tiny_folder / "toon.yaml")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == ""


def test_a_loaded_registry_is_a_value(tiny_folder: Path) -> None:
    one, two = (load_registry(tiny_folder / "toon.yaml") for _ in range(2))
    assert isinstance(one, Registry)
    assert one == two
