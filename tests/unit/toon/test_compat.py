"""`sluice toon compat` and `adopt`: which texts and ids moved between versions, and how a model is taken in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from proxy.__main__ import run
from proxy.errors import ConfigError
from proxy.toon.corpus import read_corpus
from proxy.toon.fingerprint import fingerprint
from proxy.toon.registry import load_registry
from proxy.toon.tiny import write_tokenizer
from tests.support.toon_models import TinyModels


def model(folder: Path, vocab: int = 512, version: str | None = "2.1") -> Path:
    """A folder as small as a registry takes."""
    folder.mkdir()
    write_tokenizer(folder, vocab)
    config: dict[str, Any] = {"model_type": "llama", "vocab_size": 600, "max_position_embeddings": 64}
    if version is not None:
        config["tokenizer_version"] = version
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def registry(place: Path, versions: dict[str, Path], promises: dict[str, str] | None = None) -> Path:
    lines = ["tokenizers:"]
    for version, folder in versions.items():
        promise = f", compatible_with: '{(promises or {})[version]}'" if version in (promises or {}) else ""
        lines.append(f"  '{version}': {{folder: {folder.name}, sha256: {fingerprint(folder)}{promise}}}")
    lines.append("models:")
    lines += [
        f"  m{at}: {{folder: {folder.name}, tokenizer: '{version}'}}"
        for at, (version, folder) in enumerate(versions.items())
    ]
    file = place / "toon.yaml"
    file.write_text("\n".join([*lines, ""]))
    return file


def compat(file: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    code = run(["toon", "compat", "--registry", str(file), *more])
    return code, capsys.readouterr().out


# -- what moved -------------------------------------------------------------------------------------------------------


def test_the_corpus_has_ten_scripts_and_characters_that_are_easily_cut() -> None:
    texts = read_corpus()
    assert len(texts) >= 10
    assert all(len(lines) >= 4 for lines in texts.values())
    whole = "".join(line for lines in texts.values() for line in lines)
    assert {"\u200d", "\u200c", "\ufe0f", "\u3099", "\U0001f1ee"} <= set(whole)


def test_a_hash_alone_moves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A version whose files differ in a blank keeps its promise."""
    old, new = model(tmp_path / "old", version="2.0"), model(tmp_path / "new")
    told = json.loads((new / "tokenizer_config.json").read_text())
    (new / "tokenizer_config.json").write_text(json.dumps(told))
    assert fingerprint(old) != fingerprint(new)
    code, out = compat(registry(tmp_path, {"2.0": old, "2.1": new}, {"2.1": "2.0"}), capsys)
    texts = sum(map(len, read_corpus().values()))
    assert (code, out) == (
        0,
        f"2.0 -> 2.1: nothing moved in {texts} texts, 0 ids added: equality was promised, and kept\n",
    )


def test_a_version_that_moves_ids_is_told_with_its_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No promise, no failure: a new version may move what it likes."""
    old, new = model(tmp_path / "old", 400, "2.0"), model(tmp_path / "new")
    file = registry(tmp_path, {"2.0": old, "2.1": new})
    code, out = compat(file, capsys)
    assert code == 0
    assert out.startswith("2.0 -> 2.1: ")
    assert "0 ids mean something else, 112 ids added\n" in out
    assert "more texts (--json names each)" in out
    code, out = compat(file, capsys, "--json")
    told = json.loads(out)
    (pair,) = told["pairs"]
    assert (code, pair["is_equal"], pair["is_broken"], pair["promised"]) == (0, False, False, False)
    assert told["versions"] == ["2.0", "2.1"]
    moved = pair["moved_texts"][0]
    assert moved["old"][: moved["at"]] == moved["new"][: moved["at"]]
    assert moved["text"] == read_corpus()[moved["script"]][moved["line"] - 1]


def test_a_broken_promise_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also between versions that are no neighbours."""
    folders = {
        "2.0": model(tmp_path / "a", 400, "2.0"),
        "2.1": model(tmp_path / "b"),
        "2.2": model(tmp_path / "c", 512, "2.2"),
    }
    code, out = compat(registry(tmp_path, folders, {"2.2": "2.0"}), capsys)
    assert code == 1
    assert "2.0 -> 2.2:" in out
    assert "equality was promised, AND IS BROKEN" in out
    assert "2.1 -> 2.2: nothing moved" in out


def _other_text(tokenizer: dict[str, Any]) -> None:
    """An id gets another meaning that no text of the corpus shows."""
    tokenizer["added_tokens"][0]["content"] = "<|other|>"
    tokenizer["model"]["vocab"] = {
        ("<|other|>" if name == "<|pad|>" else name): at for name, at in tokenizer["model"]["vocab"].items()
    }


def _plain(tokenizer: dict[str, Any]) -> None:
    tokenizer["added_tokens"][0]["special"] = False


@pytest.mark.parametrize("how", [_other_text, _plain])
def test_an_id_that_means_something_else_breaks_a_promise(
    how: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever holds it would be read wrongly, whatever texts are written with."""
    old, new = model(tmp_path / "old", version="2.0"), model(tmp_path / "new")
    told = json.loads((new / "tokenizer.json").read_text())
    how(told)
    (new / "tokenizer.json").write_text(json.dumps(told))
    code, out = compat(registry(tmp_path, {"2.0": old, "2.1": new}, {"2.1": "2.0"}), capsys)
    assert code == 1
    assert "0 of" in out and "1 ids mean something else" in out
    assert "  id 0: '<|pad|>' became " in out


def test_a_template_that_tells_otherwise_breaks_a_promise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = model(tmp_path / "old", version="2.0"), model(tmp_path / "new")
    (new / "chat_template.jinja").write_text("{{ messages[0].content }}")
    code, out = compat(registry(tmp_path, {"2.0": old, "2.1": new}, {"2.1": "2.0"}), capsys)
    assert (code, out.split("\n")[1]) == (1, "  a conversation has other ids")


def test_what_has_no_template_and_what_is_a_part_of_a_character(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two versions without one tell a conversation alike; a part is shown by its bytes."""
    old, new = model(tmp_path / "old", 512, "2.0"), model(tmp_path / "new", 400)
    for folder in (old, new):
        (folder / "chat_template.jinja").unlink()
    told = json.loads(compat(registry(tmp_path, {"2.0": old, "2.1": new}), capsys, "--json")[1])
    (pair,) = told["pairs"]
    assert (pair["chat_moved"], pair["added"], len(pair["moved_ids"])) == (False, 0, 112)
    assert {moved["new"] for moved in pair["moved_ids"]} == {None}
    assert any(moved["old"].startswith("\\x") for moved in pair["moved_ids"])


def test_one_version_alone_has_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = compat(registry(tmp_path, {"2.1": model(tmp_path / "only")}), capsys)
    assert (code, out) == (0, "2.1 is the only version: there is nothing to compare\n")


def test_a_corpus_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder of texts; without any it cannot be told."""
    file = registry(tmp_path, {"2.0": model(tmp_path / "a", 400, "2.0"), "2.1": model(tmp_path / "b")})
    own = tmp_path / "own"
    own.mkdir()
    assert compat(file, capsys, "--corpus", str(own))[0] == 2
    (own / "house.txt").write_text("x\n\nس\u2028ل\n")
    assert read_corpus(own) == {"house": ["x", "س\u2028ل"]}
    code, out = compat(file, capsys, "--corpus", str(own), "--json")
    assert (code, json.loads(out)["corpus"]) == (0, {"house": 2})
    (own / "house.txt").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read as UTF-8 text"):
        read_corpus(own)


# -- taking a model in ------------------------------------------------------------------------------------------------


def adopt(
    capsys: pytest.CaptureFixture[str], folder: Path, version: str, file: Path, *more: str
) -> tuple[int, str, str]:
    code = run(["toon", "adopt", str(folder), "--version", version, "--registry", str(file), *more])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_first_model_makes_the_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the version is written into its `config.json`."""
    (tmp_path / "models").mkdir()
    folder = model(tmp_path / "models" / "smollm2", version=None)
    file = tmp_path / "toon.yaml"
    code, out, _ = adopt(capsys, folder, "2.1", file)
    assert code == 0
    assert "config.json: tokenizer_version is 2.1\n" in out
    assert f"smollm2 speaks 2.1, whose tokenizer has the hash {fingerprint(folder)}" in out
    loaded = load_registry(file)
    assert loaded.models["smollm2"].folder == folder.resolve()
    before = file.read_text(), (folder / "config.json").read_bytes()
    assert adopt(capsys, folder, "2.1", file)[0] == 0
    assert (file.read_text(), (folder / "config.json").read_bytes()) == before, "the second time changes nothing"


def test_a_registry_keeps_its_comments_and_its_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = (model(tmp_path / name, vocab, None) for name, vocab in (("a", 512), ("b", 400), ("c", 512)))
    file = tmp_path / "toon.yaml"
    adopt(capsys, first, "2.1", file)
    file.write_text(
        "# نخست\n"
        + file.read_text().replace("models:", "models:  # those that are served")
        + "engine: {rows: 4}  # few\n"
    )
    before = file.read_text().split("\n")
    assert adopt(capsys, second, "3.0", file, "--name", "zwei")[0] == 0
    assert adopt(capsys, third, "2.1", file)[0] == 0
    after = file.read_text().split("\n")
    assert [line for line in after if line in before] == before
    assert [line.replace(f"'{fingerprint(second)}'", fingerprint(second)) for line in after if line not in before] == [
        f"  '3.0': {{folder: b, sha256: {fingerprint(second)}}}",
        "  zwei: {folder: b, tokenizer: '3.0'}",
        "  c: {folder: c, tokenizer: '2.1'}",
    ]
    assert {name: entry.version for name, entry in load_registry(file).models.items()} == {
        "a": "2.1",
        "zwei": "3.0",
        "c": "2.1",
    }


def test_a_version_that_is_taken_is_not_given_to_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody may hold ids of it. Nothing is changed then."""
    first, second = model(tmp_path / "a"), model(tmp_path / "b", 400, None)
    file = tmp_path / "toon.yaml"
    adopt(capsys, first, "2.1", file)
    before = file.read_text()
    code, out, err = adopt(capsys, second, "2.1", file)
    assert (code, out) == (2, "")
    assert "tokenizers.2.1: version 2.1 has the hash" in err
    assert file.read_text() == before
    assert "tokenizer_version" not in (second / "config.json").read_text()


def test_a_model_whose_tokenizer_changed_gets_a_version_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its entry is changed; the version it had stays, with the files it had elsewhere."""
    kept, changed = model(tmp_path / "kept"), model(tmp_path / "changed")
    file = tmp_path / "toon.yaml"
    adopt(capsys, kept, "2.1", file)
    adopt(capsys, changed, "2.1", file)
    write_tokenizer(changed, 400)
    code, out, _ = adopt(capsys, changed, "3.0", file)
    assert code == 0
    assert "tokenizer_version is 3.0, and was 2.1" in out
    loaded = load_registry(file)
    assert {name: entry.version for name, entry in loaded.models.items()} == {"kept": "2.1", "changed": "3.0"}


def test_what_cannot_be_taken_in_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file = model(tmp_path / "a"), tmp_path / "toon.yaml"
    assert "'2' is no version" in adopt(capsys, folder, "2", file)[2]
    assert "there is no tokenizer.json here" in adopt(capsys, tmp_path, "2.1", file)[2]
    (folder / "config.json").write_text("{}")
    assert "model_type: None is no family" in adopt(capsys, folder, "2.1", file)[2]
    assert not file.exists()


# -- serving ----------------------------------------------------------------------------------------------------------


def test_without_the_extra_the_command_says_what_to_install(
    tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("proxy.cli.toon.find_spec", lambda name: None if name == "torch" else object())
    code = run(["toon", "serve", "--registry", str(tiny_models.folder() / "toon.yaml")])
    assert (code, capsys.readouterr().err) == (
        2,
        "sluice: torch is not installed: install sluice-proxy[toon], the extra for local models\n",
    )


def test_a_registry_that_is_wrong_is_told_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["serve"], ["compat"]):
        assert run(["toon", *words, "--registry", str(tmp_path / "toon.yaml")]) == 2
        assert "toon.yaml: cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_folder_may_be_moved_with_its_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Paths in it are its own neighbours'."""
    (tmp_path / "here").mkdir()
    folder = model(tmp_path / "here" / "a")
    adopt(capsys, folder, "2.1", tmp_path / "here" / "toon.yaml")
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert list(load_registry(tmp_path / "there" / "toon.yaml").models) == ["a"]
