"""Text events that pass as they came, found with as little work as can be: the fast path.

`PlainShape` knows an event of plain text again by its parsed value: same keys, same identity, nothing but a text said.

A vendor's text events are one template: the same bytes around another string. `TextRun.learn` proves from one parsed
event where that string stands; `match` then takes as many such events as stand in a row, with a handful of C-speed
scans and one parse for all their texts together, so that their bytes can pass as they came. What does not fit the
template in the least is left to the ordinary path, so this is never looser than it. (design, "The fast path")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from proxy.canon.chunk import NOTHING, Chunk

_PROBE = '\x01"probe\\'  # a text whose encoding cannot stand in the event by chance
_PROBE_JSON = b'\\u0001\\"probe\\\\'


class TextRun:
    """A template: `prefix` + body of a JSON string + `suffix` is one whole event, its blank line included."""

    __slots__ = ("_line_suffix", "prefix", "suffix")

    def __init__(self, prefix: bytes, suffix: bytes) -> None:
        self.prefix, self.suffix = prefix, suffix
        self._line_suffix = suffix.removesuffix(b"\n\n")

    @classmethod
    def learn(cls, wire: bytes, content: str) -> TextRun | None:
        """The template of an event whose only text is choice 0's `content`; None if it cannot be proved."""
        body = orjson.dumps(content)[1:-1]
        at = wire.find(b'"content":"' + body + b'"')
        start = at + 11
        if at < 0 or wire.count(b'"content"') != 1:
            return None
        prefix, suffix = wire[:start], wire[start + len(body) :]
        try:
            probed = orjson.loads(prefix + _PROBE_JSON + suffix)
            known = orjson.loads(wire)
            known["choices"][0]["delta"]["content"] = _PROBE
            is_proved = probed == known
        except (
            orjson.JSONDecodeError,
            KeyError,
            IndexError,
            TypeError,
            RecursionError,
        ):  # what is deep cannot be compared
            return None
        return cls(b"data: " + prefix, suffix + b"\n\n") if is_proved else None

    def match(self, data: bytes, start: int) -> tuple[list[str], list[bytes]] | None:
        """Texts and string bodies of the events that stand in a row from `start`; None if there is none. No text is
        empty. The run ends at `end_of(start, bodies)`."""
        if not data.startswith(self.prefix, start):
            return None
        bodies = self._bodies(data[start : max(data.rfind(b"\n\n"), start)])
        if bodies and b'"' in b"".join(bodies):  # a quote: another event in between, or one escaped in the text
            bodies = bodies[: next(i for i, body in enumerate(bodies) if b'"' in body)]
        if not bodies:
            return None
        listed = b'","'.join(bodies)
        # A body that ends in a backslash would swallow the quote after it.
        if b'\\"' in listed or bodies[-1].endswith(b"\\"):
            return None
        try:
            texts = orjson.loads(b'["' + listed + b'"]')
        except orjson.JSONDecodeError:
            return None
        if "" in texts:
            texts = texts[: texts.index("")]
            bodies = bodies[: len(texts)]
        return (texts, bodies) if texts else None

    def _bodies(self, block: bytes) -> list[bytes]:
        """The string bodies of the events at the head of `block`, whose last blank line is cut off. Splitting at blank
        lines and comparing both ends is three times as fast as splitting at what stands between two texts, a needle of
        some 280 bytes; a raw newline cannot stand in a JSON string."""
        prefix, suffix = self.prefix, self._line_suffix
        skip, keep = len(prefix), -len(suffix)
        least = skip + len(suffix)
        bodies: list[bytes] = []
        for event in block.split(b"\n\n"):
            if len(event) < least or not event.startswith(prefix) or not event.endswith(suffix):
                break
            bodies.append(event[skip:keep])
        return bodies

    def longest(self, bodies: list[bytes]) -> int:
        """The length of the longest line of the events with these bodies."""
        return len(self.prefix) + max(map(len, bodies)) + len(self.suffix) - 2

    def end_of(self, start: int, bodies: list[bytes]) -> int:
        """Where the run of these events ends."""
        count = len(bodies)
        return start + sum(map(len, bodies)) + count * len(self.prefix) + count * len(self.suffix)


# What stands under these keys must be read each time: errors (MiniMax says them beside choices) and usage.
_SPEAKING = ("error", "base_resp", "x_groq")


class PlainShape:
    """The shape of a vendor's events of plain text, learned from one that the ordinary path let pass as it came."""

    __slots__ = ("_choice_extra", "_choice_keys", "_extra", "_identity", "_keys")

    def __init__(self, value: Mapping[str, object], choice: Mapping[str, object], chunk: Chunk) -> None:
        self._keys = frozenset(value)
        self._choice_keys = frozenset(choice)
        self._identity = (chunk.id, chunk.created, chunk.model)
        self._extra = tuple(chunk.extra)
        self._choice_extra = tuple(chunk.deltas[0].choice_extra)

    @classmethod
    def learn(cls, wire: bytes, chunk: Chunk) -> PlainShape | None:
        """The shape of this clean event (`wire` is its payload); None if it says more than choice 0's text."""
        value = orjson.loads(wire)
        choice = value["choices"][0]
        plain = choice["delta"].keys() == {"content"} and value.keys().isdisjoint(_SPEAKING)
        return cls(value, choice, chunk) if plain else None

    def unknown_of(self, value: Mapping[str, Any]) -> tuple[Chunk, Mapping[str, object]]:
        """What a payload of this shape says beside its text: a chunk with its unknown fields, and those of its
        choice."""
        choice = value["choices"][0]
        extra = {name: value[name] for name in self._extra} if self._extra else NOTHING
        unknown = {name: choice[name] for name in self._choice_extra} if self._choice_extra else NOTHING
        return Chunk([], *self._identity, extra=extra), unknown

    def text_of(self, value: object) -> str | None:
        """The text of a payload that has this shape, which is not empty; None for every other."""
        if type(value) is not dict or value.keys() != self._keys:
            return None
        if (value["id"], value["created"], value["model"]) != self._identity or value.get("usage") is not None:
            return None
        choices = value["choices"]
        if (
            type(value["created"]) is not int
            or type(choices) is not list
            or len(choices) != 1
            or value["object"] != "chat.completion.chunk"
        ):
            return None
        choice = choices[0]
        if type(choice) is not dict or choice.keys() != self._choice_keys:
            return None
        if choice["index"] != 0 or type(choice["index"]) is not int:  # False is 0 as well
            return None
        delta = choice["delta"]
        if choice["finish_reason"] is not None or choice.get("logprobs") is not None or type(delta) is not dict:
            return None
        text = delta.get("content")
        return text if type(text) is str and text and len(delta) == 1 else None
