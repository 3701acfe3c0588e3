"""A canonical request as the body of Cohere's chat API, version 2.

In: a request of any client. Out: the body, and what could not be said in it. The client's own fields that are called as
Cohere calls them (`safety_mode`, `documents`…) pass as they are. (cohere's SDK, `V2Client.chat`)
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.canon.request import (
    Document,
    Format,
    Image,
    Message,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from proxy.dialects.base import Losses, Ways
from proxy.dialects.effort import budget_of
from proxy.dialects.parts import url_of_image
from proxy.dialects.plain import (
    bounded,
    extra,
    few_stops,
    function_of,
    functions,
    hint_cache,
    hint_call,
    hint_name,
    no_parallel,
    sampling,
    text_of,
    text_of_result,
    thinks,
)
from proxy.dialects.taken import taken

_OWN = {
    **{name: name for name in ("max_tokens", "temperature", "seed", "frequency_penalty", "presence_penalty")},
    **{"top_p": "p", "top_k": "k", "stop": "stop_sequences", "logprobs": "logprobs"},
}
_PASSED = ("safety_mode", "documents", "citation_options", "strict_tools", "priority")
_LEAST_P, _MOST_P = 0.01, 0.99
_PENALTIES = ("frequency_penalty", "presence_penalty")
_MOST_K, _MOST_STOPS = 500, 5


def send_cohere(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    body: dict[str, object] = {"model": model, "stream": request.stream}
    body["messages"] = [made for message in request.messages for made in _message(message, losses)]
    told = sampling(request, _OWN, losses, ways)
    p = told.get("p")
    if isinstance(p, int | float) and not _LEAST_P <= p <= _MOST_P:  # 1 is what many clients say for "all of it"
        told["p"] = min(max(p, _LEAST_P), _MOST_P)
        losses.hint("top_p")
    for name in _PENALTIES:
        bounded(told, name, 0, 1, losses)
    if isinstance(k := told.get("k"), int) and k > _MOST_K:
        told["k"] = _MOST_K
        losses.add("top_k")
    few_stops(told, "stop_sequences", _MOST_STOPS, losses)
    body |= told
    body |= _tools(request, losses)
    if request.format is not None:
        body["response_format"] = _format(request.format)
    if (thinking := _thinking(request, request.reasoning)) is not None:
        body["thinking"] = thinking
    return body | extra(request, {name: name for name in _PASSED}, losses)


# ---- messages ----------------------------------------------------------------------------------------------------


def _message(message: Message, losses: Losses) -> Iterator[dict[str, object]]:
    at = message.at
    hint_name(message, losses)
    match message.role:
        case "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    text = text_of_result(part, at, losses)
                    yield {"role": "tool", "tool_call_id": part.call, "content": text}
                else:
                    losses.unknown_part(at, part)
        case "assistant":
            if (made := _assistant(message, losses)) is not None:
                yield made
        case "user":
            yield {"role": "user", "content": _content(message.parts, at, losses)}
        case _:
            yield {"role": "system", "content": text_of(message.parts, at, losses)}


def _assistant(message: Message, losses: Losses) -> dict[str, object] | None:
    """None where nothing of it is left: Cohere refuses an assistant that says nothing."""
    at = message.at
    made: dict[str, object] = {"role": "assistant"}
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if calls:
        if plan := _plan(message, losses):
            made["tool_plan"] = plan
        made["tool_calls"] = [_call(call, at, losses) for call in calls]
    left = tuple(part for part in message.parts if not (calls and isinstance(part, Thinking)))
    if text := text_of(left, at, losses, ToolCall):
        made["content"] = text
    return made if len(made) > 1 else None


def _plan(message: Message, losses: Losses) -> str:
    """What the model thought before it made calls. Cohere has no seals: what has one is another vendor's."""
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    own = [part.text for part in thoughts if part.signature is None and part.encrypted is None and part.format is None]
    if len(own) < len(thoughts):
        losses.hint(f"messages[{message.at}].thinking")
    return "\n".join(text for text in own if text)


def _call(call: ToolCall, at: int, losses: Losses) -> dict[str, object]:
    hint_call(call, at, losses)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def _content(parts: tuple[Part, ...], at: int, losses: Losses) -> str | list[dict[str, object]]:
    """A string where there is no picture, else a list of parts in their order."""
    if not any(isinstance(part, Image) for part in parts):
        return text_of(parts, at, losses)
    made: list[dict[str, object]] = []
    for part in parts:
        match part:
            case Image():
                hint_cache(part, losses)
                image: dict[str, object] = {"url": url_of_image(part)}
                if part.detail is not None:
                    image["detail"] = part.detail
                made.append({"type": "image_url", "image_url": image})
            case Text() | Refusal() | Document():
                if text := text_of((part,), at, losses):
                    made.append({"type": "text", "text": text})
            case _:
                losses.unknown_part(at, part)
    return made


# ---- what is asked of the answer ---------------------------------------------------------------------------------


def _tools(request: Request, losses: Losses) -> dict[str, object]:
    tools = functions(request, losses)
    if not tools:
        return {}
    no_parallel(request, losses)
    choice = request.tool_choice
    told: dict[str, object] = {}
    if choice is not None and choice.mode == "one":
        # It can be told to call something, not what: so it is shown this tool alone.
        tools = [tool for tool in tools if tool.name == choice.name]
        if not tools:
            losses.add("tool_choice")
            return {}
    told["tools"] = [
        {"type": "function", "function": {"parameters": {"type": "object", "properties": {}}, **function_of(tool)}}
        for tool in tools
    ]
    if choice is not None and choice.mode != "auto":
        told["tool_choice"] = "NONE" if choice.mode == "none" else "REQUIRED"
    return told


def _format(format: Format) -> dict[str, object]:
    told: dict[str, object] = {"type": "json_object"}
    return {**told, "json_schema": format.schema} if format.schema else told


def _thinking(request: Request, reasoning: Reasoning | None) -> dict[str, object] | None:
    wanted = thinks(request)
    if reasoning is None or wanted is None:
        return None
    if not wanted:
        return {"type": "disabled"}
    budget = budget_of(reasoning)
    return {"type": "enabled"} if budget is None else {"type": "enabled", "token_budget": budget}
