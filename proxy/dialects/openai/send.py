"""A canonical request as a chat-completions body, for a vendor of the OpenAI family.

In: a request of a client of another family. Out: the body, and what could not be said in it. `ways` are the vendor's
own names of fields (from its rule file), None where it does not take one. Beside fields of chat completions they name
`reasoning` and `reasoning_details` (reasoning sent back); `reasoning_effort` may be named `thinking` (an object with a
`type`), `enable_thinking` (a flag) or `reasoning` (an object), and says it in that form. `call_ids` is a pattern that
ids of calls must match.

What not all of the family take is said in the way that all of them do: instructions are `system`, for few know
`developer`; texts alone are one string, for several refuse a list; nothing is said by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256

from proxy.canon.request import (
    Audio,
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
from proxy.dialects.schemas import may_be_strict
from proxy.dialects.taken import taken

CLIENT = "chat"
# What OpenAI itself takes, and others less: of a call's id, and of a user's.
_LONGEST_ID, _LONGEST_USER = 40, 64
_PLAIN = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "n", "logprobs"),
    *("top_logprobs", "logit_bias", "user"),
)


def send_chat(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    messages = chat_messages(request, losses, ways)
    if (pattern := ways.get("call_ids")) is not None:
        _rename_calls(messages, re.compile(pattern, re.ASCII))
    body: dict[str, object] = {"model": model, "messages": messages}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    named: dict[str, object] = {name: getattr(request, name) for name in _PLAIN}
    named["max_tokens"] = request.max_tokens
    named["stop"] = list(request.stop) or None
    named["tools"] = list(_tools(request, losses)) or None
    named["tool_choice"] = _choice(request.tool_choice) if named["tools"] else None
    named["parallel_tool_calls"] = request.parallel_tools if named["tools"] else None
    named["response_format"] = _format(request.format, request.client, losses)
    if request.user is not None:
        named["user"] = short_user(request.user, _LONGEST_USER)
        if named["user"] != request.user:
            losses.hint("user")
    body |= {ways.get(name) or name: value for name, value in named.items() if value is not None}
    if request.reasoning is not None:
        body |= _reasoning(request.reasoning, ways.get("reasoning_effort") or "reasoning_effort", losses)
    losses.extra(request)
    return body


def _rename_calls(messages: list[dict[str, object]], pattern: re.Pattern[str]) -> None:
    """Ids of calls as this vendor wants them (Mistral: nine letters or digits); what is so already stays."""
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            call["id"] = _name_of_call(str(call.get("id", "")), pattern)
        if "tool_call_id" in message:
            message["tool_call_id"] = _name_of_call(str(message["tool_call_id"]), pattern)


def _name_of_call(identity: str, pattern: re.Pattern[str]) -> str:
    return identity if pattern.fullmatch(identity) else sha256(identity.encode("utf-8", "replace")).hexdigest()[:9]


def _reasoning(reasoning: Reasoning, name: str, losses: Losses) -> dict[str, object]:
    """In the form that goes with the name. A flag says less than was said."""
    effort = effort_of(reasoning)
    is_on = effort != "none" if effort is not None else reasoning.enabled
    if name not in ("thinking", "enable_thinking"):
        if effort is None:
            if is_on:
                losses.hint("reasoning_effort")  # there is no word for it
            return {}
        return {name: {"effort": effort} if name == "reasoning" else effort}
    if is_on is None:
        return {}
    if is_on and (reasoning.effort is not None or reasoning.budget is not None):
        losses.hint("reasoning_effort")
    return {name: is_on if name == "enable_thinking" else {"type": "enabled" if is_on else "disabled"}}


def countable(request: Request) -> dict[str, object]:
    """What of a request is counted, in the form in which it is counted (`metering.meter`)."""
    losses = Losses()
    body: dict[str, object] = {"messages": chat_messages(request, losses, {})}
    if tools := list(_tools(request, losses)):
        body["tools"] = tools
    if request.format is not None:
        body["response_format"] = _format(request.format, request.client, losses)
    return body


def chat_messages(request: Request, losses: Losses, ways: Ways) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    shown: list[dict[str, object]] = []  # what tools gave beside text: nothing may stand between their results
    for message in request.messages:
        if message.role == "tool":
            made += _results(message, shown, losses)
            continue
        made += _shown(shown)
        if (said := _message(message, losses, ways)) is not None:
            made.append(said)
    return made + _shown(shown)


def _shown(parts: list[dict[str, object]]) -> list[dict[str, object]]:
    if not parts:
        return []
    content = list(parts)
    parts.clear()
    return [{"role": "user", "content": content}]


def _message(message: Message, losses: Losses, ways: Ways) -> dict[str, object] | None:
    """None where nothing of it is left: an assistant that says nothing is refused."""
    made: dict[str, object] = {"role": "system" if message.role == "developer" else message.role}
    if message.name:
        made["name"] = message.name
    if message.role != "assistant":
        return {**made, "content": _content(message.parts, message.at, losses)}
    said = _assistant(message, losses, ways)
    if not said["content"] and not said.keys() & {"refusal", "tool_calls"}:
        said["content"] = ""
        if len(said) == 1:
            return None
    return made | said


def _assistant(message: Message, losses: Losses, ways: Ways) -> dict[str, object]:
    made: dict[str, object] = {}
    spoken = tuple(part for part in message.parts if isinstance(part, Text))
    made["content"] = "\n".join(part.text for part in spoken) if spoken else None
    if refusals := [part.text for part in message.parts if isinstance(part, Refusal)]:
        made["refusal"] = "\n".join(refusals)
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    if thoughts:
        made |= _thoughts(thoughts, message.at, losses, ways)
    if calls := [_call(part) for part in message.parts if isinstance(part, ToolCall)]:
        made["tool_calls"] = calls
    if any(getattr(part, "cache", None) is not None for part in message.parts):
        losses.hint("cache_control")
    for part in message.parts:
        if isinstance(part, Native) and part.family == CLIENT:
            made.setdefault("tool_calls", [])
            calls_made = made["tool_calls"]
            assert isinstance(calls_made, list)
            calls_made.append(dict(part.value))
        elif not isinstance(part, Text | Refusal | Thinking | ToolCall):
            losses.unknown_part(message.at, part)
    return made


def _thoughts(thoughts: list[Thinking], at: int, losses: Losses, ways: Ways) -> dict[str, object]:
    """Reasoning sent back, by the name that the vendor has for it."""
    name = ways.get("reasoning", "reasoning_content")
    if name is None:
        losses.hint(f"messages[{at}].thinking")
        return {}
    made: dict[str, object] = {}
    if text := "\n".join(thought.text for thought in thoughts if thought.text):
        made[name] = text
    if any(thought.signature or thought.encrypted for thought in thoughts):
        details = ways.get("reasoning_details", "reasoning_details")
        if details is None:
            losses.hint(f"messages[{at}].thinking")
            return made
        made[details] = [thinking_detail(thought, number) for number, thought in enumerate(thoughts)]
    return made


def thinking_detail(thought: Thinking, number: int) -> dict[str, object]:
    """One piece of reasoning in the form of `reasoning_details` (OpenRouter's, which several clients send back)."""
    made: dict[str, object]
    if thought.encrypted is not None:
        made = {"type": "reasoning.encrypted", "data": thought.encrypted}
        if thought.text:
            made["summary"] = thought.text
    else:
        made = {"type": "reasoning.text", "text": thought.text}
        if thought.signature is not None:
            made["signature"] = thought.signature
    if thought.id is not None:
        made["id"] = thought.id
    if thought.format is not None:
        made["format"] = thought.format
    return {**made, "index": number}


def _call(call: ToolCall) -> dict[str, object]:
    made: dict[str, object] = {
        "id": short_id(call.id, _LONGEST_ID),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }
    if call.signature is not None:
        made["extra_content"] = {"google": {"thought_signature": call.signature}}
    return made


def _results(message: Message, shown: list[dict[str, object]], losses: Losses) -> Iterator[dict[str, object]]:
    """Results are text alone here: what else a tool gave goes to `shown`, for a message of the user, who alone may show
    it."""
    for part in message.parts:
        if not isinstance(part, ToolResult):
            losses.unknown_part(message.at, part)
            continue
        if part.cache is not None:
            losses.hint("cache_control")
        told = [made for inner in part.parts if (made := _part(inner, message.at, losses)) is not None]
        text = "\n".join(str(made["text"]) for made in told if made["type"] == "text")
        rest = [made for made in told if made["type"] != "text"]
        if part.is_error:
            losses.hint(f"messages[{message.at}].is_error")
            text = text if text.lower().startswith("error") else f"Error: {text}"
        if rest:
            shown += [{"type": "text", "text": f"What the tool call {part.call} gave:"}, *rest]
        yield {"role": "tool", "tool_call_id": short_id(part.call, _LONGEST_ID), "content": text}


def _content(parts: tuple[Part, ...], at: int, losses: Losses) -> object:
    """A string where there is nothing but text, else a list of parts."""
    made = [one for part in parts if (one := _part(part, at, losses)) is not None]
    if all(one["type"] == "text" for one in made):
        return "\n".join(str(one["text"]) for one in made)
    return made


def _part(part: Part, at: int, losses: Losses) -> dict[str, object] | None:
    match part:
        case Text():
            if part.cache is not None:
                losses.hint("cache_control")
            return {"type": "text", "text": part.text}
        case Image():
            image: dict[str, object] = {"url": url_of_image(part)}
            if part.detail is not None:
                image["detail"] = part.detail
            return {"type": "image_url", "image_url": image}
        case Audio():
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
        case Document():
            return _document(part, at, losses)
        case Native(family="chat"):
            return dict(part.value)
        case _:
            losses.unknown_part(at, part)
            return None


def _document(part: Document, at: int, losses: Losses) -> dict[str, object] | None:
    if part.text:
        title = f"{part.name}\n" if part.name else ""
        return {"type": "text", "text": title + part.text}
    if not part.data:
        losses.part(at, "document")  # an address or an id of another vendor's store says nothing here
        return None
    media_type = part.media_type or "application/pdf"
    name = part.name or f"document.{media_type.rpartition('/')[2]}"
    return {"type": "file", "file": {"filename": name, "file_data": f"data:{media_type};base64,{part.data}"}}


def _tools(request: Request, losses: Losses) -> Iterator[dict[str, object]]:
    for tool in request.tools:
        match tool:
            case Tool():
                if tool.cache is not None:
                    losses.hint("cache_control")
                yield {"type": "function", "function": _function(tool, request.client, losses)}
            case NativeTool(family="chat"):
                yield dict(tool.value)
            case NativeTool():
                losses.add(f"tools.{tool.kind}")


def _function(tool: Tool, client: str, losses: Losses) -> dict[str, object]:
    strict = tool.strict
    if strict and not may_be_strict(tool.parameters, client):
        losses.hint("tools.strict")  # it would be refused
        strict = None
    told: Mapping[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": strict,
    }
    return {name: value for name, value in told.items() if value is not None}


def _choice(choice: ToolChoice | None) -> object:
    if choice is None:
        return None
    return {"type": "function", "function": {"name": choice.name}} if choice.mode == "one" else choice.mode


def _format(format: Format | None, client: str, losses: Losses) -> dict[str, object] | None:
    if format is None:
        return None
    if format.schema is None:
        return {"type": "json_object"}
    schema: dict[str, object] = {"name": format.name, "schema": format.schema}
    if format.strict and not may_be_strict(format.schema, client):
        losses.hint("response_format.strict")  # it would be refused
    elif format.strict is not None:
        schema["strict"] = format.strict
    if format.description is not None:
        schema["description"] = format.description
    return {"type": "json_schema", "json_schema": schema}
