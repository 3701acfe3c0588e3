"""DashScope's answers: one payload in, one canonical value out.

`output` holds choices with whole messages, or a bare `text`; the finish reason is the string "null" until the end;
usage stands on every event and is cumulative. Texts are increments where the body that was sent asked for that
(`incremental_output`) of a model that can, else every event repeats all that was said, and only the rest is told.
Errors are flat, and in a stream an event of the name `error`. Never raises. (contract W4; facts of vendors, 16)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json
from proxy.dialects.reading import JsonReader
from proxy.dialects.signs import is_error

_ENVELOPE = frozenset(("output", "usage", "request_id", "code", "message", "status_code"))
_OUTPUT = frozenset(("choices", "text", "finish_reason"))
_CHOICE = frozenset(("index", "message", "finish_reason", "logprobs"))
_MESSAGE = frozenset(("role", "content", "reasoning_content", "tool_calls"))
_NO_FINISH = ("", "null")
# Translators that repeat all they have said whatever was asked (help.aliyun.com, Qwen-MT API: "returns data
# non-incrementally, and for now that cannot be changed"); their newer siblings, -flash and -lite, do not.
_ALWAYS_WHOLE = ("qwen-mt-plus", "qwen-mt-turbo")
# The end of a text that the next event may say otherwise: half a character, as the vendor's tokenizer or JSON shows it.
_UNSURE = re.compile("[\ufffd\ud800-\udbff]+$")


class DashScopeReader(JsonReader):
    """`sent` is the body that is answered; an empty one is unknown, and taken for one that asked for increments."""

    def __init__(self, sent: Mapping[str, object]) -> None:
        super().__init__()
        asked = not sent or as_mapping(sent.get("parameters")).get("incremental_output") is True
        self._is_incremental = asked and not as_text(sent.get("model")).startswith(_ALWAYS_WHOLE)
        self._said: dict[tuple[int | str, ...], str] = {}

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        is_piece = isinstance(value.get("output"), dict) or isinstance(value.get("usage"), dict)
        if not is_piece:
            return self.foreign(value, data, event, _ENVELOPE)
        chunk = self._chunk(value)
        return ErrorSeen(value, data, chunk) if event == "error" or is_error(value) else chunk

    def read_whole(self, data: bytes) -> Parsed:
        return self.read(data, None)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        cached = as_mapping(vendor.get("prompt_tokens_details")) or as_mapping(vendor.get("input_tokens_details"))
        return Usage(
            figure(vendor, "input_tokens"),
            figure(vendor, "output_tokens"),
            figure(cached, "cached_tokens"),
            figure(cached, "cache_creation_input_tokens"),
            figure(as_mapping(vendor.get("output_tokens_details")), "reasoning_tokens"),
            total=figure(vendor, "total_tokens"),
        )

    def _chunk(self, value: Mapping[str, object]) -> Chunk:
        output, usage = as_mapping(value.get("output")), value.get("usage")
        choices = list(objects(output.get("choices")))
        if choices:
            deltas = [self._choice(choice, place) for place, choice in enumerate(choices)]
        else:
            deltas = self._bare(output)
        extra = {name: more for name, more in value.items() if name not in _ENVELOPE}
        extra |= {name: more for name, more in output.items() if name not in _OUTPUT}
        return Chunk(
            deltas,
            id=as_text(value.get("request_id")),
            usage=usage if isinstance(usage, dict) and usage else None,
            extra=extra or NOTHING,
        )

    def _bare(self, output: Mapping[str, object]) -> list[Delta]:
        """`result_format: text`, where the output is one text."""
        finish = _finish(output)
        text = self._new((0, "content"), as_text(output.get("text")), is_last=finish is not None)
        return [Delta(0, {"content": text} if text else {}, finish=finish)] if text or finish else []

    def _choice(self, choice: Mapping[str, object], place: int) -> Delta:
        index = as_count(choice.get("index"))
        index = place if index is None else index
        message, finish = as_mapping(choice.get("message")), _finish(choice)
        told = {"reasoning_content": message.get("reasoning_content"), "content": message.get("content")}
        texts = {
            field: self._new((index, field), _text(content), is_last=finish is not None)
            for field, content in told.items()
        }
        calls = list(objects(message.get("tool_calls")))
        return Delta(
            index,
            {field: text for field, text in texts.items() if text},
            [self._call(call, index, number) for number, call in enumerate(calls)] or None,
            as_text(message.get("role")) or None,
            finish,
            choice.get("logprobs"),
            {name: more for name, more in message.items() if name not in _MESSAGE} or NOTHING,
            {name: more for name, more in choice.items() if name not in _CHOICE} or NOTHING,
        )

    def _call(self, call: Mapping[str, object], choice: int, number: int) -> ToolFragment:
        """A piece of a call, or in the other mode all of it so far: then its place in the list is its index."""
        index = as_count(call.get("index"))
        if index is None and not self._is_incremental:
            index = number
        function = as_mapping(call.get("function"))
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if not arguments else encode_json(arguments).decode()
        new = self._new((choice, "call", number if index is None else index), text, is_last=True)
        return ToolFragment(index, as_text(call.get("id")) or None, as_text(function.get("name")) or None, new)

    def _new(self, key: tuple[int | str, ...], text: str, *, is_last: bool) -> str:
        """What of a text was not said before. A text that does not go on is said whole: it must not get lost."""
        if self._is_incremental or not text:
            return text
        sure = text if is_last else _UNSURE.sub("", text)
        said = self._said.get(key, "")
        self._said[key] = sure or said
        return sure.removeprefix(said)


def _finish(value: Mapping[str, object]) -> str | None:
    word = as_text(value.get("finish_reason"))
    return None if word in _NO_FINISH else word


def _text(content: object) -> str:
    """A string, or the endpoint for pictures' list of parts."""
    if isinstance(content, list):
        return "".join(as_text(part.get("text")) for part in objects(content))
    return as_text(content)
