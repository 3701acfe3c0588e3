"""The Messages API as vendors speak it: one event in, one canonical value out.

`AnthropicReader` follows the blocks of a stream: text and thinking become texts, `tool_use` a tool call, a thinking
block's signature (and a redacted one's data) a seal in `reasoning_details` when the block ends. What only this family
knows goes on raw under `native`: server tools and their results, citations, blocks and fields that are not known here,
and where one text block ends and the next begins. It never raises and decides nothing. (facts of vendors, 3)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.canon.chunk import NOTHING, Chunk, Delta, EndMark, ErrorSeen, Heartbeat, Parsed, ToolFragment
from proxy.canon.usage import Usage
from proxy.dialects.anthropic.usage import DELTA, START, read_usage
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json, is_empty, parse_json
from proxy.dialects.reading import JsonReader
from proxy.dialects.seals import ANTHROPIC

_PIECES = frozenset(("message", "content_block", "delta", "index", "usage", "id", "role", "content", "model"))
_MESSAGE = frozenset(("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"))
_CALL = frozenset(("type", "id", "name", "input"))
_KINDS = frozenset(
    (
        *("content_block_delta", "content_block_start", "content_block_stop"),
        *("message_start", "message_delta", "message_stop", "ping"),
    )
)
_FIELDS = (("thinking", "thinking"), ("name", "tool_use"), ("data", "redacted_thinking"))
_DIRECT = {"type": "direct"}  # who calls a tool, where nothing is special about it
_NO_BLOCK = -1


@dataclass(slots=True)
class _Block:
    """A block that is open. `call` is the tool call's number in the answer, `given` the arguments that it began with;
    `texts` what a thinking block said."""

    kind: str
    call: int = 0
    given: str = ""
    texts: list[str] = field(default_factory=list)
    signature: str = ""


class AnthropicReader(JsonReader):
    """Reads the events of one answer."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, object] = {}
        self._calls = 0
        self._thoughts = 0
        self._last_kind = ""

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        return read_usage(vendor)

    def read_object(self, value: dict[str, object], data: bytes, event: str | None) -> Parsed:
        kind = as_text(value.get("type"))
        # Of events that a relay glued together only the last one's name is known: their own type says more.
        if event == "error" and kind not in _KINDS:
            return ErrorSeen(value, data)
        match kind or event:
            case "content_block_delta":
                return self._delta(value)
            case "content_block_start":
                return self._start(value)
            case "content_block_stop":
                return self._stop(value)
            case "message_start":
                return self._message_start(as_mapping(value.get("message")))
            case "message_delta":
                return self._message_delta(value)
            case "message_stop":
                return EndMark()
            case "ping":
                return Heartbeat()
            case "message" if isinstance(value.get("content"), list | str):
                return self._message(value)
            case _:
                return self.foreign(value, data, event, _PIECES)

    def read_whole(self, data: bytes) -> Parsed:
        value, replaced = parse_json(data)
        self.replaced += replaced
        if not isinstance(value, dict):
            return self.read_other(value, data, None)
        if value.get("type") != "error" and not value.get("error") and isinstance(value.get("content"), list | str):
            return self._message(value)
        return self.foreign(value, data, None, _PIECES)

    # ---- the message ---------------------------------------------------------------------------------------------

    def _message_start(self, message: Mapping[str, object]) -> Chunk:
        """The head. A second one (relays splice streams) changes nothing but the figures."""
        usage = as_mapping(message.get("usage"))
        if usage:
            self._usage = {START: usage, **{k: v for k, v in self._usage.items() if k != START}}
        deltas = [Delta(0, {}, role="assistant")]
        for block in _list(message.get("content")):  # what a server tool left over from the turn before
            deltas += self._whole_block(as_mapping(block))
        return self._chunk(message, deltas, dict(self._usage) if usage else None)

    def _message_delta(self, event: Mapping[str, object]) -> Chunk:
        delta, usage = as_mapping(event.get("delta")), as_mapping(event.get("usage"))
        if usage:
            self._usage = {**self._usage, DELTA: usage}
        finish = as_text(delta.get("stop_reason")) or None
        beside = [v for k, v in delta.items() if k != "stop_reason"]
        beside += [v for k, v in event.items() if k not in ("type", "delta", "usage")]
        extra = NOTHING if all(map(is_empty, beside)) else _native(event)
        deltas = self._unended()
        if finish or extra:
            deltas.append(Delta(0, {}, finish=finish, extra=extra))
        return Chunk(deltas, usage=dict(self._usage) if usage else None)

    def _message(self, message: Mapping[str, object]) -> Chunk:
        """A whole message, as a plain answer is one: its blocks joined."""
        joined = Delta(0, {}, role="assistant", finish=as_text(message.get("stop_reason")) or None)
        tools: list[ToolFragment] = []
        extra: dict[str, list[object]] = {}
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)
        for block in blocks:
            for delta in self._whole_block(as_mapping(block)):
                for name, text in delta.texts.items():
                    joined.texts[name] = joined.texts.get(name, "") + text
                tools += delta.tools or []
                for name, value in delta.extra.items():
                    extra.setdefault(name, []).extend(_list(value))
        joined.tools, joined.extra = tools or None, extra or NOTHING
        usage = as_mapping(message.get("usage"))
        return self._chunk(message, [joined], usage or None)

    def _chunk(self, message: Mapping[str, object], deltas: list[Delta], usage: Mapping[str, object] | None) -> Chunk:
        extra = {k: v for k, v in message.items() if k not in _MESSAGE and not is_empty(v)}
        tier = as_mapping(message.get("usage")).get("service_tier")
        if isinstance(tier, str):
            extra["service_tier"] = tier
        return Chunk(
            deltas,
            id=as_text(message.get("id")),
            model=as_text(message.get("model")),
            usage=usage,
            extra=extra or NOTHING,
        )

    def _whole_block(self, block: Mapping[str, object]) -> list[Delta]:
        """The deltas of a block that comes in one piece."""
        if self._is_foreign(_kind(block)):
            return [Delta(0, {}, extra={"native": [block]})]
        start = self._start({"index": _NO_BLOCK, "content_block": block})
        deltas = [*start.deltas, *self._stop({"index": _NO_BLOCK}).deltas]
        for delta in deltas:  # where blocks begin and end matters only in a stream
            delta.extra = {k: v for k, v in delta.extra.items() if k != "native"} or NOTHING
        return deltas

    # ---- its blocks ----------------------------------------------------------------------------------------------

    @staticmethod
    def _is_foreign(kind: str) -> bool:
        return kind not in ("text", "thinking", "redacted_thinking", "tool_use")

    def _start(self, event: Mapping[str, object]) -> Chunk:
        """A block begins. One that is still open at its place has lost its end."""
        block = as_mapping(event.get("content_block"))
        kind, place = _kind(block), _index(event)
        lost = self._end(self._blocks.pop(place, None))
        state = self._blocks[place] = _Block(kind)
        chunk = self._begin(event, block, state)
        chunk.deltas = [*lost, *chunk.deltas]
        return chunk

    def _begin(self, event: Mapping[str, object], block: Mapping[str, object], state: _Block) -> Chunk:
        before, self._last_kind = self._last_kind, state.kind
        match state.kind:
            case "text":
                text = as_text(block.get("text"))
                marks = before == "text" or not is_empty(block.get("citations"))
                return _said("content", text, _native(event) if marks else NOTHING)
            case "thinking":
                state.signature = as_text(block.get("signature"))
                return self._thought(state, as_text(block.get("thinking")))
            case "redacted_thinking":
                return self._seal({"type": "reasoning.encrypted", "data": as_text(block.get("data"))})
            case "tool_use":
                return self._call(event, block, state)
            case _:
                return _one(Delta(0, {}, extra=_native(event)))

    def _call(self, event: Mapping[str, object], block: Mapping[str, object], state: _Block) -> Chunk:
        state.call, self._calls = self._calls, self._calls + 1
        arguments = _json_text(block.get("input"))
        if _index(event) != _NO_BLOCK:  # they may be said again, in pieces: wait for the end
            state.given, arguments = arguments, ""
        fragment = ToolFragment(
            state.call, as_text(block.get("id")) or None, as_text(block.get("name")) or None, arguments
        )
        special = any(not is_empty(v) and v != _DIRECT for k, v in block.items() if k not in _CALL)
        return _one(Delta(0, {}, [fragment], extra=_native(event) if special else NOTHING))

    def _delta(self, event: Mapping[str, object]) -> Chunk:
        delta = as_mapping(event.get("delta"))
        state = self._blocks.get(_index(event))
        match delta.get("type"):
            case "text_delta" if state is None or not self._is_foreign(state.kind):
                return _said("content", as_text(delta.get("text")))
            case "thinking_delta" if state is None or not self._is_foreign(state.kind):
                return self._thought(state, as_text(delta.get("thinking")))
            case "signature_delta" if state is not None and state.kind == "thinking":
                state.signature = as_text(delta.get("signature")) or state.signature
                return Chunk([])
            case "input_json_delta" if state is not None and state.kind == "tool_use":
                piece = _json_text(delta.get("partial_json"))
                state.given = "" if piece else state.given
                return _one(Delta(0, {}, [ToolFragment(state.call, None, None, piece)])) if piece else Chunk([])
            case _:
                return _one(Delta(0, {}, extra=_native(event)))

    def _stop(self, event: Mapping[str, object]) -> Chunk:
        state = self._blocks.pop(_index(event), None)
        deltas = self._end(state)
        if state is not None and state.kind not in ("text", "thinking", "redacted_thinking"):
            # A call may end without any argument: a writer of this family must not wait for more of it.
            deltas.append(Delta(0, {}, extra=_native(event)))
        return Chunk(deltas)

    def _end(self, state: _Block | None) -> list[Delta]:
        """What is known of a block only at its end: its seal, or arguments that did not come in pieces."""
        if state is None:
            return []
        if state.kind == "thinking" and state.signature:
            text = "".join(state.texts)
            return self._seal({"type": "reasoning.text", "text": text, "signature": state.signature}).deltas
        if state.given:
            return [Delta(0, {}, [ToolFragment(state.call, None, None, state.given)])]
        return []

    def _unended(self) -> list[Delta]:
        """The same of blocks whose ends a relay has left out."""
        states = [self._blocks.pop(place) for place in sorted(self._blocks)]
        return [delta for state in states for delta in self._end(state)]

    @staticmethod
    def _thought(state: _Block | None, text: str) -> Chunk:
        if state is not None and text:
            state.texts.append(text)
        return _said("reasoning_content", text)

    def _seal(self, detail: dict[str, object]) -> Chunk:
        number, self._thoughts = self._thoughts, self._thoughts + 1
        details = [{**detail, "format": ANTHROPIC, "index": number}]
        return _one(Delta(0, {}, extra={"reasoning_details": details}))


def _kind(block: Mapping[str, object]) -> str:
    """The block's type, or what its fields say where a relay has dropped it."""
    if kind := as_text(block.get("type")):
        return kind
    return next((kind for field, kind in _FIELDS if field in block), "text")


def _json_text(value: object) -> str:
    """Arguments: an object, or text that holds one; '' if there are none."""
    if isinstance(value, str):
        return value
    return "" if is_empty(value) else encode_json(value).decode()


def _one(delta: Delta) -> Chunk:
    return Chunk([delta])


def _said(name: str, text: str, extra: Mapping[str, object] = NOTHING) -> Chunk:
    if not text and not extra:
        return Chunk([])
    return _one(Delta(0, {name: text} if text else {}, extra=extra))


def _native(event: Mapping[str, object]) -> dict[str, object]:
    return {"native": [event]}


def _index(event: Mapping[str, object]) -> int:
    index = event.get("index")
    return index if index == _NO_BLOCK and type(index) is int else as_count(index) or 0


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
