"""Content blocks of a Messages request as canonical parts.

In: the JSON of `system` or of a message's `content`. Out: parts, in order, or a `BadBlock`. A seal of another family's
reasoning, which stands in Anthropic's own place, gets its family back; Gemini's over a tool call stands in a block of
its own before it (`write` put it there). Blocks that are not known become `Native`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.request import Document, Image, Native, Part, Text, Thinking, ToolCall, ToolResult
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_mapping, as_text, encode_json
from proxy.dialects.seals import ANTHROPIC, GEMINI, RESPONSES, read_seal

CLIENT = "messages"


class BadBlock(Exception):
    """The caller's mistake, on its way out of the parser's functions."""

    def __init__(self, param: str, wanted: str) -> None:
        self.param, self.wanted = param, wanted
        super().__init__(param)


def parts_of(content: object, param: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        raise BadBlock(param, "a string or a list of blocks")
    blocks = []
    for place, block in enumerate(content):
        if not isinstance(block, dict):
            raise BadBlock(f"{param}[{place}]", "an object")
        blocks.append(block)
    return tuple(_parts(blocks))


def _parts(blocks: list[dict[str, object]]) -> Iterator[Part]:
    call_seal: str | None = None
    for place, block in enumerate(blocks):
        match block.get("type"):
            case "redacted_thinking":
                seal, format = read_seal(as_text(block.get("data")), ANTHROPIC)
                if format == GEMINI and _is_call(blocks, place + 1):
                    call_seal = seal
                else:
                    yield Thinking(encrypted=seal, format=format)
            case "thinking":
                yield _thinking(block)
            case "tool_use":
                arguments = encode_json(as_mapping(block.get("input"))).decode()
                identity, name = as_text(block.get("id")), as_text(block.get("name"))
                yield ToolCall(identity, name, arguments, call_seal, _cache(block))
                call_seal = None
            case "tool_result":
                yield _result(block)
            case "document":
                context = as_text(block.get("context"))
                if context:
                    yield Text(context)
                yield _shown(block) or Native(CLIENT, "document", block)
            case _ if (shown := _shown(block)) is not None:
                if not isinstance(shown, Text) or shown.text:
                    yield shown
            case kind:
                yield Native(CLIENT, as_text(kind) or "block", block)


def _is_call(blocks: list[dict[str, object]], place: int) -> bool:
    return place < len(blocks) and blocks[place].get("type") == "tool_use"


def _cache(block: Mapping[str, object]) -> Mapping[str, object] | None:
    cache = block.get("cache_control")
    return cache if isinstance(cache, dict) else None


def _thinking(block: Mapping[str, object]) -> Thinking:
    text, signature = as_text(block.get("thinking")), as_text(block.get("signature"))
    if not signature:
        return Thinking(text)
    seal, format = read_seal(signature, ANTHROPIC)
    if format == RESPONSES:  # whose seal is the reasoning itself, under its summary
        return Thinking(text, encrypted=seal, format=format)
    return Thinking(text, seal, format=format)


def _result(block: Mapping[str, object]) -> ToolResult:
    content = block.get("content")
    if isinstance(content, str):
        parts: list[Text | Image | Document] = [Text(content)] if content else []
    else:
        told = (_shown(one) or Text(encode_json(one).decode()) for one in objects(content))
        parts = [part for part in told if not isinstance(part, Text) or part.text]
    identity = as_text(block.get("tool_use_id"))
    return ToolResult(identity, tuple(parts), is_error=block.get("is_error") is True, cache=_cache(block))


def _shown(block: Mapping[str, object]) -> Text | Image | Document | None:
    """What may stand in a message and in a tool's result alike; None for every other block."""
    source, cache = as_mapping(block.get("source")), _cache(block)
    match block.get("type"), source.get("type"):
        case "text", _:
            return Text(as_text(block.get("text")), cache)
        case "image", "base64":
            return Image(as_text(source.get("media_type")), as_text(source.get("data")), cache=cache)
        case "image", "url":
            return Image(url=as_text(source.get("url")), cache=cache)
        case "document", "base64" | "text" | "url" | "file" | "content":
            return _document(source, as_text(block.get("title")), cache)
        case "search_result", _:
            text = "\n".join(as_text(one.get("text")) for one in objects(block.get("content")))
            told = "\n".join(part for part in (as_text(block.get("source")), text) if part)
            return Document("text/plain", text=told, name=as_text(block.get("title")), cache=cache)
        case _:
            return None


def _document(source: Mapping[str, object], title: str, cache: Mapping[str, object] | None) -> Document | None:
    media_type, data = as_text(source.get("media_type")), as_text(source.get("data"))
    match source.get("type"):
        case "base64":
            return Document(media_type, data, name=title, cache=cache)
        case "text":
            return Document(media_type or "text/plain", text=data, name=title, cache=cache)
        case "url":
            return Document("application/pdf", url=as_text(source.get("url")), name=title, cache=cache)
        case "file":
            return Document(file_id=as_text(source.get("file_id")), name=title, cache=cache)
        case _:
            return _inline(source.get("content"), title, cache)


def _inline(content: object, title: str, cache: Mapping[str, object] | None) -> Document | None:
    """A document of blocks, where all of them are text."""
    blocks = list(objects(content))
    if isinstance(content, str):
        return Document("text/plain", text=content, name=title, cache=cache)
    if not blocks or any(block.get("type") != "text" for block in blocks):
        return None
    return Document("text/plain", text="\n".join(as_text(b.get("text")) for b in blocks), name=title, cache=cache)
