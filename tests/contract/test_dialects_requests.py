"""Every request to every vendor: what a client said is in the vendor's body, or it is named as lost.

A dialect gets these tests by being registered. The bodies are searched for the values of one conversation in which each
value is unlike every other, so that no knowledge of ours about a vendor's grammar is needed; that the bodies have the
vendors' published shapes is tested beside each dialect. (contract D1, D2, Q1)
"""

from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import given

from proxy.canon.request import (
    Audio,
    Document,
    Image,
    Native,
    Part,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from proxy.dialects.base import BadRequest, ClientRequest, Losses
from proxy.dialects.payload import parse_json
from proxy.dialects.registry import CHAT_DIALECTS, CLIENT_DIALECTS
from proxy.upstream.prepare import DROPPED_HEADER, Prepared, prepare
from tests.support.conversations import CONVERSATIONS, facts, holds
from tests.support.requests import requests

VENDORS: Final = sorted(CHAT_DIALECTS)
every_vendor = pytest.mark.parametrize("vendor", VENDORS)
every_client = pytest.mark.parametrize("client", sorted(CONVERSATIONS))
#: The name of each fact's loss, where it is not the field's own; `*` stands for the place of the message.
_LOST_AS: Final = {
    "image": "image",
    "thinking": "thinking",
    "call 1": "toolcall",
    "call 2": "toolcall",
    "tool 1": "tools",
    "tool 2": "tools",
    "result 1": "toolresult",
    "result 2": "toolresult",
    "schema 1": "tools",
    "schema 2": "tools",
    "description 1": "tools",
    "description 2": "tools",
}


def parsed(client: str, body: object) -> ClientRequest:
    request = CLIENT_DIALECTS[client].parse(json.dumps(body).encode())
    assert not isinstance(request, BadRequest), request
    return request


@pytest.mark.clause("Q1", "D1", "D2")
@every_client
@every_vendor
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
def test_a_conversation_reaches_every_vendor_or_its_losses_are_named(client: str, vendor: str, stream: bool) -> None:
    """System prompt, image, reasoning, parallel calls and results, tools, sampling."""
    request = parsed(client, {**CONVERSATIONS[client](), "stream": stream})
    dialect = CHAT_DIALECTS[vendor]
    made = prepare(request, dialect, "model-there", {}, drops=True)

    assert isinstance(made, Prepared)
    body, _ = parse_json(made.body)
    lost = made.headers.get(DROPPED_HEADER, "")
    for name, fact in facts().items():
        if name == "stop" and client == "responses":
            continue
        assert holds(body, fact) or _LOST_AS.get(name, name) in lost, f"{name} is neither sent nor named: {lost}"
    assert holds(body, "model-there") or "model-there" in made.path


@pytest.mark.clause("Q1", "D1", "D2")
@every_client
@every_vendor
def test_what_is_lost_is_refused_unless_it_may_be_dropped(client: str, vendor: str) -> None:
    """`unsupported: refuse` names the first thing; what changes no answer is only told."""
    request = parsed(client, CONVERSATIONS[client]())
    dialect = CHAT_DIALECTS[vendor]
    made = prepare(request, dialect, "m", {}, drops=False)
    if dialect.native == client:
        assert isinstance(made, Prepared) and not made.headers
        return
    losses, canonical = Losses(), request.canonical
    assert isinstance(canonical, Request)
    dialect.send(canonical, "m", losses, {})
    if losses.real:
        assert isinstance(made, BadRequest)
        assert (made.code, made.param) == ("unsupported_parameter", losses.real[0])
    else:
        assert isinstance(made, Prepared)


@pytest.mark.clause("Q1", "D1", "D2")
@every_vendor
@given(request=requests())
def test_nothing_is_lost_without_a_word(vendor: str, request: Request) -> None:
    """Generated requests: each text, datum, name and number is in the body, or its kind or field is named."""
    losses = Losses()
    body = CHAT_DIALECTS[vendor].send(request, "m", losses, {})
    lost = ", ".join(losses.all)

    for name, fact in leaves(request):
        told = any(word in lost for word in name.split())
        assert holds(body, fact) or told, f"{name}: {fact!r} is neither in {body!r} nor in {lost!r}"


def leaves(request: Request) -> list[tuple[str, object]]:
    """Every value that a request holds, with the names by any of which its loss may be told."""
    found: list[tuple[str, object]] = []
    for message in request.messages:
        for part in message.parts:
            found += part_leaves(part)
    for tool in request.tools:
        if isinstance(tool, Tool):
            found.append(("tools", tool.name))
            found += [("tools", tool.description)] if tool.description else []
            found += [("tools", dict(tool.parameters))] if tool.parameters else []
    for name in ("max_tokens", "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"):
        if (value := getattr(request, name)) is not None:
            found.append((name, value))
    found += [("stop", word) for word in request.stop]
    if request.format is not None and request.format.schema:
        found.append(("format", dict(request.format.schema)))
    return found


def part_leaves(part: Part) -> list[tuple[str, object]]:
    match part:
        case Text():
            return [("text", part.text)]
        case Image():
            return [("image", part.data or part.url)]
        case Document():
            return [("document", part.data or part.text or part.url or part.file_id)]
        case Audio():
            return [("audio", part.data)]
        case Thinking():
            return [("thinking", part.text or part.encrypted or "")]
        case Refusal():
            return [("refusal", part.text)]
        case ToolCall():
            return [("toolcall", part.name), ("toolcall", json.loads(part.arguments))]
        case ToolResult():
            return [(f"{name} toolresult", fact) for inner in part.parts for name, fact in part_leaves(inner)]
        case Native():
            return [(part.kind, part.kind)]
