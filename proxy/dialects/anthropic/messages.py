"""Canonical messages as this API wants them: one `system`, then turns of the user and the assistant by turns.

Neighbours of one role are joined, and results of tools stand first in the user's turn. System messages from within the
conversation go to the front, as Anthropic's own layer for OpenAI's API does it. Ids of calls are made of letters,
digits, `_` and `-`, each used once. Empty texts, which are refused, are left out. The user speaks first. What has no
place is reported.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proxy.canon.request import (
    Document,
    Image,
    Message,
    Native,
    Part,
    Refusal,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    split_system,
)
from proxy.dialects.anthropic.blocks import CLIENT
from proxy.dialects.base import Losses
from proxy.dialects.calls import CallIds
from proxy.dialects.parts import OPENING, object_of_arguments
from proxy.dialects.seals import ANTHROPIC

_IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_BAD_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_ID = 256  # the vendor names no limit
_THOUGHTS = ("thinking", "redacted_thinking")

Block = dict[str, object]


@dataclass(frozen=True, slots=True)
class Said:
    """`may_think` is False where an older model could not go on thinking: within a turn of tools that did not begin
    with its own thinking, or where its answer is begun for it."""

    system: object
    messages: list[Block]
    may_think: bool


def messages_of(request: Request, losses: Losses, *, takes_prefix: bool) -> Said:
    """`takes_prefix`: the model goes on with a last message that is its own."""
    front, rest = split_system(request.messages)
    for message in rest:
        if message.role in ("system", "developer"):
            losses.hint(f"messages[{message.at}].role")  # it speaks from another place now
            front = (*front, message)
    system = [block for message in front for block in _blocks(message, _Writer(request, losses))]
    writer = _Writer(request, losses)
    turns: list[tuple[str, list[Block]]] = []
    for message in rest:
        if message.role in ("system", "developer"):
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, writer)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    if not turns and system:  # nobody is spoken to: the vendor wants a user who speaks
        losses.hint(f"messages[{front[-1].at}].role")
        turns, system = [("user", system)], []
    _begin_and_end(turns, rest, losses, takes_prefix=takes_prefix)
    messages = [_turn(role, blocks) for role, blocks in turns]
    return Said(_content(system) or None, messages, _may_think(turns))


def _begin_and_end(
    turns: list[tuple[str, list[Block]]], said: tuple[Message, ...], losses: Losses, *, takes_prefix: bool
) -> None:
    """The user speaks first. A last message of the assistant is a prefix of the answer, which may not end in blanks;
    where the model takes none, the user speaks once more."""
    if turns and turns[0][0] == "assistant":
        losses.hint(f"messages[{said[0].at}].role")
        turns.insert(0, ("user", [{"type": "text", "text": OPENING}]))
    if not turns or turns[-1][0] != "assistant":
        return
    last = turns[-1][1][-1]
    if not takes_prefix:
        losses.part(said[-1].at, "prefix")
        turns.append(("user", [{"type": "text", "text": OPENING}]))
    elif last.get("type") == "text":
        turns[-1][1][-1] = {**last, "text": str(last["text"]).rstrip()}


def _may_think(turns: list[tuple[str, list[Block]]]) -> bool:
    if not turns or turns[-1][0] == "assistant":
        return not turns
    begins_with_result = bool(turns[-1][1]) and turns[-1][1][0].get("type") == "tool_result"
    if not begins_with_result or len(turns) < 2:
        return True
    return turns[-2][1][0].get("type") in _THOUGHTS


def _turn(role: str, blocks: list[Block]) -> Block:
    if role == "user":
        blocks = sorted(blocks, key=lambda block: block.get("type") != "tool_result")  # stable: results first
    return {"role": role, "content": _content(blocks)}


def _content(blocks: list[Block]) -> object:
    """A string where there is nothing but one plain text."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def _blocks(message: Message, writer: _Writer) -> list[Block]:
    if message.name:
        writer.losses.hint(f"messages[{message.at}].name")
    return [block for part in message.parts for block in writer.part(part, message.at)]


class _Writer:
    """Writes the parts of one conversation."""

    def __init__(self, request: Request, losses: Losses) -> None:
        self.losses = losses
        self._is_own = request.client == CLIENT
        self._citations = self._is_own and request.extra.get("citations") is True
        self._ids = CallIds(_BAD_IN_ID, _LONGEST_ID)

    def part(self, part: Part, at: int) -> Iterator[Block]:
        match part:
            case Text() | Image() | Document():
                yield from self._shown(part, at)
            case Refusal():
                yield from self._shown(Text(part.text), at)
            case Thinking():
                yield from self._thinking(part, at)
            case ToolCall():
                yield self._call(part, at)
            case ToolResult():
                yield self._result(part, at)
            case Native(family="messages"):
                yield dict(part.value)
            case _:
                self.losses.unknown_part(at, part)

    def _shown(self, part: Text | Image | Document, at: int) -> Iterator[Block]:
        block: Block | None = None
        match part:
            case Text():
                block = {"type": "text", "text": part.text} if part.text.strip() else None
            case Image():
                block = self._image(part, at)
            case Document():
                block = self._document(part, at)
        if block is not None:
            yield _cached(block, part.cache)

    def _image(self, image: Image, at: int) -> Block | None:
        if image.detail not in (None, "auto"):
            self.losses.hint(f"messages[{at}].image.detail")
        if image.url.startswith("https://"):
            return {"type": "image", "source": {"type": "url", "url": image.url}}
        media_type = "image/jpeg" if image.media_type == "image/jpg" else image.media_type
        if media_type not in _IMAGES or not image.data:
            self.losses.part(at, "image")
            return None
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": image.data}}

    def _document(self, document: Document, at: int) -> Block | None:
        source = self._source(document)
        if source is None:
            self.losses.part(at, "document")
            return None
        block: Block = {"type": "document", "source": source}
        if document.name:
            block["title"] = document.name
        if self._citations:
            block["citations"] = {"enabled": True}
        return block

    def _source(self, document: Document) -> Block | None:
        if document.text:
            return {"type": "text", "media_type": "text/plain", "data": document.text}
        if document.data and document.media_type == "application/pdf":
            return {"type": "base64", "media_type": "application/pdf", "data": document.data}
        if document.data and document.media_type.startswith("text/"):
            text = _text_of(document.data)
            return {"type": "text", "media_type": "text/plain", "data": text} if text is not None else None
        if document.url:
            return {"type": "url", "url": document.url}
        if document.file_id and self._is_own:
            return {"type": "file", "file_id": document.file_id}
        return None

    def _thinking(self, thought: Thinking, at: int) -> Iterator[Block]:
        """Only its own, with its seal: everything else is refused."""
        if thought.format == ANTHROPIC and thought.signature is not None:
            yield {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
        elif thought.format == ANTHROPIC and thought.encrypted is not None:
            yield {"type": "redacted_thinking", "data": thought.encrypted}
        else:
            self.losses.hint(f"messages[{at}].thinking")

    def _call(self, call: ToolCall, at: int) -> Block:
        if call.signature is not None:
            self.losses.hint(f"messages[{at}].thinking")
        identity = self._ids.of_call(call.id)
        given = object_of_arguments(call.arguments)
        return _cached({"type": "tool_use", "id": identity, "name": call.name, "input": given}, call.cache)

    def _result(self, result: ToolResult, at: int) -> Block:
        made: Block = {"type": "tool_result", "tool_use_id": self._ids.of_result(result.call)}
        blocks = [block for part in result.parts for block in self._shown(part, at)]
        if blocks:
            made["content"] = _content(blocks)
        if result.is_error:
            made["is_error"] = True
        return _cached(made, result.cache)


def _cached(block: Block, cache: Mapping[str, object] | None) -> Block:
    return block if cache is None else {**block, "cache_control": cache}


def _text_of(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
