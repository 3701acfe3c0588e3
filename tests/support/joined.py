"""What a client makes of an answer: the deltas of each choice joined, as the official SDKs join them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: Reasoning has two names in the wild, and each client reads the one that its vendor uses.
_NAMES = {"content": "text", **{name: name for name in ("reasoning_content", "reasoning", "refusal")}}


def joined(payloads: Iterable[Mapping[str, object]]) -> dict[int, dict[str, object]]:
    """Of a stream's payloads: text, reasoning, refusal, tool calls and finish by choice."""
    choices: dict[int, dict[str, object]] = {}
    for payload in payloads:
        for choice in _list(payload.get("choices")):
            _join(choices.setdefault(choice["index"], {"text": "", "finish_reason": None}), choice)
    return choices


def messages(body: Mapping[str, object]) -> dict[int, dict[str, object]]:
    """The same of a plain answer."""
    return joined([{"choices": [{**choice, "delta": choice["message"]} for choice in _list(body.get("choices"))]}])


def _list(value: object) -> list[dict]:  # type: ignore[type-arg]  # JSON, and the test knows what it holds
    assert isinstance(value, list | None)
    return value or []


def _join(one: dict[str, object], choice: Mapping[str, object]) -> None:
    delta = choice["delta"]
    assert isinstance(delta, dict)
    for field, name in _NAMES.items():
        if delta.get(field):
            one[name] = str(one.get(name, "")) + delta[field]
    for position, fragment in enumerate(_list(delta.get("tool_calls"))):
        calls = one.setdefault("tool_calls", [])
        assert isinstance(calls, list)
        index = fragment.get("index", position)
        if index == len(calls):
            calls.append({"id": fragment["id"], "name": "", "arguments": ""})
        calls[index]["name"] += fragment["function"].get("name", "")
        calls[index]["arguments"] += fragment["function"].get("arguments", "")
    one["finish_reason"] = choice["finish_reason"] or one["finish_reason"]
