"""Tool calls put in order: fragments as vendors send them in, slots with one id, one name and whole arguments out.

Vendors give every parallel call index 0, leave the index out, repeat the id on each fragment, send a name again as ""
or send no arguments at all. A client joins fragments by index, so each call gets one slot here, its id and name are
said once, and a call that ends without arguments gets `{}`. Knows no vendor; one object per choice. (contract W4)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import NOTHING, ToolFragment


class Call:
    """One call of the answer: `slot` is the index that the client sees. Whoever tells the client its `name` sets it,
    and who keeps calls for one body also their unknown fields, `extra`."""

    __slots__ = (
        *("_depth", "_in_escape", "_in_string", "_scanned"),
        *("arguments", "extra", "id", "name", "slot", "type", "waits"),
    )

    def __init__(self, slot: int, identity: str) -> None:
        self.slot = slot
        self.id = identity
        self.name = ""
        self.type = "function"
        self.waits = False
        self.arguments: list[str] = []
        self.extra: Mapping[str, object] = NOTHING
        self.forget()

    def forget(self) -> None:
        """The arguments begin anew."""
        self._scanned = self._depth = 0
        self._in_string = self._in_escape = False

    @property
    def is_bare(self) -> bool:
        """Has the client been told of no arguments?"""
        return self.waits or not any(map(str.strip, self.arguments))

    def grow(self, piece: str) -> str:
        """One more piece of the name; returns what of it is new. A name said again is no piece."""
        if piece == self.name:
            return ""
        new = piece.removeprefix(self.name)
        self.name += new
        return new

    def may_be_whole(self) -> bool:
        """Cheap test for "could be a finished object": its braces are closed outside of strings. Each piece of the
        arguments is looked at once, however often this is asked."""
        for piece in self.arguments[self._scanned :]:
            for char in piece:
                self._scan(char)
        self._scanned = len(self.arguments)
        return self._depth == 0 and not self._in_string and any(map(str.strip, self.arguments))

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


class ToolCalls:
    """`place` says for each fragment to which call it belongs and what of it is new."""

    __slots__ = ("_by_id", "_by_index", "_last", "_seed", "calls")

    def __init__(self, seed: str) -> None:
        self.calls: list[Call] = []
        self._by_index: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}  # the first of each id
        self._last: Call | None = None
        self._seed = seed

    def place(self, fragment: ToolFragment) -> tuple[Call, bool]:
        """The call, and whether this fragment begins it. Appends the arguments to the call."""
        call = self._find(fragment)
        begins = call is None
        if call is None:
            slot = len(self.calls)
            call = Call(slot, fragment.id or f"call_{self._seed}{slot}")
            call.type = fragment.type
            self.calls.append(call)
            self._by_id.setdefault(call.id, call)
        if fragment.index is not None:
            self._by_index[fragment.index] = call
        self._last = call
        fragment.arguments = self._new_of(fragment.arguments, call, begins)
        return call, begins

    @staticmethod
    def _new_of(arguments: str, call: Call, begins: bool) -> str:
        """What of these arguments is to be told now. Some vendors begin a call with `{}` and then send the real ones:
        those wait for the end, where every call without arguments gets them. Others repeat the whole in their last
        event."""
        if begins and arguments.strip() == "{}":
            call.arguments.append(arguments)
            call.waits = True
            return ""
        if not arguments:
            return ""
        if call.waits and arguments.strip():
            call.arguments.clear()
            call.forget()
            call.waits = False
        elif _begins_json(arguments) and call.may_be_whole() and arguments.strip() == "".join(call.arguments).strip():
            return ""
        call.arguments.append(arguments)
        return arguments

    def _find(self, fragment: ToolFragment) -> Call | None:
        """A new id with a name begins a call, whatever its index; else the index decides; without both it goes on."""
        at_index = self._by_index.get(fragment.index) if fragment.index is not None else self._last
        if fragment.id is not None:
            if at_index is not None and at_index.id == fragment.id:
                return at_index
            same = self._by_id.get(fragment.id)
            if same is not None and (fragment.index is None or not fragment.name):
                return same
            return None if fragment.name or at_index is None else at_index
        return None if self._begins_without_id(fragment, at_index) else at_index

    @staticmethod
    def _begins_without_id(fragment: ToolFragment, call: Call | None) -> bool:
        """A second name without an id is a new call if the one before already has arguments (and no id of its own)."""
        return bool(
            call is not None
            and fragment.name
            and call.name
            and call.arguments
            and (fragment.name != call.name or call.may_be_whole())
        )


def _begins_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")
