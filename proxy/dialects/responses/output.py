"""The output of a response: which item is open, and what waits for its turn.

In: pieces of the answer in the order in which they came. Out: events, item after item. Items do not interleave in this
grammar (clients take the events between "added" and "done" for one item's), but calls of functions do in others: so
while a call's arguments are not whole, everything that is not a piece of that call waits for its end, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from proxy.dialects.payload import as_count, as_mapping, as_text
from proxy.dialects.responses.events import Events
from proxy.dialects.responses.items import CallItem, MessageItem, OpenItem, ReasoningItem, Spoken
from proxy.dialects.responses.thoughts import BREAK

_OURS = ("message", "reasoning", "function_call")


class Output:
    """`items` are those that are done. `seed` makes the ids that no vendor of this family gave."""

    def __init__(self, events: Events, seed: str) -> None:
        self._events, self._seed = events, seed
        self.items: list[object] = []
        self._open: OpenItem | None = None
        self._later: list[tuple[int | None, Callable[[], None]]] = []
        self._closed: set[int] = set()  # slots of calls
        self._bases: dict[str, Mapping[str, object]] = {}  # of items that a vendor of this family has begun
        self._foreign: dict[int, int] = {}
        self._count = 0
        self._skip = ""

    # ---- in ------------------------------------------------------------------------------------------------------

    def text(self, kind: Spoken, piece: str, logprobs: object) -> None:
        self._do(None, partial(self._text, kind, piece, logprobs))

    def think(self, piece: str, identity: str, *, fresh: bool) -> None:
        """`identity` is the item's id where it is known; `fresh`: the text begins an item of its own."""
        self._do(None, partial(self._think, piece, identity, fresh))

    def seal(self, sealed: str, over: int | None, identity: str) -> None:
        """`over` is how many letters the seal is over, None where that was not said."""
        self._do(None, partial(self._seal, sealed, over, identity))

    def call(self, slot: int, identity: str, name: str, arguments: str, sealed: Mapping[str, object]) -> None:
        self._do(slot, partial(self._call, slot, identity, name, arguments, sealed))

    def annotate(self, annotation: object) -> None:
        self._do(None, partial(self._annotate, annotation))

    def native(self, event: Mapping[str, object]) -> None:
        """An event of a vendor of this family."""
        front, call = self._open, as_mapping(event.get("item")).get("call_id")
        is_of_front = isinstance(front, CallItem) and front.base.get("call_id") == call
        self._do(front.slot if is_of_front and isinstance(front, CallItem) else None, partial(self._native, event))

    def end(self, status: str) -> None:
        """The answer is at its end; `status` is that of the item that is still open."""
        while self._open is not None or self._later:
            self._close(status if not self._later else "completed")
            self._catch_up()

    # ---- in turn -------------------------------------------------------------------------------------------------

    def _do(self, slot: int | None, step: Callable[[], None]) -> None:
        self._try(slot, step)
        self._catch_up()

    def _try(self, slot: int | None, step: Callable[[], None]) -> None:
        front = self._open
        if isinstance(front, CallItem) and front.slot != slot and not front.is_whole:
            self._later.append((slot, step))
        else:
            step()

    def _catch_up(self) -> None:
        """What waits, as far as its turn has come. The first of it always goes, so this ends."""
        while self._later and not (isinstance(self._open, CallItem) and not self._open.is_whole):
            later, self._later = self._later, []
            for one in later:
                self._try(*one)

    def _close(self, status: str = "completed") -> None:
        if self._open is not None:
            if isinstance(self._open, CallItem):
                self._closed.add(self._open.slot)
            self.items.append(self._open.close(status))
            self._open = None

    def _next(self) -> int:
        self._close()
        self._count += 1
        return self._count - 1

    def _base(self, key: str, prefix: str, index: int, identity: str = "") -> Mapping[str, object]:
        """What the vendor said of the item when it began it, with an id in any case."""
        base = self._bases.pop(key, {})
        return {**base, "id": as_text(base.get("id")) or identity or f"{prefix}_{self._seed}{index}"}

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _text(self, kind: Spoken, piece: str, logprobs: object) -> None:
        self._message().text(kind, piece, logprobs)

    def _message(self) -> MessageItem:
        if not isinstance(self._open, MessageItem):
            index = self._next()
            self._open = MessageItem(self._events, index, self._base("message", "msg", index))
        return self._open

    def _reasoning(self, *, fresh: bool, identity: str = "") -> ReasoningItem:
        if fresh or not isinstance(self._open, ReasoningItem):
            index = self._next()
            self._skip = ""
            self._open = ReasoningItem(self._events, index, self._base("reasoning", "rs", index, identity))
        return self._open

    def _think(self, piece: str, identity: str, fresh: bool) -> None:
        if piece := self._unbroken(piece):
            front = self._open
            is_over = isinstance(front, ReasoningItem) and (front.is_full or (fresh and front.has_text))
            self._reasoning(fresh=is_over, identity=identity).text(piece)

    def _unbroken(self, piece: str) -> str:
        """Without the break between two parts of a summary, which are parts of their own here."""
        skip, self._skip = self._skip, ""
        if len(piece) < len(skip) and skip.startswith(piece):
            self._skip = skip[len(piece) :]
            return ""
        return piece.removeprefix(skip)

    def _seal(self, sealed: str, over: int | None, identity: str) -> None:
        front = self._open
        item = self._reasoning(fresh=isinstance(front, ReasoningItem) and bool(front.sealed), identity=identity)
        item.seal(sealed, over)

    def _call(self, slot: int, identity: str, name: str, arguments: str, sealed: Mapping[str, object]) -> None:
        if slot in self._closed:  # blanks behind whole arguments
            return
        if not (isinstance(self._open, CallItem) and self._open.slot == slot):
            index = self._next()
            self._open = CallItem(self._events, index, self._base(_call_key(identity), "fc", index), slot, identity)
        if sealed:
            self._open.base["extra_content"] = sealed
        self._open.feed(name, arguments)

    def _annotate(self, annotation: object) -> None:
        if isinstance(self._open, MessageItem):
            self._open.annotate(annotation)

    # ---- of a vendor of this family ------------------------------------------------------------------------------

    def _native(self, event: Mapping[str, object]) -> None:
        kind, item = as_text(event.get("type")), as_mapping(event.get("item"))
        match kind:
            case "response.output_item.added" if item.get("type") in _OURS:
                self._began(item)
            case "response.output_item.done" if item.get("type") in _OURS:
                self._ended(item)
            case "response.output_item.added":
                self._add(event, item)
            case "response.output_item.done":
                index = self._foreign.pop(_place(event), None)
                if index is None:
                    self._add(event, item)
                    index = self._foreign.pop(_place(event))
                self._events.say(kind, {"output_index": index, "item": item})
                self.items.append(item)
            case "response.output_text.annotation.added":
                self._annotate(event.get("annotation"))
            case "response.reasoning_summary_part.added":
                front = self._reasoning(fresh=False)
                self._skip = BREAK if front.has_text else ""
                front.part("summary_text")
            case "response.content_part.added":
                self._reasoning(fresh=False).part("reasoning_text")
            case _:
                index = self._foreign.get(_place(event))
                told = {name: value for name, value in event.items() if name not in ("type", "sequence_number")}
                if index is not None:
                    self._events.say(kind, {**told, "output_index": index})

    def _began(self, item: Mapping[str, object]) -> None:
        """An item that is written here piece by piece: what else it has is kept for its beginning."""
        kind = as_text(item.get("type"))
        if kind == "function_call":
            base = {name: value for name, value in item.items() if name not in ("arguments", "name", "status")}
            self._bases[_call_key(item.get("call_id"))] = base
            return
        self._close()
        heavy = ("content", "summary", "encrypted_content")
        self._bases[kind] = {name: value for name, value in item.items() if name not in heavy}

    def _ended(self, item: Mapping[str, object]) -> None:
        kind, status = as_text(item.get("type")), as_text(item.get("status")) or "completed"
        if kind in self._bases:  # it says nothing, but the vendor wants it back
            self._message() if kind == "message" else self._reasoning(fresh=False)
        front = self._open
        if front is None or front.base["type"] != kind:
            return
        if isinstance(front, CallItem) and front.base["call_id"] != item.get("call_id"):
            return
        if "phase" in item:
            front.base["phase"] = item["phase"]
        self._close(status)

    def _add(self, event: Mapping[str, object], item: Mapping[str, object]) -> None:
        index = self._foreign[_place(event)] = self._next()
        self._events.say("response.output_item.added", {"output_index": index, "item": item})


def _call_key(call: object) -> str:
    return f"call {as_text(call)}"


def _place(event: Mapping[str, object]) -> int:
    place = as_count(event.get("output_index"))
    return -1 if place is None else place
