"""What the official Anthropic SDK makes of our bytes, and what its published types say of our requests.

`events_of` takes a stream apart and validates each event; `message_of` joins them as the SDK does; `complaints_about`
says where the order of blocks is wrong; `checked_request` validates a request body through all of its lazy parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParams
from pydantic import BaseModel, ConfigDict, TypeAdapter

Event = dict[str, Any]


@cache
def _events() -> TypeAdapter[RawMessageStreamEvent]:
    return TypeAdapter(RawMessageStreamEvent)


@cache
def _request() -> TypeAdapter[Any]:
    return TypeAdapter(MessageCreateParams, config=ConfigDict(arbitrary_types_allowed=True))


def raw_events(client: bytes) -> list[Event]:
    """The JSON of each event; its name and its type must be one."""
    found = []
    for block in client.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert data.startswith("data: {")
        found.append(event)
    return found


def events_of(client: bytes) -> list[Event]:
    """The same, each but an error valid by the SDK's own models."""
    found = raw_events(client)
    for event in found:
        if event["type"] != "error":
            _events().validate_python(event)
    return found


def message_of(client: bytes) -> Event:
    """What the SDK's stream helper has in the end."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in events_of(client):
        if event["type"] != "error":
            value = cast("Any", _events().validate_python(event))
            snapshot = accumulate_event(event=value, current_snapshot=snapshot, json_bufs=buffers)
    assert isinstance(snapshot, BaseModel)
    return snapshot.to_dict()  # type: ignore[attr-defined, no-any-return]  # the SDK's own models have it


def body_of(client: bytes) -> Event:
    """A plain answer, valid by the SDK's own model."""
    value = json.loads(client)
    Message.model_validate(value)
    return cast("Event", value)


def complaints_about(events: list[Event], *, complete: bool) -> list[str]:
    """Anthropic's order: one start, blocks one after the other, numbered from 0, then the two last events, or an
    error."""
    found: list[str] = []
    kinds = [event["type"] for event in events]
    ends = ["message_delta", "message_stop"] if complete else []
    inner = kinds[1 : len(kinds) - len(ends)] if complete else [kind for kind in kinds[1:] if kind != "error"]
    if kinds[:1] != ["message_start"] or kinds.count("message_start") != 1:
        found.append(f"begins with {kinds[:2]}")
    if complete and kinds[-2:] != ends:
        found.append(f"ends with {kinds[-2:]}")
    if not complete and ("message_stop" in kinds or kinds[-1:] != ["error"]):
        found.append("an incomplete answer must end with the error")
    if set(inner) - {"content_block_start", "content_block_delta", "content_block_stop"}:
        found.append(f"between the blocks: {inner}")
    return found + _about_blocks(events, complete=complete)


def _about_blocks(events: list[Event], *, complete: bool) -> list[str]:
    found: list[str] = []
    number, is_open = 0, False
    for event in events:
        kind = event["type"]
        if kind.startswith("content_block") and event["index"] != number:
            found.append(f"block {event['index']} instead of {number}")
        if kind.startswith("content_block") and (kind == "content_block_start") is is_open:
            found.append(f"{kind} with a block {'open' if is_open else 'closed'}")
        if kind == "content_block_start":
            is_open = True
        elif kind == "content_block_stop":
            is_open, number = False, number + 1
    if complete and is_open:
        found.append("a block is still open")
    return found


def checked_request(body: Mapping[str, object]) -> None:
    """Valid by the types that the SDK publishes, or an error that says where."""
    for _ in _consumed(_request().validate_python(dict(body))):
        pass


def _consumed(value: object) -> Iterator[object]:
    """pydantic validates an Iterable only as it is read."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _consumed(one)
    elif isinstance(value, str | bytes | int | float | bool | None):
        yield value
    else:
        for one in cast("list[object]", value):
            yield from _consumed(one)
