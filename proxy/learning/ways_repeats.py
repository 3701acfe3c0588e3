"""Texts that come in pieces: does each piece say what is new, or all again?

In: the pieces of one text, each with the number of its event. Out: their mode, and the pieces as increments. Pure
arithmetic on strings; the pipeline's own way to undo repetitions knows its mode beforehand, this finds it out. Never:
decides by a text that is too short to tell. (facts of vendors, 0.8)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

from proxy.dialects.payload import whole_text
from proxy.learning.ways_values import NOT_SHOWN

#: So many pieces at least, and a text of so many characters: `ha`, `haha` is no repetition.
_MIN_PIECES: Final = 3
MIN_CHARS: Final = 6
#: Half a character at the end of a text, which the next event will say otherwise.
_UNSURE: Final = "\ufffd" + "".join(map(chr, range(0xD800, 0xDC00)))

Pieces = Sequence[tuple[int, str]]


def sure(text: str) -> str:
    """The text without half a character at its end."""
    return text.rstrip(_UNSURE)


def mode_of(pieces: Pieces) -> str:
    """`delta`, `cumulative`, `final_repeat` or `not shown`."""
    texts = [text for _, piece in pieces if (text := sure(piece))]
    if len(texts) < _MIN_PIECES or len(whole_text("".join(texts))) < MIN_CHARS:
        return NOT_SHOWN
    grown = sum(len(b) > len(a) for a, b in pairwise(texts))
    if grown >= 2 and all(b.startswith(a) for a, b in pairwise(texts)):
        return "cumulative"
    return "final_repeat" if len(_said_once(pieces)) < len(pieces) else "delta"


def increments_of(pieces: Pieces) -> list[tuple[int, str]]:
    """The same text, each part of it once."""
    match mode_of(pieces):
        case "cumulative":
            return _new(pieces)
        case "final_repeat":
            return list(_said_once(pieces))
        case _:
            return list(pieces)


def _new(pieces: Pieces) -> list[tuple[int, str]]:
    """What each piece adds to the one before; the last is taken to its very end."""
    new: list[tuple[int, str]] = []
    length = 0
    for number, piece in pieces:
        text = piece if number == pieces[-1][0] else sure(piece)
        if len(text) > length:
            new.append((number, text[length:]))
            length = len(text)
    return new


def _said_once(pieces: Pieces) -> Pieces:
    """Without the last pieces that each say all before them once more."""
    last = pieces[-1][1]
    lengths = list(accumulate(len(text) for _, text in pieces))
    if len(last) < MIN_CHARS or len(last) not in lengths[1:-1]:
        return pieces
    count = lengths.index(len(last)) + 1
    said = "".join(text for _, text in pieces[:count])
    return pieces[:count] if all(text == said for _, text in pieces[count:]) else pieces
