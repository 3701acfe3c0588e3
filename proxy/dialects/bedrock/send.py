"""A canonical request as the body of Bedrock's Converse API, streamed or not (the path says which).

In: a request of any client. Out: the body, and what could not be said in it. Converse has four fields for every model;
what else there is depends on the model, whose maker stands in its id: Claude takes what it takes everywhere,
`_FAMILIES` says what is well known of others. The client's own fields that are called as Converse calls them pass as
they are. (botocore's model of bedrock-runtime, 2023-09-30)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from proxy.canon.request import Format, Reasoning, Request, Tool, names_of_calls
from proxy.dialects.base import Losses, Ways
from proxy.dialects.bedrock.blocks import Block, converse_messages, end_prefix, lacks_thoughts
from proxy.dialects.claude.models import Model, model_of
from proxy.dialects.claude.sampling import sampling_of
from proxy.dialects.claude.thinking import Situation, thinking_of
from proxy.dialects.effort import effort_of
from proxy.dialects.parts import object_schema
from proxy.dialects.payload import as_mapping, encode_json
from proxy.dialects.plain import bounded, extra, functions, no_parallel, sampling, system_first, thinks
from proxy.dialects.schemas import Closer
from proxy.dialects.taken import taken

_OWN = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_PASSED = (
    *("guardrailConfig", "performanceConfig", "requestMetadata", "additionalModelResponseFieldPaths", "serviceTier"),
    *("promptVariables", "additionalModelRequestFields", "outputConfig"),
)


def send_converse(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    system, rest = system_first(request.messages, losses)
    messages = converse_messages(rest, losses)
    claude = model_of(model) if "anthropic.claude" in model else None
    end_prefix(messages, rest, losses, takes_prefix=claude is None or claude.takes_prefix)
    body: dict[str, object] = {"messages": messages}
    if system.strip():
        body["system"] = [{"text": system}]
    tools = _tool_config(request, claude, losses)
    family = next((known for mark, known in _FAMILIES if mark in model), _Family())
    if claude is not None:
        told = _claude(request, claude, messages, losses, ways, is_forced=tools is not None and "toolChoice" in tools)
    else:
        told = _other(request, family, losses, ways)
    if told.inference:
        body["inferenceConfig"] = told.inference
    if tools is not None:
        body["toolConfig"] = tools
    if request.format is not None:
        if (format := _format(request.format, claude, losses)) is None:
            losses.add("response_format")
        else:
            body["outputConfig"] = {"textFormat": format}
    if told.more:
        body["additionalModelRequestFields"] = told.more
    return _with(body, extra(request, {name: name for name in _PASSED}, losses))


def _with(body: dict[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """The client's own fields win; objects that both have are put together."""
    for name, value in own.items():
        before = body.get(name)
        body[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return body


# ---- tools -------------------------------------------------------------------------------------------------------


def _tool_config(request: Request, claude: Model | None, losses: Losses) -> Block | None:
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
    if choice is not None and choice.mode != "auto" and claude is not None and claude.always_thinks:
        losses.add("tool_choice")  # it refuses to be forced, since it always thinks first
    elif choice is not None and choice.mode == "required":
        config["toolChoice"] = {"any": {}}
    elif choice is not None and choice.mode == "one":
        config["toolChoice"] = {"tool": {"name": choice.name}}
    return config


def _spec(tool: Tool) -> Block:
    spec: Block = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": object_schema(tool.parameters)}
    return {"toolSpec": spec}


def _format(format: Format, claude: Model | None, losses: Losses) -> Block | None:
    """None for JSON of any form: Converse knows it by a schema alone, which it wants as text."""
    told = format.schema
    if told and claude is not None:
        closer = Closer()
        told = closer.close(told) if claude.takes_schemas else None
        if told and closer.is_changed:
            losses.hint("response_format.schema")
    if not told:
        return None
    schema: Block = {"schema": encode_json(told).decode(), "name": format.name}
    if format.description:
        schema["description"] = format.description
    return {"type": "json_schema", "structure": {"jsonSchema": schema}}


# ---- what depends on the model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Told:
    """`inference` is for every model, `more` for this one."""

    inference: Block
    more: Block


def _claude(
    request: Request, kind: Model, messages: list[Block], losses: Losses, ways: Ways, *, is_forced: bool
) -> _Told:
    """As Anthropic's own API takes them; that one demands a limit, so one is always said beside a budget."""
    limit = kind.max_tokens if request.max_tokens is None else request.max_tokens
    asked = request.reasoning
    situation = Situation(
        kind,
        kind.thinking,
        limit,
        is_forced,
        not lacks_thoughts(messages),
        request.client == "messages" and asked is not None and asked.enabled is None,
    )
    more = thinking_of(asked, situation, losses)
    thinking = as_mapping(more.get("thinking"))
    plain = replace(request, temperature=None, top_p=None, top_k=None)
    inference = sampling(plain, _OWN, losses, ways)
    if "budget_tokens" in thinking:
        inference.setdefault(ways.get("max_tokens") or _OWN["max_tokens"], limit)
    thinks = thinking.get("type") in ("enabled", "adaptive")
    for name, value in sampling_of(request, kind, losses, thinks=thinks).items():
        if name in _OWN:
            inference[ways.get(name) or _OWN[name]] = value
        else:
            more[ways.get(name) or name] = value
    return _Told(inference, more)


@dataclass(frozen=True, slots=True)
class _Family:
    """How the models of one maker take what Converse has no field for; None: not at all."""

    top_k: Callable[[object], Block] | None = None
    thinking: Callable[[Reasoning], Block] | None = None


def _other(request: Request, family: _Family, losses: Losses, ways: Ways) -> _Told:
    more: Block = {}
    inference = sampling(request, {**_OWN, **({"top_k": "top_k"} if family.top_k else {})}, losses, ways)
    bounded(inference, "temperature", 0, 1, losses)
    if family.top_k and "top_k" in inference:
        more |= family.top_k(inference.pop("top_k"))
    if request.reasoning is not None:
        more |= _reasoning(request, request.reasoning, family, losses)
    return _Told(inference, more)


def _nova_thinking(reasoning: Reasoning) -> Block:
    effort = _three_steps(reasoning)
    return {"reasoningConfig": {"type": "enabled", **({"maxReasoningEffort": effort} if effort else {})}}


def _gpt_thinking(reasoning: Reasoning) -> Block:
    effort = _three_steps(reasoning)
    return {"reasoning_effort": effort} if effort else {}


def _three_steps(reasoning: Reasoning) -> str | None:
    effort = effort_of(reasoning)
    return {"minimal": "low", "xhigh": "high", "max": "high"}.get(effort or "", effort)


# By a mark in the model's id; the first that is found.
_FAMILIES = (
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
    if family.thinking is None:
        losses.hint("reasoning_effort")
        return {}
    return family.thinking(reasoning)
