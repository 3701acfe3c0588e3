"""What is counted, and how a long text is counted in parts without changing the sum (contract L2).

In: a chat request's body; or text as it grows. Out: the text that our own count is over; token numbers. Counting here
never depends on the vendor: the same request has the same count everywhere, and so it is an estimate of any one
vendor's figure (each adds its own template tokens), comparable over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from proxy.metering.tokens import TokenCounter, needs_reference

# Below these a count takes less than 0.2 ms and is cheaper inline than a hop to a thread. Text beyond ASCII costs up to
# 0.11 us a character (random code points: nearly every byte is a token), ASCII up to 0.02 us.
INLINE_CHARS = 8000
INLINE_WIDE_CHARS = 1700
# One part of a long text: about 2 ms of work in a thread, and no copy of the whole answer.
PART_CHARS = 64 * 1024

# A text may be cut here without changing its count: after a letter and before one of these. No pretoken of o200k holds
# a letter with one of these behind it, and no pretoken looks behind itself, so both sides split as they did whole.
# The apostrophe is missing on purpose: `it's` is one pretoken.
_BREAKS = frozenset(' \n\t,.;:!?()[]{}"<>/=。，、！？；：「」《》؟،؛۔।')  # the point is other scripts' marks


def prompt_text(body: dict[str, object]) -> str:
    """All of a chat request that is counted as input, in one text."""
    return "\n".join(prompt_pieces(body))


def prompt_pieces(body: dict[str, object]) -> list[str]:
    """What of a chat request is counted: roles, names, text contents and text parts, refusals, reasoning sent back,
    tool calls (name and arguments), the definitions of tools and functions and a response schema as compact JSON.
    Images, audio, files and ids are not counted. What has the wrong type is passed over: its vendor refuses it."""
    pieces: list[str] = []
    for message in _objects(body.get("messages")):
        pieces.extend(_message_pieces(message))
    for key in ("tools", "functions"):
        pieces.extend(_compact(tool) for tool in _objects(body.get(key)))
    response_format = body.get("response_format")
    if isinstance(response_format, dict) and "json_schema" in response_format:
        pieces.append(_compact(response_format["json_schema"]))
    return pieces


def _message_pieces(message: dict[str, object]) -> Iterator[str]:
    yield from _texts(message, "role", "name")
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in _objects(content):
        yield from _texts(part, "text", "refusal")
    yield from _texts(message, "refusal", "reasoning_content", "reasoning")
    calls = [call.get("function") for call in _objects(message.get("tool_calls"))]
    for function in (*calls, message.get("function_call")):
        if isinstance(function, dict):
            yield from _texts(function, "name", "arguments")


def _texts(source: dict[str, object], *keys: str) -> Iterator[str]:
    for key in keys:
        value = source.get(key)
        if isinstance(value, str) and value:
            yield value


def _objects(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _compact(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):  # integers over 64 bits, half surrogates, nesting: seldom, and an estimate anyway
        return str(value)


def is_short(pieces: list[str]) -> bool:
    """Whether counting `pieces` inline keeps the event loop for less than 0.2 ms."""
    chars = sum(map(len, pieces))
    if chars <= INLINE_CHARS and all(piece.isascii() for piece in pieces):
        return True
    return chars <= INLINE_WIDE_CHARS and not any(map(needs_reference, pieces))


class RunningCount:
    """The exact count of a text that comes in pieces, in bounded memory.

    `add` costs next to nothing. When it is `ripe`, `fold` (on any thread, with no `add` meanwhile) counts up to the
    last place where a cut changes nothing. `total` counts the rest and leaves the state as it is."""

    __slots__ = ("_counter", "_done", "_pending", "_pieces", "_ripe_at")

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._done = 0
        self._pieces: list[str] = []
        self._pending = 0
        self._ripe_at = PART_CHARS

    @property
    def ripe(self) -> bool:
        return self._pending >= self._ripe_at

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._pending += len(piece)

    def fold(self) -> None:
        text = "".join(self._pieces)
        cut = last_break(text)
        if cut:
            self._done += self._counter.count(text[:cut])
        self._pieces = [text[cut:]]
        self._pending = len(text) - cut
        # a text without a break is looked at again only when it has doubled, or it would cost its square
        self._ripe_at = max(PART_CHARS, 2 * self._pending)

    def total(self) -> int:
        return self._done + self._counter.count("".join(self._pieces))


def last_break(text: str) -> int:
    """The last place in `text` where a cut does not change its count; 0 if there is none."""
    for place in range(len(text) - 1, 0, -1):
        if text[place] in _BREAKS and text[place - 1].isalpha():
            return place
    return 0


def count_parts(counter: TokenCounter, pieces: list[str]) -> int:
    """The count of all `pieces` joined, done in parts of some `PART_CHARS`: no large join, no long hold of the GIL."""
    running = RunningCount(counter)
    for piece in pieces:
        for start in range(0, len(piece), PART_CHARS):
            running.add(piece[start : start + PART_CHARS])
            if running.ripe:
                running.fold()
    return running.total()
