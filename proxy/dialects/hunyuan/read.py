"""Hunyuan's answers: one payload in, one canonical value out.

Names are capitalised. Events of a stream stand bare, plain answers and errors inside `Response`; what fails in
mid-stream is told in `ErrorMsg`. Usage stands on every event and is cumulative. Never raises. (contract W4; facts of
vendors, 22; models of the tencentcloud package)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json, is_empty
from proxy.dialects.reading import JsonReader

_ENVELOPE = frozenset(("Choices", "Usage", "Id", "RequestId", "Created", "ErrorMsg", "Error", "Response"))
_NO_ERROR = (None, "", 0, "0")
_CHOICE = frozenset(("Index", "Delta", "Message", "FinishReason"))
_MESSAGE = frozenset(("Role", "Content", "ReasoningContent", "ToolCalls"))


class HunyuanReader(JsonReader):
    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        inner = as_mapping(value.get("Response")) or value
        is_piece = isinstance(inner.get("Choices"), list) or isinstance(inner.get("Usage"), dict)
        failed = any(not is_empty(more) for more in as_mapping(inner.get("Error")).values())
        # Where all is well it is null, or has an empty text and the code 0.
        failed = failed or any(more not in _NO_ERROR for more in as_mapping(inner.get("ErrorMsg")).values())
        if failed or (is_piece and event == "error"):
            return ErrorSeen(value, data, self._chunk(inner) if is_piece else None)
        return self._chunk(inner) if is_piece else self.foreign(value, data, event, _ENVELOPE)

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        cached = figure(as_mapping(vendor.get("PromptTokensDetails")), "CachedTokens")
        total = figure(vendor, "TotalTokens")
        return Usage(figure(vendor, "PromptTokens"), figure(vendor, "CompletionTokens"), cached, total=total)

    def _chunk(self, inner: Mapping[str, object]) -> Chunk:
        usage = inner.get("Usage")
        return Chunk(
            [self._choice(choice, place) for place, choice in enumerate(objects(inner.get("Choices")))],
            id=as_text(inner.get("Id")),
            created=figure(inner, "Created") or 0,
            usage=usage if isinstance(usage, dict) and usage else None,
            # `Note` marks the text as made by a machine, and asks not to be taken away.
            extra={k: v for k, v in inner.items() if k not in _ENVELOPE and not is_empty(v)} or NOTHING,
        )

    def _choice(self, choice: Mapping[str, object], place: int) -> Delta:
        index = as_count(choice.get("Index"))
        message = as_mapping(choice.get("Delta")) or as_mapping(choice.get("Message"))
        texts = {
            "reasoning_content": as_text(message.get("ReasoningContent")),
            "content": as_text(message.get("Content")),
        }
        return Delta(
            place if index is None else index,
            {field: text for field, text in texts.items() if text},
            [_call(call) for call in objects(message.get("ToolCalls"))] or None,
            as_text(message.get("Role")) or None,
            as_text(choice.get("FinishReason")) or None,
            extra={k: v for k, v in message.items() if k not in _MESSAGE and not is_empty(v)} or NOTHING,
            choice_extra={k: v for k, v in choice.items() if k not in _CHOICE and not is_empty(v)} or NOTHING,
        )


def _call(call: Mapping[str, object]) -> ToolFragment:
    """A piece of a call; its id stands on each."""
    function = as_mapping(call.get("Function"))
    arguments = function.get("Arguments")
    text = arguments if isinstance(arguments, str) else "" if not arguments else encode_json(arguments).decode()
    return ToolFragment(
        as_count(call.get("Index")), as_text(call.get("Id")) or None, as_text(function.get("Name")) or None, text
    )
