"""A canonical request as the body of `generateContent`, for Gemini and Vertex AI.

In: a request of a client of another family. Out: the body, and what could not be said in it. JSON Schemas go as they
are (`parametersJsonSchema`, `responseJsonSchema`), never through the vendor's older schema language, which would change
them. The model stands in the path, and so does whether to stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.canon.request import Format, NativeTool, Reasoning, Request, Tool, ToolChoice
from proxy.dialects.base import Losses, Ways
from proxy.dialects.effort import budget_of, effort_of
from proxy.dialects.gemini.contents import conversation_of

# What the vendor calls fields of `generationConfig`, by their names here.
_CONFIG = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "n": "candidateCount",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
}
# The first generation of models that is told levels instead of budgets; the name without a number is always the newest.
_THIRD = 3
_GENERATION = re.compile(r"gemini-(?:(\d+)|.*latest$)")
_LEVELS = {"none": "minimal", "xhigh": "high", "max": "high"}
_DYNAMIC = -1
# The largest that every model with budgets takes, and what the vendor itself makes of "high"; ours for it is larger.
_MAX_BUDGET, _HIGH_BUDGET = 24576, 32768


def send_gemini(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    conversation = conversation_of(request, losses, is_third=_is_third(model))
    body: dict[str, object] = {"contents": list(conversation.contents)}
    if conversation.system:
        body["systemInstruction"] = {"parts": list(conversation.system)}
    if tools := _tools(request, losses):
        body["tools"] = [{"functionDeclarations": tools}]
        if (calling := _calling(request.tool_choice)) is not None:
            body["toolConfig"] = {"functionCallingConfig": calling}
        if request.parallel_tools is False:
            losses.add("parallel_tool_calls")
    if config := _config(request, model, losses, ways):
        body["generationConfig"] = config
    losses.fields(request, "min_p", "logit_bias")
    if request.user is not None:
        losses.hint("user")
    losses.extra(request)
    return body


def _is_third(model: str) -> bool:
    found = _GENERATION.search(model)
    return found is not None and (found[1] is None or int(found[1]) >= _THIRD)


def _config(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    config: dict[str, object] = {}
    for name, value in _named(request).items():
        told = ways.get(name, _CONFIG[name])
        if told is None:
            losses.add(name)
        else:
            config[told] = value
    config |= _format(request.format, losses)
    if request.reasoning is not None and (thinking := _thinking(request.reasoning, model, losses)):
        config["thinkingConfig"] = thinking
    return config


def _named(request: Request) -> dict[str, object]:
    """What was said of the answer, without what changes nothing."""
    named = {name: getattr(request, name) for name in _CONFIG}
    named["stop"] = list(request.stop)
    named["logprobs"] = request.logprobs or bool(request.top_logprobs)
    if request.n == 1:
        named["n"] = None
    keeps_zero = ("max_tokens", "temperature", "top_p", "top_k", "seed")
    return {name: value for name, value in named.items() if value or (value is not None and name in keeps_zero)}


def _format(format: Format | None, losses: Losses) -> dict[str, object]:
    if format is None:
        return {}
    if format.description is not None:
        losses.hint("response_format.description")
    if not format.schema:
        return {"responseMimeType": "application/json"}
    return {"responseMimeType": "application/json", "responseJsonSchema": format.schema}


def _thinking(reasoning: Reasoning, model: str, losses: Losses) -> dict[str, object]:
    """Thoughts are shown wherever thinking was asked for. A budget that was said is told to every model."""
    told: dict[str, object] = {}
    budget, effort = budget_of(reasoning), effort_of(reasoning)
    is_third = _is_third(model)
    if reasoning.budget is not None:
        told["thinkingBudget"] = reasoning.budget
    elif effort is not None and is_third:
        told["thinkingLevel"] = _level(effort, model, losses)
    elif budget is not None:
        if budget > _HIGH_BUDGET:
            losses.hint("reasoning_effort")
        told["thinkingBudget"] = min(budget, _MAX_BUDGET)
    elif reasoning.enabled and not is_third:
        told["thinkingBudget"] = _DYNAMIC
    if effort != "none" and budget != 0:
        told["includeThoughts"] = True
    return told


def _level(effort: str, model: str, losses: Losses) -> str:
    """The nearest level that every model of the third generation knows: none of them can be kept from thinking, and the
    larger ones not be brought down to the least of it."""
    level = _LEVELS.get(effort, effort)
    if level == "minimal" and "-pro" in model:
        level = "low"
    if level != effort:
        losses.hint("reasoning_effort")
    return level


def _tools(request: Request, losses: Losses) -> list[dict[str, object]]:
    declared = []
    for tool in request.tools:
        if isinstance(tool, NativeTool):
            losses.add(f"tools.{tool.kind}")
        else:
            declared.append(_declaration(tool, losses))
    return declared


def _declaration(tool: Tool, losses: Losses) -> dict[str, object]:
    if tool.cache is not None:
        losses.hint("cache_control")
    if tool.strict:
        losses.hint("tools.strict")
    told: Mapping[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    }
    return {name: value for name, value in told.items() if value is not None}


def _calling(choice: ToolChoice | None) -> dict[str, object] | None:
    match choice:
        case None:
            return None
        case ToolChoice(mode="auto"):
            return {"mode": "AUTO"}
        case ToolChoice(mode="none"):
            return {"mode": "NONE"}
        case ToolChoice(mode="required"):
            return {"mode": "ANY"}
        case _:
            return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
