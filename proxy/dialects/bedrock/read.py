"""Answers of Bedrock's Converse API: one event of its stream, or one body, to one canonical value.

In: a payload with its event's name, as `wire.eventstream` gives them (a relay may have put the name around the payload
instead). Out: a `Parsed`. An exception is an event too; one that came as headers alone is called `error`. What a block
of reasoning is sealed with is known at its end, and is given then, with the text that it seals. Never raises; what an
exception means is for the rules. (facts of vendors, 6)
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Heartbeat, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.parts import objects
from proxy.dialects.payload import BROKEN, as_count, as_mapping, as_text, encode_json, is_empty, parse_json
from proxy.dialects.reading import JsonReader
from proxy.dialects.seals import BEDROCK
from proxy.dialects.signs import is_error

_EVENTS = frozenset(
    ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
)
_BODY = frozenset(("output", "stopReason", "usage", "metrics", "additionalModelResponseFields", "trace"))
# `p` is padding, of a random length.
_NOT_TOLD = frozenset(("p", "stopReason", "contentBlockIndex"))


class BedrockReader(JsonReader):
    """`_thoughts` are the texts and seals of blocks of reasoning that have not ended yet, by the block's number;
    `_theirs` the numbers of calls that AWS runs itself."""

    def __init__(self) -> None:
        super().__init__()
        self._thoughts: dict[int, _Thought] = {}
        self._theirs: set[int] = set()
        self._details = 0

    def read(self, data: bytes, event: str | None, one_line: bool = True) -> Parsed:
        if event is not None and event.endswith(("Exception", "Error")):
            value, replaced = parse_json(data)
            self.replaced += replaced
            return _failed(event, value, data)
        return super().read(data, event, one_line)

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        if event not in _EVENTS:
            for name in value:
                inner = value[name]
                if isinstance(inner, dict) and (name in _EVENTS or name.endswith("Exception")):
                    return self._event(name, inner) if name in _EVENTS else _failed(name, inner, data)
            return self.foreign(value, data, event, _BODY)
        return self._event(event, value)

    def read_whole(self, data: bytes) -> Parsed:
        value, replaced = parse_json(data)
        self.replaced += replaced
        if not isinstance(value, dict):
            return self.read_other(value, data, None)
        message = as_mapping(as_mapping(value.get("output")).get("message"))
        stop = as_text(value.get("stopReason"))
        if not (message or stop) or is_error(value):
            return self.foreign(value, data, None, _BODY)
        delta = self._message(message)
        delta.finish = stop or None
        delta.choice_extra = _rest(value, *_BODY, "serviceTier", "performanceConfig")
        chunk = self._metadata(value)
        chunk.deltas = [delta] if stop or delta.texts or delta.tools or delta.extra else []
        return chunk

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        """Input leaves out what the cache gave and took: here it does not."""
        read, write = figure(vendor, "cacheReadInputTokens"), figure(vendor, "cacheWriteInputTokens")
        fresh, beside = figure(vendor, "inputTokens"), (read or 0) + (write or 0)
        whole = None if fresh is None else fresh + beside
        total = figure(vendor, "totalTokens")
        return Usage(whole, figure(vendor, "outputTokens"), read, write, cache_added=beside, total=total)

    # ---- events ------------------------------------------------------------------------------------------------------

    def _event(self, event: str | None, value: Mapping[str, object]) -> Parsed:
        block = as_count(value.get("contentBlockIndex")) or 0
        match event:
            case "contentBlockDelta":
                return self._delta(block, as_mapping(value.get("delta")))
            case "contentBlockStart":
                return self._start(block, as_mapping(value.get("start")))
            case "contentBlockStop":
                details = self._sealed(block)
                return _chunk(extra={"reasoning_details": details}) if details else Heartbeat()
            case "messageStart":
                return _chunk(role=as_text(value.get("role")) or "assistant")
            case "messageStop":
                details = [detail for number in sorted(self._thoughts) for detail in self._sealed(number)]
                stopped = _chunk(extra={"reasoning_details": details} if details else NOTHING)
                stopped.deltas[0].finish = as_text(value.get("stopReason")) or None
                stopped.deltas[0].choice_extra = _rest(value)
                return stopped
            case _:
                return self._metadata(value)

    def _start(self, block: int, start: Mapping[str, object]) -> Parsed:
        call = start.get("toolUse")
        if isinstance(call, dict) and not call.get("type"):
            return _chunk(tools=[_call(block, call)])
        if start:
            self._theirs.add(block)
        return _native({"contentBlockIndex": block, "start": start}) if start else Heartbeat()

    def _delta(self, block: int, delta: Mapping[str, object]) -> Parsed:
        text = delta.get("text")
        if isinstance(text, str):
            return _chunk({"content": text})
        reasoning = delta.get("reasoningContent")
        if isinstance(reasoning, dict):
            return self._reason(block, reasoning)
        call = delta.get("toolUse")
        if isinstance(call, dict) and block not in self._theirs:
            return _chunk(tools=[ToolFragment(block, None, None, _input(call.get("input")))])
        citation = delta.get("citation")
        if isinstance(citation, dict):
            return _chunk(extra={"citations": [citation]})
        return _native({"contentBlockIndex": block, "delta": delta}) if delta else Heartbeat()

    def _reason(self, block: int, reasoning: Mapping[str, object]) -> Parsed:
        thought = self._thoughts.setdefault(block, _Thought())
        thought.signature += as_text(reasoning.get("signature"))
        thought.redacted = _joined(thought.redacted, as_text(reasoning.get("redactedContent")))
        text = as_text(reasoning.get("text"))
        thought.texts.append(text)
        return _chunk({"reasoning_content": text}) if text else Heartbeat()

    def _sealed(self, block: int) -> list[dict[str, object]]:
        """What this block of reasoning must be sent back with, if that is anything."""
        thought = self._thoughts.pop(block, None)
        return [] if thought is None else list(self._details_of(thought))

    def _details_of(self, thought: _Thought) -> Iterator[dict[str, object]]:
        if thought.signature:
            sealed: dict[str, object] = {"text": "".join(thought.texts), "signature": thought.signature}
            yield {"type": "reasoning.text", **sealed, "format": BEDROCK, "index": self._details}
            self._details += 1
        if thought.redacted:
            encrypted: dict[str, object] = {"data": thought.redacted, "format": BEDROCK, "index": self._details}
            yield {"type": "reasoning.encrypted", **encrypted}
            self._details += 1

    @staticmethod
    def _metadata(value: Mapping[str, object]) -> Chunk:
        """Usage, the tier that served, and the model that a router chose."""
        usage = value.get("usage")
        tier = as_text(as_mapping(value.get("serviceTier")).get("type"))
        router = as_mapping(as_mapping(value.get("trace")).get("promptRouter"))
        return Chunk(
            [],
            model=as_text(router.get("invokedModelId")),
            usage=usage if isinstance(usage, dict) and usage else None,
            extra={"service_tier": tier} if tier else NOTHING,
        )

    # ---- a whole message ---------------------------------------------------------------------------------------------

    def _message(self, message: Mapping[str, object]) -> Delta:
        delta = Delta(0, {}, role=as_text(message.get("role")) or "assistant")
        extra: dict[str, list[object]] = {}
        for number, block in enumerate(objects(message.get("content"))):
            self._block(number, block, delta, extra)
        if extra:
            delta.extra = extra
        return delta

    def _block(self, number: int, block: Mapping[str, object], delta: Delta, extra: dict[str, list[object]]) -> None:
        call, cited = block.get("toolUse"), block.get("citationsContent")
        if isinstance(block.get("text"), str):
            _say(delta, "content", as_text(block["text"]))
        elif isinstance(block.get("reasoningContent"), dict):
            reasoning = as_mapping(block["reasoningContent"])
            told = as_mapping(reasoning.get("reasoningText"))
            thought = _Thought([as_text(told.get("text"))])
            thought.signature = as_text(told.get("signature"))
            thought.redacted = as_text(reasoning.get("redactedContent"))
            _say(delta, "reasoning_content", thought.texts[0])
            for detail in self._details_of(thought):
                extra.setdefault("reasoning_details", []).append(detail)
        elif isinstance(call, dict) and not call.get("type"):
            fragment = _call(number, call)
            fragment.arguments = _input(call.get("input"))
            delta.tools = [*(delta.tools or ()), fragment]
        elif isinstance(cited, dict):
            for piece in objects(cited.get("content")):
                _say(delta, "content", as_text(piece.get("text")))
            extra.setdefault("citations", []).extend(objects(cited.get("citations")))
        elif block:
            extra.setdefault("native", []).append(block)


class _Thought:
    """A block of reasoning as far as it has come."""

    __slots__ = ("redacted", "signature", "texts")

    def __init__(self, texts: list[str] | None = None) -> None:
        self.texts = texts if texts is not None else []
        self.signature = self.redacted = ""


def _failed(name: str, value: object, data: bytes) -> ErrorSeen:
    """An exception: its name is what other errors have as `__type`, and that is where rules look for codes."""
    words = data.decode("utf-8", "replace").strip() if value is BROKEN else value
    return ErrorSeen({"__type": name, **(words if isinstance(words, dict) else {"message": words})}, data)


def _call(number: int, call: Mapping[str, object]) -> ToolFragment:
    return ToolFragment(number, as_text(call.get("toolUseId")) or None, as_text(call.get("name")) or None, "")


def _input(value: object) -> str:
    """Arguments: pieces of text in a stream, an object in a body."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode_json(value).decode()


def _joined(one: str, more: str) -> str:
    """Base64 that came in pieces, each with a padding of its own."""
    if not one.endswith("="):
        return one + more
    try:
        return b64encode(b64decode(one) + b64decode(more)).decode()
    except ValueError:
        return one + more


def _chunk(
    texts: dict[str, str] | None = None,
    tools: list[ToolFragment] | None = None,
    role: str | None = None,
    extra: Mapping[str, object] = NOTHING,
) -> Chunk:
    said = {name: text for name, text in (texts or {}).items() if text}
    return Chunk([Delta(0, said, tools, role, extra=extra)])


def _native(value: Mapping[str, object]) -> Chunk:
    """What only this family knows: tools that AWS runs, pictures."""
    return _chunk(extra={"native": [value]})


def _say(delta: Delta, field: str, text: str) -> None:
    if text:
        delta.texts[field] = delta.texts.get(field, "") + text


def _rest(value: Mapping[str, object], *known: str) -> Mapping[str, object]:
    """Fields that we do not know."""
    rest = {k: v for k, v in value.items() if k not in _NOT_TOLD and k not in known and not is_empty(v)}
    return rest or NOTHING
