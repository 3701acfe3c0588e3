"""A Messages request in canonical form, for vendors of other families (contract Q1, D1).

In: the body of a client. Out: a `Request`, or the caller's mistake. Lenient where the vendor would be: parts and tools
that are not known travel as they are, under this family's name. What only tells the vendor how to run (a tool's
`defer_loading`, `eager_input_streaming`, `input_examples`, `allowed_callers`) is not carried over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from proxy.canon.request import (
    Format,
    Message,
    NativeTool,
    Part,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolChoice,
    ToolResult,
    names_of_calls,
)
from proxy.dialects.anthropic.blocks import CLIENT, BadBlock, parts_of
from proxy.dialects.base import BadRequest
from proxy.dialects.parts import Fields, objects
from proxy.dialects.payload import as_mapping, as_text

__all__ = ["CLIENT", "parse_messages"]


def parse_messages(body: Mapping[str, object]) -> Request | BadRequest:
    try:
        return _request(body)
    except BadBlock as bad:
        return BadRequest("invalid_type", f"`{bad.param}` must be {bad.wanted}.", bad.param)


def _request(body: Mapping[str, object]) -> Request | BadRequest:
    fields = Fields(body)
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        return BadRequest("invalid_type", "`messages` must be a list of messages, at least one.", "messages")
    output = fields.mapping("output_config") or {}
    choice = fields.mapping("tool_choice") or {}
    metadata = fields.mapping("metadata") or {}
    parsed = (*_system(fields.get("system")), *_messages(messages))
    extra = {
        **{f"output_config.{k}": v for k, v in output.items() if k not in ("effort", "format") and v is not None},
        **({"citations": True} if _wants_citations(messages) else {}),
    }
    request = Request(
        client=CLIENT,
        model=as_text(fields.get("model")),
        messages=_with_cache(parsed, fields.mapping("cache_control")),
        stream=fields.flag("stream") or False,
        tools=tuple(_tools(fields.get("tools"))),
        tool_choice=_choice(choice),
        parallel_tools=_parallel(choice),
        max_tokens=fields.whole("max_tokens"),
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        top_k=fields.whole("top_k"),
        stop=fields.words("stop_sequences"),
        format=_format(as_mapping(output.get("format")) or fields.mapping("output_format") or {}),
        reasoning=_reasoning(fields.mapping("thinking") or {}, as_text(output.get("effort")) or None),
        user=as_text(metadata.get("user_id")) or None,
        extra={**fields.extra("output_format"), **extra},
    )
    return fields.bad or request


# ---- messages ----------------------------------------------------------------------------------------------------


def _system(system: object) -> Iterator[Message]:
    if parts := parts_of(system, "system"):
        yield Message("system", parts)


def _messages(messages: list[object]) -> tuple[Message, ...]:
    parsed = tuple(one for at, message in enumerate(messages) for one in _message(message, at))
    names = names_of_calls(parsed)

    def named(part: Part) -> Part:
        return replace(part, name=names.get(part.call, "")) if isinstance(part, ToolResult) else part

    return tuple(replace(one, parts=tuple(map(named, one.parts))) if one.role == "tool" else one for one in parsed)


def _message(message: object, at: int) -> Iterator[Message]:
    """One message, or two where results of tools and words of the user stand in one: results come first."""
    if not isinstance(message, dict):
        raise BadBlock(f"messages[{at}]", "an object")
    parts = parts_of(message.get("content"), f"messages[{at}].content")
    match message.get("role"):
        case "assistant":
            yield Message("assistant", parts, at=at)
        case "system":
            yield Message("system", parts, at=at)
        case "user":
            results = tuple(part for part in parts if isinstance(part, ToolResult))
            rest = tuple(part for part in parts if not isinstance(part, ToolResult))
            if results:
                yield Message("tool", results, at=at)
            if rest or not results:
                yield Message("user", rest, at=at)
        case _:
            raise BadBlock(f"messages[{at}].role", "user or assistant")


def _with_cache(messages: tuple[Message, ...], cache: Mapping[str, object] | None) -> tuple[Message, ...]:
    """The marker of the whole request stands for one on its last block."""
    if cache is None or not messages or not messages[-1].parts:
        return messages
    last = messages[-1].parts[-1]
    if not isinstance(last, Text | ToolResult):
        return messages
    return (*messages[:-1], replace(messages[-1], parts=(*messages[-1].parts[:-1], replace(last, cache=cache))))


def _wants_citations(messages: list[object]) -> bool:
    """All documents have them or none (the vendor's rule), so it is one wish of the whole request."""
    return any(
        as_mapping(block.get("citations")).get("enabled") is True
        for message in messages
        for block in objects(as_mapping(message).get("content"))
        if block.get("type") in ("document", "search_result")
    )


# ---- what is asked of the answer ---------------------------------------------------------------------------------


def _tools(tools: object) -> Iterator[Tool | NativeTool]:
    if tools is not None and not isinstance(tools, list):
        raise BadBlock("tools", "a list")
    for tool in objects(tools):
        kind = as_text(tool.get("type")) or "custom"
        if kind != "custom":
            yield NativeTool(CLIENT, kind, tool)
            continue
        schema, strict, cache = tool.get("input_schema"), tool.get("strict"), tool.get("cache_control")
        yield Tool(
            as_text(tool.get("name")),
            as_text(tool.get("description")) or None,
            schema if isinstance(schema, dict) else None,
            strict if isinstance(strict, bool) else None,
            cache if isinstance(cache, dict) else None,
        )


def _choice(choice: Mapping[str, object]) -> ToolChoice | None:
    match choice.get("type"):
        case None:
            return None
        case "auto" | "none" as mode:
            return ToolChoice(mode)
        case "any":
            return ToolChoice("required")
        case "tool":
            return ToolChoice("one", as_text(choice.get("name")))
        case _:
            raise BadBlock("tool_choice.type", "auto, any, tool or none")


def _parallel(choice: Mapping[str, object]) -> bool | None:
    disabled = choice.get("disable_parallel_tool_use")
    return not disabled if isinstance(disabled, bool) else None


def _format(format: Mapping[str, object]) -> Format | None:
    schema = format.get("schema")
    if format.get("type") != "json_schema":
        return None
    return Format(schema if isinstance(schema, dict) else {}, strict=True)


def _reasoning(thinking: Mapping[str, object], effort: str | None) -> Reasoning | None:
    """`between_tools` is the least that its models can do, as `disabled` is of the others."""
    budget = thinking.get("budget_tokens")
    summary = "auto" if thinking.get("display") == "summarized" else None
    match thinking.get("type"):
        case "disabled" | "between_tools":
            return Reasoning(effort, enabled=False)
        case "enabled" | "adaptive":
            tokens = budget if isinstance(budget, int) and not isinstance(budget, bool) else None
            return Reasoning(effort, tokens, True, summary)
        case _:
            return Reasoning(effort) if effort is not None else None
