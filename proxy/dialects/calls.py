"""Ids of tool calls for vendors that are particular about them: their letters, their length, each used once.

A client may write an id that another vendor gave, or name two calls alike. What is acceptable is left as it is, so that
a conversation that stays at its vendor keeps its ids.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from hashlib import sha256

from proxy.canon.request import Message, Part, ToolCall, ToolResult

_DIGITS = 16


def short_id(identity: str, most: int) -> str:
    """The id in at most so many letters; two long ones stay apart."""
    if len(identity) <= most:
        return identity
    digest = sha256(identity.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{identity[: most - _DIGITS - 1]}-{digest}"


class CallIds:
    """The ids that the calls of one conversation have at a vendor. `bad` are letters that it refuses."""

    def __init__(self, bad: re.Pattern[str], most: int) -> None:
        self._bad, self._most = bad, most
        self._open: dict[str, deque[str]] = {}
        self._last: dict[str, str] = {}
        self._used: set[str] = set()
        self._times: dict[str, int] = {}

    def of_call(self, identity: str) -> str:
        told = base = self._made(identity)
        number = self._times.get(base, 1)
        while told in self._used:
            number += 1
            told = short_id(f"{base}_{number}", self._most)
        self._times[base] = number
        self._used.add(told)
        self._open.setdefault(identity, deque()).append(told)
        self._last[identity] = told
        return told

    def of_result(self, identity: str) -> str:
        """The first call of this name that has no result yet, else the last."""
        waiting = self._open.get(identity)
        return waiting.popleft() if waiting else self._last.get(identity) or self._made(identity)

    def _made(self, identity: str) -> str:
        return short_id(self._bad.sub("_", identity), self._most) or "call"


def results_beside_calls(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Each result right behind the message that made its call, where another message stands between them: the
    Responses API wants the two in one conversation, all others want them side by side. Results without a call stay."""
    groups: list[list[Message]] = []  # a message, and the results behind it
    callers: dict[str, int] = {}
    for message in messages:
        if message.role != "tool" or not groups:
            callers |= {part.id: len(groups) for part in message.parts if isinstance(part, ToolCall)}
            groups.append([message])
            continue
        for owner, parts in _by_caller(message.parts, callers, len(groups) - 1).items():
            same = len(parts) == len(message.parts)
            groups[owner].append(message if same else Message("tool", tuple(parts), at=message.at))
    return tuple(message for group in groups for message in group)


def _by_caller(parts: tuple[Part, ...], callers: Mapping[str, int], last: int) -> dict[int, list[Part]]:
    """What is no result stays with the result before it."""
    told: dict[int, list[Part]] = {}
    owner = last
    for part in parts:
        if isinstance(part, ToolResult):
            owner = callers.get(part.call, last)
        told.setdefault(owner, []).append(part)
    return told
