"""Texts that are said again: vendors whose events repeat all so far, or whose last does (`text_mode` of a rule file).

In: chunks of one answer, in order. Out: the same chunks with only what is new in their texts and calls, so that what
follows sees increments, whatever the dialect. Kept apart by choice and by text field or call.

What does not go on where its text stood is told whole: nothing is lost. As something may then stand there twice, and
likewise where a text has become shorter, which takes nothing back, `differs` says so for the row. Log probabilities
pass as they came. (contract W3; facts of vendors, 0.8)
"""

from __future__ import annotations

import re

from proxy.canon.chunk import Chunk, Delta, ToolFragment
from proxy.pipeline.values import Pieces
from proxy.semantics.rule import TextMode

#: Choice, and the name of a text field or the place of a call.
_Key = tuple[int, str | int]
# The end of a text that the next event may say otherwise: half a character, as a tokenizer or JSON shows it.
_UNSURE = re.compile("[\ufffd\ud800-\udbff]+$")


class Repeats:
    """For one answer of a vendor whose `mode` is not `delta`. `differs`: something was said again in other words."""

    def __init__(self, mode: TextMode) -> None:
        self.differs = False
        self._is_cumulative = mode == "cumulative"
        self._said: dict[_Key, Pieces] = {}
        self._names: dict[_Key, str] = {}
        self._ended: set[int] = set()

    def trim(self, chunk: Chunk) -> None:
        """Take out of the chunk what was said before. What was changed can no longer pass as it came."""
        self._ended.update(delta.choice for delta in chunk.deltas if delta.finish)
        news = {key: self._new(key, text) for key, text in _texts(chunk).items()}
        before = dict.fromkeys(news, 0)
        for delta in chunk.deltas:
            for field, text in delta.texts.copy().items():
                delta.texts[field] = cut = _cut(text, (delta.choice, field), news, before)
                if not cut:
                    del delta.texts[field]
                if cut != text:
                    chunk.wire = None
            if delta.tools:
                delta.tools = self._calls(delta, delta.tools, news, before) or None
                chunk.wire = None

    def _calls(
        self, delta: Delta, calls: list[ToolFragment], news: dict[_Key, range], before: dict[_Key, int]
    ) -> list[ToolFragment]:
        """The calls of which there is anything new."""
        kept = []
        for place, call in enumerate(calls):
            key = _key_of(delta, call, place)
            call.arguments = _cut(call.arguments, key, news, before)
            known = self._names.get(key)
            if known is not None and call.name is not None and self._repeats(delta.choice):
                call.name = call.name.removeprefix(known) or None
            self._names[key] = (known or "") + (call.name or "")
            if self._is_cumulative and call.index is None:
                call.index = place  # all calls so far are there
            if known is None or call.name or call.arguments or call.extra:
                kept.append(call)
        return kept

    def _repeats(self, choice: int) -> bool:
        return self._is_cumulative or choice in self._ended

    def _new(self, key: _Key, text: str) -> range:
        """Which part is new, of all that one event says of one text."""
        pieces = self._said.setdefault(key, Pieces())
        # Far shorter than what was said it is an increment, also behind the finish, and nothing need be joined.
        if not self._repeats(key[0]) or (not self._is_cumulative and 2 * len(text) < sum(map(len, pieces))):
            pieces.append(text)
            pieces.fold()
            return range(len(text))
        said = "".join(pieces)
        sure = _UNSURE.sub("", text) if self._is_cumulative and key[0] not in self._ended else text
        if sure.startswith(said):
            self._keep(key, sure)
            return range(len(said), len(sure))
        if not self._is_cumulative:  # an increment that came with the finish, or the whole in other words
            self.differs = self.differs or _is_alike(said, text)
            pieces.append(text)
            return range(len(text))
        self.differs = True
        if said.startswith(sure):
            return range(0)
        self._keep(key, sure)
        return range(len(sure))

    def _keep(self, key: _Key, text: str) -> None:
        self._said[key] = Pieces()
        self._said[key].append(text)


def _texts(chunk: Chunk) -> dict[_Key, str]:
    """All that an event says of each text, whose pieces may stand in several deltas."""
    texts: dict[_Key, str] = {}
    for delta in chunk.deltas:
        for field, text in delta.texts.items():
            texts[delta.choice, field] = texts.get((delta.choice, field), "") + text
        for place, call in enumerate(delta.tools or ()):
            key = _key_of(delta, call, place)
            if call.arguments:
                texts[key] = texts.get(key, "") + call.arguments
    return texts


def _key_of(delta: Delta, call: ToolFragment, place: int) -> _Key:
    return delta.choice, place if call.index is None else call.index


def _cut(piece: str, key: _Key, news: dict[_Key, range], before: dict[_Key, int]) -> str:
    """What is new of one piece of an event's text; `before` counts the characters of the pieces before it."""
    new = news.get(key, range(0))
    start = before.get(key, 0)
    before[key] = start + len(piece)
    return piece[max(0, new.start - start) : max(0, new.stop - start)]


def _is_alike(said: str, text: str) -> bool:
    """Is it the whole text in other words, and no increment? Being about as long, it is for it to begin alike."""
    return text.startswith(said[: (len(said) + 3) // 4])
