"""A canonical request as a body for Ollama's `/api/chat`.

Everything about sampling stands in `options`; images are base64 beside the text; a tool's result is known by the tool's
name. There is no way to force a tool. The client's own `options`, `num_ctx` and `keep_alive` pass as they are.
(api/types.go of ollama, docs.ollama.com)
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.canon.request import Image, Message, Request, Thinking, ToolCall, ToolResult, names_of_calls
from proxy.dialects.base import Losses, Ways
from proxy.dialects.effort import effort_of
from proxy.dialects.parts import object_of_arguments
from proxy.dialects.payload import as_mapping
from proxy.dialects.plain import (
    extra,
    function_of,
    functions,
    hint_call,
    hint_name,
    no_parallel,
    results_of,
    sampling,
    text_of,
    text_of_result,
    thinks,
)
from proxy.dialects.taken import taken

_OPTIONS = {
    "max_tokens": "num_predict",
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "stop", "seed")},
    **{name: name for name in ("frequency_penalty", "presence_penalty")},
}
# These two alone stand outside of the options.
_BESIDE = ("logprobs", "top_logprobs")
_EXTRA = {"repetition_penalty": "repeat_penalty", "repeat_penalty": "repeat_penalty", "num_ctx": "num_ctx"}
_TOP = ("keep_alive",)
_LEVELLED = "gpt-oss"  # the models that know how much to think; all others know whether
_LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}


def send_ollama(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    names = names_of_calls(request.messages)
    messages = [made for message in request.messages for made in _message(message, names, losses)]
    # Left out, `stream` would mean yes.
    body: dict[str, object] = {"model": model, "messages": messages, "stream": request.stream}
    options = sampling(request, _OPTIONS | {name: name for name in _BESIDE}, losses, ways)
    body |= {name: options.pop(name) for name in _BESIDE if name in options}
    own = extra(request, _EXTRA | {name: name for name in ("options", *_TOP)}, losses)
    body |= {name: own.pop(name) for name in _TOP if name in own}
    options |= {**as_mapping(own.pop("options", None)), **own}
    if options:
        body["options"] = options
    if request.format is not None:
        body["format"] = "json" if request.format.schema is None else request.format.schema
    if (think := _think(request, model, losses)) is not None:
        body["think"] = think
    if tools := _tools(request, losses):
        body["tools"] = tools
    return body


def _message(message: Message, names: dict[str, str], losses: Losses) -> Iterator[dict[str, object]]:
    hint_name(message, losses)
    if message.role == "tool":
        for part in results_of(message, losses):
            yield _result(part, names, message.at, losses)
        return
    made: dict[str, object] = {"role": "system" if message.role == "developer" else message.role}
    made["content"] = text_of(message.parts, message.at, losses, Image, ToolCall, Thinking)
    if images := _images(message.parts, message.at, losses):
        made["images"] = images
    if thinking := _thinking(message, losses):
        made["thinking"] = thinking
    if calls := [_call(part, message.at, losses) for part in message.parts if isinstance(part, ToolCall)]:
        made["tool_calls"] = calls
    yield made


def _thinking(message: Message, losses: Losses) -> str:
    """Only reasoning without a seal can be this vendor's."""
    own: list[str] = []
    for part in message.parts:
        if isinstance(part, Thinking):
            if part.format is None and part.signature is None and part.encrypted is None:
                own.append(part.text)
            else:
                losses.hint(f"messages[{message.at}].thinking")
    return "\n".join(own)


def _images(parts: tuple[object, ...], at: int, losses: Losses) -> list[str]:
    images: list[str] = []
    for part in parts:
        if not isinstance(part, Image):
            continue
        if part.data:
            images.append(part.data)
        else:
            losses.part(at, "image")  # it fetches nothing
        if part.cache is not None:
            losses.hint("cache_control")
        if part.detail not in (None, "auto"):
            losses.hint(f"messages[{at}].image.detail")
    return images


def _call(call: ToolCall, at: int, losses: Losses) -> dict[str, object]:
    hint_call(call, at, losses)
    function = {"name": call.name, "arguments": object_of_arguments(call.arguments)}
    return {"id": call.id, "function": function} if call.id else {"function": function}


def _result(result: ToolResult, names: dict[str, str], at: int, losses: Losses) -> dict[str, object]:
    """Its version decides whether a server looks at the id or at the name."""
    made: dict[str, object] = {"role": "tool", "content": text_of_result(result, at, losses, Image)}
    if name := result.name or names.get(result.call, ""):
        made["tool_name"] = name
    if result.call:
        made["tool_call_id"] = result.call
    if images := _images(result.parts, at, losses):
        made["images"] = images
    return made


def _think(request: Request, model: str, losses: Losses) -> bool | str | None:
    """Models that can think do so unasked, and those that cannot refuse to be told to: so they are only told not to."""
    asked = thinks(request)
    if not asked or request.reasoning is None:
        return asked
    if _LEVELLED not in model:
        if request.reasoning.effort is not None or request.reasoning.budget is not None:
            losses.hint("reasoning_effort")
        return None
    level = _LEVELS.get(effort_of(request.reasoning) or "medium", "medium")
    if level != request.reasoning.effort:
        losses.hint("reasoning_effort")
    return level


def _tools(request: Request, losses: Losses) -> list[dict[str, object]]:
    choice = request.tool_choice
    tools = functions(request, losses)
    if not tools or (choice is not None and choice.mode == "none"):
        return []
    if choice is not None and choice.mode != "auto":
        losses.add("tool_choice")
    no_parallel(request, losses)
    return [{"type": "function", "function": function_of(tool)} for tool in tools]
