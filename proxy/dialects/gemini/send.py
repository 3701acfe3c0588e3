"""A canonical request as the body of `generateContent`, for Gemini and Vertex AI.

In: a request of a client of another family. Out: the body, and what could not be said in it. JSON Schemas go as they
are (`parametersJsonSchema`, `responseJsonSchema`), never through the vendor's older schema language, which would change
them. The model stands in the path, and so does whether to stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.request import Format, NativeTool, Request, Tool, ToolChoice
from proxy.dialects.base import Losses, Ways
from proxy.dialects.gemini.contents import conversation_of
from proxy.dialects.gemini.thinking import is_third, thinking_of
from proxy.dialects.plain import few_stops
from proxy.dialects.taken import taken

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
_MOST_STOPS = 5
_SEEDS = 2**31  # it has 32 bits


def send_gemini(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    request = taken(request, losses, ways)
    conversation = conversation_of(request, losses, is_third=is_third(model))
    body: dict[str, object] = {"contents": list(conversation.contents)}
    if conversation.system:
        body["systemInstruction"] = {"parts": list(conversation.system)}
    if tools := _tools(request, losses):
        body["tools"] = [{"functionDeclarations": tools}]
        if (calling := _calling(request.tool_choice)) is not None:
            body["toolConfig"] = {"functionCallingConfig": calling}
        if request.parallel_tools is False:
            losses.hint("parallel_tool_calls")
    if config := _config(request, model, losses, ways):
        body["generationConfig"] = config
    losses.fields(request, "min_p", "logit_bias")
    if request.user is not None:
        losses.hint("user")
    losses.extra(request)
    return body


def _config(request: Request, model: str, losses: Losses, ways: Ways) -> dict[str, object]:
    config: dict[str, object] = {}
    for name, value in _named(request).items():
        if name == "seed" and isinstance(value, int) and not -_SEEDS <= value < _SEEDS:
            losses.add(name)
        else:
            config[ways.get(name) or _CONFIG[name]] = value
    few_stops(config, ways.get("stop") or _CONFIG["stop"], _MOST_STOPS, losses)
    config |= _format(request.format, losses)
    if request.reasoning is not None and (thinking := thinking_of(request.reasoning, model, losses)):
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
