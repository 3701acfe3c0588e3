"""Reports of usage: where a vendor's stand, and how several make one (`usage` of a rule file).

In: what the dialect's reader made of a payload, and its bytes. Out: the same with the usage object that stands where
only the rule file knows, and the one object for the row: the last, or all added up; and that object as the reader and
the vendor's ways understand it. An object is the vendor's own unless several were added. (contract L2; facts of
vendors, 0.10)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from proxy.canon.chunk import Chunk, Heartbeat, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.base import Reader
from proxy.dialects.openai_usage import tokens_of
from proxy.dialects.payload import BROKEN, parse_json
from proxy.metering.normal import Recipe
from proxy.semantics.paths import JsonPath
from proxy.semantics.rule import UsageWays

_ONE_WAY = re.compile(r"[\w.:$@ -]*", re.ASCII)


class UsageReports:
    """For one answer. `looks`: are there places to look at besides those that the dialect's reader knows? What the last
    report came with, or behind: `with_finish`, the finish of every choice; `with_error`, the error that ended it."""

    def __init__(self, ways: UsageWays) -> None:
        self.looks = bool(ways.at)
        self.with_finish = self.with_error = False
        self._ways = ways
        # A payload without the last name of any path need not be parsed again.
        self._marks = tuple(_last_name(path.steps) for path in ways.at)

    def found(self, parsed: Parsed, data: bytes) -> Parsed:
        """The payload `data` as it was parsed, with its usage if the reader knew of none."""
        if not isinstance(parsed, Chunk | Heartbeat) or (isinstance(parsed, Chunk) and parsed.usage is not None):
            return parsed
        usage = self._usage_of(data)
        if usage is None:
            return parsed
        if isinstance(parsed, Heartbeat):
            return Chunk([], usage=usage, extra=parsed.notes)
        parsed.usage, parsed.wire = usage, None
        return parsed

    def _usage_of(self, data: bytes) -> Mapping[str, object] | None:
        if not any(mark in data for mark in self._marks):
            return None
        value, _ = parse_json(data)
        if value is BROKEN:
            return None
        for path in self._ways.at:
            for usage in path.select(value):
                if isinstance(usage, dict) and usage:
                    return usage
        return None

    def joined(self, before: Mapping[str, object] | None, usage: Mapping[str, object]) -> Mapping[str, object]:
        """The answer's usage so far, after one more report."""
        return usage if before is None or self._ways.scope != "increments" else _sum(before, usage)


def understood(told: Mapping[str, object], reader: Reader, ways: UsageWays) -> Usage:
    """The object `told` in tokens, with its parts where this vendor has them."""
    usage = reader.usage(told).placed(ways.reasoning, ways.cache)
    if ways.billed_input is None and ways.billed_output is None:
        return usage
    return replace(
        usage,
        billed_input=_at(ways.billed_input, told, usage.billed_input),
        billed_output=_at(ways.billed_output, told, usage.billed_output),
    )


def recipe_of(ways: UsageWays) -> Recipe:
    """What the rule file says of figures, beyond where they stand."""
    return Recipe(
        never=ways.scope == "absent",
        in_characters=ways.unit == "characters",
        by_relay=ways.source == "relay",
        untrusted=ways.untrusted,
    )


def _at(path: JsonPath | None, told: Mapping[str, object], known: int | None) -> int | None:
    return known if path is None else next((tokens_of(value) for value in path.select(told)), None)


def _last_name(steps: tuple[str | int | None, ...]) -> bytes:
    """As it stands in any JSON that has it; nothing where JSON may write it in more than one way."""
    name = next((step for step in reversed(steps) if isinstance(step, str)), "")
    return name.encode() if _ONE_WAY.fullmatch(name) else b""


def _sum(before: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    """Numbers added up, inside objects too; of anything else the last."""
    told = dict(before)
    for name, value in more.items():
        known = told.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            told[name] = _sum(known, value)
        elif _is_number(known) and _is_number(value):
            told[name] = known + value  # type: ignore[operator]  # both are numbers
        elif value is not None or name not in told:
            told[name] = value
    return told


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
