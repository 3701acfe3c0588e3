"""YAML text to plain values that know their lines.

`parse_yaml(file, text)` gives the value of the one document and a `Lines` that tells, for any path into it, the line on
which it stands, so that whatever is wrong with a rule can be shown where it was written. Broken YAML, a key that stands
twice and a value that holds itself are RuleErrors. Contract clause R2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml
from yaml.constructor import ConstructorError
from yaml.reader import Reader

from proxy.errors import RuleError
from proxy.semantics.complaints import broken_yaml

# libyaml's reader is some ten times faster than the Python one, and reload happens beside live streams.
_Loader: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# An alias is short, but what it stands for is built and checked each time; ten thousand rules are a fifth of this.
_MAX_NODES = 1_000_000
_MAX_DEPTH = 100
# What the reader raises for a scalar that its tag does not fit: 2026-13-99, `!!timestamp noon`, `!!bool perhaps`.
_UNREADABLE = (ValueError, AttributeError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class Lines:
    """Where the parts of one document stand (1-based)."""

    root: yaml.Node

    def line_of(self, path: Sequence[str | int]) -> int:
        """The line of the deepest part of `path` that exists; of a key rather than of its value."""
        node, line = self.root, self.root.start_mark.line
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
            line = mark.line
        return int(line) + 1


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None


def parse_yaml(file: str, text: str) -> tuple[object, Lines]:
    """The document's value and its lines. Raises RuleError."""
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                raise RuleError(file, 1, "is empty")
            _refuse_unsound(file, root)
            try:
                return loader.construct_document(root), Lines(root)
            except _UNREADABLE as error:
                raise _unreadable(file, root, error) from error
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem) if isinstance(error, ConstructorError) else broken_yaml(error, text)
        raise RuleError(file, mark.line + 1 if mark else None, reason) from error
    except yaml.YAMLError as error:
        if (found := Reader.NON_PRINTABLE.search(text)) is not None:
            line = text.count("\n", 0, found.start()) + 1
            raise RuleError(
                file, line, f"is not YAML: the character U+{ord(found[0]):04X} must not stand here"
            ) from error
        raise RuleError(file, None, f"is not YAML: {' '.join(str(error).split())}") from error
    except (ValueError, RecursionError) as error:
        # The reader's own: brackets nested without end.
        raise RuleError(file, None, f"is not YAML: {error}") from error


def _refuse_unsound(file: str, root: yaml.Node) -> None:
    """A key that stands twice, a value that holds itself, and one that grows without end from its aliases."""
    sizes: dict[int, int] = {}  # of each node with all that it holds; 0 while it is looked at

    def look(node: yaml.Node, depth: int) -> int:
        known = sizes.get(id(node))
        if known == 0:
            raise RuleError(file, node.start_mark.line + 1, "holds itself")
        if known is not None:
            return known
        if depth > _MAX_DEPTH:
            raise RuleError(file, node.start_mark.line + 1, f"stands more than {_MAX_DEPTH} brackets or indents deep")
        sizes[id(node)] = 0
        size = 1
        for child in _children(file, node):
            size += look(child, depth + 1)
        if size > _MAX_NODES:
            raise RuleError(file, node.start_mark.line + 1, f"holds more than {_MAX_NODES} values, aliases written out")
        sizes[id(node)] = size
        return size

    look(root, 0)


def _children(file: str, node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise RuleError(file, key.start_mark.line + 1, f"the key {key.value!r} stands twice")
                keys.add(key.value)
            yield key
            yield value


def _unreadable(file: str, root: yaml.Node, error: Exception) -> RuleError:
    """A plain value that looks like a date or a number and is none: 2026-13-99."""
    for scalar in _scalars(root):
        try:
            yaml.SafeLoader("").construct_object(scalar)
        except ValueError as reason:
            return RuleError(file, scalar.start_mark.line + 1, f"{scalar.value[:40]!r} cannot be read: {reason}")
        except _UNREADABLE:
            kind = scalar.tag.rpartition(":")[2]
            return RuleError(file, scalar.start_mark.line + 1, f"{scalar.value[:40]!r} cannot be read as a {kind}")
    return RuleError(file, None, f"is not YAML: {error}")


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item)
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            for part in pair:
                yield from _scalars(part)
