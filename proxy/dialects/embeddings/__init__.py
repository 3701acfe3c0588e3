"""Embeddings: OpenAI's API for clients, and the embedding API of each family that has one.

They are no conversation and no stream, so they stand beside the families: `EMBEDDINGS` says for a chat dialect of an
upstream which dialect answers a request for embeddings there.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.dialects.base import ClientDialect, VendorDialect
from proxy.dialects.embeddings.client import EmbeddingsWriter, parse_embeddings_request
from proxy.dialects.embeddings.read import EmbeddingsReader, cohere, dashscope, gemini, ollama, openai
from proxy.dialects.embeddings.send import send_cohere, send_dashscope, send_gemini, send_ollama, send_openai
from proxy.dialects.parts import path_of

CLIENT = ClientDialect(
    name="embeddings",
    endpoint="/v1/embeddings",
    parse=parse_embeddings_request,
    writer=lambda seed, created, model, asked: EmbeddingsWriter(f"embd-{seed}", created, model, asked),
    error_body=lambda error: {"error": error},
)

_OPENAI = VendorDialect(
    name="openai.embeddings",
    native="embeddings",
    send=send_openai,
    reader=lambda _sent: EmbeddingsReader(openai),
    path=lambda _model, _stream, _sent: "/embeddings",
    passed_headers=("openai-beta",),
)
_GEMINI = VendorDialect(
    name="gemini.embeddings",
    native=None,
    send=send_gemini,
    reader=lambda _sent: EmbeddingsReader(gemini),
    path=lambda model, _stream, _sent: path_of("/models/{}:batchEmbedContents", model),
)
_COHERE = VendorDialect(
    name="cohere.embeddings",
    native=None,
    send=send_cohere,
    reader=lambda _sent: EmbeddingsReader(cohere),
    path=lambda _model, _stream, _sent: "/embed",
)
_OLLAMA = VendorDialect(
    name="ollama.embeddings",
    native=None,
    send=send_ollama,
    reader=lambda _sent: EmbeddingsReader(ollama),
    path=lambda _model, _stream, _sent: "/api/embed",
)
_DASHSCOPE = VendorDialect(
    name="dashscope.embeddings",
    native=None,
    send=send_dashscope,
    reader=lambda _sent: EmbeddingsReader(dashscope),
    path=lambda _model, _stream, _sent: "/services/embeddings/text-embedding/text-embedding",
)

VENDORS = (_OPENAI, _GEMINI, _COHERE, _OLLAMA, _DASHSCOPE)
EMBEDDINGS: Mapping[str, VendorDialect] = {
    "openai": _OPENAI,
    "completions": _OPENAI,
    "responses": _OPENAI,
    "gemini": _GEMINI,
    "cohere": _COHERE,
    "ollama": _OLLAMA,
    "dashscope": _DASHSCOPE,
}
