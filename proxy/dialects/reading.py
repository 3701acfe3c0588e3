"""What all readers but the OpenAI family's do with a payload before they look at its meaning: is it JSON at all?

`JsonReader.read` narrows a frame's bytes to an object and asks `read_object` of the family; what is no object is judged
here: an end mark, an array that holds an error (Gemini without `alt=sse`), a bare string, words that are no JSON. It
never raises. (facts of vendors, 0.5: `[DONE]` proves nothing by itself; 0.11: bodies are not always objects)
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping

from proxy.canon.chunk import TEXT_FIELDS, Chunk, EndMark, ErrorSeen, Heartbeat, Malformed, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.payload import BROKEN, is_empty, parse_json
from proxy.dialects.signs import is_error, speaks_of_error

# What relays write a second time in front of a payload, or a byte order mark before each.
_PREFIXES = re.compile(rb"(?:\xef\xbb\xbf|data:|\s)+(?=[^\s])")
# Names that mean something to clients of chat completions: no vendor's unknown field may go out by one of them.
_ENVELOPE = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))
_CHOICE = frozenset(("index", "delta", "message", "text", "finish_reason", "logprobs"))
_DELTA = frozenset((*TEXT_FIELDS, "role", "tool_calls"))


class JsonReader(ABC):
    """`replaced` counts U+FFFD put in for bytes that can never become UTF-8."""

    finish_is_last = True
    #: Is `[DONE]` the end mark of this grammar? In every other one a relay has written it, and some relays write it
    #: behind a cut too: there it ends an answer that has its finish, and says nothing of one that has not.
    has_done = False

    def __init__(self) -> None:
        self.replaced = 0
        self._is_finished = False

    def read(self, data: bytes, event: str | None, one_line: bool = True) -> Parsed:
        parsed = self._read(data, event)
        if type(parsed) is Chunk and any(delta.finish for delta in parsed.deltas):
            self._is_finished = True
        return _settled(parsed)

    def read_body(self, data: bytes) -> Parsed:
        return _settled(self.read_whole(data))

    def _read(self, data: bytes, event: str | None) -> Parsed:
        value, replaced = parse_json(data)
        if isinstance(value, dict):
            self.replaced += replaced
            return self.read_object(value, data, event)
        if value is BROKEN and (prefixed := _PREFIXES.match(data)) is not None:
            return self._read(data[prefixed.end() :], event)
        self.replaced += replaced
        if value == "[DONE]" or (value is BROKEN and data.strip(b" \t\r\n;.\0").upper() == b"[DONE]"):
            if event == "error":
                return ErrorSeen(None, data)
            return EndMark() if self.has_done or self._is_finished else Heartbeat()
        return self.read_other(value, data, event)

    @abstractmethod
    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        """What this object says."""

    @abstractmethod
    def read_whole(self, data: bytes) -> Parsed:
        """What a plain JSON answer says."""

    @abstractmethod
    def usage(self, vendor: Mapping[str, object]) -> Usage:
        """The vendor's figures in our vocabulary."""

    def read_other(self, value: object, data: bytes, event: str | None) -> Parsed:
        """What is no object. Words of an event that is called an error are its message, if they are only words."""
        if value is BROKEN:
            if event == "error" and data.lstrip()[:1] not in (b"{", b"["):
                return ErrorSeen(None, data)
            return Malformed(data) if event != "ping" else Heartbeat()
        if isinstance(value, list) and value and isinstance(value[0], dict):
            if is_error(value[0]):
                return ErrorSeen(value, data)
            if len(value) == 1:  # an array around every payload: Gemini's, torn apart by a relay
                return self.read_object(value[0], data, event)
        if event == "error" or (isinstance(value, str) and value.strip()):
            return ErrorSeen(value, data)
        return Heartbeat()

    @staticmethod
    def foreign(value: Mapping[str, object], data: bytes, event: str | None, known: frozenset[str]) -> Parsed:
        """An object that is no piece of this family's answer: an error, words, or a sign of life. `known` are fields
        that belong to pieces, and are no notes."""
        if event == "error" or speaks_of_error(value):
            return ErrorSeen(value, data, is_vague=event != "error" and not is_error(value))
        return Heartbeat({k: v for k, v in value.items() if k not in ("type", *known) and not is_empty(v)})


def _settled(parsed: Parsed) -> Parsed:
    """The same, its unknown fields rid of names that are taken."""
    chunk = parsed.chunk if isinstance(parsed, ErrorSeen) else parsed
    if isinstance(chunk, Chunk):
        chunk.extra = _free(chunk.extra, _ENVELOPE)
        for delta in chunk.deltas:
            delta.extra = _free(delta.extra, _DELTA)
            delta.choice_extra = _free(delta.choice_extra, _CHOICE)
    return parsed


def _free(unknown: Mapping[str, object], taken: frozenset[str]) -> Mapping[str, object]:
    if not unknown or taken.isdisjoint(unknown):
        return unknown
    return {name: value for name, value in unknown.items() if name not in taken}
