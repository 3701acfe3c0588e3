"""A Messages request as our clients send it, and as it goes on to vendors of the same family (contract Q1, D1).

In: the body's bytes. Out: what the proxy must know of it, or the caller's mistake as a value. Fields that we do not
know go on unchanged. A body that only asks for tokens to be counted has no `max_tokens`, and that is fine here.
"""

from __future__ import annotations

from proxy.dialects.anthropic.parse import CLIENT, parse_messages
from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming, parse_body
from proxy.dialects.payload import as_mapping


def parse_messages_request(data: bytes) -> Incoming | BadRequest:
    parsed = parse_body(data)
    if isinstance(parsed, BadRequest):
        return parsed
    body, text = parsed
    wanted = as_mapping(as_mapping(body.get("output_config")).get("format")) or as_mapping(body.get("output_format"))
    return Incoming(
        CLIENT,
        body,
        len(data),
        text,
        parse_messages,
        usage=True,  # this grammar always says it
        json=wanted.get("type") == "json_schema",
    )
