"""A YAML file as plain values, with the line of each (contract C4).

In: a file and the environment. Out: a `Document`: values made of dict, list, str, int, float, bool and None; the line
of every key and item; and which texts are one whole `${VAR}`. Never: print a value, or let what stands in an
environment variable be read as YAML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from proxy.errors import ConfigError

Place = tuple[str | int, ...]

_TAG: Final = "tag:yaml.org,2002:"
# Only these are read as something else than text. YAML 1.1 also knows timestamps, and would turn a model called
# 2024-11-20 into a date.
_SCALARS: Final = frozenset(_TAG + name for name in ("null", "bool", "int", "float"))
_TEXTS: Final = frozenset(_TAG + name for name in ("str", "timestamp"))
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def key_path(place: Place) -> str:
    """`("models", "gpt-4o", 0, "model")` as a person writes it: `models.gpt-4o[0].model`."""
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


@dataclass(slots=True)
class Document:
    """`values` is the whole file; `lines` are 1-based; `variables` has the name where a text is just `${VAR}`."""

    file: str
    values: object = None
    lines: dict[Place, int] = field(default_factory=dict)
    variables: dict[Place, str] = field(default_factory=dict)

    def line_of(self, place: Place) -> int | None:
        """The line of a key, or of the nearest thing around it (a key that is missing has none)."""
        for end in range(len(place), -1, -1):
            if (line := self.lines.get(place[:end])) is not None:
                return line
        return None

    def error(self, place: Place, reason: str) -> ConfigError:
        where = key_path(place)
        return ConfigError(self.file, self.line_of(place), f"{where}: {reason}" if where else reason)


def read_document(path: Path, env: Mapping[str, str], may_lack: Callable[[Place], bool] = lambda _: False) -> Document:
    """Reads one file. Raises `ConfigError` for what is not readable, not YAML, or names a variable that is not set:
    except where `may_lack` says that the variable may be missing, and then it is empty."""
    document = Document(str(path))
    text = _read_text(path)
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(document.file, None, "the file is empty")
        document.values = _Reader(document, loader, env, may_lack).value(root, ())
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else None
        raise ConfigError(document.file, line, f"not valid YAML: {problem.problem}") from problem
    except yaml.YAMLError as problem:
        raise ConfigError(document.file, None, f"not valid YAML: {problem}") from problem
    except RecursionError as problem:
        raise ConfigError(document.file, None, "nested too deeply, or an alias that contains itself") from problem
    return document


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise ConfigError(str(path), None, f"cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise ConfigError(str(path), line, "not UTF-8") from problem


class _Reader:
    """Walks the nodes of one document, filling in its lines and variables."""

    def __init__(
        self, document: Document, loader: yaml.SafeLoader, env: Mapping[str, str], may_lack: Callable[[Place], bool]
    ) -> None:
        self._document, self._loader, self._env, self._may_lack = document, loader, env, may_lack
        self._merged: set[int] = set()

    def value(self, node: yaml.Node, place: Place) -> object:
        # A key's own line is set by its mapping and stays: it is where the reader of a message will look.
        self._document.lines.setdefault(place, node.start_mark.line + 1)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, place)
            case yaml.SequenceNode():
                return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
            case yaml.ScalarNode(tag=tag) if tag in _SCALARS:
                return self._scalar(node, place)
            case yaml.ScalarNode(tag=tag) if tag in _TEXTS:
                return self._text(node.value, place)
            case _:
                raise self._document.error(place, f"the YAML tag {node.tag} is not allowed here")

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, object]:
        # `<<: *anchor` puts what it brings before what stands here, which then wins. That changes the node, and an
        # alias brings the same node again: only on the first visit is a second key a mistake.
        own = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        own = [] if id(node) in self._merged else own
        self._merged.add(id(node))
        self._loader.flatten_mapping(node)
        values: dict[str, object] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._document.error(place, "a key must be text")
            at = (*place, key.value)
            self._document.lines[at] = key.start_mark.line + 1
            if key.value in values and own.count(key.value) > 1:
                raise self._document.error(at, "this key stands here twice")
            values[key.value] = self.value(item, at)
        return values

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> object:
        try:
            return self._loader.construct_object(node)
        except (ValueError, KeyError) as problem:  # `!!int x`: a tag that its text does not fit
            raise self._document.error(place, f"not a value of the tag {node.tag}") from problem

    def _text(self, text: str, place: Place) -> str:
        if "${" not in text:
            return text
        if whole := _VARIABLE.fullmatch(text):
            self._document.variables[place] = whole[1]
        if "${" in _VARIABLE.sub("", text):
            raise self._document.error(place, "a variable is written ${NAME}: a letter or _, then letters, digits, _")
        return _VARIABLE.sub(lambda match: self._lookup(match[1], place), text)

    def _lookup(self, name: str, place: Place) -> str:
        if name not in self._env:
            if self._may_lack(place):
                return ""
            raise self._document.error(place, f"the environment variable {name} is not set")
        return self._env[name]
