"""What a client of each dialect makes of an answer, written from the public APIs and not from our writers.

In: the bytes of a whole answer, a stream or one body. Out: `Said`: text, reasoning, tool calls, finish, usage, error,
and the message as the client would send it back with its next turn. A stream that breaks its grammar's order is an
AssertionError that says where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(slots=True)
class Said:
    """`calls` are (id, name, arguments); `finish` in the terms of chat completions; `turn` is what goes back, in the
    client's grammar; `ended`: the grammar's own end was seen."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    finish: str | None = None
    usage: tuple[int, int] | None = None
    error: Mapping[str, Any] | None = None
    ended: bool = False
    model: str = ""
    turn: list[dict[str, Any]] = field(default_factory=list)


def events_of(client: bytes) -> list[tuple[str | None, str]]:
    """(event name, data) of each SSE event; W1's form is asserted: LF, one data line, nothing else."""
    assert not client or client.endswith(b"\n\n"), client[-80:]
    found = []
    for block in client.decode().split("\n\n")[:-1]:
        lines = block.split("\n")
        name = None
        if lines[0].startswith("event: "):
            name, lines = lines[0][7:], lines[1:]
        assert len(lines) == 1 and lines[0].startswith("data: "), block
        found.append((name, lines[0][6:]))
    return found


def decode_chat(client: bytes, stream: bool) -> Said:
    if not stream:
        return _chat_body(json.loads(client))
    said, message, calls = Said(), _Turn(), dict[int, dict[str, Any]]()
    for name, data in events_of(client):
        assert name is None and not said.ended and said.error is None, f"after the end: {data}"
        if data == "[DONE]":
            said.ended = True
            continue
        event = json.loads(data)
        if "error" in event:
            said.error = event["error"]
            continue
        said.model = event["model"]
        if event.get("usage"):
            said.usage = (event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"])
        for choice in event["choices"]:
            if choice["index"] == 0:
                said.finish = choice["finish_reason"] or said.finish
                message.add(choice["delta"])
                for call in choice["delta"].get("tool_calls", []):
                    _grow_call(calls, call)
    message.finish([calls[slot] for slot in sorted(calls)], said)
    return said


def _grow_call(calls: dict[int, dict[str, Any]], fragment: Mapping[str, Any]) -> None:
    call = calls.setdefault(fragment["index"], {"function": {"name": "", "arguments": ""}})
    function = fragment.get("function", {})
    call["function"]["name"] += function.get("name", "")
    call["function"]["arguments"] += function.get("arguments", "")
    call.update({k: v for k, v in fragment.items() if k not in ("index", "function")})


class _Turn:
    """The assistant's message of a chat, as clients put it together from deltas."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.details: list[object] = []

    def add(self, delta: Mapping[str, Any]) -> None:
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            if delta.get(name):
                self.texts[name] = self.texts.get(name, "") + delta[name]
        self.details += delta.get("reasoning_details") or []

    def finish(self, calls: list[dict[str, Any]], said: Said) -> None:
        said.text = self.texts.get("content", "")
        said.refusal = self.texts.get("refusal", "")
        said.reasoning = self.texts.get("reasoning_content") or self.texts.get("reasoning", "")
        said.calls = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
        turn: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        turn |= {name: text for name, text in self.texts.items() if name != "content"}
        if self.details:
            turn["reasoning_details"] = self.details
        if calls:
            turn["tool_calls"] = calls
        said.turn = [turn]


def _chat_body(body: Mapping[str, Any]) -> Said:
    if "error" in body:
        return Said(error=body["error"])
    assert body["object"] == "chat.completion"
    said, message = Said(ended=True), _Turn()
    choice = body["choices"][0]
    message.add(choice["message"])
    message.finish(choice["message"].get("tool_calls", []), said)
    said.finish, said.model = choice["finish_reason"], body["model"]
    said.usage = (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"])
    return said


def decode_completions(client: bytes, stream: bool) -> Said:
    said = Said()
    bodies = [data for _, data in events_of(client)] if stream else [client.decode()]
    for data in bodies:
        assert not said.ended and said.error is None, f"after the end: {data}"
        if data == "[DONE]":
            said.ended = True
            continue
        event = json.loads(data)
        if "error" in event:
            said.error = event["error"]
            continue
        assert event["object"] == "text_completion"
        said.model = event["model"]
        if event.get("usage"):
            said.usage = (event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"])
        for choice in event["choices"]:
            if choice["index"] == 0:
                said.text += choice["text"]
                said.finish = choice["finish_reason"] or said.finish
    said.ended = said.ended or (not stream and said.error is None)
    return said


_STOPS: Final = {
    **{"end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "max_tokens": "length"},
    **{"tool_use": "tool_calls", "refusal": "content_filter", "model_context_window_exceeded": "length"},
}


def decode_messages(client: bytes, stream: bool) -> Said:
    if not stream:
        body = json.loads(client)
        if body.get("type") == "error":
            return Said(error=body["error"])
        assert body["type"] == "message" and body["role"] == "assistant"
        return _message_said(body["content"], body["stop_reason"], body["usage"], body["model"])
    return _MessagesStream().read(client)


class _MessagesStream:
    """The event order of the Messages API: a start, blocks one after the other, one delta of the message, a stop."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self.open: dict[str, Any] | None = None
        self.message: dict[str, Any] | None = None
        self.delta: dict[str, Any] | None = None

    def read(self, client: bytes) -> Said:
        error, stopped = None, False
        for name, data in events_of(client):
            event = json.loads(data)
            assert event["type"] == name, data
            assert not stopped and error is None, f"after the end: {data}"
            if name == "error":
                error = event["error"]
            elif name == "message_stop":
                assert self.delta is not None, "message_stop without message_delta"
                stopped = True
            else:
                self.take(event)
        usage = None
        if self.delta is not None and self.message is not None:  # what the end does not say stands as the start said it
            told = {name: value for name, value in self.delta["usage"].items() if value is not None}
            usage = {**self.message["usage"], **told}
        stop = self.delta["delta"]["stop_reason"] if self.delta is not None else None
        model = self.message["model"] if self.message is not None else ""
        said = _message_said(self.blocks, stop, usage, model)
        said.error, said.ended = error, stopped
        return said

    def take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                assert self.message is None, "a second message_start"
                self.message = event["message"]
                assert event["message"]["content"] == [] and event["message"]["stop_reason"] is None
            case "content_block_start":
                assert self.message is not None and self.open is None and self.delta is None, event
                assert event["index"] == len(self.blocks), event
                self.open = dict(event["content_block"])
                self.blocks.append(self.open)
            case "content_block_delta":
                assert self.open is not None and event["index"] == len(self.blocks) - 1, event
                _grow_block(self.open, event["delta"])
            case "content_block_stop":
                assert self.open is not None and event["index"] == len(self.blocks) - 1, event
                if isinstance(self.open.get("input"), str):
                    self.open["input"] = json.loads(self.open["input"] or "{}")
                self.open = None
            case "message_delta":
                assert self.message is not None and self.open is None and self.delta is None, event
                self.delta = event
            case kind:
                raise AssertionError(f"unknown event {kind}")


def _grow_block(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    match delta["type"]:
        case "text_delta":
            assert block["type"] == "text"
            block["text"] += delta["text"]
        case "thinking_delta":
            assert block["type"] == "thinking"
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            assert block["type"] == "thinking"
            block["signature"] = delta["signature"]
        case "input_json_delta":
            assert block["type"].endswith("tool_use")
            before = block["input"] if isinstance(block["input"], str) else ""
            block["input"] = before + delta["partial_json"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        case kind:
            raise AssertionError(f"unknown delta {kind}")


def _message_said(blocks: list[dict[str, Any]], stop: str | None, usage: Mapping[str, Any] | None, model: str) -> Said:
    said = Said(ended=True, model=model)
    said.text = "".join(block["text"] for block in blocks if block["type"] == "text")
    said.reasoning = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    said.calls = [
        (block["id"], block["name"], json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"
    ]
    said.finish = _STOPS[stop] if stop is not None else None
    if usage is not None:
        cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
        said.usage = ((usage.get("input_tokens") or 0) + cached, usage["output_tokens"])
    said.turn = [{"role": "assistant", "content": blocks}]
    return said


def decode_responses(client: bytes, stream: bool) -> Said:
    if not stream:
        body = json.loads(client)
        return Said(error=body["error"]) if body.get("error") else _response_said(body)
    return _ResponsesStream().read(client)


class _ResponsesStream:
    """The event order of the Responses API: numbered events, items one after the other, and the whole in the last."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.open: int | None = None
        self.deltas: dict[tuple[str, str, int], str] = {}
        self.text, self.reasoning = "", ""
        self.calls: dict[str, str] = {}

    def read(self, client: bytes) -> Said:
        last: dict[str, Any] | None = None
        for number, (name, data) in enumerate(events_of(client)):
            event = json.loads(data)
            assert event["type"] == name, data
            assert event["sequence_number"] == number, data
            assert last is None, f"after the end: {data}"
            if name in ("response.completed", "response.incomplete", "response.failed"):
                last = event
            else:
                self.take(name or "", event, number)
        if last is None or last["type"] == "response.failed":
            said = Said(self.text, self.reasoning)
            said.error = last.get("error") if last is not None else None
            said.calls = [(identity, "", arguments) for identity, arguments in self.calls.items()]
            return said
        assert self.open is None, "an item was never closed"
        said = _response_said(last["response"])
        assert said.text == self.text, "the deltas are not the whole"
        assert [item["id"] for item in last["response"]["output"]] == [item["id"] for item in self.items]
        return said

    def take(self, name: str, event: dict[str, Any], number: int) -> None:
        match name:
            case "response.created":
                assert number == 0 and event["response"]["status"] == "in_progress"
            case "response.in_progress":
                assert number == 1
            case "response.output_item.added":
                assert self.open is None and event["output_index"] == len(self.items), event
                self.open = event["output_index"]
                self.items.append(event["item"])
            case "response.output_item.done":
                assert self.open == event["output_index"], event
                self.items[event["output_index"]] = event["item"]
                self.open = None
            case "response.output_text.delta":
                assert self.open == event["output_index"], event
                self.text += event["delta"]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self.reasoning += event["delta"]
            case "response.function_call_arguments.delta":
                identity = self.items[event["output_index"]]["call_id"]
                self.calls[identity] = self.calls.get(identity, "") + event["delta"]
            case _:
                assert name.startswith("response."), event


def _response_said(response: Mapping[str, Any]) -> Said:
    said = Said(ended=True, model=response["model"])
    for item in response["output"]:
        match item["type"]:
            case "message":
                said.text += "".join(part["text"] for part in item["content"] if part["type"] == "output_text")
                said.refusal += "".join(part["refusal"] for part in item["content"] if part["type"] == "refusal")
            case "reasoning":
                pieces = [*(item.get("summary") or []), *(item.get("content") or [])]
                said.reasoning += "\n\n".join(piece["text"] for piece in pieces if piece["text"])
            case "function_call":
                said.calls.append((item["call_id"], item["name"], item["arguments"]))
            case _:
                pass  # a tool that the vendor ran itself
    reason = (response.get("incomplete_details") or {}).get("reason")
    said.finish = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(
        reason or "", "tool_calls" if said.calls else "stop"
    )
    usage = response.get("usage")
    said.usage = (usage["input_tokens"], usage["output_tokens"]) if usage else None
    said.turn = list(response["output"])
    return said


DECODERS: Final[Mapping[str, Callable[[bytes, bool], Said]]] = {
    "chat": decode_chat,
    "completions": decode_completions,
    "messages": decode_messages,
    "responses": decode_responses,
}
