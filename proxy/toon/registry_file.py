"""`toon.yaml` as values: which keys there are, of what kind, in what range, and on which line each stands.

In: the file's path. Out: a `RegistryFile` and its `Lines`, or a `ConfigError` with file, line, key and the nearest
valid name. Closed everywhere: an unknown key is an error. Never: looks into a model's folder.
"""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Annotated, Final, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from proxy.errors import ConfigError, RuleError
from proxy.semantics.complaints import unknown_key, wrong_value
from proxy.semantics.nodes import Lines, parse_yaml

_VERSION: Final = re.compile(r"[0-9]\.[0-9]")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_DEVICE: Final = re.compile(r"auto|cpu|cuda(:[0-9]+)?")
_MOST_IDS: Final = 2**31 - 1

Dtype = Literal["auto", "float32", "bfloat16", "float16", "float64"]


def is_version(text: str) -> bool:
    """A digit, a dot, a digit: what a request may say in `tids.v`."""
    return _VERSION.fullmatch(text) is not None


def _version(text: str) -> str:
    if not is_version(text):
        raise ValueError(f"{text!r} is no version; a version is a digit, a dot and a digit, in quotes: '2.1'")
    return text


def _hash(text: str) -> str:
    if _HASH.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no hash; it has 64 digits 0-9a-f, and `sluice toon adopt` writes it")
    return text


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no name; a model's has letters, digits and ._:/- alone, at most 128")
    return text


def _device(text: str) -> str:
    if _DEVICE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no device; valid are auto, cpu, cuda and cuda:N")
    return text


Version = Annotated[str, AfterValidator(_version)]
NonEmpty = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TokenizerSection(Section):
    folder: NonEmpty
    sha256: Annotated[str, AfterValidator(_hash)]
    compatible_with: Version | None = None


class ModelSection(Section):
    folder: NonEmpty
    tokenizer: Version
    window: Annotated[int, Field(ge=1, le=_MOST_IDS)] | None = None


class EngineSection(Section):
    device: Annotated[str, AfterValidator(_device)] = "auto"
    dtype: Dtype = "float32"
    cache_mib: Annotated[int, Field(ge=1, le=1 << 20)] = 512
    rows: Annotated[int, Field(ge=1, le=1024)] = 32
    waiting: Annotated[int, Field(ge=0, le=65_536)] = 256
    threads: Annotated[int, Field(ge=0, le=1024)] = 0


class ListenSection(Section):
    host: NonEmpty = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8090


class RegistryFile(Section):
    """`tokenizers` by version, `models` by name, both in the order in which they are written."""

    tokenizers: Annotated[dict[Version, TokenizerSection], Field(min_length=1)]
    models: Annotated[dict[Annotated[str, AfterValidator(_name)], ModelSection], Field(min_length=1)]
    engine: EngineSection = EngineSection()
    listen: ListenSection = ListenSection()


def read_registry_file(file: Path) -> tuple[RegistryFile, Lines]:
    """Raises `ConfigError` for the first fault by line."""
    return parse_registry(file, _text_of(file))


def parse_registry(file: Path, text: str) -> tuple[RegistryFile, Lines]:
    """The same of a text, which need not be written yet."""
    try:
        value, lines = parse_yaml(str(file), text)
    except RuleError as problem:
        raise ConfigError(problem.file, problem.line, problem.reason) from problem
    if not isinstance(value, dict):
        raise ConfigError(str(file), 1, "must be a mapping with the keys tokenizers, models, engine and listen")
    try:
        return RegistryFile.model_validate(value), lines
    except ValidationError as problem:
        raise _first_fault(str(file), problem, lines) from problem


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ConfigError(str(file), None, f"cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(str(file), None, "is not UTF-8") from problem


def _first_fault(file: str, problem: ValidationError, lines: Lines) -> ConfigError:
    """The first by line; a missing key last, for where there is an unknown one as well, it is that one, misspelt."""
    faults = []
    for found in problem.errors(include_url=False):
        place = [step for step in found["loc"] if step != "[key]"]
        names = ".".join(str(step) for step in place)
        is_key = found["loc"][-1] == "[key]" and found["type"] == "string_type"
        if found["type"] == "extra_forbidden":
            reason = unknown_key(str(place[-1]), _keys_at(place[:-1]), {})
        elif is_key:
            reason = f"put the key in quotes: '{place[-1]}' (a version is text, and 2.10 without quotes is 2.1)"
        elif found["type"] == "too_short":
            reason = "must name at least one"
        else:
            reason = wrong_value(found["type"], found["msg"], found["input"])
        faults.append((found["type"] == "missing", lines.line_of(place), f"{names}: {reason}"))
    _, line, reason = min(faults)
    return ConfigError(file, line, reason)


def _keys_at(place: list[str | int]) -> list[str]:
    annotation: object = RegistryFile
    for step in place:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            annotation = _bare(annotation.model_fields[str(step)].annotation)
        else:
            annotation = get_args(annotation)[-1]
    assert isinstance(annotation, type) and issubclass(annotation, BaseModel), place
    return list(annotation.model_fields)


def _bare(annotation: object) -> object:
    """Without `| None`."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation
