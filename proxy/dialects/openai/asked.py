"""What a chat-completions request asks of the answer: tools, a form, thinking. (contract Q1)

In: the fields of a client's body. Out: canonical values; what has no place among them goes into `extra`, to be reported
by vendors that do not know it. Raises `Bad` for the caller's mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.request import Format, NativeTool, Reasoning, Tool, ToolChoice
from proxy.dialects.base import BadRequest
from proxy.dialects.parts import Fields, objects
from proxy.dialects.payload import as_mapping, as_text

CLIENT = "chat"


class Bad(Exception):
    """The caller's mistake, on its way out of the parser's functions."""

    def __init__(self, param: str, wanted: str) -> None:
        self.request = BadRequest("invalid_type", f"`{param}` must be {wanted}.", param)
        super().__init__(param)


def tools_of(tools: object) -> Iterator[Tool | NativeTool]:
    if tools is not None and not isinstance(tools, list):
        raise Bad("tools", "a list")
    for tool in objects(tools):
        if tool.get("type") not in (None, "function"):
            yield NativeTool(CLIENT, as_text(tool.get("type")) or "tool", tool)
            continue
        yield _tool(as_mapping(tool.get("function")), tool.get("cache_control"))


def functions_of(functions: object) -> Iterator[Tool]:
    yield from (_tool(function, None) for function in objects(functions))


def _tool(function: Mapping[str, object], cache: object) -> Tool:
    parameters, strict = function.get("parameters"), function.get("strict")
    return Tool(
        as_text(function.get("name")),
        as_text(function.get("description")) or None,
        parameters if isinstance(parameters, dict) else None,
        strict if isinstance(strict, bool) else None,
        cache if isinstance(cache, dict) else None,
    )


def choice_of(fields: Fields, extra: dict[str, object]) -> ToolChoice | None:
    choice, legacy = fields.get("tool_choice"), fields.get("function_call")
    if choice is None:
        choice = legacy
    match choice:
        case None:
            return None
        case "auto" | "none" | "required":
            return ToolChoice(choice)
        case "any" | {"type": "any"}:  # Mistral's word, and Anthropic's
            return ToolChoice("required")
        case {"type": "function", "function": {"name": str(name)}} | {"name": str(name)}:
            return ToolChoice("one", name)
        case {"type": "auto" | "none" | "required" as mode}:
            return ToolChoice(mode)
        case {"type": str()}:  # a tool of another kind, or a set of tools
            extra["tool_choice"] = choice
            return None
        case _:
            raise Bad("tool_choice", "auto, none, required, or one function")


def format_of(fields: Fields, extra: dict[str, object]) -> Format | None:
    wanted = as_mapping(fields.mapping("response_format"))
    inner = wanted.get("schema")  # beside the type, as several servers of open models want it
    match wanted.get("type"):
        case "json_object":
            return Format(inner) if isinstance(inner, dict) and inner else Format()
        case "json_schema":
            schema = as_mapping(wanted.get("json_schema"))
            inner, strict = schema.get("schema", inner), schema.get("strict")
            return Format(
                inner if isinstance(inner, dict) else {},
                as_text(schema.get("name")) or "answer",
                strict if isinstance(strict, bool) else None,
                as_text(schema.get("description")) or None,
            )
        case None | "text":
            return None
        case _:  # a grammar, a regular expression
            extra["response_format"] = wanted
            return None


def reasoning_of(fields: Fields, extra: dict[str, object]) -> Reasoning | None:
    wide = as_mapping(fields.get("reasoning"))  # OpenRouter's
    thinking = as_mapping(fields.get("thinking"))  # Anthropic's, which DeepSeek, Zhipu and others took over
    more = {name: value for name, value in wide.items() if name not in ("effort", "max_tokens", "enabled")}
    extra |= {f"reasoning.{name}": value for name, value in more.items() if value}
    enabled, template = _switched(fields, extra)
    effort = fields.text("reasoning_effort") or as_text(wide.get("effort")) or None
    budget = wide.get("max_tokens") or thinking.get("budget_tokens") or fields.get("thinking_budget")
    if thinking.get("type") in ("enabled", "disabled", "adaptive"):
        enabled = thinking["type"] != "disabled"
    if isinstance(wide.get("enabled"), bool):
        enabled = wide["enabled"] is True
    enabled = template if enabled is None else enabled
    tokens = budget if isinstance(budget, int) and not isinstance(budget, bool) and enabled is not False else None
    if effort is None and tokens is None and enabled is None:
        return None
    return Reasoning(effort, tokens, enabled)


def _switched(fields: Fields, extra: dict[str, object]) -> tuple[bool | None, bool | None]:
    """Thinking on or off: Qwen's own switch, and that of the chat templates of open models."""
    template = as_mapping(fields.get("chat_template_kwargs"))
    told = template.get("enable_thinking", template.get("thinking"))
    if more := {name: value for name, value in template.items() if name not in ("enable_thinking", "thinking")}:
        extra["chat_template_kwargs"] = more
    return fields.flag("enable_thinking"), told if isinstance(told, bool) else None
