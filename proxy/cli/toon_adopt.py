"""Taking a model into `toon.yaml`: its tokenizer's version and hash, written where they are looked for (docs/toon.md).

In: a model's folder, a version, and a registry, which need not be there yet. Out: `tokenizer_version` in the folder's
`config.json`, entries in `toon.yaml` whose comments and layout stay to the byte, and a line for each thing done. Never:
gives a version that has a hash another one, for somebody holds ids of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
from ruamel.yaml.nodes import MappingNode

from proxy.errors import ConfigError
from proxy.learning.yaml_splice import Unchangeable, YamlText
from proxy.learning.yaml_text import entry
from proxy.stores.whole_file import write_whole
from proxy.toon.fingerprint import TOKENIZER_FILE, fingerprint
from proxy.toon.model_folder import CONFIG_FILE, VERSION_KEY, read_model, read_object
from proxy.toon.registry_file import RegistryFile, is_version, parse_registry

_HEAD: Final = "# Models that take token ids, and the tokenizers they were made for (docs/toon.md).\n"


def adopt_model(folder: Path, version: str, registry: Path, name: str | None) -> Iterator[str]:
    """Does it, and says what it did. Raises `ConfigError`, and then has changed nothing."""
    if not is_version(version):
        raise ConfigError(str(folder), None, f"{version!r} is no version; a version is a digit, a dot and a digit: 2.1")
    if not (folder / TOKENIZER_FILE).is_file():
        raise ConfigError(str(folder), None, f"there is no {TOKENIZER_FILE} here, so there is nothing to know it by")
    read_model(folder, folder)  # is it one that can be served?
    sha256 = fingerprint(folder)
    called = name or folder.resolve().name
    text = _registered(registry, _named(folder, registry), version, sha256, called)
    parse_registry(registry, text)
    yield from _write_version(folder / CONFIG_FILE, version)
    write_whole(registry, text.encode())
    yield f"{registry}: {called} speaks {version}, whose tokenizer has the hash {sha256}"


def _named(folder: Path, registry: Path) -> str:
    """As it is written in the registry: from there."""
    return Path(os.path.relpath(folder.resolve(), registry.resolve().parent)).as_posix()


def _write_version(file: Path, version: str) -> Iterator[str]:
    config = read_object(file)
    was = config.get(VERSION_KEY)
    if was == version:
        return
    config[VERSION_KEY] = version
    write_whole(file, orjson.dumps(config, option=orjson.OPT_INDENT_2) + b"\n")
    yield f"{file}: {VERSION_KEY} is {version}" + ("" if was is None else f", and was {was}")


def _registered(registry: Path, folder: str, version: str, sha256: str, name: str) -> str:
    """The registry's text with the version and the model in it."""
    tokenizer = {"folder": folder, "sha256": sha256}
    model = {"folder": folder, "tokenizer": version}
    if not registry.exists():
        lines = ["tokenizers:", *entry(version, tokenizer, 2), "models:", *entry(name, model, 2)]
        return _HEAD + "\n".join([*lines, ""])
    text = registry.read_text(encoding="utf-8")
    told, _ = parse_registry(registry, text)
    yaml = YamlText(text)
    try:
        _add_tokenizer(yaml, registry, told, version, tokenizer)
        _add_model(yaml, told, name, model)
    except Unchangeable as problem:
        raise ConfigError(str(registry), yaml.line_of(problem.index), str(problem)) from problem
    return yaml.changed()


def _add_tokenizer(yaml: YamlText, registry: Path, told: RegistryFile, version: str, entry: dict[str, str]) -> None:
    known = told.tokenizers.get(version)
    if known is None:
        yaml.add_entry(_section(yaml, "tokenizers"), version, entry)
    elif known.sha256 != entry["sha256"]:
        reason = (
            f"version {version} has the hash {known.sha256}, and these files have {entry['sha256']}: they are another "
            "tokenizer. Choose a version that is not taken"
        )
        raise ConfigError(str(registry), None, f"tokenizers.{version}: {reason}")


def _add_model(yaml: YamlText, told: RegistryFile, name: str, entry: dict[str, str]) -> None:
    """The model of this name, or of this folder, gets the version."""
    models = _section(yaml, "models")
    known = next((one for one, model in told.models.items() if one == name or model.folder == entry["folder"]), None)
    if known is None:
        yaml.add_entry(models, name, entry)
        return
    found = yaml.find(models, known)
    assert found is not None, "it was parsed from there"
    section = yaml.direct(found)
    for key, value in entry.items():
        inside = yaml.find(section, key)
        assert inside is not None, "both keys are required"
        if inside.value.value != value:
            yaml.replace(yaml.direct(inside), f"'{value}'")


def _section(yaml: YamlText, key: str) -> MappingNode:
    found = yaml.find(yaml.root, key)
    assert found is not None, "both sections are required"
    section = yaml.direct(found)
    assert isinstance(section, MappingNode)
    return section
