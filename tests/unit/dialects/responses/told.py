"""What tests of this grammar share: events in the vendor's form, and what the official SDK makes of ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import httpx2
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParams
from pydantic import TypeAdapter

from proxy.pipeline import Asked
from proxy.wire.hold import Boundary
from tests.support.pipelines import Transcript, run

EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
BODY: TypeAdapter[ResponseCreateParams] = TypeAdapter(ResponseCreateParams)
ASKED: Mapping[str, object] = {"model": "fast", "input": "سلام", "stream": True}


def asked(*, stream: bool = True, json: bool = False, **body: object) -> Asked:
    return Asked(stream, usage=True, json=json, client="responses", body={**ASKED, "stream": stream, **body})


def vendor_event(kind: str, fields: Mapping[str, object]) -> bytes:
    """An event as a vendor sends it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def vendor(*events: tuple[str, Mapping[str, object]]) -> list[bytes]:
    """A vendor's stream, numbered."""
    return [vendor_event(kind, {"sequence_number": number, **fields}) for number, (kind, fields) in enumerate(events)]


def response(status: str = "in_progress", output: Iterable[object] = (), **more: object) -> dict[str, object]:
    """A vendor's response object."""
    made: dict[str, object] = {"id": "resp_v1", "object": "response", "created_at": 1_770_000_000, "status": status}
    return {**made, "model": "gpt-5-2025-08-07", "output": list(output), "error": None, **more}


def chat(delta: Mapping[str, object], finish: str | None = None, **more: object) -> bytes:
    """An event of a vendor of chat completions."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_770_000_000, "model": "m-1"}
    return f"data: {json.dumps({**chunk, 'choices': [choice], **more}, ensure_ascii=False)}\n\n".encode()


def translated(*events: bytes, **changes: object) -> Transcript:
    """What a client of this grammar gets from a vendor of chat completions, without any tail being held."""
    return run([*events, b"data: [DONE]\n\n"], asked(), boundary=Boundary.SCALAR, **changes)  # type: ignore[arg-type]  # as `run`


def events_of(transcript: Transcript) -> list[dict[str, object]]:
    """The events, each held against the published type, named as its type, numbered in order."""
    events = []
    for number, block in enumerate(transcript.client.decode().split("\n\n")[:-1]):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == number
        EVENT.validate_python(event)
        events.append(event)
    return events


def told(transcript: Transcript) -> list[str]:
    """The types of the events, without what they have in common."""
    return [str(event["type"]).removeprefix("response.") for event in events_of(transcript)]


def last(transcript: Transcript) -> dict[str, object]:
    """The response of the last event."""
    found = events_of(transcript)[-1]["response"]
    assert isinstance(found, dict)
    return found


def output_of(transcript: Transcript) -> list[dict[str, object]]:
    found = last(transcript)["output"]
    assert isinstance(found, list)
    return found


def client_of(transcript: Transcript) -> OpenAI:
    """The official SDK, which gets this transcript as its answer."""

    def answer(_request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": transcript.head.content_type}
        return httpx2.Response(transcript.head.status, headers=headers, content=transcript.client)

    return OpenAI(api_key="k", max_retries=0, http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def final(transcript: Transcript) -> Response:
    """What the SDK's stream helper adds the events up to."""
    with client_of(transcript).responses.stream(model="m", input="x") as stream:
        return stream.get_final_response()
