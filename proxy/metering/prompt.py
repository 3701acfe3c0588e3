"""Our count of a prompt: one fixed formula for every vendor, by name and version (contract L2, docs/counting.md).

In: a chat request's body. Out: the texts that are counted, and the tokens that no text has: for each message, tool call
and tool what a template puts around it, for each image what its pixels come to. The same request has the same count
everywhere, and so it is an estimate of any one vendor's figure, comparable over all of them. Never raises, whatever a
client sent: what has the wrong type is passed over, for its vendor refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from proxy.metering.images import image_tokens
from proxy.metering.tokens import TokenCounter

#: What a row's `count_formula` says. Another formula is another name.
FORMULA: Final = "prompt-1"
#: Around each message, before the answer, around each call of a tool, and each definition of one.
MESSAGE_TOKENS: Final = 3
ANSWER_TOKENS: Final = 3
CALL_TOKENS: Final = 3
TOOL_TOKENS: Final = 7
# Walking so many messages, parts, calls and tools takes less than 0.1 ms; a few bytes can hold thousands.
_QUICK_ITEMS: Final = 48
_HOLDERS: Final = ("content", "tool_calls")


@dataclass(frozen=True, slots=True)
class Prompt:
    """`pieces` are counted as one text, joined by line feeds; `extra` is added."""

    pieces: list[str]
    extra: int

    @property
    def text(self) -> str:
        return "\n".join(self.pieces)


def count_prompt(counter: TokenCounter, body: dict[str, object]) -> int:
    """The whole count, at once. A long one is work for a thread."""
    prompt = read_prompt(body)
    return counter.count(prompt.text) + prompt.extra


def is_quick(body: Mapping[str, object]) -> bool:
    """Whether walking `body` is nothing to keep the event loop for; how long its texts are is another question."""
    items = 0
    for message in messages if isinstance(messages := body.get("messages"), list) else ():
        items += 1
        if isinstance(message, dict):
            items += sum(len(held) for name in _HOLDERS if isinstance(held := message.get(name), list))
        if items > _QUICK_ITEMS:
            return False
    held_beside = (held for name in ("tools", "functions", "texts") if isinstance(held := body.get(name), list))
    return items + sum(map(len, held_beside)) <= _QUICK_ITEMS


def read_prompt(body: dict[str, object]) -> Prompt:
    """Roles, names, text contents and text parts, refusals, reasoning sent back, tool calls (name and arguments), tool
    results, definitions of tools and functions and a response schema as compact JSON, images. Audio, files and ids are
    not counted. `texts` are those of a request for embeddings, which no template goes around."""
    texts = body.get("texts")
    pieces = [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
    extra = 0
    for message in _objects(body.get("messages")):
        if len(message) == 2:  # the usual one: nothing else to look for
            role, content = message.get("role"), message.get("content")
            if isinstance(role, str) and role and isinstance(content, str):
                pieces += (role, content)
                extra += MESSAGE_TOKENS
                continue
        before = len(pieces)
        pieces.extend(_message_pieces(message))
        images = sum(_images(message))
        if len(pieces) > before or images:
            extra += MESSAGE_TOKENS + images + CALL_TOKENS * len(list(_objects(message.get("tool_calls"))))
    extra += ANSWER_TOKENS if extra else 0
    for key in ("tools", "functions"):
        for tool in _objects(body.get(key)):
            pieces.append(_compact(tool))
            extra += TOOL_TOKENS
    response_format = body.get("response_format")
    if isinstance(response_format, dict) and "json_schema" in response_format:
        pieces.append(_compact(response_format["json_schema"]))
    return Prompt(pieces, extra)


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


def _images(message: dict[str, object]) -> Iterator[int]:
    for part in _objects(message.get("content")):
        image = part.get("image_url")
        if isinstance(image, str):
            yield image_tokens(image, part.get("detail"))
        elif isinstance(image, dict) and isinstance(url := image.get("url"), str):
            yield image_tokens(url, image.get("detail"))


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
    except (TypeError, ValueError):  # integers over 64 bits, half surrogates, nesting over 254: seldom
        return "\n".join(_leaves(value))


def _leaves(value: object) -> Iterator[str]:
    """Names and values in order, however deep: what recurses fails at a depth that depends on who called it, and the
    same request would not count the same everywhere."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                waiting += [part for item in reversed(found.items()) for part in reversed(item)]
            case list() as found:
                waiting += reversed(found)
            case found:
                yield str(found)
