"""Whether a vendor's events say what is new, or again what was said: its text mode (facts of vendors, 0.8).

In: exchanges. Out: a `TextWay`. Looked at twice: in what the dialect's reader makes of the events, and in their JSON as
it came, for some readers undo a repetition that they know of. Never: decides by an answer that is too short to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.learning.ways_exchange import Exchange
from proxy.learning.ways_repeats import MIN_CHARS, mode_of, sure
from proxy.learning.ways_values import MIXED, NOT_SHOWN, Seen, TextWay

_MAX_DEPTH: Final = 8


def text_way(exchanges: Sequence[Exchange]) -> TextWay:
    """Of all streams together; one that differs makes it `mixed`."""
    modes: dict[str, Seen] = {}
    paths: dict[str, None] = {}
    is_undone = True
    for exchange in exchanges:
        mode = _read_mode(exchange)
        again = _said_again(exchange) if mode in ("delta", NOT_SHOWN) else {}
        paths.update(dict.fromkeys(again))
        is_undone = is_undone and mode not in ("cumulative", "final_repeat")
        mode = next(iter(again.values()), mode)
        if mode != NOT_SHOWN:
            modes[mode] = modes.get(mode, Seen()).plus(exchange.place("event", exchange.events[-1].number))
    mode = next(iter(modes)) if len(modes) == 1 else MIXED if modes else NOT_SHOWN
    return TextWay(mode, tuple(modes.items()), is_undone and bool(paths), tuple(paths))


def _read_mode(exchange: Exchange) -> str:
    """Of what the dialect's reader gives: a repetition of one text tells more than the increments of another."""
    found = {mode_of(pieces) for (_, name), pieces in exchange.pieces.items() if not name.startswith("call ")}
    shown = (mode for mode in ("cumulative", "final_repeat", "delta") if mode in found)
    return next(shown, NOT_SHOWN) if exchange.is_stream else NOT_SHOWN


@dataclass(slots=True)
class _Growth:
    """The strings at one place of the payloads, one after the other."""

    last: str
    grown: int = 0
    is_growing: bool = True

    def add(self, text: str) -> None:
        self.grown += len(text) > len(self.last)
        self.is_growing = self.is_growing and text.startswith(self.last)
        self.last = text


def _said_again(exchange: Exchange) -> dict[str, str]:
    """JSON paths at which the payloads say the answer's text again, although its reader does not: `cumulative` where
    each event does, `final_repeat` where those at the end do."""
    said = {"".join(text for _, text in pieces): pieces for pieces in exchange.said.values()}
    said = {whole: pieces for whole, pieces in said.items() if len(whole) >= MIN_CHARS}
    growths: dict[str, _Growth] = {}
    again: dict[str, str] = {}
    for event in exchange.events if said else ():
        for path, text in _strings(event.payload):
            if path in growths:
                growths[path].add(sure(text))
            else:
                growths[path] = _Growth(sure(text))
            pieces = said.get(text, ())
            if len(pieces) > 1 and event.number >= pieces[-1][0]:
                again[path] = "final_repeat"
    for path, growth in growths.items():
        is_said = len(growth.last) >= MIN_CHARS and any(whole.startswith(growth.last) for whole in said)
        if growth.is_growing and growth.grown >= 2 and is_said:
            again[path] = "cumulative"
    return again


def _strings(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every string in a payload that is not empty, with its path as rule files write it."""
    if isinstance(value, str):
        if value:
            yield path, value
        return
    for name, more in children_of(value, path) if depth < _MAX_DEPTH else ():
        yield from _strings(more, name, depth + 1)


def children_of(value: object, path: str) -> Iterable[tuple[str, object]]:
    """What an object or a list holds, each with its path."""
    if isinstance(value, Mapping):
        return [(f"{path}.{name}" if path else str(name), more) for name, more in value.items()]
    if isinstance(value, list):
        return [(f"{path}[{number}]", more) for number, more in enumerate(value)]
    return ()
