"""A whole chat.completion: the vendor's patched to what clients rely on, or built from the pieces of a stream.

Patching keeps every field that we do not know. Made right are: `object`, identity, index and finish reason of each
choice, content that is a list of parts, arguments that are null or an object, usage. (contract W4 in its plain form)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from proxy.dialects.openai.read import content_parts
from proxy.dialects.payload import as_count, as_mapping, encode_json, is_empty, parse_json


def patch_completion(
    body: bytes,
    identity: Mapping[str, object],
    finishes: Mapping[int, str],
    usage: Mapping[str, object],
    content_of: Callable[[int, str], str],
    seed: str,
) -> bytes:
    """The vendor's own body, made right, with the `identity` that the answer has here. `finishes` are canonical, by
    choice; `content_of` repairs a choice's text."""
    value, _ = parse_json(body)
    answer = dict(as_mapping(value))
    choices = answer.get("choices")
    patched = []
    for position, choice in enumerate(choices if isinstance(choices, list) else []):
        if isinstance(choice, dict):
            found = as_count(choice.get("index"))
            index = position if found is None else found
            patched.append(
                _patch_choice(choice, index, finishes.get(index, "stop"), content_of, f"{seed}{index or ''}")
            )
    if answer.get("error", ...) is None:
        del answer["error"]  # relays write it into every answer, and clients look for the key
    return encode_json({**answer, **identity, "choices": patched, "usage": usage})


def _patch_choice(
    choice: Mapping[str, object], index: int, finish: str, content_of: Callable[[int, str], str], seed: str
) -> dict[str, object]:
    message = dict(as_mapping(choice.get("message")) or as_mapping(choice.get("delta")))
    content = message.get("content")
    if not isinstance(content, str) and content is not None:
        parts = content_parts(content)
        content = "".join(piece for field, piece in parts if field == "content")
        if reasoning := "".join(piece for field, piece in parts if field != "content"):
            message["reasoning_content"] = reasoning
    message["content"] = content_of(index, content) if isinstance(content, str) else None
    message["role"] = "assistant"
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        message["tool_calls"] = [_patch_call(c, n, seed) for n, c in enumerate(calls) if isinstance(c, dict)]
    elif calls is not None:
        del message["tool_calls"]
    kept = {k: v for k, v in choice.items() if k not in ("delta", "usage")}
    return {**kept, "index": index, "message": message, "finish_reason": finish}


def _patch_call(call: Mapping[str, object], position: int, seed: str) -> dict[str, object]:
    if "function" not in call and call.get("type") not in (None, "function"):
        return dict(call)  # a call of another kind (`custom`): it has no arguments to make right
    function = dict(as_mapping(call.get("function")))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "{}" if is_empty(arguments) else encode_json(arguments).decode()
    function["arguments"] = arguments if arguments.strip() else "{}"
    identity = call.get("id") or f"call_{seed}{position}"
    told = identity if isinstance(identity, str) else encode_json(identity).decode()
    return {**call, "id": told, "type": "function", "function": function}


def completion_choice(
    index: int,
    texts: Mapping[str, str],
    calls: Sequence[tuple[str, str, str, Mapping[str, object]]],
    finish: str,
    logprobs: object,
    message_extra: Mapping[str, object],
    choice_extra: Mapping[str, object],
) -> dict[str, object]:
    """One choice of a chat.completion from joined texts and calls `(id, name, arguments, unknown fields)`."""
    message: dict[str, object] = {"role": "assistant", "content": texts.get("content"), **message_extra}
    message.update({field: text for field, text in texts.items() if field != "content"})
    if not calls and message["content"] is None and "refusal" not in texts:
        message["content"] = ""
    if calls:
        message["tool_calls"] = [
            {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}, **extra}
            for identity, name, arguments, extra in calls
        ]
    return {**choice_extra, "index": index, "message": message, "logprobs": logprobs, "finish_reason": finish}
