"""Is a JSON object or array that comes in pieces at its end? For grammars in which one tool call ends before the next.

In: pieces of arguments. Out: whether the braces are closed. Each letter is looked at once, and only when somebody asks:
parsing the whole at each piece would cost its square. Knows nothing of what is inside.
"""

from __future__ import annotations

from io import StringIO


class Braces:
    """`is_closed` stays true once it was: blanks may follow."""

    __slots__ = ("_depth", "_in_escape", "_in_string", "_is_closed", "_unread")

    def __init__(self) -> None:
        self._unread = StringIO()
        self._depth = 0
        self._in_string = self._in_escape = self._is_closed = False

    def feed(self, piece: str) -> None:
        if not self._is_closed:
            self._unread.write(piece)

    @property
    def is_closed(self) -> bool:
        if unread := self._unread.getvalue():
            self._unread = StringIO()
            for char in unread:
                self._scan(char)
        return self._is_closed

    def _scan(self, char: str) -> None:
        if self._in_escape:
            self._in_escape = False
        elif self._in_string:
            self._in_escape = char == "\\"
            self._in_string = char != '"'
        elif char == '"':
            self._in_string = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            self._is_closed = self._depth <= 0
