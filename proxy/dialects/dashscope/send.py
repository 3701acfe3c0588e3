"""A canonical request as a body for DashScope's text generation, or for its endpoint for pictures.

Messages are those of chat completions inside `input`, everything else stands in `parameters`; whether the answer is a
stream is said by a header. Where there are pictures, each content is a list of parts. Streams are asked for in
increments. (parameters of the dashscope package; Model Studio, "Qwen API reference" and "Structured output")
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from proxy.canon.request import Format, Image, Message, Part, Reasoning, Request, Text, ToolCall
from proxy.dialects.base import Losses, Ways
from proxy.dialects.effort import budget_of
from proxy.dialects.parts import url_of_image
from proxy.dialects.payload import as_mapping
from proxy.dialects.plain import (
    extra,
    function_of,
    functions,
    hint_cache,
    hint_call,
    hint_name,
    results_of,
    sampling,
    text_of,
    text_of_result,
    thinks,
)
from proxy.dialects.taken import taken

_OWN = {
    name: name
    for name in (
        *("max_tokens", "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "n"),
        *("logprobs", "top_logprobs"),
    )
}
_EXTRA = {name: name for name in ("repetition_penalty", "enable_search", "search_options", "thinking_budget")}
# Models that only the endpoint for pictures serves, whatever they are asked.
_SEES = re.compile(r"(^|-)(vl|ocr|omni|audio)(-|$)|^qvq|-vl", re.IGNORECASE)
# Beyond these the model's own budget, which is all that it has, says it better.
_BUDGETED = ("minimal", "low", "medium")


def send_dashscope(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    sees = _SEES.search(model) is not None or any(_has_image(message.parts) for message in request.messages)
    messages = [made for message in request.messages for made in _message(message, sees, losses)]
    parameters: dict[str, object] = {"result_format": "message"}
    if request.stream:
        parameters["incremental_output"] = True
    parameters |= sampling(request, _OWN, losses, ways)
    parameters |= extra(request, _EXTRA, losses)
    parameters |= _tools(request, losses)
    if request.format is not None:
        parameters["response_format"] = _format(request.format)
    if request.reasoning is not None:
        parameters |= _thinking(request, request.reasoning)
    return {"model": model, "input": {"messages": messages}, "parameters": parameters}


def is_multimodal(sent: Mapping[str, object]) -> bool:
    """Is this body for the endpoint for pictures? Its contents are lists."""
    messages = as_mapping(sent.get("input")).get("messages")
    return any(
        isinstance(as_mapping(message).get("content"), list)
        for message in (messages if isinstance(messages, list) else ())
    )


def _has_image(parts: tuple[Part, ...]) -> bool:
    return any(isinstance(part, Image) for part in parts)


def _message(message: Message, sees: bool, losses: Losses) -> Iterator[dict[str, object]]:
    hint_name(message, losses)
    if message.role == "tool":
        for part in results_of(message, losses):
            text = text_of_result(part, message.at, losses)  # a picture that a tool gave is lost here
            yield {"role": "tool", "content": _content(text, sees), "tool_call_id": part.call}
        return
    role = "system" if message.role == "developer" else message.role
    if sees and _has_image(message.parts):
        yield {"role": role, "content": list(_parts(message, losses))}
        return
    made: dict[str, object] = {"role": role}
    made["content"] = _content(text_of(message.parts, message.at, losses, ToolCall), sees)
    if calls := [_call(part, message.at, losses) for part in message.parts if isinstance(part, ToolCall)]:
        made["tool_calls"] = calls
    yield made


def _content(text: str, sees: bool) -> object:
    return [{"text": text}] if sees else text


def _parts(message: Message, losses: Losses) -> Iterator[dict[str, object]]:
    """Text and pictures in their order."""
    for part in message.parts:
        match part:
            case Image():
                hint_cache(part, losses)
                if part.detail not in (None, "auto"):
                    losses.hint(f"messages[{message.at}].image.detail")
                yield {"image": url_of_image(part)}
            case Text(text=text):
                hint_cache(part, losses)
                yield {"text": text}
            case _:
                if text := text_of((part,), message.at, losses):
                    yield {"text": text}


def _call(call: ToolCall, at: int, losses: Losses) -> dict[str, object]:
    hint_call(call, at, losses)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }


def _tools(request: Request, losses: Losses) -> dict[str, object]:
    tools = functions(request, losses)
    if not tools:
        return {}
    told: dict[str, object] = {"tools": [{"type": "function", "function": function_of(tool)} for tool in tools]}
    if request.parallel_tools is not None:
        told["parallel_tool_calls"] = request.parallel_tools
    choice = request.tool_choice
    match choice.mode if choice is not None else "auto":
        case "none":
            told["tool_choice"] = "none"
        case "one" if choice is not None:
            told["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
        case "required":
            losses.add("tool_choice")  # it can be told to call one certain tool, but not to call any
        case _:
            pass
    return told


def _format(format: Format) -> dict[str, object]:
    if format.schema is None:
        return {"type": "json_object"}
    schema: dict[str, object] = {"name": format.name, "schema": format.schema}
    if format.strict is not None:
        schema["strict"] = format.strict
    if format.description is not None:
        schema["description"] = format.description
    return {"type": "json_schema", "json_schema": schema}


def _thinking(request: Request, asked: Reasoning) -> dict[str, object]:
    wanted = thinks(request)
    if wanted is None:
        return {}
    told: dict[str, object] = {"enable_thinking": wanted}
    budget = budget_of(asked)
    if wanted and budget and (asked.budget is not None or asked.effort in _BUDGETED):
        told["thinking_budget"] = budget
    return told
