"""Events of the Responses grammar: numbered, named, one line of JSON each (contract W1 in its form here).

In: an event's type and fields. Out: bytes. The first thing that is said is preceded by the two events that begin every
stream; whoever makes the responses object gives it as `begin`. Knows nothing of items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proxy.dialects.payload import encode_json


class Events:
    """`say` collects, `take` gives what may be written."""

    def __init__(self, begin: Callable[[], Mapping[str, object]]) -> None:
        self._begin = begin
        self._out: list[bytes] = []
        self._number = 0

    @property
    def ahead(self) -> int:
        """How many events the first that is said brings with it."""
        return 0 if self._number else 2

    def begin(self) -> None:
        """Every stream begins with the response that is being made."""
        if not self._number:
            response = self._begin()
            self.add("response.created", {"response": response})
            self.add("response.in_progress", {"response": response})

    def say(self, kind: str, fields: Mapping[str, object]) -> None:
        self.begin()
        self.add(kind, fields)

    def add(self, kind: str, fields: Mapping[str, object]) -> None:
        """An event, whatever came before it."""
        body = encode_json({"type": kind, "sequence_number": self._number, **fields})
        self._out.append(b"event: " + kind.encode() + b"\ndata: " + body + b"\n\n")
        self._number += 1

    def take(self) -> bytes:
        out, self._out = self._out, []
        return b"".join(out)
