"""Changes to a rule file that keep all the rest as it was written: comments, order, layout, hand edits (contract R3).

In: a rule file's name and text, with its own line ends, and what is to be in it: a rule, a proof, a way of the vendor.
Out: the text's next version. A change touches the lines that it must and no other byte; nothing to change leaves the
text as it is. Each version is read back before it is given out: it is a valid rule file, and says what the old one said
and the change besides. Never: touches the disk, takes anything away.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Final

from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from proxy.errors import RuleError
from proxy.learning.values import PROOFS, Draft
from proxy.learning.yaml_splice import Entry, Unchangeable, YamlText, is_flow
from proxy.learning.yaml_text import comment, entry, flow, is_regex_key
from proxy.semantics.nodes import parse_yaml
from proxy.semantics.rulefile import parse_rule_file

#: The order in which a reader expects the keys of a file, and those of a rule.
FILE_ORDER: Final = (
    "vendor", "dialect", "dialects", "end_mark", "end_mark_trusted", "untrusted_finishes", "text_mode", "key_header",
    "request_fields", "finish_reasons", "heartbeats", "usage", "deadlines", "time_zone", "use", "rules", "fallback",
)  # fmt: skip
RULE_ORDER: Final = ("id", "when", "then", "evidence", "seen", "proof")


class RuleFileEditor:
    """One rule file while it is changed. Whatever raises RuleError has changed nothing: for a file that is not valid, a
    change that would make it so, what stands at an alias."""

    def __init__(self, file: str, text: str) -> None:
        parse_rule_file(file, text)
        self._file, self._text = file, text

    @property
    def text(self) -> str:
        """The file's text with all changes so far."""
        return self._text

    def add_rule(self, draft: Draft) -> None:
        """Before the rule of this file that `draft.before` names, else behind all. Its reason becomes its comment."""
        value, yaml = self._read()
        rules = _list_in(value, "rules")
        ids = [str(one["id"]) for one in rules]
        if draft.id in ids:
            raise RuleError(self._file, self._line_of(yaml, draft.id), f"the id {draft.id!r} is there already")
        place = ids.index(self._near(draft.before, ids)) if draft.before is not None else len(rules)
        rule = _as_rule(draft)
        self._do(yaml, lambda: _add_rule(yaml, rule, draft.reason, place))
        self._accept(yaml, {**value, "rules": [*rules[:place], rule, *rules[place:]]})

    def prove(self, rule_id: str, evidence: Sequence[str], seen: date, proof: str) -> None:
        """Adds what evidence is not there yet; a later day and a stronger proof take the place of the present ones."""
        if proof not in PROOFS:
            raise ValueError(f"{proof!r} is none of {', '.join(PROOFS)}")
        value, yaml = self._read()
        rules = _list_in(value, "rules")
        ids = [str(one["id"]) for one in rules]
        place = ids.index(self._near(rule_id, ids))
        rule = rules[place]
        listed = _listed(rule.get("evidence", []))
        new = [one for one in dict.fromkeys(evidence) if one not in listed]
        after: dict[str, object] = dict(rule)
        if new:
            after["evidence"] = [*listed, *new] if len(listed) + len(new) > 1 else new[0]
        before = rule.get("seen")
        after["seen"] = max(before, seen) if isinstance(before, date) else seen
        after["proof"] = max(str(rule.get("proof", proof)), proof, key=PROOFS.index)
        if after == rule or not _listed(after.get("evidence", [])):
            return
        self._do(yaml, lambda: _prove(yaml, _rule_nodes(yaml)[place], rule, after, new))
        self._accept(yaml, {**value, "rules": [*rules[:place], after, *rules[place + 1 :]]})

    def set_way(self, key: str, value: object) -> None:
        """A key at the top of the file: a scalar is replaced, a mapping merged by key, a list gets what it lacks."""
        old, yaml = self._read()
        wanted = _plain(value)
        after = {**old, key: _merged(old[key], wanted) if key in old else wanted}
        if after == old:
            return
        self._do(yaml, lambda: _set(yaml, yaml.root, old, key, wanted, FILE_ORDER, is_regex_key(key)))
        self._accept(yaml, after)

    def _read(self) -> tuple[dict[str, object], YamlText]:
        value, _ = parse_yaml(self._file, self._text)
        assert isinstance(value, dict)  # or it would not have been valid
        try:
            return value, YamlText(self._text)
        except YAMLError as error:
            reason = f"is YAML that a program cannot change: {' '.join(str(error).split())}"
            raise RuleError(self._file, None, reason) from error

    def _near(self, rule_id: str, ids: Sequence[str]) -> str:
        if rule_id in ids:
            return rule_id
        near = difflib.get_close_matches(rule_id, ids, n=1, cutoff=0.0)
        hint = f"; the nearest is {near[0]!r}" if near else ""
        raise RuleError(self._file, None, f"has no rule {rule_id!r} of its own{hint}")

    def _line_of(self, yaml: YamlText, rule_id: str) -> int | None:
        for node in _rule_nodes(yaml):
            if (found := yaml.find(node, "id")) is not None and found.value.value == rule_id:
                return yaml.line_of(found.key.start_mark.index)
        return None

    def _do(self, yaml: YamlText, change: Callable[[], None]) -> None:
        try:
            change()
        except Unchangeable as error:
            raise RuleError(self._file, yaml.line_of(error.index), str(error)) from error

    def _accept(self, yaml: YamlText, wanted: Mapping[str, object]) -> None:
        """A layout that was not foreseen is refused, rather than the file damaged."""
        text = yaml.changed()
        parse_rule_file(self._file, text)
        got, _ = parse_yaml(self._file, text)
        if got != wanted:
            raise RuleError(self._file, None, "its layout is too unusual for a program to change: do it by hand")
        self._text = text


def _as_rule(draft: Draft) -> dict[str, object]:
    rule: dict[str, object] = {"id": draft.id, "when": _plain(draft.when), "then": _plain(draft.then)}
    if draft.evidence:
        evidence: object = draft.evidence[0] if len(draft.evidence) == 1 else list(draft.evidence)
        rule |= {"evidence": evidence, "seen": draft.seen, "proof": draft.proof}
    return rule


def _add_rule(yaml: YamlText, rule: Mapping[str, object], reason: str, place: int) -> None:
    found = yaml.find(yaml.root, "rules")
    if found is None:
        if is_flow(yaml.root):
            return yaml.add_entry(yaml.root, "rules", [rule], FILE_ORDER)
        return _begin_rules(yaml, ["rules:", *_rule_lines(rule, reason, 2, 4)])
    listed = yaml.direct(found)
    items = yaml.items(listed)
    if not items and not is_flow(yaml.root) and "#" not in yaml.source(listed):
        return yaml.as_block(found, _rule_lines(rule, reason, 2, 4))
    if is_flow(listed):
        written = flow(rule)
        return yaml.add_item_before(items[place], written) if place < len(items) else yaml.add_item(listed, written)
    dash = yaml.dash(items[0])
    column, key = yaml.column(dash), yaml.column(items[0].start_mark.index)
    lines = _rule_lines(rule, reason, column, key if key > column + 1 else column + 2)
    apart = len(items) > 1 and all(yaml.is_apart(item) for item in items[1:])
    if place < len(items):
        yaml.add_lines(yaml.above(yaml.dash(items[place])), [*lines, ""] if apart else lines)
    else:
        yaml.add_lines(yaml.line_end(yaml.end_of(items[-1])), ["", *lines] if apart else lines)


def _begin_rules(yaml: YamlText, lines: Sequence[str]) -> None:
    fallback = yaml.find(yaml.root, "fallback")
    if fallback is not None:
        yaml.add_lines(yaml.above(fallback.key.start_mark.index), lines)
    else:
        yaml.add_lines(yaml.line_end(yaml.end_of(yaml.root)), lines)


def _rule_lines(rule: Mapping[str, object], reason: str, dash: int, column: int) -> list[str]:
    lines = []
    for key, value in rule.items():
        if key == "evidence" and isinstance(value, list):
            lines += _evidence_lines(value, column)
        else:
            lines += entry(key, value, column)
    lines[0] = " " * dash + "-" + " " * (column - dash - 1) + lines[0][column:]
    return [*comment(reason, dash), *lines]


def _evidence_lines(evidence: Sequence[str], column: int) -> list[str]:
    """One below the other, however few they are."""
    return [" " * column + "evidence:", *(" " * (column + 2) + f"- {flow(place)}" for place in evidence)]


def _prove(
    yaml: YamlText, node: Node, rule: Mapping[str, object], after: Mapping[str, object], new: Sequence[str]
) -> None:
    if new:
        _add_evidence(yaml, node, yaml.find(node, "evidence"), new)
    for key in ("seen", "proof"):
        if (found := yaml.find(node, key)) is None:
            # After what stands before it now; what was added just now comes first, being added there too.
            yaml.add_entry(node, key, after[key], RULE_ORDER)
        elif after[key] != rule[key]:
            yaml.replace(yaml.direct(found), flow(after[key]))


def _add_evidence(yaml: YamlText, node: Node, found: Entry | None, new: Sequence[str]) -> None:
    if found is None:
        return yaml.add_entry(node, "evidence", list(new) if len(new) > 1 else new[0], RULE_ORDER)
    value = yaml.direct(found)
    if isinstance(value, SequenceNode) and value.value:
        for place in new:
            yaml.add_item(value, flow(place))
    elif isinstance(value, SequenceNode) or is_flow(node):
        listed = [] if isinstance(value, SequenceNode) else [yaml.source(value)]
        yaml.replace(value, "[" + ", ".join([*listed, *map(flow, new)]) + "]")
    else:
        inside = " " * (yaml.column(found.key.start_mark.index) + 2) + "- "
        yaml.as_block(found, [inside + yaml.source(value), *(inside + flow(place) for place in new)])


def _set(
    yaml: YamlText,
    mapping: Node,
    old: Mapping[str, object],
    key: str,
    value: object,
    order: Sequence[str],
    quoted: bool,
) -> None:
    found = yaml.find(mapping, key)
    if found is None:
        return yaml.add_entry(mapping, key, value, order, quoted)
    present = old.get(key)
    if _merged(present, value) == present:
        return
    node = yaml.direct(found)
    if isinstance(value, list) and isinstance(node, SequenceNode | ScalarNode):
        more = [flow(one, quoted=quoted) for one in value if one not in _listed(present)]
        _extend(yaml, found, node, more)
    elif isinstance(value, dict) and isinstance(node, MappingNode) and isinstance(present, dict):
        for name, one in value.items():
            _set(yaml, node, present, name, one, (), quoted or is_regex_key(name))
    elif isinstance(node, ScalarNode):
        yaml.replace(node, flow(value, quoted=quoted))
    else:
        reason = f"{key}: {flow(value)} does not fit what stands there: change it by hand"
        raise Unchangeable(found.key.start_mark.index, reason)


def _extend(yaml: YamlText, found: Entry, node: Node, more: Sequence[str]) -> None:
    """A list, or the one text that stands for a list."""
    if isinstance(node, SequenceNode) and (node.value or is_flow(node)):
        for one in more:
            yaml.add_item(node, one)
    else:
        yaml.replace(found.value, "[" + ", ".join([yaml.source(node), *more]) + "]")


def _merged(old: object, new: object) -> object:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: _merged(old[key], one) if key in old else one for key, one in new.items()}
    if isinstance(new, list) and not isinstance(old, dict):
        added = [one for one in new if one not in _listed(old)]
        return [*_listed(old), *added] if added else old
    return new


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def _list_in(value: Mapping[str, object], key: str) -> list[dict[str, object]]:
    listed = value.get(key, [])
    return listed if isinstance(listed, list) else []


def _rule_nodes(yaml: YamlText) -> list[Node]:
    found = yaml.find(yaml.root, "rules")
    return yaml.items(yaml.direct(found)) if found is not None else []


def _plain(value: object) -> object:
    """As YAML reads it back."""
    match value:
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case str():
            return str(value)
        case _:
            return value
