"""A canonical request as a chat-completions body, for a vendor of the OpenAI family.

In: a request of a client of another family. Out: the body, and what could not be said in it. `ways` are the vendor's
own names of fields (from its rule file), None where it does not take one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.request import (
    Audio,
    Document,
    Format,
    Image,
    Message,
    Native,
    NativeTool,
    Part,
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
from proxy.dialects.effort import effort_of
from proxy.dialects.parts import url_of_image

CLIENT = "chat"
_PLAIN = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "n", "logprobs"),
    *("top_logprobs", "logit_bias", "user"),
)


def send_chat(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    body: dict[str, object] = {"model": model, "messages": chat_messages(request, losses, ways)}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    named: dict[str, object] = {name: getattr(request, name) for name in _PLAIN}
    named["max_tokens"] = request.max_tokens
    named["stop"] = list(request.stop) or None
    named["tools"] = list(_tools(request, losses)) or None
    named["tool_choice"] = _choice(request.tool_choice) if named["tools"] else None
    named["parallel_tool_calls"] = request.parallel_tools if named["tools"] else None
    named["response_format"] = _format(request.format)
    named["reasoning_effort"] = effort_of(request.reasoning) if request.reasoning is not None else None
    for name, value in named.items():
        if value is None:
            continue
        told = ways.get(name, name)
        if told is None:
            losses.hint(name) if name == "user" else losses.add(name)
        else:
            body[told] = value
    losses.extra(request)
    return body


def countable(request: Request) -> dict[str, object]:
    """What of a request is counted, in the form in which it is counted (`metering.meter`)."""
    losses = Losses()
    body: dict[str, object] = {"messages": chat_messages(request, losses, {})}
    if tools := list(_tools(request, losses)):
        body["tools"] = tools
    if request.format is not None:
        body["response_format"] = _format(request.format)
    return body


def chat_messages(request: Request, losses: Losses, ways: Ways) -> list[dict[str, object]]:
    return [made for message in request.messages for made in _message(message, losses, ways)]


def _message(message: Message, losses: Losses, ways: Ways) -> Iterator[dict[str, object]]:
    if message.role == "tool":
        for part in message.parts:
            if isinstance(part, ToolResult):
                yield from _result(part, message.at, losses)
        return
    made: dict[str, object] = {"role": message.role}
    if message.name:
        made["name"] = message.name
    if message.role == "assistant":
        made |= _assistant(message, losses, ways)
    else:
        made["content"] = _content(message.parts, message.at, losses)
    yield made


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
        made["reasoning_details"] = [thinking_detail(thought, number) for number, thought in enumerate(thoughts)]
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
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }
    if call.signature is not None:
        made["extra_content"] = {"google": {"thought_signature": call.signature}}
    return made


def _result(result: ToolResult, at: int, losses: Losses) -> Iterator[dict[str, object]]:
    """A result is text alone here: what else a tool gave follows as a message of the user, who alone may show it."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    shown = tuple(part for part in result.parts if not isinstance(part, Text))
    text = "\n".join(texts)
    if result.is_error:
        losses.hint(f"messages[{at}].is_error")
        text = text if text.lower().startswith("error") else f"Error: {text}"
    yield {"role": "tool", "tool_call_id": result.call, "content": text}
    if shown:
        said: dict[str, object] = {"type": "text", "text": f"What the tool call {result.call} gave:"}
        rest = _content(shown, at, losses)
        yield {"role": "user", "content": [said, *(rest if isinstance(rest, list) else [])]}


def _content(parts: tuple[Part, ...], at: int, losses: Losses) -> object:
    """A string where there is nothing but one text, else a list of parts."""
    if all(isinstance(part, Text) and part.cache is None for part in parts) and len(parts) <= 1:
        return parts[0].text if parts and isinstance(parts[0], Text) else ""
    return [made for part in parts if (made := _part(part, at, losses)) is not None]


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
                yield {"type": "function", "function": _function(tool)}
            case NativeTool(family="chat"):
                yield dict(tool.value)
            case NativeTool():
                losses.add(f"tools.{tool.kind}")


def _function(tool: Tool) -> dict[str, object]:
    told: Mapping[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }
    return {name: value for name, value in told.items() if value is not None}


def _choice(choice: ToolChoice | None) -> object:
    if choice is None:
        return None
    return {"type": "function", "function": {"name": choice.name}} if choice.mode == "one" else choice.mode


def _format(format: Format | None) -> dict[str, object] | None:
    if format is None:
        return None
    if format.schema is None:
        return {"type": "json_object"}
    schema: dict[str, object] = {"name": format.name, "schema": format.schema}
    if format.strict is not None:
        schema["strict"] = format.strict
    if format.description is not None:
        schema["description"] = format.description
    return {"type": "json_schema", "json_schema": schema}
