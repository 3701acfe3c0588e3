"""Text completions, OpenAI's older API: for clients that still speak it, and for vendors that serve base models."""

from proxy.dialects.base import ClientDialect, VendorDialect
from proxy.dialects.completions.read import CompletionsReader
from proxy.dialects.completions.request import parse_completions_request
from proxy.dialects.completions.send import send_completions
from proxy.dialects.completions.write import CompletionsWriter

VENDOR = VendorDialect(
    name="completions",
    native="completions",
    send=send_completions,
    reader=lambda _sent: CompletionsReader(),
    path=lambda _model, _stream, _sent: "/completions",
    passed_headers=("openai-beta",),
)

CLIENT = ClientDialect(
    name="completions",
    endpoint="/v1/completions",
    parse=parse_completions_request,
    writer=lambda seed, created, model, _asked: CompletionsWriter(f"cmpl-{seed}", created, model),
    error_body=lambda error: {"error": error},
)
