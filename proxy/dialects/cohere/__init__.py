"""Cohere's chat API, version 2: for vendors alone."""

from proxy.dialects.base import VendorDialect
from proxy.dialects.cohere.read import CohereReader
from proxy.dialects.cohere.send import send_cohere

VENDOR = VendorDialect(
    name="cohere",
    native=None,
    send=send_cohere,
    reader=lambda _sent: CohereReader(),
    path=lambda _model, _stream, _sent: "/chat",
)
