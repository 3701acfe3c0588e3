"""Runs of events that differ in nothing but their text: the fast path of the fast path.

A vendor's text events are one template: the same bytes around another string. `TextRun.learn` proves from one parsed
event where that string stands; `match` then takes as many such events as stand in a row, with a handful of C-speed scans
and one parse for all their texts together, so that their bytes can pass as they came. What does not fit the template in
the least is left to the ordinary path, so this is never looser than it. (design, "The fast path")
"""

from __future__ import annotations

import orjson

_PROBE = '\x01"probe\\'  # a text whose encoding cannot stand in the event by chance
_PROBE_JSON = b'\\u0001\\"probe\\\\'


class TextRun:
    """A template: `prefix` + body of a JSON string + `suffix` is one whole event, its blank line included."""

    __slots__ = ("_between", "prefix", "suffix")

    def __init__(self, prefix: bytes, suffix: bytes) -> None:
        self.prefix, self.suffix = prefix, suffix
        self._between = suffix + prefix

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
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
            return None
        return cls(b"data: " + prefix, suffix + b"\n\n") if probed == known else None

    def match(self, data: bytes, start: int) -> tuple[list[str], list[bytes]] | None:
        """Texts and string bodies of the events that stand in a row from `start`; None if there is none. No text is
        empty. The run ends at `end_of(start, bodies)`."""
        if not data.startswith(self.prefix, start):
            return None
        bodies = data[start + len(self.prefix) :].split(self._between)
        last = bodies.pop()
        cut = last.find(self.suffix)
        if cut >= 0:
            bodies.append(last[:cut])
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

    def end_of(self, start: int, bodies: list[bytes]) -> int:
        """Where the run of these events ends."""
        count = len(bodies)
        return start + sum(map(len, bodies)) + count * len(self.prefix) + count * len(self.suffix)
