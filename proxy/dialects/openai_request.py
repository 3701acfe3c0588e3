"""A chat-completions request as our clients send it, and as we send it on (contract Q1, W4).

In: the body's bytes. Out: what the proxy must know of it, or the caller's mistake as a value. Fields that we do not
know go on unchanged; usage is always asked for; a field that names an upstream is refused, wherever it hides.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass

from proxy.dialects.payload import BROKEN, as_mapping, encode_json, parse_numbers_as_text, parse_request

# Fields by which other gateways let a caller choose where the stored key is sent.
_ADDRESSES = frozenset(
    ("api_base", "apibase", "base_url", "baseurl", "api_url", "api_host", "endpoint_url", "upstream_url", "proxy_url")
)
ADDRESS_HEADERS = frozenset(
    ("x-api-base", "api-base", "x-base-url", "base-url", "x-upstream-url", "x-target-url", "x-portkey-custom-host")
)


@dataclass(frozen=True, slots=True)
class BadRequest:
    """The caller's mistake: `code` and `param` are stable, `message` says what to do."""

    code: str
    message: str
    param: str | None = None
    status: int = 400


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """`body` is the request as it came; `model` the alias that it names. `text` is the body's bytes where `body` does
    not hold all of its numbers: integers beyond 64 bits, long fractions, NaN."""

    body: Mapping[str, object]
    size: int
    model: str
    stream: bool
    usage: bool
    json: bool
    text: bytes | None = None

    def for_upstream(self, model: str) -> bytes:
        """The body for the vendor: its own name of the model, and usage asked for. Every number as it was written."""
        body = self.body if self.text is None else as_mapping(parse_numbers_as_text(self.text)) or self.body
        sent = {**body, "model": model}
        if self.stream:
            sent["stream_options"] = {**as_mapping(body.get("stream_options")), "include_usage": True}
        return encode_json(sent)


def parse_chat_request(data: bytes) -> ChatRequest | BadRequest:
    data = data.removeprefix(codecs.BOM_UTF8)  # RFC 8259: may be ignored rather than refused
    value, is_exact = parse_request(data)
    if value is BROKEN:
        return BadRequest("invalid_json", "The request body is not valid JSON.")
    if not isinstance(value, dict):
        return BadRequest("invalid_json", "The request body must be a JSON object.")
    if (address := _address_in(value)) is not None:
        return BadRequest(
            "upstream_not_allowed", f"`{address}` is not accepted: upstreams are configured by the operator.", address
        )
    model = value.get("model")
    if not isinstance(model, str) or not model:
        return BadRequest("model_required", "`model` must be the name of a model, as listed by /v1/models.", "model")
    stream = value.get("stream")
    if stream is not None and not isinstance(stream, bool):
        return BadRequest("invalid_type", "`stream` must be true or false.", "stream")
    options = value.get("stream_options")
    if options is not None and not isinstance(options, dict):
        return BadRequest("invalid_type", "`stream_options` must be an object.", "stream_options")
    wanted = as_mapping(value.get("response_format")).get("type")
    return ChatRequest(
        value,
        len(data),
        model,
        bool(stream),
        as_mapping(options).get("include_usage") is True,
        wanted in ("json_object", "json_schema"),
        None if is_exact else data,
    )


def _address_in(value: Mapping[str, object]) -> str | None:
    for holder in (value, as_mapping(value.get("extra_body"))):
        for name in holder:
            if name.lower() in _ADDRESSES:
                return name
    return None
