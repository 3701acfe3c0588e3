"""`toon.yaml`: which models take token ids, and for which version of a tokenizer each was made (docs/toon.md).

In: the file, and the JSON in each model's folder. Out: a `Registry` in which three things agree for every model: the
version that `toon.yaml` says, the one that `config.json` says, and the hash of the tokenizer's files. Where one
differs, a `ConfigError` says which, both values and what to do: ids of another tokenizer are another text. Never:
torch, the weights, or a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proxy.errors import ConfigError
from proxy.semantics.complaints import nearest
from proxy.semantics.nodes import Lines
from proxy.toon.agreement import Claims, disagreement
from proxy.toon.card import Card, PositionBase
from proxy.toon.fingerprint import TOKENIZER_FILE, fingerprint
from proxy.toon.model_folder import CONFIG_FILE, ModelFacts, read_model
from proxy.toon.registry_file import Dtype, ModelSection, RegistryFile, TokenizerSection, read_registry_file

#: A window that moves is of so many ids, where the file does not say.
_WINDOW: Final = 1024


@dataclass(frozen=True, slots=True)
class TokenizerEntry:
    """`folder` holds its files, whose hash is `sha256`. With `compatible_with`, every text has the same ids in it as in
    that other version: `sluice toon compat` holds it to that."""

    version: str
    folder: Path
    sha256: str
    compatible_with: str | None


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model and what its files say of it."""

    name: str
    folder: Path
    version: str
    tokenizer: TokenizerEntry
    vocab: int
    context: int
    base: PositionBase
    window: int
    eos: frozenset[int]
    bos: int | None
    pad: int | None
    special: frozenset[int]

    def card(self) -> Card:
        return Card(
            version=self.version,
            vocab=self.vocab,
            context=self.context,
            base=self.base,
            pad=self.pad,
            special=self.special,
            window=self.window,
            eos=self.eos,
        )


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`cache_mib`: memory for keys and values; `rows`: answers at once; `waiting`: requests that wait beyond them;
    `threads`: torch's own, 0 for one per core."""

    device: str
    dtype: Dtype
    cache_mib: int
    rows: int
    waiting: int
    threads: int


@dataclass(frozen=True, slots=True)
class ListenSettings:
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Registry:
    """`tokenizers` by version and `models` by name, in the file's order."""

    file: Path
    tokenizers: Mapping[str, TokenizerEntry]
    models: Mapping[str, ModelEntry]
    engine: EngineSettings
    listen: ListenSettings


def load_registry(file: Path) -> Registry:
    """Reads `toon.yaml` and checks what it names. Raises `ConfigError` for the first thing that is wrong."""
    told, lines = read_registry_file(file)
    return _Loading(file, told, lines).registry()


class _Loading:
    """One file on its way."""

    def __init__(self, file: Path, told: RegistryFile, lines: Lines) -> None:
        self._file, self._told, self._lines = file, told, lines
        self._tokenizers: dict[str, TokenizerEntry] = {}

    def registry(self) -> Registry:
        told = self._told
        for version, tokenizer in told.tokenizers.items():
            self._tokenizers[version] = self._tokenizer(version, tokenizer)
        models = {name: self._model(name, model) for name, model in told.models.items()}
        engine = EngineSettings(**told.engine.model_dump())
        return Registry(self._file, self._tokenizers, models, engine, ListenSettings(**told.listen.model_dump()))

    def _error(self, place: tuple[str, ...], reason: str) -> ConfigError:
        return ConfigError(str(self._file), self._lines.line_of(place), f"{'.'.join(place)}: {reason}")

    def _folder(self, place: tuple[str, ...], named: str, needed: str) -> Path:
        folder = (self._file.parent / named).resolve()
        if not folder.is_dir():
            raise self._error((*place, "folder"), f"there is no folder {named} (beside this file)")
        if not (folder / needed).is_file():
            raise self._error((*place, "folder"), f"{named} has no {needed}")
        return folder

    def _tokenizer(self, version: str, section: TokenizerSection) -> TokenizerEntry:
        place = ("tokenizers", version)
        folder = self._folder(place, section.folder, TOKENIZER_FILE)
        found = self._hash(place, folder)
        if found != section.sha256:
            reason = (
                f"is {section.sha256}, and the hash of the files in {section.folder} is {found}: they are not those "
                "that were registered. Restore them, or take them in under another version: "
                f"`sluice toon adopt {section.folder} --version X.Y`"
            )
            raise self._error((*place, "sha256"), reason)
        if (other := section.compatible_with) is not None:
            self._check_other(place, version, other)
        return TokenizerEntry(version, folder, section.sha256, other)

    def _check_other(self, place: tuple[str, ...], version: str, other: str) -> None:
        if other == version:
            raise self._error((*place, "compatible_with"), "names this very version; name an earlier one")
        if other not in self._told.tokenizers:
            reason = f"there is no version {other}; {nearest(other, list(self._told.tokenizers))}"
            raise self._error((*place, "compatible_with"), reason)

    def _hash(self, place: tuple[str, ...], folder: Path) -> str:
        try:
            return fingerprint(folder)
        except OSError as problem:
            raise self._error((*place, "folder"), f"{problem.filename}: {problem.strerror}") from problem

    def _model(self, name: str, section: ModelSection) -> ModelEntry:
        place = ("models", name)
        folder = self._folder(place, section.folder, CONFIG_FILE)
        tokenizer = self._tokenizers.get(section.tokenizer)
        if tokenizer is None:
            reason = f"there is no version {section.tokenizer}; {nearest(section.tokenizer, list(self._tokenizers))}"
            raise self._error((*place, "tokenizer"), reason)
        has_own = (folder / TOKENIZER_FILE).is_file()
        facts = read_model(folder, folder if has_own else tokenizer.folder)
        found = self._hash(place, folder) if has_own else tokenizer.sha256
        registered = {version: one.sha256 for version, one in self._tokenizers.items()}
        claims = Claims(section.folder, section.tokenizer, facts.version, found, registered)
        if (odd := disagreement(claims)) is not None:
            raise self._error((*place, "tokenizer"), odd)
        return ModelEntry(
            name=name,
            folder=folder,
            version=section.tokenizer,
            tokenizer=tokenizer,
            vocab=facts.vocab,
            context=facts.context,
            base=facts.base,
            window=self._window(place, section, facts),
            eos=facts.eos,
            bos=facts.bos,
            pad=facts.pad,
            special=facts.special,
        )

    def _window(self, place: tuple[str, ...], section: ModelSection, facts: ModelFacts) -> int:
        if section.window is None:
            return min(_WINDOW, facts.context)
        if section.window > facts.context:
            reason = f"{section.window} is more than the model's context of {facts.context}"
            raise self._error((*place, "window"), reason)
        return section.window
