"""A canonical request as a body for Hunyuan's ChatCompletions.

One system message, at the beginning; speakers alternate; a tool's schema is JSON as text. The length of the answer
cannot be limited. (ChatCompletionsRequest of the tencentcloud package)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from proxy.canon.request import Image, Message, Request, Text, Tool, ToolCall
from proxy.dialects.base import Losses, Ways
from proxy.dialects.parts import url_of_image
from proxy.dialects.payload import encode_json
from proxy.dialects.plain import (
    append_joined,
    extra,
    functions,
    hint_cache,
    hint_call,
    hint_name,
    no_parallel,
    results_of,
    sampling,
    system_first,
    text_of,
    text_of_result,
    thinks,
    user_first,
)
from proxy.dialects.taken import taken

_OWN = {"temperature": "Temperature", "top_p": "TopP", "seed": "Seed", "stop": "Stop"}


def send_hunyuan(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    if request.client == "messages" and request.max_tokens is not None:
        losses.hint("max_tokens")  # its clients must say one, whether they mean it or not
        request = replace(request, max_tokens=None)
    system, rest = system_first(request.messages, losses)
    rest = user_first(rest, losses)
    messages: list[dict[str, object]] = []
    if system:
        messages.append({"Role": "system", "Content": system})
    for message in rest:
        for made in _message(message, losses):
            append_joined(messages, made, "Role", "Content")
    body: dict[str, object] = {"Model": model, "Messages": messages}
    if request.stream:
        body["Stream"] = True
    body |= sampling(request, _OWN, losses, ways)
    body |= _tools(request, losses)
    body |= extra(request, {}, losses)
    if request.format is not None:
        losses.add("response_format")
    if (wanted := thinks(request)) is not None:
        body["EnableThinking"] = wanted
        if request.reasoning is not None and wanted and request.reasoning.enabled is None:
            losses.hint("reasoning_effort")  # it thinks or it does not
    return body


def _message(message: Message, losses: Losses) -> Iterator[dict[str, object]]:
    hint_name(message, losses)
    if message.role == "tool":
        for part in results_of(message, losses):
            text = text_of_result(part, message.at, losses)
            yield {"Role": "tool", "Content": text, "ToolCallId": part.call}
        return
    made: dict[str, object] = {"Role": message.role}
    if any(isinstance(part, Image) for part in message.parts):
        made["Contents"] = list(_contents(message, losses))
    else:
        made["Content"] = text_of(message.parts, message.at, losses, ToolCall)
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if calls:
        made["ToolCalls"] = [_call(call, number, message.at, losses) for number, call in enumerate(calls)]
    yield made


def _contents(message: Message, losses: Losses) -> Iterator[dict[str, object]]:
    for part in message.parts:
        match part:
            case Image():
                hint_cache(part, losses)
                if part.detail not in (None, "auto"):
                    losses.hint(f"messages[{message.at}].image.detail")
                yield {"Type": "image_url", "ImageUrl": {"Url": url_of_image(part)}}
            case Text(text=text):
                hint_cache(part, losses)
                yield {"Type": "text", "Text": text}
            case _:
                if text := text_of((part,), message.at, losses, ToolCall):
                    yield {"Type": "text", "Text": text}


def _call(call: ToolCall, number: int, at: int, losses: Losses) -> dict[str, object]:
    hint_call(call, at, losses)
    function = {"Name": call.name, "Arguments": call.arguments or "{}"}
    return {"Id": call.id, "Type": "function", "Function": function, "Index": number}


def _tools(request: Request, losses: Losses) -> dict[str, object]:
    tools, choice = functions(request, losses), request.tool_choice
    if not tools:
        return {}
    no_parallel(request, losses)
    told: dict[str, object] = {"Tools": [_tool(tool) for tool in tools]}
    match choice.mode if choice is not None else "auto":
        case "none":
            told["ToolChoice"] = "none"
        case "one" if choice is not None and (named := next((t for t in tools if t.name == choice.name), None)):
            told |= {"ToolChoice": "custom", "CustomTool": _tool(named)}
        case "auto":
            pass
        case _:
            losses.add("tool_choice")
    return told


def _tool(tool: Tool) -> dict[str, object]:
    function = {
        "Name": tool.name,
        "Parameters": encode_json(tool.parameters or {"type": "object", "properties": {}}).decode(),
    }
    if tool.description is not None:
        function["Description"] = tool.description
    return {"Type": "function", "Function": function}
