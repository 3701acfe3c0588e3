"""What all readers but the OpenAI family's do with a payload before they look at its meaning: is it JSON at all?

`JsonReader.read` narrows a frame's bytes to an object and asks `read_object` of the family; what is no object is judged
here: an end mark, an array that holds an error (Gemini without `alt=sse`), a bare string, words that are no JSON. It
never raises. (facts of vendors, 0.11: bodies are not always objects)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import EndMark, ErrorSeen, Heartbeat, Malformed, Parsed
from proxy.canon.usage import Usage
from proxy.dialects.payload import BROKEN, is_empty, parse_json
from proxy.dialects.signs import is_error, speaks_of_error


class JsonReader:
    """`replaced` counts U+FFFD put in for bytes that can never become UTF-8."""

    finish_is_last = True

    def __init__(self) -> None:
        self.replaced = 0

    def read(self, data: bytes, event: str | None, one_line: bool = True) -> Parsed:
        if data.strip() == b"[DONE]":  # relays write it behind any grammar
            return EndMark() if event != "error" else ErrorSeen(None, data)
        value, replaced = parse_json(data)
        self.replaced += replaced
        if isinstance(value, dict):
            return self.read_object(value, data, event)
        return self.read_other(value, data, event)

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        """What this object says."""
        raise NotImplementedError

    def read_body(self, data: bytes) -> Parsed:
        """What a plain JSON answer says."""
        raise NotImplementedError

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        raise NotImplementedError

    def read_other(self, value: object, data: bytes, event: str | None) -> Parsed:
        """What is no object."""
        if value is BROKEN:
            return Malformed(data) if event != "ping" else Heartbeat()
        if isinstance(value, list) and value and isinstance(value[0], dict) and is_error(value[0]):
            return ErrorSeen(value, data)
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
