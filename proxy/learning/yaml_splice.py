"""Where the parts of a YAML text stand, and changes that leave all the rest of it as it is, to the byte (contract R3).

In: the text of one document, with its own line ends. Out: the same text with entries and items added and scalars
replaced, each in the style (flow or block, indentation) of what it stands among. Never: writes anew what nobody asked
for; changes what stands at an alias, since it may stand for something else too. ruamel.yaml tells the places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from proxy.learning.yaml_text import entry, flow

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_COMMENT_LINE: Final = re.compile(r"[ \t]*#")
# A heading belongs to the section that it begins, not to the one rule below it.
_HEADING: Final = re.compile(r"[ \t]*#\s*([-=─#*~])\1")
_ALIAS: Final = re.compile(r"\s*:\s*\*[^\s,\]}]+")


class Unchangeable(ValueError):
    """What a program must not change. `index` is where it stands, in characters."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


class Aliased(Unchangeable):
    """What should change stands at an alias."""

    def __init__(self, index: int) -> None:
        super().__init__(index, "stands at an alias (*name), and so for something else too: write it out by hand first")


class Entry(NamedTuple):
    """A key of a mapping with its value."""

    key: ScalarNode
    value: Node


class YamlText:
    """One document and the changes to it. Changes at one place take effect in the order in which they were made."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root: Node = YAML(typ="rt").compose(text)
        found = _LINE_END.search(text)
        self._newline = found[0] if found else "\n"
        self._changes: list[tuple[int, int, str]] = []

    def changed(self) -> str:
        """The text with all changes."""
        parts, done = [], 0
        for start, end, new in sorted(self._changes, key=lambda change: change[0]):
            assert start >= done, "two changes of one place"
            parts += [self.text[done:start], new]
            done = end
        return "".join([*parts, self.text[done:]])

    def entries(self, mapping: Node) -> list[Entry]:
        assert isinstance(mapping, MappingNode)
        return [Entry(key, value) for key, value in mapping.value]

    def find(self, mapping: Node, key: str) -> Entry | None:
        return next((one for one in self.entries(mapping) if one.key.value == key), None)

    def direct(self, found: Entry) -> Node:
        """The value, to be changed. Raises Aliased."""
        if _is_alias(found):
            raise Aliased(found.key.start_mark.index)
        return found.value

    def line_of(self, index: int) -> int:
        """1-based."""
        return sum(1 for _ in _LINE_END.finditer(self.text, 0, index)) + 1

    def source(self, node: Node) -> str:
        """How it is written."""
        return self.text[node.start_mark.index : node.end_mark.index]

    # ---- changes

    def replace(self, node: Node, new: str) -> None:
        """A scalar, or a collection in flow style."""
        self._changes.append((node.start_mark.index, node.end_mark.index, new))

    def add_entry(
        self, mapping: Node, key: str, value: object, order: Sequence[str] = (), quoted: bool = False
    ) -> None:
        """`key: value`, behind the last of those that `order` names before it; behind all, if it names none."""
        entries = self.entries(mapping)
        before = order[: order.index(key)] if key in order else [one.key.value for one in entries]
        behind = next((one for one in reversed(entries) if one.key.value in before), None)
        if is_flow(mapping):
            written = flow({key: value}, quoted=quoted)[1:-1]
            self._add_to_flow(mapping, written, entries[0].key if entries else None, behind and self._entry_end(behind))
        elif behind is None:
            first = entries[0].key.start_mark.index
            self.add_lines(self.line_start(first), entry(key, value, self.column(first), quoted=quoted))
        else:
            column = self.column(entries[0].key.start_mark.index)
            self.add_lines(self.line_end(self._entry_end(behind)), entry(key, value, column, quoted=quoted))

    def add_item(self, listed: Node, written: str) -> None:
        """An item at the end of a list, as it is to be written."""
        items = self.items(listed)
        if is_flow(listed):
            self._add_to_flow(listed, written, items[0] if items else None, self.end_of(items[-1]) if items else None)
        else:
            dash = " " * self.column(self.dash(items[0])) + "- "
            self.add_lines(self.line_end(self.end_of(items[-1])), [dash + written])

    def add_item_before(self, item: Node, written: str) -> None:
        """An item of a list in flow style, before another."""
        self._insert(item.start_mark.index, f"{written}, ")

    def as_block(self, found: Entry, lines: Sequence[str]) -> None:
        """The value, which stands on its key's line, goes; `lines` follow the line. What else is on it stays."""
        colon = self.text.index(":", found.key.end_mark.index) + 1
        self._changes.append((colon, found.value.end_mark.index, ""))
        self.add_lines(self.line_end(found.value.end_mark.index), lines)

    def add_lines(self, index: int, lines: Sequence[str]) -> None:
        """Lines at the beginning of a line. A text without an end to its last line gets none."""
        block = self._newline.join(lines)
        ended = index == 0 or self.text[index - 1] in "\r\n\ufeff"
        self._insert(index, block + self._newline if ended else self._newline + block)

    def _insert(self, index: int, new: str) -> None:
        self._changes.append((index, index, new))

    def _add_to_flow(self, collection: Node, written: str, first: Node | None, behind: int | None) -> None:
        if first is None:
            opening = "{" if isinstance(collection, MappingNode) else "["
            self._insert(self.text.index(opening, collection.start_mark.index) + 1, written)
        elif behind is None:
            self._insert(first.start_mark.index, f"{written}, ")
        else:
            self._insert(behind, f", {written}")

    # ---- places

    def items(self, listed: Node) -> list[Node]:
        """The items of a list. Raises Aliased if one is an alias."""
        assert isinstance(listed, SequenceNode)
        for item in listed.value:
            if item.start_mark.index < listed.start_mark.index:
                raise Aliased(listed.start_mark.index)
        return list(listed.value)

    def end_of(self, node: Node) -> int:
        """Behind its last character; a block collection's own mark stands where the next thing begins."""
        if isinstance(node, MappingNode) and not is_flow(node):
            return self._entry_end(self.entries(node)[-1])
        if isinstance(node, SequenceNode) and not is_flow(node):
            return self.end_of(node.value[-1])
        end = int(node.end_mark.index)
        is_block = isinstance(node, ScalarNode) and node.style in ("|", ">")
        return len(self.text[:end].rstrip()) if is_block else end

    def _entry_end(self, found: Entry) -> int:
        key_end = found.key.end_mark.index
        if _is_alias(found):
            alias = _ALIAS.match(self.text, key_end)
            return alias.end() if alias else key_end
        if not found.value.value and not self.source(found.value).strip():  # nothing behind the colon
            return self.text.index(":", key_end) + 1
        return self.end_of(found.value)

    def dash(self, item: Node) -> int:
        """Where the dash of an item in block style stands."""
        return self.text.rindex("-", 0, item.start_mark.index)

    def line_start(self, index: int) -> int:
        start = max(self.text.rfind("\n", 0, index), self.text.rfind("\r", 0, index)) + 1
        return 1 if start == 0 and self.text.startswith("\ufeff") else start

    def line_end(self, index: int) -> int:
        """The beginning of the next line, or the end of the text."""
        found = _LINE_END.search(self.text, index)
        return found.end() if found else len(self.text)

    def column(self, index: int) -> int:
        return index - self.line_start(index)

    def above(self, index: int, *, headings: bool = False) -> int:
        """The beginning of the line, or of the comment right above it that speaks of it; a heading does not."""
        start = self.line_start(index)
        while start > 0:
            before = self.line_start(_last_line_end(self.text, start))
            line = self.text[before:start]
            if before == start or not _COMMENT_LINE.match(line) or (_HEADING.match(line) and not headings):
                break
            start = before
        return start

    def is_apart(self, item: Node) -> bool:
        """Is there an empty line right above the item and its comments?"""
        start = self.above(self.dash(item), headings=True)
        return start > 0 and not self.text[self.line_start(_last_line_end(self.text, start)) : start].strip()


def is_flow(node: Node) -> bool:
    """`[…]` or `{…}`?"""
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _last_line_end(text: str, start: int) -> int:
    """Where the line end begins that stands before `start`."""
    return start - (2 if text[max(start - 2, 0) : start] == "\r\n" else 1)


def _is_alias(found: Entry) -> bool:
    return bool(found.value.start_mark.index < found.key.end_mark.index)
