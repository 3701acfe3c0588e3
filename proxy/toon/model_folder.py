"""What a Hugging Face folder says of its model, from its JSON alone: no weights are read, and torch is not needed.

In: a folder with `config.json` and a tokenizer's files. Out: `ModelFacts`: the version that the model was made for, its
vocabulary, context and kind of positions, and which ids are special. Raises `ConfigError` that names the file, and the
line where it is no JSON. Never: guesses what a family that is not known here does with positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from proxy.errors import ConfigError
from proxy.toon.card import PositionBase
from proxy.toon.fingerprint import TOKENIZER_CONFIG, TOKENIZER_FILE

CONFIG_FILE: Final = "config.json"
#: The key of `config.json` that says for which version of the tokenizer the model was made.
VERSION_KEY: Final = "tokenizer_version"
_GENERATION: Final = "generation_config.json"


class _Family(NamedTuple):
    base: PositionBase
    context: str
    """The key of the most ids."""


_FAMILIES: Final = {
    "llama": _Family("rope", "max_position_embeddings"),
    "gpt2": _Family("learned", "n_positions"),
    "mpt": _Family("alibi", "max_seq_len"),
}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    version: str | None
    vocab: int
    context: int
    base: PositionBase
    eos: frozenset[int]
    bos: int | None
    pad: int | None
    special: frozenset[int]


@dataclass(frozen=True, slots=True)
class _TokenizerFacts:
    ids: Mapping[str, int]
    special: frozenset[int]
    named: Mapping[str, str]
    """Which token `eos`, `bos` and `pad` are."""

    def id_of(self, name: str) -> int | None:
        token = self.named.get(name)
        return None if token is None else self.ids.get(token)


def read_model(folder: Path, tokenizer_folder: Path) -> ModelFacts:
    """`tokenizer_folder`: where its tokenizer's files lie, which several models may share."""
    file = folder / CONFIG_FILE
    config = read_object(file)
    family = _family(file, config)
    vocab = _count(file, config, "vocab_size")
    tokenizer = _read_tokenizer(tokenizer_folder)
    generation = read_object(folder / _GENERATION) if (folder / _GENERATION).is_file() else {}
    eos = {*_ids(file, config, "eos_token_id"), *_ids(folder / _GENERATION, generation, "eos_token_id")}
    bos, pad = (_first(_ids(file, config, f"{name}_token_id"), tokenizer.id_of(name)) for name in ("bos", "pad"))
    eos |= {one for one in [tokenizer.id_of("eos")] if one is not None}
    special = tokenizer.special | eos | {one for one in (bos, pad) if one is not None}
    _within(file, vocab, [*special, *tokenizer.ids.values()])
    return ModelFacts(
        version=_version(file, config),
        vocab=vocab,
        context=_count(file, config, family.context),
        base=family.base,
        eos=frozenset(eos),
        bos=bos,
        pad=pad,
        special=special,
    )


def read_object(file: Path) -> dict[str, object]:
    """The JSON object of a file. Raises `ConfigError`."""
    try:
        told = file.read_bytes()
    except OSError as problem:
        raise ConfigError(str(file), None, f"cannot be read: {problem.strerror}") from problem
    try:
        value = orjson.loads(told)
    except orjson.JSONDecodeError as problem:
        raise ConfigError(str(file), problem.lineno, f"is not JSON: {problem.msg}") from problem
    if not isinstance(value, dict):
        raise ConfigError(str(file), 1, "must hold a JSON object")
    return value


def _family(file: Path, config: Mapping[str, object]) -> _Family:
    kind = config.get("model_type")
    # `toon_llama` is a Llama in the class of our own
    if not isinstance(kind, str) or (family := _FAMILIES.get(kind.removeprefix("toon_"))) is None:
        known = ", ".join(f"{name} ({family.base})" for name, family in _FAMILIES.items())
        raise ConfigError(
            str(file), None, f"model_type: {kind!r} is no family whose positions are known; they are {known}"
        )
    attention = config.get("attn_config")
    if kind == "mpt" and isinstance(attention, Mapping) and not attention.get("alibi", True):
        raise ConfigError(str(file), None, "attn_config.alibi: an MPT without ALiBi is not known here")
    return family


def _count(file: Path, config: Mapping[str, object], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        told = "is missing" if value is None else f"must be a whole number of 1 or more, not {value!r}"
        raise ConfigError(str(file), None, f"{key}: {told}")
    return value


def _version(file: Path, config: Mapping[str, object]) -> str | None:
    version = config.get(VERSION_KEY)
    if version is not None and not isinstance(version, str):
        raise ConfigError(str(file), None, f'{VERSION_KEY}: must be text such as "2.1", not {version!r}')
    return version


def _ids(file: Path, config: Mapping[str, object], key: str) -> list[int]:
    value = config.get(key)
    listed = value if isinstance(value, list) else [] if value is None else [value]
    ids = [one for one in listed if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
    if len(ids) < len(listed):
        raise ConfigError(str(file), None, f"{key}: must be an id or a list of ids, not {value!r}")
    return ids


def _first(listed: Iterable[int], otherwise: int | None) -> int | None:
    return next(iter(listed), otherwise)


def _within(file: Path, vocab: int, ids: Iterable[int]) -> None:
    if (largest := max(ids, default=0)) >= vocab:
        reason = f"vocab_size: is {vocab}, and the tokenizer has the id {largest}: they are not of one model"
        raise ConfigError(str(file), None, reason)


# -- the tokenizer's own files ----------------------------------------------------------------------------------------


def _read_tokenizer(folder: Path) -> _TokenizerFacts:
    file = folder / TOKENIZER_FILE
    tokenizer = read_object(file)
    added = list(_added(file, tokenizer.get("added_tokens")))
    ids = dict(_vocabulary(file, tokenizer.get("model")))
    ids |= {content: one for one, content, _ in added}
    config = read_object(folder / TOKENIZER_CONFIG) if (folder / TOKENIZER_CONFIG).is_file() else {}
    named = {
        name: token for name in ("eos", "bos", "pad") if (token := _token(config.get(f"{name}_token"))) is not None
    }
    return _TokenizerFacts(ids, frozenset(one for one, _, is_special in added if is_special), named)


def _vocabulary(file: Path, model: object) -> Iterable[tuple[str, int]]:
    """Names with ids (BPE, WordPiece), or pairs of name and score in the order of their ids (Unigram)."""
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if isinstance(vocabulary, Mapping):
        found = [(str(name), one) for name, one in vocabulary.items()]
    elif isinstance(vocabulary, list) and all(isinstance(pair, list) and pair for pair in vocabulary):
        found = [(str(pair[0]), one) for one, pair in enumerate(vocabulary)]
    else:
        raise ConfigError(str(file), None, "model.vocab: is no vocabulary as the package `tokenizers` writes one")
    if not all(isinstance(one, int) for _, one in found):
        raise ConfigError(str(file), None, "model.vocab: has an id that is no whole number")
    return found


def _added(file: Path, added: object) -> Iterator[tuple[int, str, bool]]:
    for token in added if isinstance(added, list) else ():
        match token:
            case {"id": int(one), "content": str(content)}:
                yield one, content, bool(token.get("special"))
            case _:
                raise ConfigError(str(file), None, "added_tokens: each needs an `id` and a `content`")


def _token(value: object) -> str | None:
    """A token is written as itself, or as an object with its `content`."""
    content = value.get("content") if isinstance(value, Mapping) else value
    return content if isinstance(content, str) else None
