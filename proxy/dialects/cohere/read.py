"""Answers of Cohere's chat API, version 2: one event of its stream, or one body, to one canonical value.

In: a payload. Out: a `Parsed`. The type stands in the JSON, and again as the event's name. A tool plan is reasoning as
much as thinking is. The last event may say that the answer failed: that is an error, with what was used so far. Never
raises. (facts of vendors, 8)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Heartbeat, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json, is_empty, parse_json
from proxy.dialects.reading import JsonReader

_SILENT = frozenset(("content-end", "tool-call-end", "citation-end", "debug", "ping"))
_BODY = frozenset(("id", "finish_reason", "message", "usage", "logprobs", "delta", "index"))
_FAILED = ("ERROR", "TIMEOUT")


class CohereReader(JsonReader):
    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        kind = as_text(value.get("type")) or event
        delta = as_mapping(value.get("delta"))
        message = as_mapping(delta.get("message"))
        match kind:
            case "content-delta" | "content-start":
                return Chunk([_said(message.get("content"), value.get("logprobs"))])
            case "tool-plan-delta":
                return Chunk([Delta(0, _texts(("reasoning_content", message.get("tool_plan"))))])
            case "tool-call-start" | "tool-call-delta":
                index = as_count(value.get("index"))
                calls = message.get("tool_calls")
                listed = calls if isinstance(calls, list) else [calls]
                return Chunk([Delta(0, {}, [_fragment(call, index) for call in objects(listed)] or None)])
            case "citation-start":
                citations = message.get("citations")
                listed = list(objects(citations if isinstance(citations, list) else [citations]))
                return Chunk([Delta(0, {}, extra={"citations": listed} if listed else NOTHING)])
            case "message-start":
                role = as_text(message.get("role")) or "assistant"
                return Chunk([Delta(0, {}, role=role)], id=as_text(value.get("id")))
            case "message-end":
                return _end(value, delta, data)
            case _ if kind in _SILENT:
                return Heartbeat()
            case _ if isinstance(value.get("message"), dict) and "finish_reason" in value:
                return self._whole(value, data)
            case _:
                return self.foreign(value, data, event, _BODY)

    def read_whole(self, data: bytes) -> Parsed:
        value, replaced = parse_json(data)
        self.replaced += replaced
        if not isinstance(value, dict):
            return self.read_other(value, data, None)
        if isinstance(value.get("message"), dict) or value.get("finish_reason"):
            return self._whole(value, data)
        return self.foreign(value, data, None, _BODY)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        """What was really processed; what is billed leaves out the preamble, and stands in where nothing else is
        said."""
        processed, billed = as_mapping(vendor.get("tokens")), as_mapping(vendor.get("billed_units"))
        said = {name for name in ("input", "output") if figure(processed, f"{name}_tokens") is not None}
        return Usage(
            _first_figure("input_tokens", processed, billed),
            _first_figure("output_tokens", processed, billed),
            figure(vendor, "cached_tokens"),
            derived=frozenset(("input", "output")) - said,
            billed_input=figure(billed, "input_tokens"),
            billed_output=figure(billed, "output_tokens"),
        )

    @staticmethod
    def _whole(value: Mapping[str, object], data: bytes) -> Parsed:
        message = as_mapping(value.get("message"))
        content = message.get("content")
        delta = _said(content, None)
        delta.role = as_text(message.get("role")) or "assistant"
        plan = as_text(message.get("tool_plan"))
        if plan:
            delta.texts["reasoning_content"] = delta.texts.get("reasoning_content", "") + plan
        calls = [_fragment(call, number) for number, call in enumerate(objects(message.get("tool_calls")))]
        delta.tools = calls or None
        citations = list(objects(message.get("citations")))
        delta.extra = {"citations": citations} if citations else NOTHING
        delta.logprobs = _logprobs(value.get("logprobs"))
        ended = _end(value, {name: told for name, told in value.items() if name != "message"}, data)
        chunk = ended.chunk if isinstance(ended, ErrorSeen) and ended.chunk is not None else ended
        assert isinstance(chunk, Chunk), "an end has a chunk"
        delta.finish = chunk.deltas[0].finish
        chunk.deltas = [delta] if message or delta.finish else []
        return ended


def _end(value: Mapping[str, object], end: Mapping[str, object], data: bytes) -> Chunk | ErrorSeen:
    """How the answer ended: `end` holds finish, usage, and what went wrong."""
    usage = end.get("usage")
    finish = as_text(end.get("finish_reason"))
    chunk = Chunk(
        [Delta(0, {}, finish=finish or None)],
        id=as_text(value.get("id")),
        usage=usage if isinstance(usage, dict) and not all(map(is_empty, usage.values())) else None,
    )
    if end.get("error") or finish in _FAILED:
        return ErrorSeen(end, data, chunk)
    return chunk


def _said(content: object, logprobs: object) -> Delta:
    """Text and thinking of one content block, or of a message's list of them."""
    delta = Delta(0, {}, logprobs=_logprobs([logprobs]))
    if isinstance(content, str):
        delta.texts = _texts(("content", content))
        return delta
    for block in objects(content if isinstance(content, list) else [content]):
        for field, name in (("reasoning_content", "thinking"), ("content", "text")):
            if text := as_text(block.get(name)):
                delta.texts[field] = delta.texts.get(field, "") + text
    return delta


def _texts(*texts: tuple[str, object]) -> dict[str, str]:
    return {field: text for field, value in texts if (text := as_text(value))}


def _fragment(call: Mapping[str, object], index: int | None) -> ToolFragment:
    function = as_mapping(call.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else encode_json(arguments).decode()
    return ToolFragment(index, as_text(call.get("id")) or None, as_text(function.get("name")) or None, arguments)


def _logprobs(items: object) -> dict[str, object] | None:
    """Log probabilities in the form of chat completions. An item may be several tokens: that of its text is their
    sum."""
    told = list(_told(items))
    return {"content": told} if told else None


def _told(items: object) -> Iterator[dict[str, object]]:
    for item in objects(items):
        values = item.get("logprobs")
        numbers = [n for n in values if isinstance(n, int | float)] if isinstance(values, list) else []
        text = as_text(item.get("text"))
        if numbers:
            letters = list(text.encode("utf-8", "replace"))
            yield {"token": text, "logprob": sum(numbers), "bytes": letters, "top_logprobs": []}


def _first_figure(name: str, *places: Mapping[str, object]) -> int | None:
    return next((tokens for place in places if (tokens := figure(place, name)) is not None), None)
