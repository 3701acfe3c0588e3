"""What vendors refuse in a body that has the right shape: speakers out of turn, calls without results, empty texts.

A vendor's dialect and a body in; complaints out. From the vendors' documentation and their error messages, written
against the bodies alone: it knows nothing of how they were made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

Body = Mapping[str, Any]


def complaints_about(vendor: str, body: Body) -> list[str]:
    check = _CHECKS.get(vendor)
    return list(check(body)) if check is not None else []


def _chat(body: Body) -> Iterator[str]:
    """Messages with calls "must be followed by tool messages responding to each 'tool_call_id'"; content "expected a
    string, got null"; ids of 40 letters at most."""
    waiting: list[str] = []
    for message in body["messages"]:
        role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
        if role not in ("system", "user", "assistant", "tool"):
            yield f"a role that few know: {role}"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"a result without its call: {message}"
            else:
                waiting.remove(message["tool_call_id"])
            if not isinstance(content, str):
                yield "a result that is no text"
            continue
        if waiting:
            yield f"no result for {waiting} before {role}"
        if content is None and not calls and "refusal" not in message:
            yield f"nothing is said: {message}"
        if content == [] or (isinstance(content, list) and all(part["type"] == "text" for part in content)):
            yield f"texts in a list, or nothing in one: {message}"
        waiting = [call["id"] for call in calls or ()]
        if any(len(one) > 40 for one in waiting):
            yield "an id that is too long"
    if waiting:
        yield f"no result for {waiting}"
    if len(body.get("user", "")) > 64:
        yield "a user's id that is too long"


def _turns(turns: list[tuple[str, list[Any]]]) -> Iterator[str]:
    if not turns:
        yield "nobody speaks"
    elif turns[0][0] != "user":
        yield "the user does not speak first"
    for (before, _), (after, _) in pairwise(turns):
        if before == after:
            yield f"{after} speaks twice"
    if any(not content for _, content in turns):
        yield "a turn without content"


def _paired(turns: list[tuple[list[str], list[str]]]) -> Iterator[str]:
    """Ids of calls, and of results, for each turn."""
    ids = [one for calls, _ in turns for one in calls]
    if len(set(ids)) < len(ids):
        yield f"an id twice: {ids}"
    before: list[str] = []
    for calls, results in turns:
        if sorted(results) != sorted(before):
            yield f"results {results} behind calls {before}"
        before = calls
    if before:
        yield f"no results for {before}"


def _anthropic(body: Body) -> Iterator[str]:
    turns = [
        (message["role"], [{"type": "text", "text": content}] if isinstance(content, str) else content)
        for message in body["messages"]
        for content in [message["content"]]
    ]
    yield from _turns(turns)
    calls = [[block["id"] for block in blocks if block["type"] == "tool_use"] for _, blocks in turns]
    results = [[block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] for _, blocks in turns]
    yield from _paired(list(zip(calls, results, strict=True)))
    for (_, blocks), told in zip(turns, results, strict=True):
        if any(block["type"] != "tool_result" for block in blocks[: len(told)]):
            yield "results do not come first"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            yield "an empty text"
    if any(not re.fullmatch(r"[a-zA-Z0-9_-]+", one) for ids in calls for one in ids):
        yield f"bad ids: {calls}"
    if any(calls) and not body.get("tools"):
        yield "calls without tools"
    if (
        turns
        and turns[-1][0] == "assistant"
        and turns[-1][1][-1].get("text", "x") != turns[-1][1][-1].get("text", "x").rstrip()
    ):
        yield "a prefix that ends in blanks"
    thinking = body.get("thinking", {})
    if thinking.get("budget_tokens", 0) >= body["max_tokens"]:
        yield "no room to think"
    if thinking.get("type") in ("enabled", "adaptive") and body.get("temperature", 1) != 1:
        yield "temperature beside thinking"
    if thinking.get("type") in ("enabled", "adaptive") and body.get("tool_choice", {}).get("type") in ("any", "tool"):
        yield "a forced call beside thinking"
    for tool in body.get("tools", ()):
        if "input_schema" in tool and tool["input_schema"].get("type") != "object":
            yield f"a schema of no object: {tool}"


def _bedrock(body: Body) -> Iterator[str]:
    turns = [(message["role"], message["content"]) for message in body["messages"]]
    yield from _turns(turns)
    calls = [[block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block] for _, blocks in turns]
    results = [[block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block] for _, blocks in turns]
    yield from _paired(list(zip(calls, results, strict=True)))
    for _, blocks in turns:
        if any("text" in block and not block["text"].strip() for block in blocks):
            yield "an empty text"
        if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
            yield "a document without a text"
    if any(not re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", one) for ids in calls for one in ids):
        yield f"bad ids: {calls}"
    tools = body.get("toolConfig", {}).get("tools", [])
    if any(calls) and not tools:
        yield "calls without tools"
    if any(tool["toolSpec"]["inputSchema"]["json"].get("type") != "object" for tool in tools):
        yield "a schema of no object"
    if body.get("inferenceConfig", {}).get("temperature", 0) > 1:
        yield "too hot"
    more = body.get("additionalModelRequestFields", {})
    if "thinking" in more and "temperature" in body.get("inferenceConfig", {}):
        yield "temperature beside thinking"
    if "thinking" in more and "toolChoice" in body.get("toolConfig", {}):
        yield "a forced call beside thinking"


def _gemini(body: Body) -> Iterator[str]:
    """ "Function response parts is equal to the number of function call parts of the function call turn"; a call "comes
    immediately after a user turn or after a function response turn"."""
    before, waiting = "", 0
    for turn in body["contents"]:
        if not turn["parts"]:
            yield "a turn without content"
        calls = sum("functionCall" in part for part in turn["parts"])
        results = sum("functionResponse" in part for part in turn["parts"])
        if results != waiting or (results and results != len(turn["parts"])):
            yield f"{results} results behind {waiting} calls, of {len(turn['parts'])} parts"
        if calls and before != "user":
            yield "a call that nobody asked for"
        if turn["role"] == "model" == before:
            yield "the model speaks twice"
        before, waiting = turn["role"], calls
    if waiting:
        yield "no results"
    if len(body.get("generationConfig", {}).get("stopSequences", ())) > 5:
        yield "too many stops"


def _responses(body: Body) -> Iterator[str]:
    """ "No tool output found for function call", "No tool call found for function call output"."""
    waiting: set[str] = set()
    for item in body["input"]:
        if item.get("type") == "function_call":
            waiting.add(item["call_id"])
            if len(item["call_id"]) > 64:
                yield "an id that is too long"
        elif item.get("type") == "function_call_output":
            waiting.discard(item["call_id"])
        elif item.get("role") not in (None, "system", "user", "assistant"):
            yield f"a role that few know: {item}"
        elif item.get("content") == []:
            yield "nothing in a list"
    if waiting:
        yield f"no result for {waiting}"
    if body.get("max_output_tokens", 16) < 16:
        yield "too few tokens"


def _hunyuan(body: Body) -> Iterator[str]:
    spoken = [message for message in body["Messages"] if message["Role"] != "system"]
    if spoken and spoken[0]["Role"] != "user":
        yield "the user does not speak first"
    for before, after in pairwise(spoken):
        if before["Role"] == after["Role"] == "assistant" and "ToolCalls" not in before:
            yield "the assistant speaks twice"


_CHECKS: Final[Mapping[str, Callable[[Body], Iterator[str]]]] = {
    "openai": _chat,
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "vertex": _gemini,
    "responses": _responses,
    "hunyuan": _hunyuan,
}
