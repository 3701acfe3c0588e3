"""A Responses request as our clients send it (contract Q1, D2).

In: the body's bytes. Out: what the proxy must know of it, or the caller's mistake as a value. For a vendor of the same
family the body goes on as it came. Usage always stands in the last event of this grammar.
"""

from __future__ import annotations

from proxy.dialects.base import BadRequest
from proxy.dialects.incoming import Incoming, parse_body
from proxy.dialects.payload import as_mapping
from proxy.dialects.responses.parse import CLIENT, parse_responses


def parse_responses_request(data: bytes) -> Incoming | BadRequest:
    parsed = parse_body(data)
    if isinstance(parsed, BadRequest):
        return parsed
    body, text = parsed
    if body.get("background"):
        message = "`background` must be left out: an answer that is made later could not be fetched here."
        return BadRequest("unsupported_parameter", message, "background")
    wanted = as_mapping(as_mapping(body.get("text")).get("format")).get("type")
    is_json = wanted in ("json_object", "json_schema")
    return Incoming(CLIENT, body, len(data), text, parse_responses, usage=True, json=is_json)
