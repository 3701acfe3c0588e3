"""How a vendor cuts text beyond ASCII: between reads, and between events.

In: exchanges. Out: `Cuts`. What is said of events does not depend on how the bytes were cut into reads. Never: repairs.
(contract W2, W3)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Final

import regex

from proxy.dialects.payload import whole_text
from proxy.learning.ways_exchange import Event, Exchange
from proxy.learning.ways_values import Cuts
from proxy.pipeline.intake import Shape

_FIRST_OF_LONG: Final = 0xC2
_MAX_LETTER: Final = 4
_CLUSTER: Final = regex.compile(r"\X")


def cuts_of(exchanges: Sequence[Exchange]) -> Cuts:
    """All cuts of these exchanges."""
    cuts = Cuts()
    for exchange in exchanges:
        cuts = _between_events(exchange, _between_reads(exchange, cuts))
    return cuts


def _between_reads(exchange: Exchange, cuts: Cuts) -> Cuts:
    cuts = replace(cuts, reads=cuts.reads + max(0, len(exchange.reads) - 1))
    body = b"".join(data for _, data in exchange.reads)
    for number, end in enumerate(accumulate(len(data) for _, data in exchange.reads), start=1):
        if _is_inside_letter(body, end) and (exchange.shape is not Shape.EVENTSTREAM or _is_said(exchange, body, end)):
            cuts = replace(cuts, letters=cuts.letters.plus(exchange.place("read", number)))
    return cuts


def _is_inside_letter(body: bytes, at: int) -> bool:
    """Does `at` stand inside the bytes of one valid UTF-8 character?"""
    for start in range(max(0, at - _MAX_LETTER + 1), at):
        if body[start] < _FIRST_OF_LONG:
            continue
        for end in range(at + 1, min(len(body), start + _MAX_LETTER) + 1):
            try:
                letter = body[start:end].decode()
            except UnicodeDecodeError:
                continue
            if len(letter) == 1:
                return True
    return False


def _is_said(exchange: Exchange, body: bytes, at: int) -> bool:
    """Are the bytes around this place part of a payload? In a binary framing lengths and checksums may look like
    letters."""
    around = body[max(0, at - _MAX_LETTER) : at + _MAX_LETTER]
    return any(around in event.data for event in exchange.events)


def _between_events(exchange: Exchange, cuts: Cuts) -> Cuts:
    for event in exchange.events:
        if event.bad:
            cuts = replace(cuts, bad_bytes=cuts.bad_bytes.plus(exchange.place("event", event.number)))
        if _is_replaced(event):
            cuts = replace(cuts, replaced=cuts.replaced.plus(exchange.place("event", event.number)))
    for pieces in exchange.said.values():
        for (number, text), (_, following) in pairwise(pieces):
            if text.isascii() and following.isascii():
                continue
            cuts = replace(cuts, events=cuts.events + 1)
            if _is_half(text, following):
                cuts = replace(cuts, halves=cuts.halves.plus(exchange.place("event", number)))
        for number in _cut_clusters(pieces):
            cuts = replace(cuts, clusters=cuts.clusters.plus(exchange.place("event", number)))
    return cuts


def _is_replaced(event: Event) -> bool:
    """Did the vendor itself write U+FFFD (as bytes or as an escape)?"""
    texts = (text for delta in event.deltas for text in delta.texts.values())
    return not event.bad and any("\ufffd" in text for text in texts)


def _is_half(text: str, following: str) -> bool:
    return "\ud800" <= text[-1] <= "\udbff" and "\udc00" <= following[0] <= "\udfff"


def _cut_clusters(pieces: Sequence[tuple[int, str]]) -> Iterator[int]:
    """Numbers of the events that end inside a cluster of the text that they are part of, pairs of surrogates
    aside."""
    whole = whole_text("".join(text for _, text in pieces))
    if whole.isascii():
        return
    ends = {match.end() for match in _CLUSTER.finditer(whole)}
    at = 0
    is_half = False
    for (number, text), (_, following) in pairwise(pieces):
        at += len(whole_text(text)) - is_half  # both halves of a pair are one character of the whole
        is_half = _is_half(text, following)
        if not is_half and at not in ends:
            yield number
