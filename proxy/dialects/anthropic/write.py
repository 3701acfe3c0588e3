"""The Messages grammar of our clients: canonical values in, Anthropic's own events out (contract D1, W4, W5).

    message_start  (content_block_start  content_block_delta*  content_block_stop)*  message_delta  message_stop

One block is open at a time, so what comes while a tool call is unfinished, and is not of that call, waits in `_later`.
A seal ends its block of thinking, and waits for as much of the text that it is over as is still held back.
The last two events hold usage and stand for `[DONE]`: they come from `seal`, once the row is durable. There is only
choice 0. Blocks that only this family knows come raw under `native` and get the numbers that they have here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.anthropic.body import message_of, patch_message
from proxy.dialects.anthropic.calls import Call
from proxy.dialects.anthropic.stops import stop_word
from proxy.dialects.anthropic.usage import START, last_usage, start_usage, whole_usage
from proxy.dialects.base import ContentOf
from proxy.dialects.identity import Identity
from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json, is_empty
from proxy.dialects.sealing import Piece, Sealing
from proxy.dialects.seals import ANTHROPIC, GEMINI, mark_seal

_TEXT, _THINKING, _CALL, _RAW = "text", "thinking", "call", "raw"
_OWN_DELTA = frozenset(("stop_reason", "stop_sequence"))
_OWN_EVENT = frozenset(("type", "delta", "usage"))
_OWN_CALL = frozenset(("type", "id", "name", "input"))


class MessagesWriter(Identity):
    """Writes one answer."""

    def __init__(self, fallback_id: str, created: int, model: str) -> None:
        super().__init__(fallback_id, created, model)
        self._has_begun = False
        self._next = 0  # the number of the block that is open, or comes next
        self._open = ""  # its kind
        self._call: Call | None = None  # its call, if it is one
        self._calls: dict[int, Call] = {}  # by slot
        self._later: deque[str | Call | Piece] = deque()  # texts, calls, reasoning
        self._sealing = Sealing()
        self._thought = 0  # letters of the open block of thinking
        self._seal: tuple[str, int] | None = None  # its signature, which waits for so many more of them
        self._special: dict[str, Mapping[str, object]] = {}  # unknown fields of calls, by their id
        self._has_refused = False
        self._finish, self._word = "stop", ""
        self._ends: Mapping[str, object] = {}  # the vendor's own message_delta
        self._out: list[bytes] = []

    # ---- events --------------------------------------------------------------------------------------------------

    def event(
        self,
        chunk: Chunk | None,
        choice: int,
        delta: Mapping[str, object],
        *,
        finish: str | None = None,
        word: str | None = None,
        logprobs: object = None,
        choice_extra: Mapping[str, object] | None = None,
    ) -> bytes:
        if choice:
            return b""
        if not self._has_begun:
            self._begin(chunk)
        for piece in self._sealing.order(delta):
            self._put(piece)
        for raw in objects(delta.get("native")):
            self._native(raw)
        refusal = as_text(delta.get("refusal"))
        self._has_refused = self._has_refused or bool(refusal)
        if text := as_text(delta.get("content")) + refusal:
            self._put(text)
        for fragment in objects(delta.get("tool_calls")):
            self._fragment(fragment)
        if finish is not None:
            self._end_blocks()
            self._finish, self._word = finish, word or ""
        out, self._out = self._out, []
        return b"".join(out)

    def seal(self, usage: Usage, native: Mapping[str, object] | None, count: Count, *, wanted: bool) -> bytes:
        """`message_delta` with the usage, which this grammar always has, and `message_stop`."""
        delta = as_mapping(self._ends.get("delta"))
        told: dict[str, object] = {
            "stop_reason": self._stop_reason(is_own=native is not None),
            "stop_sequence": delta.get("stop_sequence"),
            **{name: value for name, value in delta.items() if name not in _OWN_DELTA},
        }
        beside = {name: value for name, value in self._ends.items() if name not in _OWN_EVENT}
        self._emit("message_delta", {"delta": told, "usage": last_usage(usage, native, count), **beside})
        self._emit("message_stop", {})
        out, self._out = self._out, []
        return b"".join(out)

    def seal_events(self, *, wanted: bool) -> int:
        return 2

    def error_event(self, error: Mapping[str, object]) -> bytes:
        return b"event: error\ndata: " + encode_json({"type": "error", "error": error}) + b"\n\n"

    def _stop_reason(self, *, is_own: bool) -> str:
        if self._has_refused and self._finish == "stop":
            return "refusal"
        return stop_word(self._finish, self._word or None, is_own=is_own)

    def _emit(self, name: str, fields: Mapping[str, object]) -> None:
        self._out.append(f"event: {name}\ndata: ".encode() + encode_json({"type": name, **fields}) + b"\n\n")

    def _begin(self, chunk: Chunk | None) -> None:
        self._has_begun = True
        usage = chunk.usage if chunk is not None else None
        is_own = chunk is not None and START in (usage or {})
        message: dict[str, object] = {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        if is_own and chunk is not None:
            message |= {name: value for name, value in chunk.extra.items() if name != "service_tier"}
        self._emit("message_start", {"message": {**message, "usage": start_usage(usage)}})

    # ---- blocks --------------------------------------------------------------------------------------------------

    def _start_block(self, kind: str, block: Mapping[str, object]) -> None:
        self._close()
        self._open = kind
        self._emit("content_block_start", {"index": self._next, "content_block": block})

    def _piece(self, kind: str, name: str, text: str) -> None:
        self._emit("content_block_delta", {"index": self._next, "delta": {"type": kind, name: text}})

    def _close(self) -> None:
        if self._seal is not None:
            self._piece("signature_delta", "signature", self._seal[0])
        if self._open:
            self._emit("content_block_stop", {"index": self._next})
            self._next += 1
        self._open, self._call, self._thought, self._seal = "", None, 0, None

    def _whole(self, block: Mapping[str, object]) -> None:
        self._start_block(_RAW, block)
        self._close()

    # ---- what waits for its turn ---------------------------------------------------------------------------------

    def _put(self, one: str | Call | Piece) -> None:
        """Write it, if no call is unfinished; else it waits."""
        self._later.append(one)
        self._advance()

    def _advance(self) -> None:
        while self._later and (self._call is None or self._call.is_over()):
            match self._later.popleft():
                case Call() as call:
                    self._start_call(call)
                case Piece() as piece:
                    self._think(piece)
                case text:
                    self._say(text)

    def _end_blocks(self) -> None:
        """Nothing more comes: every call is over."""
        while self._later:
            self._close()
            self._advance()
        self._close()

    def _say(self, text: str) -> None:
        if self._open != _TEXT:
            self._start_block(_TEXT, {"type": "text", "text": ""})
        self._piece("text_delta", "text", text)

    def _think(self, piece: Piece) -> None:
        if piece.is_fresh and self._open == _THINKING:
            self._close()
        text = piece.text
        if self._seal is not None:  # a tail that was held back: it is of the block that is sealed
            seal, missing = self._seal
            self._seal = (seal, missing - len(text[:missing]))
            self._reason(text[:missing])
            text = text[missing:]
            if not self._seal[1]:
                self._close()
        self._reason(text)
        if piece.detail is not None:
            self._sign(piece.detail, piece.over or 0)

    def _reason(self, text: str) -> None:
        if text:
            self._begin_thinking()
            self._piece("thinking_delta", "thinking", text)
            self._thought += len(text)

    def _begin_thinking(self) -> None:
        if self._open != _THINKING:
            self._start_block(_THINKING, {"type": "thinking", "thinking": "", "signature": ""})

    def _sign(self, detail: Mapping[str, object], over: int) -> None:
        """The seal over reasoning, in Anthropic's own place for it."""
        format, signature = as_text(detail.get("format")) or None, as_text(detail.get("signature"))
        sealed = mark_seal(signature or as_text(detail.get("data")), format, ANTHROPIC)
        if not signature and (sealed == detail.get("data") or self._open != _THINKING):
            self._whole({"type": "redacted_thinking", "data": sealed})
            return
        self._begin_thinking()
        self._seal = (sealed, max(0, over - self._thought))
        if not self._seal[1]:
            self._close()

    # ---- tool calls ----------------------------------------------------------------------------------------------

    def _fragment(self, fragment: Mapping[str, object]) -> None:
        slot = as_count(fragment.get("index")) or 0
        function = as_mapping(fragment.get("function"))
        piece = as_text(function.get("arguments"))
        call = self._calls.get(slot)
        if call is None:
            google = as_mapping(as_mapping(fragment.get("extra_content")).get("google"))
            seal = as_text(google.get("thought_signature"))
            call = self._calls[slot] = Call(as_text(fragment.get("id")), as_text(function.get("name")), seal)
            call.waiting.append(piece)
            self._put(call)
        elif call is self._call:
            self._arguments(call, piece)
        else:  # it has not begun yet, or it was whole already and nothing can follow
            call.waiting.append(piece)
            self._advance()

    def _start_call(self, call: Call) -> None:
        if call.seal:
            self._whole({"type": "redacted_thinking", "data": mark_seal(call.seal, GEMINI, ANTHROPIC)})
        special = self._special.pop(call.id, {})
        self._start_block(_CALL, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}, **special})
        self._call = call
        self._arguments(call, "".join(call.waiting))
        call.waiting.clear()

    def _arguments(self, call: Call, piece: str) -> None:
        if piece:
            call.grow(piece)
            self._piece("input_json_delta", "partial_json", piece)

    # ---- what only this family knows -----------------------------------------------------------------------------

    def _native(self, raw: Mapping[str, object]) -> None:
        match raw.get("type"):
            case "content_block_start":
                self._raw_start(as_mapping(raw.get("content_block")))
            case "content_block_delta":
                self._raw_delta(as_mapping(raw.get("delta")))
            case "content_block_stop":
                self._close()
            case "message_delta":
                self._ends = raw
            case _:
                self._whole(raw)

    def _raw_start(self, block: Mapping[str, object]) -> None:
        match block.get("type"):
            case "text":  # its text comes as every text does
                self._start_block(_TEXT, {**block, "text": ""})
            case "tool_use":
                special = {k: v for k, v in block.items() if k not in _OWN_CALL and not is_empty(v)}
                self._special[as_text(block.get("id"))] = special
            case _:
                self._start_block(_RAW, block)

    def _raw_delta(self, delta: Mapping[str, object]) -> None:
        if delta.get("type") == "citations_delta" and self._open != _TEXT:
            self._start_block(_TEXT, {"type": "text", "text": ""})
        if self._open:
            self._emit("content_block_delta", {"index": self._next, "delta": delta})

    # ---- one body ------------------------------------------------------------------------------------------------

    def body(
        self,
        choices: list[dict[str, object]],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        extra: Mapping[str, object],
    ) -> bytes:
        told = whole_usage(usage, native, count)
        return encode_json({**message_of(self.id, self.model, choices[:1]), "usage": told})

    def patch(
        self,
        body: bytes,
        finishes: Mapping[int, str],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        content_of: ContentOf,
        seed: str,
    ) -> bytes:
        told = whole_usage(usage, native, count)
        return patch_message(body, self.id, self.model, finishes.get(0, "stop"), told, content_of, seed)
