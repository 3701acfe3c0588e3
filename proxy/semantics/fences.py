"""The markdown fence around an answer for which JSON was asked (contract C4, `json.repair: fences`).

Text in, text out, for one choice. The head of the answer is held until its first non-blank characters show whether a
fence opens around JSON; if one does, the opening line is dropped, and at the end the closing fence with the blanks
around it. A fence inside the JSON stays: only what nothing but blanks follows is dropped. `decided` is False while the
head is held. What comes out, joined, does not depend on how the text was cut.

A model that writes blanks without end is a known fault of JSON modes: they are kept in pieces and looked at once.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_MAX_HEAD = 64  # enough for an opening line; blanks after it are waited through no further
_MAX_TICKS = 64  # no fence is longer; what is, was made to be held
_OPENING = r"(?:`{3,16}|~{3,16})[ \t]{0,8}[A-Za-z0-9_+-]{0,32}[ \t]{0,8}"
_OPEN = re.compile(_OPENING + r"\r?\n?")
_SOME_FENCE = re.compile(r"^\s*(?:`{3}|~{3})", re.MULTILINE)
_MAY_OPEN = re.compile(rf"(?:`{{0,16}}|~{{0,16}}|{_OPENING}(?:\r?\n)?\s*)\Z")
_TICKS = "`~"
_JSON_BEGINS = frozenset('{["-tfn0123456789')


class _State(Enum):
    HEAD = auto()
    PLAIN = auto()
    FENCED = auto()


class FenceStrip:
    """`feed` returns what may leave; `finish` the rest. `repaired` tells whether a fence was removed."""

    __slots__ = ("_head", "_held", "_state", "repaired")

    def __init__(self) -> None:
        self._state = _State.HEAD
        self._head = ""  # from the first non-blank character
        self._held: list[str] = []  # HEAD: the blanks before it; FENCED: what may be the closing fence
        self.repaired = False

    def whole(self, text: str) -> str:
        """The same for an answer that is known to its end: where words or another fence follow, nothing is removed, for
        there the fence is not around the answer. (No line of JSON begins with a fence.)"""
        stripped = self.feed(text) + self.finish()
        if self.repaired and _SOME_FENCE.search(stripped):
            self.repaired = False
            return text
        return stripped

    @property
    def decided(self) -> bool:
        return self._state is not _State.HEAD

    def feed(self, text: str) -> str:
        match self._state:
            case _State.PLAIN:
                return text
            case _State.FENCED:
                return self._body(text)
            case _State.HEAD:
                return self._begin(text)

    def finish(self) -> str:
        held = "".join((*self._held, self._head))
        self._held, self._head = [], ""
        if self._state is _State.FENCED:
            bare = held.rstrip()
            inner = bare.rstrip(_TICKS)
            return inner.rstrip() if len(bare) - len(inner) >= 3 else held
        self._state = _State.PLAIN
        return held

    def _begin(self, text: str) -> str:
        if not self._head:
            self._head = text.lstrip()
            self._held.append(text[: len(text) - len(self._head)])
        else:
            self._head += text
        if _MAY_OPEN.match(self._head) and len(self._head) <= _MAX_HEAD:
            return ""
        opening = _OPEN.match(self._head)
        if opening is None or self._head[opening.end() : _MAX_HEAD + 1].lstrip()[:1] not in _JSON_BEGINS | {""}:
            return self.finish()
        rest = self._head[opening.end() :]
        self._state = _State.FENCED
        self.repaired = True
        self._held, self._head = [], ""
        return self._body(rest)

    def _body(self, text: str) -> str:
        """Hold back what could be the closing fence, with the blanks before it."""
        if text.isspace():
            self._held.append(text)
            return ""
        text = "".join((*self._held, text))
        cut = _start_of_closing(text)
        self._held = [text[cut:]]
        return text[:cut]


def _start_of_closing(text: str) -> int:
    """Where the end of the text begins that would be dropped if nothing came after it but blanks and backticks."""
    bare = text.rstrip()
    inner = bare.rstrip(_TICKS)
    ticks = len(bare) - len(inner)
    if ticks > _MAX_TICKS or (0 < ticks < 3 and len(bare) < len(text)):
        return len(bare)
    return len(inner.rstrip()) if ticks else len(bare)
