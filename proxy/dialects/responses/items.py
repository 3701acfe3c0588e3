"""The items of an answer that are written piece by piece: a message, reasoning, a call of a function.

In: pieces of text. Out: the item's own events in their order, and at its end the whole item, which the events before
it must add up to (both official SDKs check that). One item is open at a time; which one is for `output`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Literal

from proxy.dialects.braces import Braces
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_text
from proxy.dialects.responses.events import Events

Spoken = Literal["output_text", "refusal"]
Thought = Literal["summary_text", "reasoning_text"]


class _Item:
    """`base` are the fields that do not change, the id among them; a vendor of this family gives them, or we do."""

    def __init__(self, events: Events, index: int, base: Mapping[str, object]) -> None:
        self._events, self.index = events, index
        self.base = dict(base)

    @property
    def id(self) -> str:
        return as_text(self.base.get("id"))

    def _say(self, kind: str, **fields: object) -> None:
        self._events.say(f"response.{kind}", {"item_id": self.id, "output_index": self.index, **fields})

    def _added(self, item: Mapping[str, object]) -> None:
        self._events.say("response.output_item.added", {"output_index": self.index, "item": item})

    def _done(self, item: dict[str, object]) -> dict[str, object]:
        self._events.say("response.output_item.done", {"output_index": self.index, "item": item})
        return item


class MessageItem(_Item):
    """Text and refusals. A part goes on until one of the other kind begins."""

    def __init__(self, events: Events, index: int, base: Mapping[str, object]) -> None:
        super().__init__(events, index, {**base, "type": "message", "role": "assistant"})
        self._parts: list[dict[str, object]] = []
        self._kind: Spoken | None = None
        self._text = StringIO()
        self._logprobs: list[object] = []
        self._annotations: list[object] = []
        self._added({**self.base, "status": "in_progress", "content": []})

    def text(self, kind: Spoken, piece: str, logprobs: object) -> None:
        if kind != self._kind:
            self._end_part()
            self._kind = kind
            self._say("content_part.added", content_index=len(self._parts), part=self._part())
        self._text.write(piece)
        if kind == "refusal":
            self._say("refusal.delta", content_index=len(self._parts), delta=piece)
            return
        told = list(_logprobs(logprobs))
        self._logprobs += told
        self._say("output_text.delta", content_index=len(self._parts), delta=piece, logprobs=told)

    def annotate(self, annotation: object) -> None:
        """Of the part that is open; there is nothing to annotate where none is."""
        if self._kind == "output_text":
            at = len(self._annotations)
            self._say(
                "output_text.annotation.added",
                content_index=len(self._parts),
                annotation_index=at,
                annotation=annotation,
            )
            self._annotations.append(annotation)

    def close(self, status: str) -> dict[str, object]:
        self._end_part()
        return self._done({**self.base, "status": status, "content": self._parts})

    def _part(self) -> dict[str, object]:
        text = self._text.getvalue()
        if self._kind == "refusal":
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "annotations": self._annotations, "logprobs": self._logprobs, "text": text}

    def _end_part(self) -> None:
        if self._kind is None:
            return
        part, at = self._part(), len(self._parts)
        if self._kind == "refusal":
            self._say("refusal.done", content_index=at, refusal=part["refusal"])
        else:
            self._say("output_text.done", content_index=at, text=part["text"], logprobs=self._logprobs)
        self._say("content_part.done", content_index=at, part=part)
        self._parts.append(part)
        self._kind, self._text, self._logprobs, self._annotations = None, StringIO(), [], []


class ReasoningItem(_Item):
    """Reasoning, as a summary unless a vendor of this family says that it is the reasoning itself. `sealed` is what
    stands as `encrypted_content`."""

    def __init__(self, events: Events, index: int, base: Mapping[str, object]) -> None:
        super().__init__(events, index, {**base, "type": "reasoning"})
        self.sealed = ""
        self._whole: int | None = None  # letters of the text that the seal is over
        self._said = 0
        self._summary: list[dict[str, object]] = []
        self._content: list[dict[str, object]] = []
        self._kind: Thought | None = None
        self._text = StringIO()
        self._added({**self.base, "summary": []})

    @property
    def is_full(self) -> bool:
        """Is it sealed, with no more text to come? (A text that was held back may come behind the seal.)"""
        return bool(self.sealed) and self._whole is not None and self._said >= self._whole

    @property
    def has_text(self) -> bool:
        return self._said > 0

    def seal(self, sealed: str, over: int | None) -> None:
        """`over` is how many letters the seal is over, None where that is not known."""
        self.sealed, self._whole = sealed, over

    def part(self, kind: Thought) -> None:
        """A new part begins."""
        self._end_part()
        self._kind = kind
        if kind == "summary_text":
            self._say("reasoning_summary_part.added", summary_index=len(self._summary), part=self._part())
        else:
            self._say("content_part.added", content_index=len(self._content), part=self._part())

    def text(self, piece: str) -> None:
        if self._kind is None:
            self.part("summary_text")
        self._text.write(piece)
        self._said += len(piece)
        if self._kind == "summary_text":
            self._say("reasoning_summary_text.delta", summary_index=len(self._summary), delta=piece)
        else:
            self._say("reasoning_text.delta", content_index=len(self._content), delta=piece)

    def close(self, status: str) -> dict[str, object]:
        self._end_part()
        item: dict[str, object] = {**self.base, "summary": self._summary}
        if self._content:
            item["content"] = self._content
        if self.sealed:
            item["encrypted_content"] = self.sealed
        if "status" in self.base:
            item["status"] = status
        return self._done(item)

    def _part(self) -> dict[str, object]:
        return {"type": self._kind, "text": self._text.getvalue()}

    def _end_part(self) -> None:
        if self._kind is None:
            return
        part = self._part()
        if self._kind == "summary_text":
            at = len(self._summary)
            self._say("reasoning_summary_text.done", summary_index=at, text=part["text"])
            self._say("reasoning_summary_part.done", summary_index=at, part=part)
            self._summary.append(part)
        else:
            at = len(self._content)
            self._say("reasoning_text.done", content_index=at, text=part["text"])
            self._say("content_part.done", content_index=at, part=part)
            self._content.append(part)
        self._kind, self._text = None, StringIO()


class CallItem(_Item):
    """A call. It is announced with its first arguments: until then its name may still grow."""

    def __init__(self, events: Events, index: int, base: Mapping[str, object], slot: int, call: str) -> None:
        super().__init__(events, index, {**base, "type": "function_call", "call_id": call})
        self.slot = slot
        self._name: list[str] = []
        self._text = StringIO()  # a list of pieces would take many times the memory of their letters
        self._braces = Braces()
        self._is_announced = False

    @property
    def is_whole(self) -> bool:
        """Are its braces closed? Only then can another item begin before the end of the answer."""
        return self._braces.is_closed

    def feed(self, name: str, piece: str) -> None:
        if name:
            self._name.append(name)
        if piece:
            self._announce()
            self._text.write(piece)
            self._braces.feed(piece)
            self._say("function_call_arguments.delta", delta=piece)

    def close(self, status: str) -> dict[str, object]:
        if not self._text.getvalue().strip():
            self.feed("", "{}")
        self._say("function_call_arguments.done", arguments=self._text.getvalue())
        return self._done(self._item(status))

    def _announce(self) -> None:
        if not self._is_announced:
            self._is_announced = True
            self._added(self._item("in_progress"))

    def _item(self, status: str) -> dict[str, object]:
        return {**self.base, "status": status, "arguments": self._text.getvalue(), "name": "".join(self._name)}


OpenItem = MessageItem | ReasoningItem | CallItem


def _logprobs(logprobs: object) -> Iterator[dict[str, object]]:
    """Those of chat completions with every field that typed clients read."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    for one in objects(content):
        top = [_logprob(other) for other in objects(one.get("top_logprobs"))]
        yield {**_logprob(one), "top_logprobs": top}


def _logprob(one: Mapping[str, object]) -> dict[str, object]:
    token = as_text(one.get("token"))
    given = one.get("bytes")
    return {
        **one,
        "token": token,
        "bytes": given if isinstance(given, list) else list(token.encode("utf-8", "replace")),
    }
