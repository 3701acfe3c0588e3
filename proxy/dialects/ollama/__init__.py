"""Ollama's own chat API, for upstreams: one JSON object a line."""

from proxy.dialects.base import Framing, VendorDialect
from proxy.dialects.ollama.read import OllamaReader
from proxy.dialects.ollama.send import send_ollama

VENDOR = VendorDialect(
    name="ollama",
    native=None,
    send=send_ollama,
    reader=lambda _sent: OllamaReader(),
    path=lambda _model, _stream, _sent: "/api/chat",
    accept="application/x-ndjson",
    framings=frozenset((Framing.SSE, Framing.NDJSON)),
)
