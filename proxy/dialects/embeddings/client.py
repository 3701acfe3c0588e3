"""Embeddings as our clients ask for them and get them: OpenAI's API (contract Q1, L2).

In: a request with texts (or, for vendors of the same API, token ids). Out: a list of vectors, as numbers or in base64
(little-endian 32-bit floats), which is what the official clients ask for. A vendor of the same API is passed through.
"""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections.abc import Mapping

from proxy.canon.chunk import Chunk
from proxy.canon.request import Message, Request, Text
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import BadRequest, ContentOf
from proxy.dialects.identity import Identity
from proxy.dialects.incoming import Incoming, parse_body
from proxy.dialects.parts import Fields, object_of_body
from proxy.dialects.payload import as_text, encode_json

CLIENT = "embeddings"


def parse_embeddings_request(data: bytes) -> Incoming | BadRequest:
    parsed = parse_body(data)
    if isinstance(parsed, BadRequest):
        return parsed
    body, text = parsed
    if body.get("stream"):
        return BadRequest("invalid_type", "`stream` must be left out: embeddings come in one answer.", "stream")
    return Incoming(CLIENT, body, len(data), text, parse_embeddings, usage=True, json=False)


def parse_embeddings(body: Mapping[str, object]) -> Request | BadRequest:
    """Each text is a message of the user; `dimensions` and `input_type` stay in `extra`."""
    fields = Fields(body)
    texts = fields.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        wanted = "a text or a list of texts, for this model: token ids go only to vendors that have this API"
        return BadRequest("unsupported_input", f"`input` must be {wanted}.", "input")
    format = fields.text("encoding_format")
    if format not in (None, "float", "base64"):
        fields.refuse("encoding_format", "float or base64")
    dimensions = fields.whole("dimensions")
    request = Request(
        client=CLIENT,
        model=as_text(fields.get("model")),
        messages=tuple(Message("user", (Text(text),), at=at) for at, text in enumerate(texts)),
        user=fields.text("user"),
        extra={**fields.extra("stream"), **({"dimensions": dimensions} if dimensions is not None else {})},
    )
    return fields.bad or request


class EmbeddingsWriter(Identity):
    """`asked` is the client's body: its `encoding_format` decides how numbers are written."""

    def __init__(self, fallback_id: str, created: int, model: str, asked: Mapping[str, object]) -> None:
        super().__init__(fallback_id, created, model)
        self._in_base64 = asked.get("encoding_format") == "base64"

    def event(
        self,
        chunk: Chunk | None,
        choice: int,
        delta: Mapping[str, object],
        *,
        finish: str | None = None,
        word: str | None = None,
        logprobs: object = None,
        choice_extra: Mapping[str, object] | None = None,
    ) -> bytes:
        return b""  # embeddings are never streamed

    def seal(self, usage: Usage, native: Mapping[str, object] | None, count: Count, *, wanted: bool) -> bytes:
        return b""

    def seal_events(self, *, wanted: bool) -> int:
        return 0

    def error_event(self, error: Mapping[str, object]) -> bytes:
        return b""

    def body(
        self,
        choices: list[dict[str, object]],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        extra: Mapping[str, object],
    ) -> bytes:
        vectors = extra.get("embeddings")
        rows = [
            {"object": "embedding", "index": index, "embedding": self._written(vector)}
            for index, vector in enumerate(vectors if isinstance(vectors, list) else [])
        ]
        told = {"object": "list", "data": rows, "model": self.model, "usage": _usage(usage, None, count)}
        return encode_json(told)

    def patch(
        self,
        body: bytes,
        finishes: Mapping[int, str],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        content_of: ContentOf,
        seed: str,
    ) -> bytes:
        told = {"object": "list", "model": self.model, "usage": _usage(usage, native, count)}
        return encode_json({**object_of_body(body), **told})

    def _written(self, vector: object) -> object:
        if not self._in_base64 or not isinstance(vector, list):
            return vector
        floats = array("f", map(_single, vector))
        if sys.byteorder == "big":
            floats.byteswap()
        return base64.b64encode(floats.tobytes()).decode()


def _single(number: object) -> float:
    """What no number can be is none: a place less would shift all behind it."""
    if not isinstance(number, int | float):
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _usage(usage: Usage, native: Mapping[str, object] | None, count: Count) -> dict[str, object]:
    """Only a prompt is counted; what the vendor did not say is our count, and `estimated` says so."""
    tokens = count.input if usage.input is None else usage.input
    told: dict[str, object] = {**(native or {}), "prompt_tokens": tokens, "total_tokens": tokens}
    return told if usage.input is not None else {**told, "estimated": True}
