"""Answers of Qianfan's first version: one payload in, one canonical value out.

The text stands in `result`, the end in `is_end`, at most one call in `function_call`; errors are `error_code` and
`error_msg`, as plain JSON under 200 even where a stream was asked for. Moderation looks like an answer: then
`need_clear_history` or `flag` says what it was, and the finish says so. Never raises. (contract W4, W5; facts of
vendors, 18)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.chunk import NOTHING, Chunk, Delta, ErrorSeen, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.openai_usage import figure
from proxy.dialects.payload import as_count, as_text, encode_json
from proxy.dialects.reading import JsonReader
from proxy.dialects.signs import is_error

_KNOWN = frozenset(
    (
        *("id", "object", "created", "sentence_id", "is_end", "is_truncated", "result", "finish_reason"),
        *("function_call", "usage"),
    )
)
_SIGNS = ("need_clear_history", "flag", "ban_round")
# The finish that the vendor's flags stand for.
_BLOCKED, _CUT_SHORT, _NORMAL = "content_filter", "length", "normal"
# 1 is talk of low risk that may go on; from here on it may not (2), or must not be shown at all (3, 4).
_FLAG_BLOCKED = 2


class BaiduReader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._is_body = self._is_blocked = False

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        is_piece = isinstance(value.get("result"), str) or isinstance(value.get("usage"), dict)
        is_piece = is_piece or any(name in value for name in ("function_call", "is_end"))
        if not is_piece:
            return self.foreign(value, data, event, _KNOWN)
        chunk = self._chunk(value)
        return ErrorSeen(value, data, chunk) if event == "error" or is_error(value) else chunk

    def read_whole(self, data: bytes) -> Parsed:
        self._is_body = True
        return self.read(data, None)

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        """Where the completion is missing it is what the total has beside the prompt."""
        prompt, completion = figure(vendor, "prompt_tokens"), figure(vendor, "completion_tokens")
        total = figure(vendor, "total_tokens")
        if completion is None and prompt is not None and total is not None and total >= prompt:
            return Usage(prompt, total - prompt, derived=frozenset(("output",)), total=total)
        return Usage(prompt, completion, total=total)

    def _chunk(self, value: Mapping[str, object]) -> Chunk:
        self._is_blocked = self._is_blocked or _is_blocked(value)
        call = value.get("function_call")
        texts = {"content": as_text(value.get("result"))}
        tools: list[ToolFragment] | None = None
        if isinstance(call, dict) and call:
            # What it thought about the call: shown to nobody by its own clients, and wanted back with the next turn.
            texts = {"reasoning_content": as_text(call.get("thoughts")), **texts}
            arguments = call.get("arguments")
            text = arguments if isinstance(arguments, str) else encode_json(arguments or {}).decode()
            tools = [ToolFragment(0, None, as_text(call.get("name")) or None, text)]
        usage = value.get("usage")
        return Chunk(
            [Delta(0, {name: text for name, text in texts.items() if text}, tools, finish=self._finish(value))],
            id=as_text(value.get("id")),
            created=figure(value, "created") or 0,
            usage=usage if isinstance(usage, dict) and usage else None,
            # Signs that all is well say nothing.
            extra={k: v for k, v in value.items() if k not in _KNOWN and (v or k not in _SIGNS)} or NOTHING,
        )

    def _finish(self, value: Mapping[str, object]) -> str | None:
        word = as_text(value.get("finish_reason"))
        is_end = value.get("is_end", bool(word) or self._is_body)
        if is_end is not True:
            return None
        if self._is_blocked:
            return _BLOCKED
        if value.get("is_truncated") is True and word in ("", _NORMAL):
            return _CUT_SHORT
        return word or _NORMAL


def _is_blocked(value: Mapping[str, object]) -> bool:
    flag = as_count(value.get("flag"))
    if value.get("need_clear_history") is True or (flag or 0) >= _FLAG_BLOCKED:
        return True
    return flag is None and value.get("ban_round") not in (None, 0)
