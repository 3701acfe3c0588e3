"""A chat-completions request as our clients send it, and as we send it on (contract Q1, W4).

In: the body's bytes. Out: what the proxy must know of it, or the caller's mistake as a value. Fields that we do not
know go on unchanged; usage is always asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming, parse_body
from proxy.dialects.openai.parse import parse_chat
from proxy.dialects.payload import as_mapping


def parse_chat_request(data: bytes) -> Incoming | BadRequest:
    parsed = parse_body(data)
    if isinstance(parsed, BadRequest):
        return parsed
    body, text = parsed
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        return BadRequest("invalid_type", "`stream_options` must be an object.", "stream_options")
    wanted = as_mapping(body.get("response_format")).get("type")
    return Incoming(
        "chat",
        body,
        len(data),
        text,
        parse_chat,
        usage=as_mapping(options).get("include_usage") is True,
        json=wanted in ("json_object", "json_schema"),
        native=_usage_wanted if body.get("stream") is True else None,
    )


def _usage_wanted(body: Mapping[str, object]) -> Mapping[str, object]:
    """Usage is always asked for: the ledger wants it."""
    return {"stream_options": {**as_mapping(body.get("stream_options")), "include_usage": True}}
