"""Does an event of an answer stand at its true place? (docs/toon.md, "The answer")

In: the request, then each event of its answer in the order of arrival. Out: None where it is in place, or a
`Misplaced` that says why not. What is in place so far is always a beginning of the answer without a hole: the next ids
must stand at offset + stride x (prompt ids + ids in place so far), whatever came between. So of

- a *duplicate*, the second is `behind` and dropped; what follows is in place, the answer is whole;
- a *gap*, all that follows the lost event is `ahead` and dropped: ids behind a hole are no part of the answer that the
  model gave. The finish stands behind the hole too, so the answer is not whole (`is_whole`);
- a *swap*, the later event came first and is `ahead` and dropped, the earlier one is in place, and what follows is
  behind the hole that the dropped one left. Nothing is put aside to be placed later.

A dropped event moves nothing: those after it are held to the same true position. Never: an exception for what an
event holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal, TypeVar

from msgspec import UNSET

from proxy.dialects.toon.format import ToonRequest

#: `shape`: no event of an answer. `identity`: of another version, base, stride or trace than this answer's.
#: `prompt_ids`: it names another number of prompt ids, or none where the first event must say it. `behind`, `ahead`,
#: `off_grid`: before the place of the next id, beyond it, between two places. `finished`: the answer had ended.
Reason = Literal["shape", "identity", "prompt_ids", "behind", "ahead", "off_grid", "finished"]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """`expected` is where the next id stands, None where that is not known yet."""

    reason: Reason
    expected: int | None
    event: Mapping[str, object]


class _State(Enum):
    OPEN = auto()
    FINISHED = auto()
    TOLD = auto()  # its usage came: nothing may follow


_T = TypeVar("_T")


class Places:
    """One per answer. `count` is how many ids are in place."""

    def __init__(self, request: ToonRequest) -> None:
        self._pos, self._version = request.pos, request.tids.v
        self._asked = len(request.tids.ids)
        self._trace_id = None if request.meta.trace_id is UNSET else request.meta.trace_id
        # Only ids that are stripped and leave no gap have no place: then the upstream alone knows how many have.
        knows = request.x_special_tokens != "strip" or request.mask.fallback == "pad"
        self.prompt_ids: int | None = self._asked if knows else None
        self.count = 0
        self._state = _State.OPEN

    @property
    def next(self) -> int | None:
        """Where the next id stands."""
        return None if self.prompt_ids is None else self._place(self.prompt_ids)

    @property
    def is_whole(self) -> bool:
        """Its finish came, in its place: no id is missing."""
        return self._state is not _State.OPEN

    def check(self, event: Mapping[str, object]) -> Misplaced | None:
        """None: it is in place, and counted."""
        prompt_ids = event.get("x_prompt_ids", self.prompt_ids)
        if (reason := self._reason(event, prompt_ids)) is not None:
            return Misplaced(reason, self.next, event)
        assert isinstance(prompt_ids, int), "else it was refused"
        self.prompt_ids = prompt_ids
        self._trace_id = _field(event, "meta", "trace_id", str)
        self.count += len(_field(event, "tids", "ids", list) or ())
        self._move(event)
        return None

    def _reason(self, event: Mapping[str, object], prompt_ids: object) -> Reason | None:
        if not _is_event(event):
            return "shape"
        if not self._is_mine(event):
            return "identity"
        if not self._may_be(prompt_ids):
            return "prompt_ids"
        assert isinstance(prompt_ids, int), "as `_may_be` has it"
        offset = _field(event, "pos", "offset", int) or 0
        return self._where(offset, self._place(prompt_ids)) or self._when(event)

    def _is_mine(self, event: Mapping[str, object]) -> bool:
        pos = (_field(event, "pos", "base", str), _field(event, "pos", "stride", int))
        trace_id = _field(event, "meta", "trace_id", str)
        return (
            _field(event, "tids", "v", str) == self._version
            and pos == (self._pos.base, self._pos.stride)
            and trace_id is not None
            and self._trace_id in (None, trace_id)
        )

    def _may_be(self, prompt_ids: object) -> bool:
        if self.prompt_ids is not None:
            return type(prompt_ids) is int and prompt_ids == self.prompt_ids
        return type(prompt_ids) is int and 0 < prompt_ids <= self._asked

    def _where(self, offset: int, expected: int) -> Reason | None:
        if offset == expected:
            return None
        if (offset - expected) % self._pos.stride:
            return "off_grid"
        return "behind" if offset < expected else "ahead"

    def _when(self, event: Mapping[str, object]) -> Reason | None:
        """An answer has ids, one finish and one usage, in this order."""
        adds = bool(_field(event, "tids", "ids", list)) or event.get("finish_reason") is not None
        is_late = self._state is _State.TOLD or (self._state is _State.FINISHED and adds)
        return "finished" if is_late else None

    def _move(self, event: Mapping[str, object]) -> None:
        if isinstance(event.get("finish_reason"), str):
            self._state = _State.FINISHED
        if event.get("usage") is not None and self._state is _State.FINISHED:
            self._state = _State.TOLD

    def _place(self, prompt_ids: int) -> int:
        return self._pos.offset + self._pos.stride * (prompt_ids + self.count)


def _is_event(event: Mapping[str, object]) -> bool:
    """What is looked at has the kinds it must have."""
    ids = _field(event, "tids", "ids", list)
    return (
        ids is not None
        and all(type(one) is int and one >= 0 for one in ids)
        and _field(event, "pos", "offset", int) is not None
        and isinstance(event.get("finish_reason"), str | None)
    )


def _field(event: Mapping[str, object], outer: str, inner: str, kind: type[_T]) -> _T | None:
    """None where it is not there, or of another kind: `true` is no integer."""
    held = event.get(outer)
    value = held.get(inner) if isinstance(held, Mapping) else None
    return value if type(value) is kind else None
