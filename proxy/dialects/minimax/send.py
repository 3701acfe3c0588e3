"""A canonical request as a body for MiniMax's chatcompletion_pro.

Speakers have names: users, functions, and the bot whose setting is the system text and who alone may answer. A message
makes one call at most. Masking of what looks private is switched off, which the vendor does by itself otherwise: the
text is the model's. (request types of langchain's and higress' adapters)
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.canon.request import Message, Request, ToolCall, names_of_calls
from proxy.dialects.base import Losses, Ways
from proxy.dialects.plain import (
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
)
from proxy.dialects.taken import taken

_BOT, _USER = "Assistant", "User"
_NO_SYSTEM = "You are a helpful assistant."  # a bot must have a setting
_OWN = {"max_tokens": "tokens_to_generate", "temperature": "temperature", "top_p": "top_p"}
_LEAST = 0.01  # both ranges are (0, 1]


def send_minimax_pro(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    system, rest = system_first(request.messages, losses)
    names = names_of_calls(request.messages)
    body: dict[str, object] = {
        "model": model,
        "bot_setting": [{"bot_name": _BOT, "content": system or _NO_SYSTEM}],
        "messages": [made for message in one_call_each(rest) for made in _message(message, names, losses)],
        "reply_constraints": {"sender_type": "BOT", "sender_name": _BOT},
        "mask_sensitive_info": False,
    }
    if request.stream:
        body["stream"] = True
    told = sampling(request, _OWN, losses, ways)
    bounded(told, "temperature", _LEAST, 1.0, losses)
    bounded(told, "top_p", _LEAST, 1.0, losses)
    body |= told
    body |= extra(request, {"mask_sensitive_info": "mask_sensitive_info"}, losses)
    if tools := _functions(request, losses):
        body["functions"] = tools
    if request.format is not None:
        losses.add("response_format")
    no_reasoning(request, losses)
    return body


def _message(message: Message, names: dict[str, str], losses: Losses) -> Iterator[dict[str, object]]:
    if message.role == "tool":
        for part in results_of(message, losses):
            name = part.name or names.get(part.call, part.call)
            text = text_of_result(part, message.at, losses)
            yield {"sender_type": "FUNCTION", "sender_name": name, "text": text}
        return
    text = text_of(message.parts, message.at, losses, ToolCall)
    if message.role != "assistant":
        yield {"sender_type": "USER", "sender_name": message.name or _USER, "text": text}
        return
    hint_name(message, losses)  # it is the bot, by its one name
    made: dict[str, object] = {"sender_type": "BOT", "sender_name": _BOT, "text": text}
    for call in message.parts:
        if isinstance(call, ToolCall):
            hint_call(call, message.at, losses)
            made["function_call"] = {"name": call.name, "arguments": call.arguments or "{}"}
    yield made


def _functions(request: Request, losses: Losses) -> list[dict[str, object]]:
    tools, choice = functions(request, losses), request.tool_choice
    if not tools or (choice is not None and choice.mode == "none"):
        return []
    if choice is not None and choice.mode != "auto":
        losses.add("tool_choice")
    nothing = {"type": "object", "properties": {}}
    return [{"name": tool.name, "parameters": nothing, **function_of(tool)} for tool in tools]
