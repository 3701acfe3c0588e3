"""What every request of a client has in common, whatever its dialect (contract Q1).

In: the body's bytes. Out: an `Incoming`, or the caller's mistake as a value. A field that names an upstream is refused,
wherever it hides. The canonical form is made when somebody asks for it: most requests go to a vendor of their own
family, and those pass with every field that we do not know.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping

from proxy.canon.request import Request
from proxy.dialects.base import BadRequest
from proxy.dialects.payload import BROKEN, as_mapping, encode_json, parse_numbers_as_text, parse_request

# Fields by which other gateways let a caller choose where the stored key is sent.
_ADDRESSES = frozenset(
    ("api_base", "apibase", "base_url", "baseurl", "api_url", "api_host", "endpoint_url", "upstream_url", "proxy_url")
)
ADDRESS_HEADERS = frozenset(
    ("x-api-base", "api-base", "x-base-url", "base-url", "x-upstream-url", "x-target-url", "x-portkey-custom-host")
)


class Incoming:
    """A parsed request (see `base.ClientRequest`). `text` is the body's bytes where `body` does not hold all of its
    numbers: integers beyond 64 bits, long fractions, NaN. `parse` makes the canonical form of it; `native`, from the
    same body with its numbers as text, the fields that a vendor of the same family gets beside the model's name."""

    __slots__ = (
        "_canonical",
        "_native",
        "_parse",
        "body",
        "client",
        "json",
        "model",
        "size",
        "stream",
        "text",
        "usage",
    )

    def __init__(
        self,
        client: str,
        body: Mapping[str, object],
        size: int,
        text: bytes | None,
        parse: Callable[[Mapping[str, object]], Request | BadRequest],
        *,
        usage: bool,
        json: bool,
        native: Callable[[Mapping[str, object]], Mapping[str, object]] | None = None,
    ) -> None:
        self.client, self.body, self.size, self.text = client, body, size, text
        self.usage, self.json = usage, json
        self.model = str(body["model"])
        self.stream = body.get("stream") is True
        self._parse, self._native = parse, native
        self._canonical: Request | BadRequest | None = None

    @property
    def canonical(self) -> Request | BadRequest:
        if self._canonical is None:
            self._canonical = self._parse(self.body)
        return self._canonical

    def for_upstream(self, model: str) -> bytes:
        """The body for a vendor of the same family: its own name of the model. Every number as it was written."""
        body = self.body if self.text is None else as_mapping(parse_numbers_as_text(self.text)) or self.body
        return encode_json({**body, "model": model, **(self._native(body) if self._native is not None else {})})


def parse_body(data: bytes) -> tuple[Mapping[str, object], bytes | None] | BadRequest:
    """The fields that every dialect has, checked: an object, no address in it, a model, `stream` true or false. The
    second value is as `Incoming.text`."""
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
    return value, None if is_exact else data


def _address_in(value: Mapping[str, object]) -> str | None:
    for holder in (value, as_mapping(value.get("extra_body"))):
        for name in holder:
            if name.lower() in _ADDRESSES:
                return name
    return None
