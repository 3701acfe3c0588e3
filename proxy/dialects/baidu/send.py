"""A canonical request as a body for Qianfan's first version.

The model is in the path. The system text is a field of its own; speakers alternate, and a message makes one call at
most, so parallel calls of earlier turns are told one after the other. A tool's result is known by the tool's name, and
must be JSON. (`QfLLMInfo.optional_keys` and the OpenAI adapter of the qianfan package)
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.canon.request import Message, Request, Thinking, Tool, ToolCall, names_of_calls
from proxy.dialects.base import Losses, Ways
from proxy.dialects.payload import encode_json, parse_json
from proxy.dialects.plain import (
    append_joined,
    bounded,
    extra,
    function_of,
    functions,
    hint_call,
    hint_name,
    no_reasoning,
    one_call_each,
    results_of,
    sampling,
    system_first,
    text_of,
    text_of_result,
    user_first,
)
from proxy.dialects.taken import taken

_OWN = {
    # Some of its models take the last three, and the others say so themselves.
    **{name: name for name in ("temperature", "top_p", "stop", "frequency_penalty", "presence_penalty", "top_k")},
    **{"max_tokens": "max_output_tokens", "user": "user_id"},
}
_EXTRA = {
    "repetition_penalty": "penalty_score",
    **{name: name for name in ("penalty_score", "disable_search", "enable_citation", "enable_trace")},
}
_LEAST_TEMPERATURE = 0.01  # the documented range is (0, 1.0]


def send_baidu(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    system, rest = system_first(request.messages, losses)
    rest = user_first(rest, losses)
    names = names_of_calls(request.messages)
    messages: list[dict[str, object]] = []
    for message in one_call_each(rest):
        for made in _message(message, names, losses):
            append_joined(messages, made, "role", "content")
    body: dict[str, object] = {"messages": messages}
    if system:
        body["system"] = system
    if request.stream:
        body["stream"] = True
    told = sampling(request, _OWN, losses, ways)
    bounded(told, "temperature", _LEAST_TEMPERATURE, 1.0, losses)
    body |= told
    body |= extra(request, _EXTRA, losses)
    body |= _functions(request, losses)
    if request.format is not None:
        if request.format.schema is not None:
            losses.add("response_format")
        body["response_format"] = "json_object"
    no_reasoning(request, losses)
    return body


def _message(message: Message, names: dict[str, str], losses: Losses) -> Iterator[dict[str, object]]:
    hint_name(message, losses)
    if message.role == "tool":
        for part in results_of(message, losses):
            text = text_of_result(part, message.at, losses)
            name = part.name or names.get(part.call, part.call)
            yield {"role": "function", "name": name, "content": _as_json(text)}
        return
    made: dict[str, object] = {"role": message.role}
    made["content"] = text_of(message.parts, message.at, losses, ToolCall, Thinking)
    call = next((part for part in message.parts if isinstance(part, ToolCall)), None)
    thoughts = _thoughts(message, call, losses)
    if call is not None:
        hint_call(call, message.at, losses)
        told = {"name": call.name, "arguments": call.arguments or "{}"}
        made["function_call"] = told | ({"thoughts": thoughts} if thoughts else {})
    yield made


def _thoughts(message: Message, call: ToolCall | None, losses: Losses) -> str:
    """Thoughts have a place beside a call alone, and only those without a seal can be this vendor's."""
    own: list[str] = []
    for part in message.parts:
        if isinstance(part, Thinking):
            if call is not None and part.format is None and part.signature is None and part.encrypted is None:
                own.append(part.text)
            else:
                losses.hint(f"messages[{message.at}].thinking")
    return "\n".join(own)


def _as_json(text: str) -> str:
    """What a tool gave, as an object: the models understand nothing else."""
    value, _ = parse_json(text.encode("utf-8", "surrogatepass"))
    return text if isinstance(value, dict) else encode_json({"result": text}).decode()


def _functions(request: Request, losses: Losses) -> dict[str, object]:
    tools, choice = functions(request, losses), request.tool_choice
    if not tools or (choice is not None and choice.mode == "none"):
        return {}
    told: dict[str, object] = {"functions": [_function(tool) for tool in tools]}
    if choice is not None and choice.mode == "one":
        told["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice is not None and choice.mode == "required":
        losses.add("tool_choice")
    return told


def _function(tool: Tool) -> dict[str, object]:
    """All three fields must be there."""
    nothing = {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.name, "parameters": nothing, **function_of(tool)}
