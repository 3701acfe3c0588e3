"""The Responses grammar of our clients: canonical values in, events or one response out (contract W1, W4, D2).

`ResponsesWriter` makes the response object around the output: what the request asked, as the real API says it back, and
identity, which is constant. `response.completed` (or `response.incomplete`) stands for `[DONE]`. An error is one event
that says `response.failed` and holds the contract's `error`, which both official SDKs look for and raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import ContentOf
from proxy.dialects.identity import Identity
from proxy.dialects.parts import object_of_body, objects
from proxy.dialects.payload import as_count, as_mapping, as_text, encode_json
from proxy.dialects.responses.echo import said_back
from proxy.dialects.responses.events import Events
from proxy.dialects.responses.output import Output
from proxy.dialects.responses.thoughts import seal_of_detail
from proxy.dialects.responses.usage import told_usage
from proxy.dialects.sealing import Sealing

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
#: Words of vendors of this family, which pass as they are.
_WORDS = frozenset(("max_output_tokens", "content_filter", "max_messages", "steered"))
_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")
#: Classes of ours in the few words that typed clients know in a failed response.
_CODES = {"rate_limited": "rate_limit_exceeded", "content_blocked": "invalid_prompt"}
_HEAVY = ("id", "created_at", "model", "object", "output", "usage", "status", "error", "incomplete_details")
#: What a citation has here; that of chat completions is the same, one level deeper.
_CITED = {"start_index": 0, "end_index": 0, "title": "", "url": ""}
_OURS = ("message", "reasoning", "function_call")
_PARTS = ("response.reasoning_summary_part.added", "response.content_part.added")


class ResponsesWriter(Identity):
    """Writes one answer. `seed` makes the ids, `created` (unix seconds) and `model` stand in where the vendor says
    nothing; `asked` is the client's body."""

    def __init__(self, seed: str, created: int, model: str, asked: Mapping[str, object]) -> None:
        super().__init__(f"resp_{seed}", created, model)
        self._fields = said_back(asked)
        self._extra: dict[str, object] = {}
        self._events = Events(self._begun)
        self._output = Output(self._events, seed)
        self._reason: str | None = None  # why the answer is incomplete
        self._sealing = Sealing()

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
        """This grammar has one choice."""
        if choice:
            return b""
        if chunk is not None and chunk.extra:
            self._adopt_extra(chunk.extra)
        self._say(delta, logprobs)
        if finish is not None:
            self._events.begin()
            self._end(finish, word)
        return self._events.take()

    def _adopt_extra(self, extra: Mapping[str, object]) -> None:
        """Unknown fields pass; a tier of another family's price list is no tier here."""
        self._extra |= {name: value for name, value in extra.items() if name != "service_tier" or value in _TIERS}

    def _end(self, finish: str, word: object) -> None:
        self._reason = word if isinstance(word, str) and word in _WORDS else _REASONS.get(finish)
        self._output.end("completed" if self._reason is None else "incomplete")

    def _say(self, delta: Mapping[str, object], logprobs: object) -> None:
        """One increment. Ends of items and annotations come behind the text that they end and annotate."""
        native = list(objects(delta.get("native")))
        for event in native:
            if not _is_behind(event):
                self._native(event)
        self._think(delta)
        if piece := as_text(delta.get("content")):
            self._output.text("output_text", piece, logprobs)
        if piece := as_text(delta.get("refusal")):
            self._output.text("refusal", piece, None)
        for call in objects(delta.get("tool_calls")):
            if not isinstance(function := call.get("function"), dict):
                continue  # a call of another kind: such tools were not asked for, for they are a loss
            slot = as_count(call.get("index")) or 0
            name, arguments = as_text(function.get("name")), as_text(function.get("arguments"))
            mark = as_mapping(call.get("extra_content"))  # Gemini's seal is over the call
            self._output.call(slot, as_text(call.get("id")), name, arguments, mark)
        for annotation in objects(delta.get("annotations")):
            if isinstance(cited := annotation.get("url_citation"), dict):
                self._output.annotate({**_CITED, **cited, "type": "url_citation"})
        for event in native:
            if _is_behind(event):
                self._native(event)

    def _think(self, delta: Mapping[str, object], *, is_whole: bool = False) -> None:
        for piece in self._sealing.order(delta, is_whole=is_whole):
            identity = as_text(piece.detail.get("id")) if piece.detail is not None else ""
            if piece.text:
                self._output.think(piece.text, identity, fresh=piece.is_fresh)
            if piece.detail is not None:
                self._output.seal(seal_of_detail(piece.detail), piece.over, identity)

    def _native(self, event: Mapping[str, object]) -> None:
        if "response" in event:
            said = as_mapping(event["response"])
            self._fields |= {name: value for name, value in said.items() if name not in _HEAVY and value is not None}
        else:
            self._output.native(event)

    def seal(self, usage: Usage, native: Mapping[str, object] | None, count: Count, *, wanted: bool) -> bytes:
        """The last event. Usage always stands in it, whatever is `wanted`."""
        response = self._whole(told_usage(usage, native, count))
        self._events.say(f"response.{response['status']}", {"response": response})
        return self._events.take()

    def seal_events(self, *, wanted: bool) -> int:
        return self._events.ahead + 1

    def error_event(self, error: Mapping[str, object]) -> bytes:
        """One event: one more that was sent before it would be one too many, where nothing has begun."""
        self.settle()
        told = {
            "code": _CODES.get(as_text(error.get("type")), "server_error"),
            "message": as_text(error.get("message")),
        }
        response = self._response("failed", self._output.items, error=told)
        self._events.add("response.failed", {"response": response, "error": error})
        return self._events.take()

    # ---- the response --------------------------------------------------------------------------------------------

    def _begun(self) -> Mapping[str, object]:
        return self._response("in_progress", [])

    def _whole(self, usage: Mapping[str, object]) -> dict[str, object]:
        details = {"reason": self._reason} if self._reason is not None else None
        status = "completed" if self._reason is None else "incomplete"
        return self._response(status, self._output.items, incomplete_details=details, usage=usage)

    def _response(self, status: str, output: list[object], **more: object) -> dict[str, object]:
        return {
            **self._extra,
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": output,
            **{name: value for name, value in self._fields.items() if value is not None or name not in self._extra},
            "usage": None,
            **more,
        }

    # ---- one body ------------------------------------------------------------------------------------------------

    def body(
        self,
        choices: list[dict[str, object]],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        extra: Mapping[str, object],
    ) -> bytes:
        """A whole response, made as its events would have made it."""
        self._adopt_extra(extra)
        choice = next((choice for choice in choices if choice.get("index") == 0), {})
        message = as_mapping(choice.get("message"))
        self._say({"native": list(_whole_items(objects(message.get("native"))))}, None)
        self._think(message, is_whole=True)
        known = ("native", "reasoning_content", "reasoning", "reasoning_details", "tool_calls")
        self._say({name: value for name, value in message.items() if name not in known}, choice.get("logprobs"))
        for slot, call in enumerate(objects(message.get("tool_calls"))):
            self._say({"tool_calls": [{**call, "index": slot}]}, None)
        self._end(as_text(choice.get("finish_reason")), choice.get("native_finish"))
        return encode_json(self._whole(told_usage(usage, native, count)))

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
        """The vendor's own response, with every field that typed clients read. Its status is the vendor's: `queued` is
        no mistake."""
        value = object_of_body(body)
        self._reason = _REASONS.get(finishes.get(0, "stop"))
        told = {name: field for name, field in value.items() if field is not None or name not in self._fields}
        whole = {**self._whole({}), **told, "object": "response", "output": _repaired(value.get("output"), content_of)}
        whole |= {"id": self.id, "created_at": self.created, "model": self.model}
        is_underway = value.get("status") in ("queued", "in_progress")
        whole["usage"] = None if is_underway and native is None else told_usage(usage, native, count)
        return encode_json(whole)


def _is_behind(event: Mapping[str, object]) -> bool:
    return event.get("type") == "response.output_text.annotation.added" or _is_end_of_ours(event)


def _is_end_of_ours(event: Mapping[str, object]) -> bool:
    """The end of an item that is written here piece by piece."""
    return event.get("type") == "response.output_item.done" and as_mapping(event.get("item")).get("type") in _OURS


def _whole_items(events: Iterable[dict[str, object]]) -> Iterable[dict[str, object]]:
    """What of a vendor's events means something to an answer in one body. Where items of reasoning begin and end, their
    seals tell: all their text has become one."""
    for event in events:
        is_reasoning = event.get("type") in _PARTS or as_mapping(event.get("item")).get("type") == "reasoning"
        if not is_reasoning and not _is_end_of_ours(event):
            yield event


def _repaired(output: object, content_of: ContentOf) -> list[object]:
    """The items, with the text that `content_of` makes of theirs in the first part that has some."""
    items = [dict(item) if isinstance(item, dict) else item for item in (output if isinstance(output, list) else [])]
    parts: list[dict[str, object]] = []
    for item in items:
        if isinstance(item, dict) and item.get("type") == "message":
            content = item.get("content")
            item["content"] = [
                {"annotations": [], **part} if isinstance(part, dict) and part.get("type") == "output_text" else part
                for part in (content if isinstance(content, list) else [])
            ]
            parts += [part for part in objects(item["content"]) if part.get("type") == "output_text"]
    text = "".join(as_text(part.get("text")) for part in parts)
    if parts and (repaired := content_of(0, text)) != text:
        for part, told in zip(parts, [repaired, *[""] * len(parts)], strict=False):
            part["text"] = told
    return items
