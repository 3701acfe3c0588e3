"""A Responses request in canonical form, for vendors of other families (contract Q1).

In: the body of a client. Out: a `Request`, or the caller's mistake. Items of one turn of the model (reasoning, text,
calls) become one message, since other grammars have one message a turn. What one vendor keeps for its clients
(`previous_response_id`, `conversation`, `prompt`, items by reference) goes into `extra` or `Native`, and is a loss
elsewhere. Names of items, their status and `phase` mean something to the vendor that gave them alone, and are left out.
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
    Reasoning,
    Refusal,
    Request,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    names_of_calls,
)
from proxy.dialects.base import BadRequest
from proxy.dialects.calls import results_beside_calls
from proxy.dialects.parts import Fields, data_of_url, image_of_url, objects
from proxy.dialects.payload import as_mapping, as_text, encode_json, is_empty
from proxy.dialects.responses.thoughts import thinking_of_item

CLIENT = "responses"
LOGPROBS = "message.output_text.logprobs"
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
#: What is said by default, and so asks for nothing.
_USUAL: Mapping[str, object] = {"background": False, "truncation": "disabled", "verbosity": "medium"}
_TOOL = frozenset(("type", "name", "description", "parameters", "strict"))


class _Bad(Exception):
    """The caller's mistake, on its way out of this module's functions."""

    def __init__(self, param: str, wanted: str) -> None:
        self.request = BadRequest("invalid_type", f"`{param}` must be {wanted}.", param)
        super().__init__(param)


def parse_responses(body: Mapping[str, object]) -> Request | BadRequest:
    try:
        return _request(body)
    except _Bad as bad:
        return bad.request


def _request(body: Mapping[str, object]) -> Request | BadRequest:
    fields = Fields(body)
    fields.get("stream_options")
    extra: dict[str, object] = {}
    include = fields.words("include")
    top_logprobs = fields.whole("top_logprobs") or None
    request = Request(
        client=CLIENT,
        model=as_text(fields.get("model")),
        messages=_messages(fields),
        stream=fields.flag("stream") or False,
        tools=tuple(_tools(fields.get("tools"), extra)),
        tool_choice=_choice(fields, extra),
        parallel_tools=fields.flag("parallel_tool_calls"),
        max_tokens=fields.whole("max_output_tokens"),
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        logprobs=True if LOGPROBS in include or top_logprobs else None,
        top_logprobs=top_logprobs,
        format=_format(fields, extra),
        reasoning=_reasoning(fields, extra),
        user=fields.text("user"),
        extra=extra,
    )
    if more := [name for name in include if name != LOGPROBS]:
        extra["include"] = more
    extra |= fields.extra()
    for name, usual in _USUAL.items():
        if extra.get(name, ...) == usual:
            del extra[name]
    return fields.bad or request


# ---- items -------------------------------------------------------------------------------------------------------


def _messages(fields: Fields) -> tuple[Message, ...]:
    instructions, items = fields.get("instructions"), fields.get("input")
    made = [Message("system", (Text(instructions),))] if isinstance(instructions, str) and instructions else []
    if isinstance(instructions, list):  # as a response says them back
        made += _of_items(instructions, "instructions")
    elif instructions is not None and not isinstance(instructions, str):
        raise _Bad("instructions", "a string")
    if isinstance(items, str):
        made.append(Message("user", (Text(items),)))
    elif isinstance(items, list):
        made += _of_items(items, "input")
    elif items is not None:
        raise _Bad("input", "a string or a list of items")
    if not made:
        raise _Bad("input", "a string or a list of items, at least one")
    return _named(results_beside_calls(tuple(made)))


def _of_items(items: list[object], param: str) -> list[Message]:
    """Items to messages: those of one turn together, and results of tools together."""
    made: list[Message] = []
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise _Bad(f"{param}[{at}]", "an object")
        role, parts = _item(item, f"{param}[{at}]")
        if made and role in ("assistant", "tool") and made[-1].role == role:
            made[-1] = Message(role, (*made[-1].parts, *parts), at=made[-1].at)
        else:
            made.append(Message(role, parts, at=at))
    return made


def _item(item: Mapping[str, object], param: str) -> tuple[Role, tuple[Part, ...]]:
    match item.get("type"):
        case None | "message":
            if item.get("type") is None and "role" not in item and "id" in item:
                return "user", (Native(CLIENT, "item_reference", item),)
            role = _ROLES.get(as_text(item.get("role")))
            if role is None:
                raise _Bad(f"{param}.role", f"one of {', '.join(_ROLES)}")
            return role, tuple(_content(item.get("content"), f"{param}.content"))
        case "reasoning":
            return "assistant", (thinking_of_item(item),)
        case "function_call":
            arguments = _arguments(item.get("arguments"))
            google = as_mapping(as_mapping(item.get("extra_content")).get("google"))
            sealed = as_text(google.get("thought_signature")) or None
            return "assistant", (ToolCall(_call_of(item), as_text(item.get("name")), arguments, sealed),)
        case "function_call_output":
            parts = tuple(_content(item.get("output"), f"{param}.output"))
            shown = tuple(part for part in parts if isinstance(part, Text | Image | Document))
            # What no other grammar has in a result stands beside it: a call without a result would be refused.
            rest = tuple(part for part in parts if not isinstance(part, Text | Image | Document))
            return "tool", (ToolResult(_call_of(item), shown, as_text(item.get("name"))), *rest)
        case kind:
            told = as_text(kind) or "item"
            is_answer = told.endswith(("_call", "_list_tools", "_approval_request"))
            return "assistant" if is_answer else "user", (Native(CLIENT, told, item),)


def is_part(value: Mapping[str, object]) -> bool:
    """Is this part of a message, rather than an item of its own?"""
    return as_text(value.get("type")).startswith(("input_", "output_", "computer_screenshot"))


def _call_of(item: Mapping[str, object]) -> str:
    return as_text(item.get("call_id")) or as_text(item.get("id"))


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else encode_json(value).decode()


def _named(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Results with the names of their tools, as the calls before them say."""
    names = names_of_calls(messages)

    def named(part: Part) -> Part:
        if isinstance(part, ToolResult) and not part.name and part.call in names:
            return ToolResult(part.call, part.parts, names[part.call], part.is_error, part.cache)
        return part

    return tuple(Message(m.role, tuple(map(named, m.parts)), at=m.at) if m.role == "tool" else m for m in messages)


def _content(content: object, param: str) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    if content is not None and not isinstance(content, list):
        raise _Bad(param, "a string or a list of parts")
    for place, part in enumerate(content or ()):
        if isinstance(part, str):
            yield Text(part)
        elif not isinstance(part, dict):
            raise _Bad(f"{param}[{place}]", "an object")
        elif (made := _part(part)) is not None:
            yield made


def _part(part: Mapping[str, object]) -> Part | None:
    cache = {"type": "ephemeral"} if isinstance(part.get("prompt_cache_breakpoint"), dict) else None
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "summary_text":
            return Text(as_text(part.get("text")), cache) if part.get("text") else None
        case "input_image":
            url = as_text(part.get("image_url"))
            if not url:  # a file that lies at one vendor
                return Native(CLIENT, "input_image", part)
            return image_of_url(url, as_text(part.get("detail")) or None, cache)
        case "input_file":
            return _file(part, cache) or Native(CLIENT, "input_file", part)
        case "input_audio":
            audio = as_mapping(part.get("input_audio"))
            return Audio(as_text(audio.get("data")), as_text(audio.get("format")))
        case "refusal":
            return Refusal(as_text(part.get("refusal")))
        case kind:
            return Native(CLIENT, as_text(kind) or "part", part)


def _file(file: Mapping[str, object], cache: Mapping[str, object] | None) -> Document | None:
    """None for one that lies at one vendor."""
    name, data = as_text(file.get("filename")), as_text(file.get("file_data"))
    if not data:
        url = as_text(file.get("file_url"))
        return Document(url=url, name=name, cache=cache) if url else None
    media_type, data = data_of_url(data) or ("application/pdf", data)
    return Document(media_type, data, name=name, cache=cache)


# ---- what is asked of the answer ---------------------------------------------------------------------------------


def _tools(tools: object, extra: dict[str, object]) -> Iterator[Tool | NativeTool]:
    if tools is not None and not isinstance(tools, list):
        raise _Bad("tools", "a list")
    for tool in objects(tools):
        if tool.get("type") != "function":
            yield NativeTool(CLIENT, as_text(tool.get("type")) or "tool", tool)
            continue
        extra |= {f"tools.{name}": value for name, value in tool.items() if name not in _TOOL and not is_empty(value)}
        parameters, strict = tool.get("parameters"), tool.get("strict")
        yield Tool(
            as_text(tool.get("name")),
            as_text(tool.get("description")) or None,
            parameters if isinstance(parameters, dict) else None,
            strict if isinstance(strict, bool) else None,
        )


def _choice(fields: Fields, extra: dict[str, object]) -> ToolChoice | None:
    choice = fields.get("tool_choice")
    match choice:
        case None:
            return None
        case "auto" | "none" | "required":
            return ToolChoice(choice)
        case {"type": "function", "name": str(name)}:
            return ToolChoice("one", name)
        case {"type": str()}:  # a tool that the vendor runs, or a set of tools
            extra["tool_choice"] = choice
            return None
        case _:
            raise _Bad("tool_choice", "auto, none, required, or one tool")


def _format(fields: Fields, extra: dict[str, object]) -> Format | None:
    text = as_mapping(fields.mapping("text"))
    for name, value in text.items():
        if name != "format" and value is not None:
            extra["verbosity" if name == "verbosity" else f"text.{name}"] = value
    wanted = as_mapping(text.get("format"))
    match wanted.get("type"):
        case "json_object":
            return Format()
        case "json_schema":
            schema, strict = wanted.get("schema"), wanted.get("strict")
            return Format(
                schema if isinstance(schema, dict) else {},
                as_text(wanted.get("name")) or "answer",
                strict if isinstance(strict, bool) else None,
                as_text(wanted.get("description")) or None,
            )
        case None | "text":
            return None
        case _:  # a grammar
            extra["text.format"] = wanted
            return None


def _reasoning(fields: Fields, extra: dict[str, object]) -> Reasoning | None:
    said = as_mapping(fields.mapping("reasoning"))
    effort = as_text(said.get("effort")) or None
    summary = as_text(said.get("summary")) or as_text(said.get("generate_summary")) or None
    for name, value in said.items():
        if name not in ("effort", "summary", "generate_summary") and not is_empty(value):
            extra[f"reasoning.{name}"] = value
    return Reasoning(effort, summary=summary) if effort or summary else None
