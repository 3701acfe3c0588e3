"""How a long text is counted in parts without changing the sum (contract L2).

In: text, whole or as it grows. Out: its number of tokens, the same however it was cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from proxy.metering.tokens import TokenCounter, needs_reference

# Below these a count takes less than 0.2 ms and is cheaper inline than a hop to a thread. Text beyond ASCII costs up to
# 0.11 us a character (random code points: nearly every byte is a token), ASCII up to 0.02 us.
INLINE_CHARS = 8000
INLINE_WIDE_CHARS = 1700
# Each text costs a call beside its characters: an answer of more choices than these is work for a thread.
INLINE_TEXTS = 32
# One part of a long text: about 2 ms of work in a thread, and no copy of the whole answer.
PART_CHARS = 64 * 1024

# A text may be cut here without changing its count: after a letter and before one of these. No pretoken of o200k holds
# a letter with one of these behind it, and no pretoken looks behind itself, so both sides split as they did whole.
# The apostrophe is missing on purpose: `it's` is one pretoken.
_BREAKS = frozenset(' \n\t,.;:!?()[]{}"<>/=。，、！？；：「」《》؟،؛۔।')  # the point is other scripts' marks


def is_short(pieces: list[str]) -> bool:
    """Whether counting `pieces` inline keeps the event loop for less than 0.2 ms."""
    return short_text(pieces) is not None


def short_text(pieces: list[str], between: str = "") -> str | None:
    """The pieces as one text, if counting it inline keeps the event loop for less than 0.2 ms. An answer has hundreds
    of pieces: what can be asked of the joined text is not asked of each."""
    chars = sum(map(len, pieces))
    if chars > INLINE_CHARS:
        return None
    text = between.join(pieces)
    if text.isascii() or (chars <= INLINE_WIDE_CHARS and not needs_reference(text)):
        return text
    return None


def short_texts(texts: Sequence[list[str]]) -> list[str] | None:
    """Each of `texts` joined, if counting them all inline keeps the event loop for less than 0.2 ms: an answer may have
    many choices, and what holds the loop is their sum."""
    if len(texts) == 1:
        return None if (text := short_text(texts[0])) is None else [text]
    chars = sum(sum(map(len, pieces)) for pieces in texts)
    if chars > INLINE_CHARS or len(texts) > INLINE_TEXTS:
        return None
    joined = ["".join(pieces) for pieces in texts]
    wide = sum(len(text) for text in joined if not text.isascii())
    if (chars - wide) * INLINE_WIDE_CHARS + wide * INLINE_CHARS > INLINE_CHARS * INLINE_WIDE_CHARS:
        return None
    return None if wide and any(map(needs_reference, joined)) else joined


class RunningCount:
    """The exact count of a text that comes in pieces, in bounded memory.

    `add` costs next to nothing. When it is `ripe`, `fold` (on any thread, with no `add` meanwhile) counts up to the
    last place where a cut changes nothing. `total` counts the rest and leaves the state as it is."""

    __slots__ = ("_counter", "_done", "_pending", "_pieces", "_ripe_at")

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._done = 0
        self._pieces: list[str] = []
        self._pending = 0
        self._ripe_at = PART_CHARS

    @property
    def ripe(self) -> bool:
        return self._pending >= self._ripe_at

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._pending += len(piece)

    def fold(self) -> None:
        text = "".join(self._pieces)
        cut = last_break(text)
        if cut:
            self._done += self._counter.count(text[:cut])
        self._pieces = [text[cut:]]
        self._pending = len(text) - cut
        # a text without a break is looked at again only when it has doubled, or it would cost its square
        self._ripe_at = max(PART_CHARS, 2 * self._pending)

    def total(self) -> int:
        return self._done + self._counter.count("".join(self._pieces))


def last_break(text: str) -> int:
    """The last place in `text` where a cut does not change its count; 0 if there is none."""
    for place in range(len(text) - 1, 0, -1):
        if text[place] in _BREAKS and text[place - 1].isalpha():
            return place
    return 0


def count_parts(counter: TokenCounter, pieces: list[str]) -> int:
    """The count of all `pieces` joined, done in parts of some `PART_CHARS`: no large join, no long hold of the GIL."""
    running = RunningCount(counter)
    for piece in pieces:
        for start in range(0, len(piece), PART_CHARS):
            running.add(piece[start : start + PART_CHARS])
            if running.ripe:
                running.fold()
    return running.total()
