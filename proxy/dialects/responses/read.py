"""The Responses API as vendors speak it: one event, or one whole response, to one canonical value.

Texts, refusals, summaries and arguments come as deltas and once more whole, in `done` events, in items and in the last
response: what was streamed is not said again, what stands only there is not lost. What no other family knows (items of
tools that the vendor runs, annotations, names of items) goes along as raw events under `native`. Never raises, decides
nothing: what a failure means is for the rules. (contract W3, W5, D2; facts of vendors, 1)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Heartbeat, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json, is_empty, parse_json
from proxy.dialects.reading import JsonReader
from proxy.dialects.responses.thoughts import BREAK, detail_of_item, text_of_item
from proxy.dialects.responses.usage import read_usage

_KNOWN = frozenset(("sequence_number", "output_index", "item_id", "content_index", "obfuscation"))
_EVENT = re.compile(r"response(\.[a-z_]+)+", re.ASCII)
#: The field of texts, and where the text stands in the event that has it whole.
_TEXTS = {
    "response.output_text": ("content", "text"),
    "response.refusal": ("refusal", "refusal"),
    "response.reasoning_summary_text": ("reasoning_content", "text"),
    "response.reasoning_text": ("reasoning_content", "text"),
}
_PARTS = {
    "output_text": "response.output_text",
    "refusal": "response.refusal",
    "reasoning_text": "response.reasoning_text",
    "summary_text": "response.reasoning_summary_text",
}
#: Of a response, what is said elsewhere.
_HEAVY = frozenset(("output", "usage", "instructions", "tools", "error", "output_text"))
_NOT_YET = ("queued", "in_progress")
#: Items that have deltas; every other one is a native event as it is.
_OURS = ("message", "reasoning", "function_call")

Event = Mapping[str, object]


class ResponsesReader(JsonReader):
    """Reads one answer to the body `sent`. Keeps what has been said so far, by its place, to say nothing twice."""

    def __init__(self, sent: Mapping[str, object] = NOTHING) -> None:
        super().__init__()
        self._may_wait = not sent or sent.get("background") is True
        self._said: set[tuple[object, ...]] = set()
        self._fields: set[str] = set()  # of texts that have been said at all
        self._over: frozenset[str] = frozenset()  # of those that had been said when the end came
        self._items: set[str] = set()  # ids of items, and call ids
        self._places: dict[str, int] = {}
        self._at = 0  # the place that was last spoken of
        self._thoughts = 0
        self._kinds: dict[str, Callable[[Event], Parsed]] = {
            "response.created": self._created,
            "response.queued": self._beginning,
            "response.in_progress": self._beginning,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.content_part.added": self._part_added,
            "response.content_part.done": self._part_done,
            "response.reasoning_summary_part.added": self._summary_added,
            "response.reasoning_summary_part.done": self._part_done,
            "response.output_text.annotation.added": self._annotation,
            "response.function_call_arguments.delta": self._arguments,
            "response.function_call_arguments.done": self._arguments,
            "response.completed": self._end,
            "response.incomplete": self._end,
            "response.cancelled": self._end,
        }

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return read_usage(vendor)

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        kind = as_text(value.get("type")) or event or ""
        if event and not value.get("type"):
            value = {**value, "type": kind}
        if "error" in (kind, event) or value.get("error"):
            return ErrorSeen(value, data)
        response = as_mapping(value.get("response"))
        if kind == "response.failed" or _failed(response):
            return ErrorSeen(value, data, _figures(response))
        if value.get("object") == "response":  # a whole answer as one event
            return self._whole(value, data)
        if (known := self._kinds.get(kind)) is not None:
            return known(value)
        stem, _, which = kind.rpartition(".")
        if stem in _TEXTS and which in ("delta", "done"):
            return self._text(value, stem, which == "done")
        if _EVENT.fullmatch(kind) and as_count(value.get("output_index")) is not None:
            return _chunk(_native(value))
        return self.foreign(value, data, event, _KNOWN)

    def read_whole(self, data: bytes) -> Parsed:
        value, replaced = parse_json(data)
        self.replaced += replaced
        if not isinstance(value, dict):
            return self.read_other(value, data, None)
        if value.get("object") != "response" and not isinstance(value.get("output"), list):
            return self.foreign(value, data, None, _KNOWN)
        return self._whole(value, data)

    def _whole(self, response: dict[str, object], data: bytes) -> Parsed:
        """A response that is not an event's. One that is still being made is an answer to those alone who asked for
        that."""
        if _failed(response):
            return ErrorSeen(response, data, _figures(response))
        if response.get("status") in _NOT_YET and not self._may_wait:
            return Heartbeat()
        return self._end({"response": response})

    # ---- the response --------------------------------------------------------------------------------------------

    def _created(self, event: Event) -> Parsed:
        response = as_mapping(event.get("response"))
        told = {name: value for name, value in response.items() if name not in ("output", "usage")}
        return _of_response(response, [_native({"type": "response.created", "response": told})])

    def _beginning(self, event: Event) -> Parsed:
        return _of_response(as_mapping(event.get("response")), [])

    def _end(self, event: Event) -> Parsed:
        """The last event, or the whole answer."""
        response = as_mapping(event.get("response"))
        self._over = frozenset(self._fields)
        rest = [
            delta for number, item in enumerate(objects(response.get("output"))) for delta in self._late(item, number)
        ]
        told = {name: value for name, value in response.items() if name not in _HEAVY}
        last = _native({"type": "response.completed", "response": told})
        last.finish = _finish(response, as_text(event.get("type")))
        chunk = _of_response(response, [*rest, last])
        chunk.usage = as_mapping(response.get("usage")) or None
        tier = response.get("service_tier")
        chunk.extra = {"service_tier": tier} if isinstance(tier, str) else NOTHING
        return chunk

    def _late(self, item: Event, number: int) -> list[Delta]:
        """An item of the last response, as far as it is new. Its place there is not always that of the stream."""
        kind, place = item.get("type"), self._places.get(as_text(item.get("id")), number)
        is_new = _identity(item) not in self._items
        rest = list(self._item_rest(item, place))
        if not is_new or (not rest and (kind == "message" or "reasoning_content" in self._over)):
            return rest
        told = {"output_index": place, "item": item}
        added, done = (_native({"type": f"response.output_item.{what}", **told}) for what in ("added", "done"))
        return [added, *rest, done] if kind in _OURS else [done]

    # ---- items ---------------------------------------------------------------------------------------------------

    def _item_added(self, event: Event) -> Parsed:
        item = as_mapping(event.get("item"))
        place = self._place(event, item)
        if item.get("type") != "function_call":
            return _chunk(_native({**event, "output_index": place}))
        call = _call(place, item)
        self._items.add(_identity(item))
        self._said.add(("call", place))
        if call.arguments:
            self._said.add(("arguments", place))
        delta = _native({**event, "output_index": place})
        delta.tools = [call]
        return _chunk(delta)

    def _item_done(self, event: Event) -> Parsed:
        item = as_mapping(event.get("item"))
        place = self._place(event, item)
        chunk = _chunk(*self._item_rest(item, place), _native({**event, "output_index": place}))
        if identity := _identity(item):
            self._items.add(identity)
        return chunk

    def _item_rest(self, item: Event, place: int) -> Iterator[Delta]:
        """What of a whole item has not been said."""
        match item.get("type"):
            case "message":
                for position, part in enumerate(objects(item.get("content"))):
                    yield from self._part_rest(part, (place, position))
            case "reasoning":
                has_text = any(said[:2] == ("reasoning_content", place) for said in self._said)
                if not has_text and "reasoning_content" not in self._over and (text := text_of_item(item)):
                    yield self._say("reasoning_content", text, (place, "item"))
                if (detail := self._detail(item)) is not None:
                    yield Delta(0, {}, extra={"reasoning_details": [detail]})
            case "function_call":
                yield from self._call_rest(item, place)
            case _:
                pass

    def _call_rest(self, item: Event, place: int) -> Iterator[Delta]:
        """The call, or its arguments, where it was not told of them."""
        call = _call(place, item)
        if _identity(item) not in self._items and ("call", place) not in self._said:
            self._said |= {("call", place), ("arguments", place)}
            yield Delta(0, {}, [call])
        elif ("arguments", place) not in self._said and call.arguments:
            self._said.add(("arguments", place))
            yield Delta(0, {}, [ToolFragment(place, None, None, call.arguments)])

    def _detail(self, item: Mapping[str, object]) -> dict[str, object] | None:
        """The item's seal, once."""
        sealed = ("seal", as_text(item.get("encrypted_content")))
        detail = detail_of_item(item, self._thoughts) if sealed not in self._said else None
        if detail is not None:
            self._said.add(sealed)
            self._thoughts += 1
        return detail

    def _place(self, event: Event, item: Mapping[str, object] = NOTHING) -> int:
        """The place in the output, also where the event does not say it (older relays): that of its item, or, where it
        names none, the one that was spoken of last."""
        identity = as_text(event.get("item_id")) or as_text(item.get("id"))
        place = as_count(event.get("output_index"))
        if place is None and not identity:
            return self._at
        if place is None:
            place = self._places.get(identity, len(self._places))
        if identity:
            self._places[identity] = place
        self._at = place
        return place

    # ---- texts ---------------------------------------------------------------------------------------------------

    def _text(self, event: Event, stem: str, whole: bool) -> Parsed:
        field, name = _TEXTS[stem]
        text = as_text(event.get(name if whole else "delta"))
        place = (self._place(event), *_within(event, stem))
        if not text or (whole and (field, *place) in self._said):
            return Heartbeat()
        delta = self._say(field, text, place)
        if logprobs := list(objects(event.get("logprobs"))):
            delta.logprobs = {"content": logprobs}
        return _chunk(delta)

    def _say(self, field: str, text: str, place: tuple[object, ...]) -> Delta:
        self._said.add((field, *place))
        self._fields.add(field)
        return Delta(0, {field: text})

    def _part_added(self, event: Event) -> Parsed:
        if as_mapping(event.get("part")).get("type") != "reasoning_text":
            return Heartbeat()
        return _chunk(_native(event))

    def _summary_added(self, event: Event) -> Parsed:
        """The break between two parts is a delta of its own: what is held of the part before goes first."""
        has_text = any(said[:2] == ("reasoning_content", self._place(event)) for said in self._said)
        return _chunk(_native(event), *([Delta(0, {"reasoning_content": BREAK})] if has_text else []))

    def _part_done(self, event: Event) -> Parsed:
        part = as_mapping(event.get("part"))
        place = (self._place(event), *_within(event, _PARTS.get(as_text(part.get("type")), "")))
        rest = list(self._part_rest(part, place))
        return _chunk(*rest) if rest else Heartbeat()

    def _part_rest(self, part: Event, place: tuple[object, ...]) -> Iterator[Delta]:
        """Text and annotations of a whole part, as far as they were not said."""
        stem = _PARTS.get(as_text(part.get("type")))
        if stem is None:
            return
        field, name = _TEXTS[stem]
        if (text := as_text(part.get(name))) and (field, *place) not in self._said and field not in self._over:
            yield self._say(field, text, place)
        for number, annotation in enumerate(objects(part.get("annotations"))):
            if ("annotation", *place, number) not in self._said and (field, *place) in self._said:
                self._said.add(("annotation", *place, number))
                yield _native({"type": "response.output_text.annotation.added", "annotation": annotation})

    def _annotation(self, event: Event) -> Parsed:
        place = (self._place(event), *_within(event, ""))
        self._said.add(("annotation", *place, as_count(event.get("annotation_index")) or 0))
        return _chunk(_native(event))

    def _arguments(self, event: Event) -> Parsed:
        place = self._place(event)
        whole = event.get("arguments")
        text = _json_text(event.get("delta") if whole is None else whole)
        if not text or (whole is not None and ("arguments", place) in self._said):
            return Heartbeat()
        self._said.add(("arguments", place))
        return _chunk(Delta(0, {}, [ToolFragment(place, None, None, text)]))


def _failed(response: Mapping[str, object]) -> bool:
    return response.get("status") == "failed" or bool(response.get("error"))


def _figures(response: Mapping[str, object]) -> Chunk | None:
    """What a response that failed has cost."""
    usage = as_mapping(response.get("usage"))
    if not usage:
        return None
    chunk = _of_response(response, [])
    chunk.usage = usage
    return chunk


def _finish(response: Mapping[str, object], kind: str) -> str:
    """The vendor's own word: why the answer is incomplete, else its status."""
    status = as_text(response.get("status")) or kind.removeprefix("response.") or "completed"
    if status != "incomplete":
        return status
    return as_text(as_mapping(response.get("incomplete_details")).get("reason")) or status


def _of_response(response: Mapping[str, object], deltas: list[Delta]) -> Chunk:
    created = response.get("created_at")
    if isinstance(created, bool) or not isinstance(created, int | float) or not 0 < created < 1e12:
        created = 0
    return Chunk(deltas, id=as_text(response.get("id")), created=int(created), model=as_text(response.get("model")))


def _chunk(*deltas: Delta) -> Chunk:
    return Chunk(list(deltas))


def _native(event: Event) -> Delta:
    return Delta(0, {}, extra={"native": [event]})


def _within(event: Event, stem: str) -> tuple[object, ...]:
    """The place within the item."""
    if stem == "response.reasoning_summary_text":
        return ("summary", as_count(event.get("summary_index")) or 0)
    return (as_count(event.get("content_index")) or 0,)


def _identity(item: Mapping[str, object]) -> str:
    return as_text(item.get("call_id")) or as_text(item.get("id"))


def _call(place: int, item: Mapping[str, object]) -> ToolFragment:
    return ToolFragment(
        place, _identity(item) or None, as_text(item.get("name")) or None, _json_text(item.get("arguments"))
    )


def _json_text(value: object) -> str:
    """Arguments, which should be JSON text, and are an object on some relays."""
    if isinstance(value, str):
        return value
    return "" if is_empty(value) else encode_json(value).decode()
