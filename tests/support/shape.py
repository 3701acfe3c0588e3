"""What every stream for an OpenAI client must look like (contracts W1, W3, W4, W5): bytes in, complaints out.

Written against the contract and not against the program: it knows nothing of how the stream was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

FINISHES = ("stop", "length", "tool_calls", "content_filter")
DONE = "[DONE]"


def complaints_about(client: bytes, *, complete: bool, usage: bool) -> list[str]:
    """What is wrong with a stream; `complete` says whether the attempt ended well, `usage` whether it was asked for."""
    return _Checker(complete, usage).check(client)


class _Checker:
    def __init__(self, complete: bool, usage: bool) -> None:
        self.complete, self.usage = complete, usage
        self.found: list[str] = []
        self.identity: tuple[object, ...] | None = None
        self.begun: set[object] = set()
        self.finished: set[object] = set()
        self.calls: set[tuple[object, object]] = set()
        self.usages = 0
        self.ended = ""

    def say(self, complaint: str) -> None:
        self.found.append(complaint)

    def check(self, client: bytes) -> list[str]:
        for line in self._lines(client):
            if self.ended:
                self.say(f"an event after {self.ended}: {line[:80]}")
            if line == DONE:
                self.ended = DONE
            else:
                self._event(line)
        if self.complete != (self.ended == DONE):
            self.say("[DONE] is missing" if self.complete else "[DONE] although the answer is not complete")
        if self.complete and self.begun != self.finished:
            self.say(f"choices {self.begun} began, {self.finished} finished")
        if self.usages != (self.usage and self.complete):
            self.say(f"{self.usages} usage chunks")
        return self.found

    def _lines(self, client: bytes) -> list[str]:
        try:
            text = client.decode()
        except UnicodeDecodeError as error:
            self.say(f"not UTF-8: {error}")
            return []
        if not text:
            return []
        *events, rest = text.split("\n\n")
        if rest:
            self.say(f"not ended by a blank line: {rest[:80]}")
        for event in events:
            if not event.startswith("data: ") or "\n" in event or "\r" in event or event.startswith("data: \ufeff"):
                self.say(f"no one-line event: {event[:80]!r}")
        return [event.removeprefix("data: ") for event in events]

    def _event(self, line: str) -> None:
        try:
            payload = json.loads(line, parse_constant=lambda word: self.say(f"{word} is no JSON"))
        except ValueError:
            self.say(f"no JSON: {line[:80]}")
            return
        if any("\ud800" <= char <= "\udfff" for char in json.dumps(payload, ensure_ascii=False)):
            self.say(f"half a surrogate pair: {line[:80]}")
        if "error" in payload:
            self._error(payload["error"])
        else:
            self._chunk(payload, line)

    def _error(self, error: Mapping[str, object]) -> None:
        self.ended = "the error"
        missing = {"message", "type", "code", "param", "retryable", "retry_after", "upstream", "trace_id"} - set(error)
        if missing:
            self.say(f"the error lacks {missing}")

    def _chunk(self, payload: Mapping[str, object], line: str) -> None:
        if payload.get("object") != "chat.completion.chunk":
            self.say(f"no chat.completion.chunk: {line[:80]}")
        identity = (payload.get("id"), payload.get("created"), payload.get("model"))
        if [type(part) for part in identity] != [str, int, str] or not all(identity):
            self.say(f"identity {identity}")
        if self.identity not in (None, identity):
            self.say(f"identity changed from {self.identity} to {identity}")
        self.identity = identity
        choices = payload.get("choices")
        if not isinstance(choices, list):
            self.say(f"choices is {choices!r}")
            return
        if payload.get("usage") is not None or not choices:
            self._usage(payload, choices)
        for choice in choices:
            self._choice(choice)

    def _usage(self, payload: Mapping[str, object], choices: list[object]) -> None:
        self.usages += 1
        if choices or not isinstance(payload.get("usage"), dict):
            self.say("usage and choices do not stand apart")
        if self.begun != self.finished:
            self.say("usage before the last finish")

    def _choice(self, choice: Mapping[str, object]) -> None:
        index, delta = choice.get("index"), choice.get("delta")
        if type(index) is not int or index < 0 or not isinstance(delta, dict) or "finish_reason" not in choice:
            self.say(f"choice {str(choice)[:80]}")
            return
        if index in self.finished:
            self.say(f"choice {index} goes on after its finish")
        finish = choice["finish_reason"]
        if index not in self.begun and delta.get("role") != "assistant":
            self.say(f"choice {index} begins without its role")
        if index in self.begun and delta.get("role"):
            self.say(f"choice {index} has its role again")
        says = {name: value for name, value in delta.items() if value not in (None, "", [], {})}
        if not says and finish is None and choice.get("logprobs") is None:
            self.say(f"an empty delta in choice {index}")
        self.begun.add(index)
        if finish is not None:
            if finish not in FINISHES:
                self.say(f"finish reason {finish!r}")
            self.finished.add(index)
        for call in delta.get("tool_calls") or ():
            self._call(index, call)

    def _call(self, choice: int, call: object) -> None:
        if not isinstance(call, dict) or type(call.get("index")) is not int:
            self.say(f"tool call {call!r}")
            return
        key = (choice, call["index"])
        if key not in self.calls and not (isinstance(call.get("id"), str) and call["id"]):
            self.say(f"call {key} begins without an id: {call}")
        if key not in self.calls and call.get("type") == "function" and "function" not in call:
            self.say(f"call {key} begins without a function: {call}")
        if key in self.calls and call.get("id"):
            self.say(f"call {key} has its id again")
        self.calls.add(key)
