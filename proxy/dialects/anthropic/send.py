"""A canonical request as a Messages body, for Anthropic and those who speak its API.

In: a request of a client of another family. Out: the body, and what could not be said in it. `ways` are the vendor's
own names of fields (from its rule file), None where it does not take one; `reasoning_effort` may be named `thinking`
(a budget) or `output_config` (an effort) where a model's name does not tell which it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.canon.request import Format, NativeTool, Reasoning, Request, Tool, ToolChoice
from proxy.dialects.anthropic.blocks import CLIENT
from proxy.dialects.anthropic.messages import messages_of
from proxy.dialects.anthropic.models import Model, model_of
from proxy.dialects.anthropic.thinking import Situation, thinking_of
from proxy.dialects.base import Losses, Ways

_NO_SCHEMA: Mapping[str, object] = {"type": "object", "properties": {}}
_FORCED = ("required", "one")
_LEAST_TOP_P = 0.95  # beside thinking


def send_anthropic(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    kind = model_of(model)
    said = messages_of(request, losses)
    max_tokens = kind.max_tokens if request.max_tokens is None else request.max_tokens
    tools = list(_tools(request, kind, losses))
    choice = _choice(request, kind, losses) if tools else None
    reasoning = thinking_of(
        _reasoning(request, losses, ways),
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
    output = {**_mapping(reasoning, "output_config"), **_output(request, kind, losses, ways)}
    fields: dict[str, object] = {
        "model": model,
        "max_tokens": max_tokens,
        "system": said.system,
        "messages": said.messages,
        "tools": tools or None,
        "tool_choice": choice,
        "thinking": reasoning.get("thinking"),
        **_sampling(request, kind, losses, ways, thinks="budget_tokens" in _mapping(reasoning, "thinking")),
        "stop_sequences": _stops(request, losses),
        "metadata": _metadata(request, losses, ways),
        "output_config": output or None,
        "stream": request.stream or None,
        **_rest(request, losses),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _mapping(value: Mapping[str, object], name: str) -> dict[str, object]:
    inner = value.get(name)
    return dict(inner) if isinstance(inner, dict) else {}


def _reasoning(request: Request, losses: Losses, ways: Ways) -> Reasoning | None:
    if request.reasoning is not None and ways.get("reasoning_effort", "") is None:
        losses.add("reasoning_effort")
        return None
    return request.reasoning


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


def _metadata(request: Request, losses: Losses, ways: Ways) -> dict[str, object] | None:
    if request.user is None:
        return None
    if ways.get("user", "") is None:
        losses.hint("user")
        return None
    return {"user_id": request.user}


def _stops(request: Request, losses: Losses) -> list[str] | None:
    """Stop sequences of nothing but blanks are refused."""
    told = [stop for stop in request.stop if stop.strip()]
    if len(told) < len(request.stop):
        losses.add("stop")
    return told or None


def _sampling(request: Request, kind: Model, losses: Losses, ways: Ways, *, thinks: bool) -> dict[str, object]:
    """Temperature goes up to 1 here. With a budget for thinking only a high top_p is taken; the newest models take no
    sampling at all, and those before them one kind at a time."""
    temperature, top_p, top_k = request.temperature, request.top_p, request.top_k
    told: dict[str, object] = {}
    if temperature is not None and (thinks or not kind.takes_sampling) and temperature != 1:
        losses.add("temperature")
    elif temperature is not None and kind.takes_sampling and not thinks:
        if temperature > 1:
            losses.add("temperature")
        told["temperature"] = min(temperature, 1)
    if top_p is not None and top_p < 1:  # 1 is what nobody having said anything means
        is_one_too_many = "temperature" in told and not kind.takes_both_samplings
        if not kind.takes_sampling or (thinks and top_p < _LEAST_TOP_P) or is_one_too_many:
            losses.add("top_p")
        else:
            told["top_p"] = top_p
    if top_k is not None:
        if thinks or not kind.takes_sampling:
            losses.add("top_k")
        else:
            told["top_k"] = top_k
    for name in tuple(told):
        way = ways.get(name, name)
        value = told.pop(name)
        if way is None:
            losses.add(name)
        else:
            told[way] = value
    return told


def _output(request: Request, kind: Model, losses: Losses, ways: Ways) -> dict[str, object]:
    told = {
        name.removeprefix("output_config."): value
        for name, value in request.extra.items()
        if request.client == CLIENT and name.startswith("output_config.")
    }
    format = request.format
    if format is None:
        return told
    if format.schema is None or not kind.takes_schemas or ways.get("response_format", "") is None:
        losses.add("response_format")
        return told
    return {**told, "format": _format(format, losses)}


def _format(format: Format, losses: Losses) -> dict[str, object]:
    if format.description is not None:
        losses.hint("response_format.description")
    return {"type": "json_schema", "schema": dict(format.schema or {})}


# ---- tools -------------------------------------------------------------------------------------------------------


def _tools(request: Request, kind: Model, losses: Losses) -> Iterator[dict[str, object]]:
    for tool in request.tools:
        match tool:
            case Tool():
                yield _tool(tool, kind, losses)
            case NativeTool(family="messages"):
                yield dict(tool.value)
            case NativeTool():
                losses.add(f"tools.{tool.kind}")


def _tool(tool: Tool, kind: Model, losses: Losses) -> dict[str, object]:
    schema = tool.parameters or _NO_SCHEMA
    made: dict[str, object] = {"name": tool.name}
    if tool.description is not None:
        made["description"] = tool.description
    made["input_schema"] = schema if schema.get("type") is not None else {"type": "object", **schema}
    if tool.strict and kind.takes_schemas:
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
