"""A vendor's signs of life: what it sends that says nothing but "still here".

In: exchanges and the profile. Out: a `Sign` for each kind and wording, with its rhythm, and for those that nobody
passes over yet a pattern for the profile's `heartbeats`. A comment that stands in nearly every event (a status) is no
sign of life, nor is an event that belongs to the grammar. Never: calls words of an answer that failed a sign of life,
nor words after which the answer did not go on. (facts of vendors, 0.9)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from proxy.canon.chunk import Chunk, ErrorSeen, Heartbeat, Malformed
from proxy.dialects.payload import as_mapping, as_text
from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.learning.ways_exchange import Event, Exchange
from proxy.learning.ways_values import Seen, Sign
from proxy.pipeline.intake import Shape
from proxy.semantics.rule import VendorProfile
from proxy.semantics.sameness import without_ids

#: In so large a part of the events a comment says something about the event.
_USUAL: Final = 0.5
_MAX_TEXT: Final = 200
_NUMBER: Final = re.compile(r"\d+")
_IS_ALIVE: Final = re.compile(
    r"\bping\b|keep[-_ ]?alive|heart[-_ ]?beat|processing|waiting|queue|pending", re.IGNORECASE
)
#: What means something in a regular expression; `re.escape` writes more than a person would.
_SPECIAL: Final = re.compile(r"[\\^$.|?*+()\[\]{}]")
_FIELDS: Final = (b"data", b"event", b"id", b"retry")


@dataclass(frozen=True, slots=True)
class _Sight:
    """One sign of life, as event or as line `number`. `is_followed`: the answer went on behind it."""

    kind: str
    text: str
    t: float
    is_followed: bool
    number: int

    @property
    def what(self) -> str:
        return "event" if self.kind in ("event", "words") else "line"


def signs_of(exchanges: Sequence[Exchange], profile: VendorProfile) -> tuple[Sign, ...]:
    """By kind and shape, the most frequent first."""
    found: dict[tuple[str, str], Sign] = {}
    gaps: dict[tuple[str, str], list[float]] = {}
    for exchange in exchanges:
        last: dict[tuple[str, str], float] = {}
        for sight in (*_between(exchange), *_events(exchange)):
            key = (sight.kind, shape_of(sight.text))
            is_known = sight.kind != "bare line"
            if sight.kind == "words":
                is_known = any(known.search(sight.text) for known in profile.heartbeats)
                if not is_known and not (sight.is_followed and exchange.is_answer):
                    continue
            pattern = "" if is_known or sight.kind != "words" else pattern_of(shape_of(sight.text))
            sign = found.get(key) or Sign(*key, Seen(), is_known, pattern)
            sign = replace(sign, seen=sign.seen.plus(exchange.place(sight.what, sight.number)))
            found[key] = sign
            if key in last:
                gaps.setdefault(key, []).append(sight.t - last[key])
            last[key] = sight.t
    told = [replace(sign, every_s=round(median(gaps[key]), 3)) if key in gaps else sign for key, sign in found.items()]
    return tuple(sorted(told, key=lambda sign: (-sign.seen.count, sign.kind, sign.text)))


def shape_of(text: str) -> str:
    """The text without what differs from one to the next: `#` for ids and numbers."""
    return _NUMBER.sub("#", without_ids(text[:_MAX_TEXT]))


def pattern_of(shape: str) -> str:
    """A regular expression for texts of a shape, from their beginning to their end."""
    return "^" + r"\S+".join(_SPECIAL.sub(r"\\\g<0>", part) for part in shape.split("#")) + "$"


def _events(exchange: Exchange) -> Iterator[_Sight]:
    last = max((event.number for event in exchange.events if event.has_progress), default=0)
    for event in exchange.events:
        if (kind := _kind_of(event, exchange.dialect)) is not None:
            text = event.data.decode("utf-8", "replace").strip()
            if kind == "event":
                text = as_text(as_mapping(event.payload).get("type")) or event.name or text
            yield _Sight(kind, text[:_MAX_TEXT], event.t, event.number < last, event.number)


def _kind_of(event: Event, dialect: str) -> str | None:
    """`words` and `event` are signs of life; None: it says something, or belongs to the grammar."""
    match event.parsed:
        case _ if event.is_mark or event.bad:
            return None
        case Malformed():
            return "words" if event.data.strip() and event.data.lstrip()[:1] not in (b"{", b"[") else None
        case ErrorSeen():
            return "words" if event.parsed.is_vague else None
        case Heartbeat(notes=notes):
            return "event" if _is_alive(event, notes, dialect) else None
        case Chunk(deltas=[], usage=None, extra=extra):
            return "event" if _is_alive(event, extra, dialect) else None
        case _:
            return None


def _is_alive(event: Event, notes: Mapping[str, object], dialect: str) -> bool:
    """An event that says nothing or next to nothing: no more than a word or a number. In a grammar that names its
    events one that is named belongs to it, unless the name is one for signs of life."""
    named = as_text(as_mapping(event.payload).get("type")) or event.name
    if named and VENDOR_DIALECTS[dialect].native != "chat":
        return _IS_ALIVE.search(named) is not None
    return not any(isinstance(value, dict | list) and value for value in notes.values())


def _between(exchange: Exchange) -> Iterator[_Sight]:
    """Signs of life that are no events: comments, blank lines, events without data, lines that are no field."""
    if exchange.shape not in (Shape.SSE, Shape.NDJSON, Shape.UNKNOWN):
        return
    blocks = list(_blocks(exchange))
    with_data = [block for block in blocks if block.has_data]
    usual = {
        comment
        for comment in {shape_of(text) for block in with_data for text in block.comments}
        if sum(comment in map(shape_of, block.comments) for block in with_data) > _USUAL * len(with_data)
    }
    last = max((block.line for block in blocks if block.has_data), default=0)
    for block in blocks:
        told = [("comment", text) for text in block.comments if shape_of(text) not in usual]
        if exchange.shape is Shape.SSE:
            told += [("bare line", text) for text in block.bare if block.line < last]  # or it is an error's page
            told += [("empty event", "")] if block.is_empty_event else []
        told += [("blank line", "")] if block.is_blank else []
        for kind, text in told:
            yield _Sight(kind, text, block.t, block.line < last, block.line)


@dataclass(slots=True)
class _Block:
    """Lines up to and with a blank one. `line` is the number of the first, `t` when the last was whole."""

    line: int
    t: float
    comments: list[str]
    bare: list[str]
    has_data: bool = False
    has_field: bool = False

    @property
    def is_empty_event(self) -> bool:
        return self.has_field and not self.has_data

    @property
    def is_blank(self) -> bool:
        return not (self.has_field or self.comments or self.bare)


def _blocks(exchange: Exchange) -> Iterator[_Block]:
    block: _Block | None = None
    for number, (t, line) in enumerate(exchange.lines(), start=1):
        line = line.removeprefix(b"\xef\xbb\xbf")
        block = block or _Block(number, t, [], [])
        block.t = t
        if not line.strip():
            yield block
            block = None
            continue
        _take(block, line, is_sse=exchange.shape is not Shape.NDJSON)
        if exchange.shape is Shape.NDJSON:  # there a blank line ends nothing
            yield block
            block = None
    if block is not None and not block.has_field:  # an open event is cut, not empty
        yield block


def _take(block: _Block, line: bytes, *, is_sse: bool) -> None:
    name, _, value = line.partition(b":")
    if not is_sse:
        block.has_data = block.has_field = True
    elif not name:
        block.comments.append(value.decode("utf-8", "replace").strip()[:_MAX_TEXT])
    elif name in _FIELDS:
        block.has_field = True
        block.has_data = block.has_data or (name == b"data" and bool(value.strip()))
    else:
        block.bare.append(line.decode("utf-8", "replace").strip()[:_MAX_TEXT])
