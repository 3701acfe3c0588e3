"""A canonical request as the body of Bedrock's Converse API, streamed or not (the path says which).

In: a request of any client. Out: the body, and what could not be said in it. Converse has four fields for every model;
what else there is depends on the model, whose maker stands in its id: `_FAMILIES` says what is well known. The client's
own fields that are called as Converse calls them pass as they are. (botocore's model of bedrock-runtime, 2023-09-30)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proxy.canon.request import Format, Reasoning, Request, Tool, names_of_calls
from proxy.dialects.base import Losses, Ways
from proxy.dialects.bedrock.blocks import Block, converse_messages, lacks_thoughts
from proxy.dialects.effort import budget_of, effort_of
from proxy.dialects.payload import encode_json
from proxy.dialects.plain import extra, functions, no_parallel, sampling, system_first, thinks

_OWN = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_PASSED = (
    *("guardrailConfig", "performanceConfig", "requestMetadata", "additionalModelResponseFieldPaths", "serviceTier"),
    *("promptVariables", "additionalModelRequestFields", "outputConfig"),
)
_LEAST_BUDGET = 1024


def send_converse(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    system, rest = system_first(request.messages, losses)
    messages = converse_messages(rest, losses)
    body: dict[str, object] = {"messages": messages}
    if system.strip():
        body["system"] = [{"text": system}]
    family = next((known for mark, known in _FAMILIES if mark in model), _Family())
    more: dict[str, object] = {}
    inference = sampling(request, {**_OWN, **({"top_k": "top_k"} if family.top_k else {})}, losses, ways)
    if family.top_k and "top_k" in inference:
        more |= family.top_k(inference.pop("top_k"))
    if inference:
        body["inferenceConfig"] = inference
    if (tools := _tool_config(request, losses)) is not None:
        body["toolConfig"] = tools
    if request.format is not None:
        if (format := _format(request.format)) is None:
            losses.add("response_format")
        else:
            body["outputConfig"] = {"textFormat": format}
    if request.reasoning is not None and family.thinking is _claude_thinking and lacks_thoughts(messages):
        losses.hint("reasoning_effort")  # another model made these calls: Claude would refuse to think on
    elif request.reasoning is not None:
        more |= _reasoning(request, request.reasoning, family, losses)
    if more:
        body["additionalModelRequestFields"] = more
    return _with(body, extra(request, {name: name for name in _PASSED}, losses))


def _with(body: dict[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """The client's own fields win; objects that both have are put together."""
    for name, value in own.items():
        before = body.get(name)
        body[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return body


# ---- tools -------------------------------------------------------------------------------------------------------


def _tool_config(request: Request, losses: Losses) -> Block | None:
    tools = functions(request, losses)
    called = names_of_calls(request.messages)
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        if tools and called:
            losses.add("tool_choice")  # the calls so far want the tools, and then they cannot be forbidden
        elif tools:
            return None  # a model that is shown no tools calls none
        choice = None
    if not tools:
        if not called:
            return None
        losses.hint("tools")  # calls in the messages without tools are refused
        return {"tools": [_spec(Tool(name)) for name in dict.fromkeys(called.values())]}
    no_parallel(request, losses)
    config: Block = {"tools": [_spec(tool) for tool in tools]}
    if choice is not None and choice.mode == "required":
        config["toolChoice"] = {"any": {}}
    elif choice is not None and choice.mode == "one":
        config["toolChoice"] = {"tool": {"name": choice.name}}
    return config


def _spec(tool: Tool) -> Block:
    spec: Block = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": tool.parameters or {"type": "object", "properties": {}}}
    return {"toolSpec": spec}


def _format(format: Format) -> Block | None:
    """None for JSON of any form: Converse knows it by a schema alone, which it wants as text."""
    if not format.schema:
        return None
    schema: Block = {"schema": encode_json(format.schema).decode(), "name": format.name}
    if format.description:
        schema["description"] = format.description
    return {"type": "json_schema", "structure": {"jsonSchema": schema}}


# ---- what depends on the model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Family:
    """How the models of one maker take what Converse has no field for; None: not at all."""

    top_k: Callable[[object], Block] | None = None
    thinking: Callable[[Reasoning, int | None], Block | None] | None = None


def _claude_thinking(reasoning: Reasoning, limit: int | None) -> Block | None:
    """A budget, which must leave room in the limit: one of ours gives way, the client's own does not."""
    budget = budget_of(reasoning)
    if budget is None:
        return {"thinking": {"type": "adaptive"}}
    if reasoning.budget is None and limit is not None and budget >= limit:
        budget = limit // 2
        if budget < _LEAST_BUDGET:
            return None
    return {"thinking": {"type": "enabled", "budget_tokens": max(budget, _LEAST_BUDGET)}}


def _nova_thinking(reasoning: Reasoning, _limit: int | None) -> Block:
    effort = _three_steps(reasoning)
    return {"reasoningConfig": {"type": "enabled", **({"maxReasoningEffort": effort} if effort else {})}}


def _gpt_thinking(reasoning: Reasoning, _limit: int | None) -> Block:
    effort = _three_steps(reasoning)
    return {"reasoning_effort": effort} if effort else {}


def _three_steps(reasoning: Reasoning) -> str | None:
    effort = effort_of(reasoning)
    return {"minimal": "low", "xhigh": "high", "max": "high"}.get(effort or "", effort)


# By a mark in the model's id; the first that is found.
_FAMILIES = (
    ("anthropic.claude", _Family(lambda value: {"top_k": value}, _claude_thinking)),
    ("amazon.nova-2", _Family(lambda value: {"inferenceConfig": {"topK": value}}, _nova_thinking)),
    ("amazon.nova", _Family(lambda value: {"inferenceConfig": {"topK": value}})),
    ("openai.gpt-oss", _Family(thinking=_gpt_thinking)),
)


def _reasoning(request: Request, reasoning: Reasoning, family: _Family, losses: Losses) -> Block:
    wanted = thinks(request)
    if wanted is None:
        return {}
    if not wanted:
        if family.thinking is not None and family.thinking is not _gpt_thinking:
            return {}  # they think when they are asked to
        losses.hint("reasoning_effort")
        return {}
    told = family.thinking(reasoning, request.max_tokens) if family.thinking is not None else None
    if told is None:
        losses.add("reasoning_effort")
        return {}
    return told
