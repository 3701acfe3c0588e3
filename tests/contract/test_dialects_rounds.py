"""There and back: an answer as a client got it goes with the next turn to the vendor that gave it.

Text, calls with their ids, and the vendor's own seals over its reasoning must arrive as they were given, whatever
grammar lay in between. (contract D1, D2)
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from proxy.canon.request import Request
from proxy.dialects.base import BadRequest, Losses
from proxy.dialects.registry import CLIENT_DIALECTS, VENDOR_DIALECTS
from proxy.pipeline import Asked
from proxy.stores.recordings import Recording
from tests.support.conversations import FOLLOW_UP, holds
from tests.support.decoders import DECODERS, Said
from tests.support.pipelines import play, recordings, shipped_rules

CLIENTS: Final = ("chat", "messages", "responses")


def dialect_of(recording: Recording) -> str:
    return recording.dialect or shipped_rules().vendors[recording.vendor].dialect


def said_by(recording: Recording, client: str, stream: bool) -> Said:
    asked = Asked(stream, usage=True, client=client, body={"model": "alias"})
    transcript = play(recording, asked)
    return DECODERS[client](transcript.client, transcript.head.content_type.startswith("text/event-stream"))


def seals_of(said: Said) -> list[str]:
    """The seals in a turn of chat completions, where each stands alone."""
    found = []
    for detail in said.turn[0].get("reasoning_details", []) if said.turn else []:
        found += [detail[name] for name in ("signature", "data") if detail.get(name)]
    for call in said.turn[0].get("tool_calls", []) if said.turn else []:
        google = call.get("extra_content", {}).get("google", {})
        found += [google["thought_signature"]] if "thought_signature" in google else []
    return found


def is_whole(recording: Recording) -> bool:
    return recording.expect.get("ending") == "completed" and not isinstance(recording.expect.get("choices"), list)


#: Recordings whose answers bear a seal or make calls, in a grammar that can be asked again.
WORTH: Final = [
    recording
    for recording in recordings()
    if is_whole(recording)
    and dialect_of(recording) not in ("completions",)
    and (recording.expect.get("tool_calls") or seals_of(said_by(recording, "chat", True)))
]


def next_turn(client: str, said: Said) -> dict[str, Any]:
    """The conversation so far and what comes next: results of the tools, or another question."""
    results = [(identity, f"результат {number}") for number, (identity, _, _) in enumerate(said.calls)]
    if client == "chat":
        told = [{"role": "tool", "tool_call_id": identity, "content": text} for identity, text in results]
        asked = [{"role": "user", "content": "q"}, *said.turn, *told, {"role": "user", "content": FOLLOW_UP}]
        return {"model": "alias", "messages": asked}
    if client == "messages":
        blocks: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": identity, "content": text} for identity, text in results
        ]
        last = {"role": "user", "content": [*blocks, {"type": "text", "text": FOLLOW_UP}]}
        return {"model": "alias", "max_tokens": 999, "messages": [{"role": "user", "content": "q"}, *said.turn, last]}
    outputs = [{"type": "function_call_output", "call_id": identity, "output": text} for identity, text in results]
    asked = [{"role": "user", "content": "q"}, *said.turn, *outputs, {"role": "user", "content": FOLLOW_UP}]
    return {"model": "alias", "input": asked}


def texts_of(said: Said, client: str) -> list[str]:
    """The texts of a turn, in the pieces in which its grammar has them."""
    if client == "messages":
        return [block["text"] for block in said.turn[0]["content"] if block["type"] == "text"]
    if client == "responses":
        return [part["text"] for item in said.turn if item["type"] == "message" for part in item["content"]]
    return [said.text] if said.text else []


def test_seals_of_several_vendors_are_among_them() -> None:
    """Otherwise this module would hold nothing."""
    sealed = {dialect_of(recording) for recording in WORTH if seals_of(said_by(recording, "chat", True))}
    assert {"anthropic", "gemini", "bedrock", "responses"} <= sealed


@pytest.mark.clause("D1", "D2")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("recording", WORTH, ids=lambda recording: recording.key)
def test_an_answer_goes_back_to_its_vendor_as_it_was_given(recording: Recording, client: str, stream: bool) -> None:
    """Through the client's own grammar, both ways."""
    said = said_by(recording, client, stream)
    seals = seals_of(said_by(recording, "chat", True))
    dialect = VENDOR_DIALECTS[dialect_of(recording)]
    body = next_turn(client, said)
    request = CLIENT_DIALECTS[client].parse(json.dumps(body).encode())
    assert not isinstance(request, BadRequest), request
    if dialect.native == client:
        sent: object = json.loads(request.for_upstream("m"))
        losses = Losses()
    else:
        canonical = request.canonical
        assert isinstance(canonical, Request), canonical
        losses = Losses()
        sent = dialect.send(canonical, "m", losses, {})

    for seal in seals:
        assert holds(sent, seal), f"the seal {seal} is lost: {sent}"
    for _, name, arguments in said.calls:
        assert holds(sent, name) and (not json.loads(arguments or "{}") or holds(sent, json.loads(arguments)))
    for number in range(len(said.calls)):
        assert holds(sent, f"результат {number}")
    for text in texts_of(said, client):
        assert holds(sent, text)
    assert holds(sent, FOLLOW_UP)
