"""Messages of a canonical request as Converse wants them: two speakers in turn, each with a list of content blocks.

In: the messages behind the system's. Out: `messages` of the body; what could not be said stands in `losses`. Results of
tools are the user's, all those of one turn in one message. Blank texts say nothing and would be refused, so they are
left out; the user speaks first; bytes stay base64, which is how JSON holds them.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator

from proxy.canon.request import (
    Audio,
    Document,
    Image,
    Message,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from proxy.dialects.base import Losses
from proxy.dialects.calls import CallIds
from proxy.dialects.parts import OPENING, object_of_arguments
from proxy.dialects.plain import hint_cache, hint_call, hint_name
from proxy.dialects.seals import BEDROCK

Block = dict[str, object]

_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_OFFICE = "application/vnd.openxmlformats-officedocument."
_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    f"{_OFFICE}wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_AUDIO = frozenset(("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "m4a", "mpeg", "mpga", "pcm", "webm"))
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_.:-]")
_MAX_ID = 64
# What a document's name may not hold; of blanks there may be one in a row.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9()\[\]-]+")
_MAX_NAME = 190


def converse_messages(messages: tuple[Message, ...], losses: Losses) -> list[Block]:
    writer = _Writer(losses)
    made: list[Block] = []
    for message in messages:
        hint_name(message, losses)
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [block for part in message.parts for block in writer.blocks(part, message)]
        if not blocks:
            continue
        if not made and role == "assistant":
            losses.hint(f"messages[{message.at}].role")
            made.append({"role": "user", "content": [{"text": OPENING}]})
        if made and made[-1]["role"] == role:
            _content(made[-1]).extend(blocks)
        else:
            made.append({"role": role, "content": blocks})
    for one in made:
        _with_words(_content(one))
        _content(one).sort(key=lambda block: "toolResult" not in block)  # stable: results first
    return made


def end_prefix(messages: list[Block], said: tuple[Message, ...], losses: Losses, *, takes_prefix: bool) -> None:
    """A last message of the assistant is a prefix of the answer, which may not end in blanks; where the model takes
    none, the user speaks once more."""
    if not messages or messages[-1]["role"] != "assistant":
        return
    if not takes_prefix:
        losses.part(said[-1].at, "prefix")
        messages.append({"role": "user", "content": [{"text": OPENING}]})
        return
    blocks = _content(messages[-1])
    if isinstance(text := blocks[-1].get("text"), str):
        blocks[-1] = {"text": text.rstrip()}


def _with_words(blocks: list[Block]) -> None:
    """A document wants a text beside it."""
    documents = [block["document"] for block in blocks if "document" in block]
    if documents and not any("text" in block for block in blocks):
        names = [str(document["name"]) for document in documents if isinstance(document, dict)]
        blocks.append({"text": "\n".join(names)})


def lacks_thoughts(messages: list[Block]) -> bool:
    """Do they end with results of calls before which no reasoning stands, or with a prefix of the answer? Who reasons
    wants its own there."""
    if messages and messages[-1]["role"] == "assistant":
        return True
    kinds = [{kind for block in _content(message) for kind in block} for message in messages[-2:]]
    return len(kinds) == 2 and "toolResult" in kinds[1] and "reasoningContent" not in kinds[0]


def _content(message: Block) -> list[Block]:
    content = message["content"]
    assert isinstance(content, list), "every message has a list of blocks"
    return content


class _Writer:
    """Keeps the names of documents apart, and the ids of calls: Converse wants each to be another."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._names: set[str] = set()
        self._ids = CallIds(_NOT_IN_IDS, _MAX_ID)

    def blocks(self, part: Part, message: Message) -> Iterator[Block]:
        """The content blocks of one part: one, or none."""
        at, losses = message.at, self._losses
        match part:
            case Text(text=text) | Refusal(text=text):
                hint_cache(part, losses)
                if text.strip():
                    yield {"text": text}
            case Thinking():
                yield from _thinking(part, at, losses)
            case ToolCall():
                hint_call(part, at, losses)
                call = {
                    "toolUseId": self._ids.of_call(part.id),
                    "name": part.name,
                    "input": object_of_arguments(part.arguments),
                }
                yield {"toolUse": call}
            case ToolResult():
                hint_cache(part, losses)
                yield {"toolResult": self._result(part, at)}
            case Image() | Document() | Audio() if message.role != "assistant":
                yield from self._shown(part, at)
            case _:
                losses.unknown_part(at, part)

    def _result(self, result: ToolResult, at: int) -> Block:
        content: list[Block] = []
        for part in result.parts:
            if isinstance(part, Text):
                hint_cache(part, self._losses)
                content += [{"text": part.text}] if part.text.strip() else []
            else:
                content += self._shown(part, at)
        told: Block = {"toolUseId": self._ids.of_result(result.call), "content": content}
        if result.is_error:  # success is not said: few models know the field
            told["status"] = "error"
            told["content"] = content or [{"text": "Error"}]  # with this status it may not be empty
        return told

    def _shown(self, part: Image | Document | Audio, at: int) -> Iterator[Block]:
        hint_cache(part, self._losses)
        if isinstance(part, Image):
            made = self._image(part, at)
        elif isinstance(part, Document):
            made = self._document(part, at)
        else:
            known = part.data and part.format in _AUDIO
            made = {"audio": {"format": part.format, "source": {"bytes": part.data}}} if known else None
        if made is None:
            self._losses.unknown_part(at, part)
        else:
            yield made

    def _image(self, image: Image, at: int) -> Block | None:
        source = _source(image.data, image.url)
        kind = _IMAGES.get(image.media_type.lower()) or _IMAGES.get(f"image/{_suffix(image.url)}")
        if source is None or kind is None:
            return None
        if image.detail not in (None, "auto"):
            self._losses.hint(f"messages[{at}].image.detail")
        return {"image": {"format": kind, "source": source}}

    def _document(self, document: Document, at: int) -> Block | None:
        data, media_type = document.data, document.media_type.partition(";")[0].strip().lower()
        if document.text and not data:
            data = b64encode(document.text.encode("utf-8", "replace")).decode()
            media_type = media_type or "text/plain"
        source = _source(data, document.url)
        suffix = _suffix(document.name) or _suffix(document.url)
        kind = _DOCUMENTS.get(media_type) or (suffix if suffix in _DOCUMENTS.values() else None)
        if source is None or kind is None:
            return None
        return {"document": {"format": kind, "name": self._name(document.name, at), "source": source}}

    def _name(self, name: str, at: int) -> str:
        stem = name.rpartition(".")[0] or name
        told = " ".join(_NOT_IN_NAMES.sub(" ", stem).split())[:_MAX_NAME].strip()
        if told != stem and name:
            self._losses.hint(f"messages[{at}].document.name")
        told = told or "document"
        count, own = 1, told
        while own in self._names:
            count += 1
            own = f"{told} {count}"
        self._names.add(own)
        return own


def _thinking(thinking: Thinking, at: int, losses: Losses) -> Iterator[Block]:
    """Reasoning goes back with the seal of this cloud, or not at all."""
    if thinking.format == BEDROCK and thinking.encrypted is not None:
        yield {"reasoningContent": {"redactedContent": thinking.encrypted}}
    elif thinking.format == BEDROCK and thinking.signature is not None:
        yield {"reasoningContent": {"reasoningText": {"text": thinking.text, "signature": thinking.signature}}}
    else:
        losses.hint(f"messages[{at}].thinking")


def _source(data: str, url: str) -> Block | None:
    if data:
        return {"bytes": data}
    return {"s3Location": {"uri": url}} if url.startswith("s3://") else None


def _suffix(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""
