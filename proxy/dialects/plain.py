"""How a request is written for grammars that hold little more than text: what several families do alike.

In: canonical messages, tools and fields. Out: texts, and fields under a vendor's own names; what could not be said
stands in `losses`. Knows no family, and writes no message of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from proxy.canon.request import (
    Document,
    Message,
    Part,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    split_system,
)
from proxy.dialects.base import Losses, Ways
from proxy.dialects.effort import effort_of
from proxy.dialects.parts import OPENING

# Sampling fields, by their names in chat completions.
_NAMES = (
    *("max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "frequency_penalty"),
    *("presence_penalty", "n", "logprobs", "top_logprobs", "logit_bias", "user"),
)


def text_of(parts: tuple[Part, ...], at: int, losses: Losses, *kept: type[Part]) -> str:
    """The text among these parts of the client's message `at`, joined by line feeds: refusals and documents that are
    text are text too. Parts of the types `kept` are left to the caller, all others are reported as lost."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, kept):
            continue
        match part:
            case Text(text=text) | Refusal(text=text):
                texts.append(text)
            case Document(text=text, name=name) if text:
                texts.append(f"{name}\n{text}" if name else text)
            case Thinking():
                losses.hint(f"messages[{at}].thinking")
                continue
            case _:
                losses.unknown_part(at, part)
        hint_cache(part, losses)
    return "\n".join(texts)


def text_of_result(result: ToolResult, at: int, losses: Losses, *kept: type[Part]) -> str:
    """The same of what a tool gave; that it failed is said in words."""
    hint_cache(result, losses)
    text = text_of(result.parts, at, losses, *kept)
    if not result.is_error:
        return text
    losses.hint(f"messages[{at}].is_error")
    return text if text.lower().startswith("error") else f"Error: {text}"


def results_of(message: Message, losses: Losses) -> Iterator[ToolResult]:
    """What the tools gave, in a message of theirs: nothing else has a place there."""
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield part
        else:
            losses.unknown_part(message.at, part)


def hint_cache(value: Part | Tool, losses: Losses) -> None:
    """Markers of a prompt cache change no answer."""
    if getattr(value, "cache", None) is not None:
        losses.hint("cache_control")


def hint_call(call: ToolCall, at: int, losses: Losses) -> None:
    """What stands beside a call's name and arguments, where none of it can be said."""
    hint_cache(call, losses)
    if call.signature is not None:
        losses.hint(f"messages[{at}].thought_signature")


def hint_name(message: Message, losses: Losses) -> None:
    if message.name:
        losses.hint(f"messages[{message.at}].name")


# ---- the order of messages ---------------------------------------------------------------------------------------


def system_first(messages: tuple[Message, ...], losses: Losses) -> tuple[str, tuple[Message, ...]]:
    """For grammars whose system text stands at the beginning: that text, and the rest, in which later system messages
    are the user's."""
    first, rest = split_system(messages)
    for message in first:
        hint_name(message, losses)
    text = "\n".join(text_of(message.parts, message.at, losses) for message in first)
    told: list[Message] = []
    for message in rest:
        if message.role in ("system", "developer"):
            losses.hint(f"messages[{message.at}].role")
            message = replace(message, role="user")
        told.append(message)
    return text, tuple(told)


def user_first(messages: tuple[Message, ...], losses: Losses) -> tuple[Message, ...]:
    """For grammars in which the user speaks first."""
    if not messages or messages[0].role != "assistant":
        return messages
    losses.hint(f"messages[{messages[0].at}].role")
    return (Message("user", (Text(OPENING),), at=messages[0].at), *messages)


def one_call_each(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """For grammars in which a message makes one call at most: parallel calls one after the other, each with its
    result behind it."""
    made: list[Message] = []
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if len(calls) < 2:
            made.append(message)
            continue
        results: list[Message] = []
        while place < len(messages) and messages[place].role == "tool":
            results += [replace(messages[place], parts=(part,)) for part in messages[place].parts]
            place += 1
        made += _paired(message, calls, results)
    return tuple(made)


def _paired(message: Message, calls: list[ToolCall], results: list[Message]) -> list[Message]:
    made: list[Message] = []
    spoken = tuple(part for part in message.parts if not isinstance(part, ToolCall))
    for call in calls:
        made.append(replace(message, parts=(*spoken, call)))
        spoken = ()
        own = next((result for result in results if _answers(result, call)), None)
        if own is not None:
            results.remove(own)
            made.append(own)
    return [*made, *results]


def _answers(result: Message, call: ToolCall) -> bool:
    return isinstance(result.parts[0], ToolResult) and result.parts[0].call == call.id


def append_joined(made: list[dict[str, object]], message: dict[str, object], role: str, content: str) -> None:
    """For grammars whose speakers must alternate: a message goes on that of the same speaker, if it was nothing but
    text."""
    last = made[-1] if made else {}
    if last.keys() == {role, content} and content in message and last[role] == message[role] != "tool":
        text = "\n".join(str(one[content]) for one in (last, message) if one[content])
        made[-1] = {**message, content: text}
    else:
        made.append(message)


# ---- fields ------------------------------------------------------------------------------------------------------


def sampling(request: Request, own: Mapping[str, str], losses: Losses, ways: Ways) -> dict[str, object]:
    """What is asked of the sampling, under the vendor's names: `own` has them by those of chat completions, and its
    rule file (`ways`) knows better. What has a place in neither is lost."""
    told: dict[str, object] = {}
    for name in _NAMES:
        value: object = getattr(request, name)
        if name == "stop":
            value = list(request.stop) or None
        if value is None or value == {} or (name in _NOTHING and value == _NOTHING[name]):
            continue
        place = ways.get(name, own.get(name))
        if place is not None:
            told[place] = value
        elif name == "user":
            losses.hint(name)
        else:
            losses.add(name)
    return told


# Values that ask for nothing.
_NOTHING: Mapping[str, object] = {
    "n": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logprobs": False,
    "top_logprobs": 0,
}


def extra(request: Request, own: Mapping[str, str], losses: Losses) -> dict[str, object]:
    """The client's further fields that this vendor knows, under its names; the others are reported."""
    losses.extra(request, *own)
    return {place: request.extra[name] for name, place in own.items() if request.extra.get(name) is not None}


def few_stops(told: dict[str, object], name: str, most: int, losses: Losses) -> None:
    """The first so many of the stop sequences, which is all that the vendor takes."""
    stops = told.get(name)
    if isinstance(stops, list) and len(stops) > most:
        told[name] = stops[:most]
        losses.add("stop")


def bounded(told: dict[str, object], name: str, least: float, most: float, losses: Losses) -> None:
    """A field of `told` that the vendor takes between these limits alone. The least it takes stands for 0."""
    value = told.get(name)
    if not isinstance(value, int | float) or least <= value <= most:
        return
    told[name] = min(max(value, least), most)
    losses.hint(name) if 0 <= value < least else losses.add(name)


def functions(request: Request, losses: Losses) -> list[Tool]:
    """The tools that are functions; what else there is, is reported."""
    found: list[Tool] = []
    for tool in request.tools:
        if not isinstance(tool, Tool):
            losses.add(f"tools.{tool.kind}")
            continue
        hint_cache(tool, losses)
        if tool.strict:
            losses.hint("tools.strict")
        found.append(tool)
    return found


def function_of(tool: Tool) -> dict[str, object]:
    told = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {name: value for name, value in told.items() if value is not None}


def no_reasoning(request: Request, losses: Losses) -> None:
    """For grammars that cannot be asked to think. What is asked for is said all the same: coding agents always ask."""
    if thinks(request) is True:
        losses.hint("reasoning_effort")


def thinks(request: Request) -> bool | None:
    """Is the vendor asked to think? None: nobody said."""
    asked = request.reasoning
    if asked is None or (asked.effort is None and asked.budget is None and asked.enabled is None):
        return None
    return effort_of(asked) != "none"


def no_parallel(request: Request, losses: Losses) -> None:
    """For grammars that cannot be told to make one call at a time: a client gets several in one answer then, each of
    which was meant."""
    if request.tools and request.parallel_tools is False:
        losses.hint("parallel_tool_calls")
