"""MiniMax's chatcompletion_pro in the form of chat completions: what each event adds to those before it.

In: a payload whose choices hold `messages` of a bot. Out: the same payload with a `delta` in each choice. The last
event says everything again, in its messages and in `reply`: what was said before is left out, and where nothing was,
it is the answer. The vendor speaks both grammars under one name, so readers of both ask here. (facts of vendors, 20)
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects.parts import objects
from proxy.dialects.payload import as_count, as_mapping, as_text

_BOT = (None, "BOT")


class ProAnswer:
    """Keeps what was said, by choice."""

    __slots__ = ("_called", "_said")

    def __init__(self) -> None:
        self._said: dict[int, list[str]] = {}
        self._called: set[int] = set()

    def as_chat(self, value: Mapping[str, object]) -> dict[str, object] | None:
        """None if this is no payload of that grammar."""
        choices = list(objects(value.get("choices")))
        if not any(isinstance(choice.get("messages"), list) for choice in choices):
            return None
        told = {name: more for name, more in value.items() if name != "reply"}
        return {**told, "choices": [self._choice(choice, place, value) for place, choice in enumerate(choices)]}

    def _choice(self, choice: Mapping[str, object], place: int, value: Mapping[str, object]) -> dict[str, object]:
        found = as_count(choice.get("index"))
        index = place if found is None else found
        messages = [message for message in objects(choice.get("messages")) if message.get("sender_type") in _BOT]
        text = "".join(as_text(message.get("text")) for message in messages)
        calls = [call for message in messages if (call := as_mapping(message.get("function_call")))]
        is_last = bool(value.get("reply") or value.get("usage") or choice.get("finish_reason"))
        text = self._new(index, text, is_whole=bool(value.get("reply")), is_last=is_last)
        if is_last and index in self._called:
            calls = []
        delta: dict[str, object] = {"content": text}
        if calls:
            self._called.add(index)
            delta["tool_calls"] = [{"index": number, "function": call} for number, call in enumerate(calls)]
        told = {name: more for name, more in choice.items() if name != "messages"}
        finish = choice.get("finish_reason")
        if is_last and index not in self._said and index not in self._called and _is_blocked(value):
            finish = "content_filter"
        return {**told, "index": index, "delta": delta, "finish_reason": finish}

    def _new(self, index: int, text: str, *, is_whole: bool, is_last: bool) -> str:
        before = self._said.get(index)
        if before is not None and is_last:
            said = "".join(before)
            if text.startswith(said):
                return text[len(said) :]
            if is_whole:
                return ""  # the same in other words: the vendor has masked what it took for private
        if text:
            self._said.setdefault(index, []).append(text)
        return text


def _is_blocked(value: Mapping[str, object]) -> bool:
    """The flags alone are no refusal: a text that came with them was let through."""
    return value.get("input_sensitive") is True or value.get("output_sensitive") is True
