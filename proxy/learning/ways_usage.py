"""Where a vendor's usage sits, what its figures include, and how they stand to our own count.

In: exchanges. Out: a `UsageWay`. Figures are read by the dialect's own reader; an object that looks like usage where
that reader finds none is told as unread. What numbers cannot show is `not shown`. Never: takes a vendor's total for
true, only for a sum that must add up. (facts of vendors, 0.10; contract L2)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Final

from proxy.canon.usage import Usage
from proxy.dialects.payload import as_count, as_mapping
from proxy.learning.ways_counts import counted_output, counted_prompt
from proxy.learning.ways_exchange import Exchange
from proxy.learning.ways_texts import children_of
from proxy.learning.ways_values import MIXED, NOT_SHOWN, Seen, UsageWay
from proxy.metering.fit import fit_line
from proxy.semantics.paths import JsonPath
from proxy.semantics.rule import UsageWays

_MAX_DEPTH: Final = 5
#: At most of the events with text: else usage stands on every one of them.
_EVERY: Final = 0.6
#: How much better a sum must fit our count than the last report does, as a factor.
_CLEARLY: Final = 2.0
_FIGURE: Final = re.compile(r"token|(^|_)count$|_units$", re.IGNORECASE)
_IS_TOTAL: Final = re.compile(r"^total_?tokens?(_?count)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Report:
    """One usage object: number of its event (0: a plain body), its path, itself, and what the reader makes of it."""

    number: int
    path: str
    told: Mapping[str, object]
    usage: Usage


def usage_way(exchanges: Sequence[Exchange], known: UsageWays) -> UsageWay:
    """Of all answers that are whole, streams and plain ones. `known` is what the profile says of usage."""
    way, points = UsageWay(), _Points([], [])
    scopes: dict[str, None] = {}
    for exchange in exchanges:
        if not exchange.is_answer:
            continue
        way = replace(way, answers=way.answers + 1)
        way, reports = _found(way, exchange, known.at)
        if not reports:
            way = replace(way, missing=way.missing.plus(exchange.recording.key))
            continue
        scope = _scope(exchange, reports)
        scopes[scope] = None
        usage = _summed(reports) if scope == "increments" else reports[-1].usage
        way = _parts(way, exchange, reports[-1].told, usage)
        points.add(exchange, usage.placed(known.reasoning, known.cache))
    scope = _unanimous(scopes) if scopes else "absent" if way.answers else NOT_SHOWN
    return replace(way, scope=scope, input=fit_line(points.inputs), output=fit_line(points.outputs))


def _found(way: UsageWay, exchange: Exchange, known: Sequence[JsonPath]) -> tuple[UsageWay, list[Report]]:
    """The reports of one answer, noted in `way`: those that the reader or the profile finds, else those that the reader
    could read."""
    reports = list(_reports(exchange)) or list(_known(exchange, known))
    for report in reports:
        way = replace(way, at=_counted(way.at, report.path, exchange.place("event", report.number)))
    if not reports:
        found = list(_unread(exchange))
        legible = _legible(found)
        for path, report in {report.path: report for report in legible or found}.items():
            way = replace(way, unread=_counted(way.unread, path, exchange.place("event", report.number)))
        reports = [report for report in legible if report.path == legible[0].path]
        way = replace(way, is_legible=way.is_legible or bool(reports))
    for place in _places(exchange, reports) if reports else ():
        way = replace(way, when=_counted(way.when, place, exchange.place("event", reports[-1].number)))
    return way, reports


def _counted(kinds: tuple[tuple[str, Seen], ...], kind: str, place: str) -> tuple[tuple[str, Seen], ...]:
    found = dict(kinds)
    return tuple((found | {kind: found.get(kind, Seen()).plus(place)}).items())


@dataclass(frozen=True, slots=True)
class _Points:
    """Our counts and the vendor's figures."""

    inputs: list[tuple[float, float]]
    outputs: list[tuple[float, float]]

    def add(self, exchange: Exchange, usage: Usage) -> None:
        """Hidden reasoning is in no count of ours, so it is left out of the figure."""
        asked, said, told = counted_prompt(exchange), counted_output(exchange), usage.output
        if usage.input and asked:
            self.inputs.append((asked, usage.input))
        if told and said:
            is_shown = any(name.startswith("reasoning") for _, name in exchange.pieces)
            hidden = 0 if is_shown else usage.reasoning or 0
            self.outputs.append((said, told - hidden if hidden <= told else told))


def reports_of(exchange: Exchange) -> list[Report]:
    """Every report of an answer, wherever it stands, as long as the dialect's reader can read it."""
    return list(_reports(exchange)) or _legible(_unread(exchange))


def _legible(reports: Iterable[Report]) -> list[Report]:
    return [report for report in reports if report.usage.input is not None or report.usage.output is not None]


def _unanimous(scopes: Mapping[str, None]) -> str:
    told = [scope for scope in scopes if scope != NOT_SHOWN]
    if {*told} == {"final", "cumulative"}:
        return "cumulative"  # in a short answer the first report is the last
    return told[0] if len(told) == 1 else MIXED if told else NOT_SHOWN


def _reports(exchange: Exchange) -> Iterator[Report]:
    for number, chunk in exchange.chunks:
        if chunk.usage is not None:
            payload = exchange.events[number - 1].payload if number else exchange.body_payload
            yield Report(number, _path_of(chunk.usage, payload), chunk.usage, exchange.usage(chunk.usage))


def _known(exchange: Exchange, known: Sequence[JsonPath]) -> Iterator[Report]:
    for event in exchange.events:
        for path in known:
            for told in path.select(event.payload):
                if isinstance(told, dict) and told:
                    yield Report(event.number, path.text, told, exchange.usage(told))


def _path_of(usage: Mapping[str, object], payload: object) -> str:
    """Where in the payload this object stands: itself, one that it was gathered from, or loose fields (`$`)."""
    objects = [("$", payload), *_objects(payload)]
    wanted = [usage, *(value for value in usage.values() if isinstance(value, dict) and value)]
    for one in wanted:
        for path, value in objects:
            if value == one:
                return path
    return next((path for path, value in objects if usage.items() <= as_mapping(value).items()), "")


def _objects(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name, more in children_of(value, path) if depth < _MAX_DEPTH else ():
        if isinstance(more, dict):
            yield name, more
        yield from _objects(more, name, depth + 1)


def _unread(exchange: Exchange) -> Iterator[Report]:
    """What looks like usage: at least two whole numbers by names of figures."""
    for event in exchange.events:
        for path, told in (("$", as_mapping(event.payload)), *_objects(event.payload)):
            figures = [name for name, value in told.items() if _FIGURE.search(name) and as_count(value) is not None]
            if len(figures) > 1:
                yield Report(event.number, path, told, exchange.usage(told))


def _places(exchange: Exchange, reports: Sequence[Report]) -> Iterator[str]:
    """Where in the stream it comes."""
    if not exchange.is_stream:
        yield "in the body"
        return
    texts = [event.number for event in exchange.events if event.has_progress]
    numbers = {report.number for report in reports}
    if len(texts) > 1 and len(numbers.intersection(texts)) > _EVERY * len(texts):
        yield "on every event"
        return
    finish = max((number for number, _, _ in exchange.finishes), default=None)
    yield from dict.fromkeys(_place(number, texts, finish, exchange.mark_at) for number in sorted(numbers))


def _place(number: int, texts: Sequence[int], finish: int | None, mark: int | None) -> str:
    if mark is not None and number > mark:
        return "after the end mark"
    if texts and number < texts[0]:
        return "before the text"
    if finish is not None and number == finish:
        return "with the finish"
    if finish is not None and number > finish:
        return "after the finish"
    return "amid the text" if texts and number <= texts[-1] else "after the text"


def _scope(exchange: Exchange, reports: Sequence[Report]) -> str:
    """Whether the last report counts, or all of them together."""
    told = [report.usage.output for report in reports if report.usage.output]
    if len(told) < 2:
        return "final" if told or len(reports) == 1 else NOT_SHOWN
    count = counted_output(exchange)
    if count and abs(log(sum(told) / count)) + log(_CLEARLY) < abs(log(told[-1] / count)):
        return "increments"
    return "cumulative" if told == sorted(told) else NOT_SHOWN


def _summed(reports: Sequence[Report]) -> Usage:
    last = reports[-1].usage
    return replace(last, output=sum(report.usage.output or 0 for report in reports))


def _parts(way: UsageWay, exchange: Exchange, told: Mapping[str, object], usage: Usage) -> UsageWay:
    """What input and output include, as far as this answer's numbers show."""
    place = exchange.recording.key
    thought, cached = usage.reasoning or 0, (usage.cache_read or 0) + (usage.cache_write or 0)
    thinks = any(name.startswith("reasoning") for _, name in exchange.pieces)
    extra = _missing(told, usage, thought, cached)
    if extra is None:
        way = replace(way, odd_sums=way.odd_sums.plus(place))
    if thought and usage.output is not None:
        raw = usage.output - usage.reasoning_added
        reasoning = _where(thought, raw, "reasoning" in (extra or ()), bool(usage.reasoning_added), extra == ())
        is_read = reasoning != "outside" or bool(usage.reasoning_added)
        way = replace(way, reasoning_read=way.reasoning_read and is_read, reasoning_seen=way.reasoning_seen.plus(place))
        way = replace(way, reasoning=_agreed(way.reasoning, reasoning))
    elif thinks and way.reasoning == NOT_SHOWN:
        way = replace(way, reasoning="absent")
    if cached and usage.input is not None:
        raw = usage.input - usage.cache_added
        cache = _where(cached, raw, "cache" in (extra or ()), bool(usage.cache_added), extra == ())
        is_read = cache != "outside" or bool(usage.cache_added)
        way = replace(way, cache_read=way.cache_read and is_read, cache_seen=way.cache_seen.plus(place))
        way = replace(way, cache=_agreed(way.cache, cache))
    return way


def _where(part: int, figure: int, is_added: bool, is_known: bool, adds_up: bool) -> str:
    """Inside or outside of a figure. A figure smaller than its part cannot hold it; else the vendor's total tells, else
    what is known of the family."""
    if is_added or part > figure or (is_known and not adds_up):
        return "outside"
    return "inside" if adds_up else NOT_SHOWN


def _agreed(before: str, now: str) -> str:
    if before in (NOT_SHOWN, "absent", now):
        return now if now != NOT_SHOWN else before
    return before if now == NOT_SHOWN else MIXED


def _missing(told: Mapping[str, object], usage: Usage, thought: int, cached: int) -> tuple[str, ...] | None:
    """What must be added to the vendor's own input and output to make its total: nothing, or parts that it counts
    beside them. None: no reading makes it. An unknown total asks nothing."""
    total = next((as_count(value) for name, value in told.items() if _IS_TOTAL.match(name)), None)
    if total is None or usage.input is None or usage.output is None:
        return ("unknown",)
    sum_ = usage.input - usage.cache_added + usage.output - usage.reasoning_added
    ways: tuple[tuple[int, tuple[str, ...]], ...] = (
        (0, ()),
        (thought, ("reasoning",)),
        (cached, ("cache",)),
        (thought + cached, ("reasoning", "cache")),
    )
    return next((parts for more, parts in ways if total == sum_ + more), None)
