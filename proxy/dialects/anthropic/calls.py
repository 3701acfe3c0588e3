"""One tool call as it is written: its block may end when its arguments are a whole object, and not before."""

from __future__ import annotations


class Call:
    """`waiting` holds arguments that came before its block could begin. Each piece is looked at once."""

    __slots__ = ("_depth", "_in_escape", "_in_string", "_unread", "id", "is_whole", "name", "seal", "waiting")

    def __init__(self, identity: str, name: str, seal: str) -> None:
        self.id, self.name, self.seal = identity, name, seal
        self.waiting: list[str] = []
        self._unread: list[str] = []
        self._depth = 0
        self._in_string = self._in_escape = False
        self.is_whole = False

    def grow(self, piece: str) -> None:
        self._unread.append(piece)

    def is_over(self) -> bool:
        """Are its braces closed? Asked only where another block wants to begin."""
        for piece in self._unread:
            for char in piece:
                self._scan(char)
        self._unread.clear()
        return self.is_whole

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
            self.is_whole = self._depth <= 0
