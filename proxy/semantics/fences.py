"""The markdown fence around an answer for which JSON was asked (contract C4, `json.repair: fences`).

Text in, text out, for one choice. The head of the answer is held until its first non-blank characters show whether a
fence opens; if one does, the opening line is dropped, and at the end the closing fence with the blanks around it. A
fence inside the JSON stays: only what nothing but blanks follows is dropped. `decided` is False while the head is held.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_OPEN = re.compile(r"\s*```[ \t]*[A-Za-z0-9_+-]*[ \t]*\r?\n?")
_MAY_OPEN = re.compile(r"\s*(?:`{0,2}|```[ \t]*[A-Za-z0-9_+-]*[ \t]*\r?)\Z")
_MAY_CLOSE = re.compile(r"\s*(?:`{1,2}|```\s*)?\Z")
_CLOSE = re.compile(r"\s*```\s*\Z")
_MAX_HEAD = 64  # no language name is longer; a head that goes on is no fence


class _State(Enum):
    HEAD = auto()
    PLAIN = auto()
    FENCED = auto()


class FenceStrip:
    """`feed` returns what may leave; `finish` the rest. `repaired` tells whether a fence was removed."""

    __slots__ = ("_held", "_state", "repaired")

    def __init__(self) -> None:
        self._state = _State.HEAD
        self._held = ""
        self.repaired = False

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
                return self._head(text)

    def finish(self) -> str:
        held, self._held = self._held, ""
        if self._state is _State.FENCED:
            return _CLOSE.sub("", held)
        self._state = _State.PLAIN
        return held

    def _head(self, text: str) -> str:
        self._held += text
        if _MAY_OPEN.match(self._held) and len(self._held.lstrip()) <= _MAX_HEAD:
            return ""
        head, self._held = self._held, ""
        opening = _OPEN.match(head)
        if opening is None or not _looks_like_json(head[opening.end() :]):
            self._state = _State.PLAIN
            return head
        self._state = _State.FENCED
        self.repaired = True
        return self._body(head[opening.end() :])

    def _body(self, text: str) -> str:
        """Hold back what could be the closing fence, with the blanks before it."""
        text = self._held + text
        tail = _MAY_CLOSE.search(text, max(0, len(text.rstrip().rstrip("`").rstrip())))
        cut = tail.start() if tail is not None else len(text)
        self._held = text[cut:]
        return text[:cut]


def _looks_like_json(rest: str) -> bool:
    return rest.lstrip()[:1] in ("{", "[", '"', "-", "t", "f", "n", "") or rest.lstrip()[:1].isdigit()
