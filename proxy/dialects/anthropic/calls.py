"""One tool call as it is written: its block may end when its arguments are a whole object, and not before."""

from __future__ import annotations

from proxy.dialects.braces import Braces


class Call:
    """`waiting` holds arguments that came before its block could begin."""

    __slots__ = ("_braces", "id", "name", "seal", "waiting")

    def __init__(self, identity: str, name: str, seal: str) -> None:
        self.id, self.name, self.seal = identity, name, seal
        self.waiting: list[str] = []
        self._braces = Braces()

    def grow(self, piece: str) -> None:
        self._braces.feed(piece)

    def is_over(self) -> bool:
        """Are its braces closed?"""
        return self._braces.is_closed
