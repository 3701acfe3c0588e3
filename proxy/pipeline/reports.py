"""Reports of usage: where a vendor's stand, and how several make one (`usage` of a rule file).

In: what the dialect's reader made of a payload, and its bytes. Out: the same with the usage object that stands where
only the rule file knows, and the one object for the row: the last, or all added up. Figures are never interpreted here,
and an object is the vendor's own unless several were added. (contract L2; facts of vendors, 0.10)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.canon.chunk import Chunk, Heartbeat, Parsed
from proxy.dialects.payload import BROKEN, parse_json
from proxy.semantics.rule import UsageWays

_ONE_WAY = re.compile(r"[\w.:$@ -]*", re.ASCII)


class UsageReports:
    """For one answer. `looks`: are there places to look at besides those that the dialect's reader knows?"""

    def __init__(self, ways: UsageWays) -> None:
        self.looks = bool(ways.at)
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
