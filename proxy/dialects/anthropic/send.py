"""A canonical request as a Messages body, for Anthropic and those who speak its API.

In: a request of a client of another family. Out: the body, and what could not be said in it. `ways` are the vendor's
own names of fields (from its rule file), None where it does not take one; `reasoning_effort` may be named `thinking`
(a budget) or `output_config` (an effort) where a model's name does not tell which it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.request import NativeTool, Request, Tool, ToolChoice, names_of_calls
from proxy.dialects.anthropic.blocks import CLIENT
from proxy.dialects.anthropic.messages import messages_of
from proxy.dialects.base import Losses, Ways
from proxy.dialects.claude.models import Model, model_of
from proxy.dialects.claude.sampling import sampling_of
from proxy.dialects.claude.thinking import Situation, thinking_of
from proxy.dialects.parts import object_schema, short_user
from proxy.dialects.schemas import Closer
from proxy.dialects.taken import taken

_FORCED = ("required", "one")
_LONGEST_USER = 256


def send_anthropic(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    kind = model_of(model)
    said = messages_of(request, losses, takes_prefix=kind.takes_prefix)
    max_tokens = kind.max_tokens if request.max_tokens is None else request.max_tokens
    tools = list(_tools(request, kind, losses))
    choice = _choice(request, kind, losses) if tools else None
    if not tools and (called := names_of_calls(request.messages)):
        # Calls in the messages without tools are refused; that none may be called now is what was asked.
        tools = [_tool(Tool(name), request, kind, losses) for name in dict.fromkeys(called.values())]
        choice = {"type": "none"}
        losses.hint("tools")
    reasoning = thinking_of(
        request.reasoning,
        Situation(
            kind,
            _form(kind, ways),
            max_tokens,
            choice is not None and choice["type"] in ("any", "tool"),
            said.may_think,
            request.client == CLIENT and request.reasoning is not None and request.reasoning.enabled is None,
        ),
        losses,
    )
    thinks = _mapping(reasoning, "thinking").get("type") in ("enabled", "adaptive")
    sampling = {
        ways.get(name) or name: value for name, value in sampling_of(request, kind, losses, thinks=thinks).items()
    }
    output = {**_mapping(reasoning, "output_config"), **_output(request, kind, losses)}
    fields: dict[str, object] = {
        "model": model,
        "max_tokens": max_tokens,
        "system": said.system,
        "messages": said.messages,
        "tools": tools or None,
        "tool_choice": choice,
        "thinking": reasoning.get("thinking"),
        **sampling,
        "stop_sequences": _stops(request, losses),
        "metadata": _metadata(request, losses),
        "output_config": output or None,
        "stream": request.stream or None,
        **_rest(request, losses),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _mapping(value: Mapping[str, object], name: str) -> dict[str, object]:
    inner = value.get(name)
    return dict(inner) if isinstance(inner, dict) else {}


def _form(kind: Model, ways: Ways) -> str:
    named = {"thinking": "budget", "output_config": "adaptive"}
    return named.get(ways.get("reasoning_effort") or "", kind.thinking)


def _rest(request: Request, losses: Losses) -> dict[str, object]:
    """Fields of the client's own: those of this family go back, all others are reported."""
    losses.fields(request, "min_p", "seed", "frequency_penalty", "presence_penalty", "n")
    losses.fields(request, "logprobs", "top_logprobs", "logit_bias")
    if request.client != CLIENT:
        losses.extra(request)
        return {}
    return {name: value for name, value in request.extra.items() if name != "citations" and "." not in name}


def _metadata(request: Request, losses: Losses) -> dict[str, object] | None:
    if request.user is None:
        return None
    told = short_user(request.user, _LONGEST_USER)
    if told != request.user:
        losses.hint("user")
    return {"user_id": told}


def _stops(request: Request, losses: Losses) -> list[str] | None:
    """Stop sequences of nothing but blanks are refused."""
    told = [stop for stop in request.stop if stop.strip()]
    if len(told) < len(request.stop):
        losses.add("stop")
    return told or None


def _output(request: Request, kind: Model, losses: Losses) -> dict[str, object]:
    told = {
        name.removeprefix("output_config."): value
        for name, value in request.extra.items()
        if request.client == CLIENT and name.startswith("output_config.")
    }
    format = request.format
    if format is None:
        return told
    schema = None
    if format.schema is not None and kind.takes_schemas:
        schema = _closed(format.schema, request, losses, "response_format.schema")
    if schema is None:
        losses.add("response_format")
        return told
    if format.description is not None:
        losses.hint("response_format.description")
    return {**told, "format": {"type": "json_schema", "schema": schema}}


def _closed(schema: Mapping[str, object], request: Request, losses: Losses, name: str) -> Mapping[str, object] | None:
    """As the vendor takes it; a client of this family has written it so."""
    if request.client == CLIENT:
        return schema
    closer = Closer()
    closed = closer.close(schema)
    if closed is not None and closer.is_changed:
        losses.hint(name)
    return closed


# ---- tools -------------------------------------------------------------------------------------------------------


def _tools(request: Request, kind: Model, losses: Losses) -> Iterator[dict[str, object]]:
    for tool in request.tools:
        match tool:
            case Tool():
                yield _tool(tool, request, kind, losses)
            case NativeTool(family="messages"):
                yield dict(tool.value)
            case NativeTool():
                losses.add(f"tools.{tool.kind}")


def _tool(tool: Tool, request: Request, kind: Model, losses: Losses) -> dict[str, object]:
    schema = object_schema(tool.parameters)
    made: dict[str, object] = {"name": tool.name}
    if tool.description is not None:
        made["description"] = tool.description
    closed = None
    if tool.strict:
        closed = _closed(schema, request, losses, "tools.strict") if kind.takes_schemas else None
    made["input_schema"] = schema if closed is None else closed
    if closed is not None:
        made["strict"] = True
    elif tool.strict:
        losses.hint("tools.strict")
    if tool.cache is not None:
        made["cache_control"] = tool.cache
    return made


def _choice(request: Request, kind: Model, losses: Losses) -> dict[str, object] | None:
    choice = request.tool_choice
    if choice is not None and choice.mode in _FORCED and kind.always_thinks:
        losses.add("tool_choice")  # it refuses to be forced, since it always thinks first
        choice = ToolChoice("auto")
    one_at_a_time = request.parallel_tools is False
    if choice is None and not one_at_a_time:
        return None
    told: dict[str, object]
    match choice:
        case ToolChoice("required"):
            told = {"type": "any"}
        case ToolChoice("one", name):
            told = {"type": "tool", "name": name}
        case ToolChoice("none"):
            return {"type": "none"}
        case _:
            told = {"type": "auto"}
    if one_at_a_time:
        told["disable_parallel_tool_use"] = True
    return told
