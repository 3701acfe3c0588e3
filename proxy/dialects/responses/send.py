"""A canonical request as a Responses body, for a vendor of this family.

In: a request of a client of another family. Out: the body, and what could not be said in it. Nothing is kept at the
vendor (`store`), so what it must see again comes back from the client. `ways` are the vendor's own names of fields,
asked for by the names of this grammar, None where it does not take one. Instructions are `system`: of those who copied
this API not all know `developer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.request import (
    Document,
    Format,
    Image,
    Message,
    Native,
    NativeTool,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.dialects.base import Losses, Ways
from proxy.dialects.calls import short_id
from proxy.dialects.effort import effort_of
from proxy.dialects.parts import short_user, url_of_image
from proxy.dialects.responses.parse import CLIENT, LOGPROBS, is_part
from proxy.dialects.responses.thoughts import item_of_thinking
from proxy.dialects.schemas import may_be_strict
from proxy.dialects.taken import taken

_LEAST_TOKENS = 16
_LONGEST_ID, _LONGEST_USER = 64, 64
ENCRYPTED = "reasoning.encrypted_content"
#: Fields that chat completions has by the same name, with the same meaning.
_SHARED = (
    *("metadata", "service_tier", "safety_identifier", "moderation"),
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
)


def send_responses(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    body: dict[str, object] = {"model": model}
    instructions, messages = _instructions(request.messages)
    if instructions:
        body["instructions"] = instructions
    body["input"] = [item for message in messages for item in _items(message, losses)]
    if request.stream:
        body["stream"] = True
    body["store"] = False
    for name, wire, value in _fields(request, losses):
        if value is None:
            continue
        # `reasoning` names another thing in chat completions, and rule files mean that.
        told = wire if wire == "reasoning" else ways.get(wire, wire)
        if told is None:
            losses.add(name)
        else:
            body[told] = value
    if (include := _include(request)) and ways.get("include", "") is not None:
        body["include"] = include
    losses.fields(request, "top_k", "min_p", "stop", "frequency_penalty", "presence_penalty", "n", "logit_bias")
    if request.seed is not None:
        losses.add("seed")
    _extra(request, body, losses)
    return body


def _fields(request: Request, losses: Losses) -> Iterator[tuple[str, str, object]]:
    """The name in chat completions, the one here, and the value."""
    yield "max_tokens", "max_output_tokens", _limit(request.max_tokens, losses)
    yield "temperature", "temperature", request.temperature
    yield "top_p", "top_p", request.top_p
    yield "top_logprobs", "top_logprobs", request.top_logprobs
    tools = list(_tools(request, losses)) or None
    yield "tools", "tools", tools
    yield "tool_choice", "tool_choice", _choice(request.tool_choice) if tools else None
    yield "parallel_tool_calls", "parallel_tool_calls", request.parallel_tools if tools else None
    yield "response_format", "text", _text(request, losses)
    yield "reasoning_effort", "reasoning", _reasoning(request.reasoning, losses)
    yield "user", "user", _user(request.user, losses)


def _limit(limit: int | None, losses: Losses) -> int | None:
    """Fewer tokens than this cannot be asked for."""
    if limit is None or limit >= _LEAST_TOKENS:
        return limit
    losses.hint("max_tokens")
    return _LEAST_TOKENS


def _user(user: str | None, losses: Losses) -> str | None:
    told = None if user is None else short_user(user, _LONGEST_USER)
    if told != user:
        losses.hint("user")
    return told


# ---- items -------------------------------------------------------------------------------------------------------


def _instructions(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """The text of the first message where it is the system's, and the rest."""
    first = messages[0] if messages else None
    if first is None or first.role != "system" or not first.parts:
        return "", messages
    if not all(isinstance(part, Text) and part.cache is None for part in first.parts):
        return "", messages
    return first.text, messages[1:]


def _items(message: Message, losses: Losses) -> Iterator[dict[str, object]]:
    if message.name:
        losses.hint(f"messages[{message.at}].name")
    if message.role in ("assistant", "tool"):
        for part in message.parts:
            if (item := _item(part, message.at, losses)) is not None:
                yield item
        return
    shown: list[Part] = []
    for part in message.parts:
        if isinstance(part, Native) and part.family == CLIENT and not is_part(part.value):
            yield dict(part.value)
        else:
            shown.append(part)
    if shown or not message.parts:
        role = "system" if message.role == "developer" else message.role
        yield {"role": role, "content": _content(tuple(shown), message.at, losses)}


def _item(part: Part, at: int, losses: Losses) -> dict[str, object] | None:
    """An item of the model's turn, or what a tool gave."""
    match part:
        case Text():
            _cache(part.cache, losses)
            return {"role": "assistant", "content": part.text}
        case Refusal():  # the part of this kind wants the name that its message had at the vendor
            losses.hint(f"messages[{at}].refusal")
            return {"role": "assistant", "content": part.text}
        case Thinking():
            item = item_of_thinking(part)
            if item is None:
                losses.hint(f"messages[{at}].thinking")
            return item
        case ToolCall():
            _cache(part.cache, losses)
            if part.signature is not None:
                losses.hint(f"messages[{at}].thought_signature")
            return {
                "type": "function_call",
                "call_id": short_id(part.id, _LONGEST_ID),
                "name": part.name,
                "arguments": part.arguments or "{}",
            }
        case ToolResult():
            return _result(part, at, losses)
        case Native(family="responses"):
            return dict(part.value)
        case _:
            losses.unknown_part(at, part)
            return None


def _result(result: ToolResult, at: int, losses: Losses) -> dict[str, object]:
    _cache(result.cache, losses)
    output = _content(result.parts, at, losses)
    if result.is_error:
        losses.hint(f"messages[{at}].is_error")
        if isinstance(output, str) and not output.lower().startswith("error"):
            output = f"Error: {output}"
        elif isinstance(output, list):
            output = [{"type": "input_text", "text": "Error:"}, *output]
    return {"type": "function_call_output", "call_id": short_id(result.call, _LONGEST_ID), "output": output}


def _content(parts: tuple[Part, ...], at: int, losses: Losses) -> str | list[dict[str, object]]:
    """A string where there is nothing but one text, else a list of parts."""
    if all(isinstance(part, Text) and part.cache is None for part in parts) and len(parts) <= 1:
        return parts[0].text if parts and isinstance(parts[0], Text) else ""
    return [made for part in parts if (made := _part(part, at, losses)) is not None] or ""


def _part(part: Part, at: int, losses: Losses) -> dict[str, object] | None:
    match part:
        case Text():
            _cache(part.cache, losses)
            return {"type": "input_text", "text": part.text}
        case Image():
            _cache(part.cache, losses)
            return {"type": "input_image", "image_url": url_of_image(part), "detail": part.detail or "auto"}
        case Document():
            _cache(part.cache, losses)
            return _document(part, at, losses)
        case Native(family="responses"):
            return dict(part.value)
        case _:
            losses.unknown_part(at, part)
            return None


def _document(part: Document, at: int, losses: Losses) -> dict[str, object] | None:
    if part.text:
        title = f"{part.name}\n" if part.name else ""
        return {"type": "input_text", "text": title + part.text}
    if part.data:
        media_type = part.media_type or "application/pdf"
        name = part.name or f"document.{media_type.rpartition('/')[2]}"
        return {"type": "input_file", "filename": name, "file_data": f"data:{media_type};base64,{part.data}"}
    if part.url:
        return {"type": "input_file", "file_url": part.url}
    losses.part(at, "document")  # the id of another vendor's store says nothing here
    return None


def _cache(cache: Mapping[str, object] | None, losses: Losses) -> None:
    if cache is not None:
        losses.hint("cache_control")


# ---- what is asked of the answer ---------------------------------------------------------------------------------


def _tools(request: Request, losses: Losses) -> Iterator[dict[str, object]]:
    for tool in request.tools:
        match tool:
            case Tool():
                _cache(tool.cache, losses)
                yield _function(tool, request.client, losses)
            case NativeTool(family="responses"):
                yield dict(tool.value)
            case NativeTool():
                losses.add(f"tools.{tool.kind}")


def _function(tool: Tool, client: str, losses: Losses) -> dict[str, object]:
    """`strict` is true by default in this grammar and in no other: then all arguments are made required."""
    made: dict[str, object] = {"type": "function", "name": tool.name}
    if tool.description is not None:
        made["description"] = tool.description
    made["parameters"] = tool.parameters if tool.parameters is not None else {"type": "object", "properties": {}}
    strict = tool.strict
    if strict and not may_be_strict(tool.parameters, client):
        losses.hint("tools.strict")  # it would be refused
        strict = None
    if strict is not None or client != CLIENT:
        made["strict"] = bool(strict)
    return made


def _choice(choice: ToolChoice | None) -> object:
    if choice is None:
        return None
    return {"type": "function", "name": choice.name} if choice.mode == "one" else choice.mode


def _text(request: Request, losses: Losses) -> dict[str, object] | None:
    made: dict[str, object] = {}
    if request.format is not None:
        made["format"] = _format(request.format, request.client, losses)
    verbosity = request.extra.get("verbosity")
    if isinstance(verbosity, str):
        made["verbosity"] = verbosity
    return made or None


def _format(format: Format, client: str, losses: Losses) -> dict[str, object]:
    if format.schema is None:
        return {"type": "json_object"}
    made: dict[str, object] = {"type": "json_schema", "name": format.name, "schema": format.schema}
    if format.strict and not may_be_strict(format.schema, client):
        losses.hint("response_format.strict")  # it would be refused
    elif format.strict is not None:
        made["strict"] = format.strict
    if format.description is not None:
        made["description"] = format.description
    return made


def _reasoning(reasoning: Reasoning | None, losses: Losses) -> dict[str, object] | None:
    if reasoning is None:
        return None
    said = {"effort": effort_of(reasoning), "summary": reasoning.summary}
    if said["effort"] is None and reasoning.enabled:
        losses.hint("reasoning_effort")  # there is no word for it
    return {name: value for name, value in said.items() if value is not None} or None


def _include(request: Request) -> list[str]:
    """Sealed reasoning, where the request speaks of reasoning: models that do not reason refuse to be asked for it
    ("Encrypted content is not supported with this model"), and those that do give it unasked."""
    more = request.extra.get("include") if request.client == CLIENT else None
    told = [name for name in (more if isinstance(more, list) else []) if isinstance(name, str)]
    if _thinks(request) and ENCRYPTED not in told:
        told.append(ENCRYPTED)
    if request.logprobs:
        told.append(LOGPROBS)
    return told


def _thinks(request: Request) -> bool:
    if request.reasoning is not None:
        return effort_of(request.reasoning) != "none"
    return any(
        isinstance(part, Thinking) and item_of_thinking(part) is not None
        for message in request.messages
        for part in message.parts
    )


def _extra(request: Request, body: dict[str, object], losses: Losses) -> None:
    """The client's own fields: all of them where it speaks this grammar, the shared ones where it speaks chat."""
    if request.client == CLIENT:
        for name, value in request.extra.items():
            holder, dot, inner = name.partition(".")
            if holder == "tools":
                losses.add(name)
            elif dot:
                before = body.get(holder)
                body[holder] = {**(before if isinstance(before, dict) else {}), inner: value}
            elif name not in ("include", "verbosity"):
                body[name] = value
        return
    known = ["verbosity"] if isinstance(request.extra.get("verbosity"), str) else []
    if request.client == "chat":
        known += _SHARED
        body |= {name: request.extra[name] for name in _SHARED if request.extra.get(name) is not None}
    if request.extra.get("store") is False:
        known.append("store")
    losses.extra(request, *known)
