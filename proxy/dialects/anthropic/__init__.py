"""The Messages API, Anthropic's and that of those who took it over: both ways, for vendors and for clients."""

from proxy.dialects.anthropic.read import AnthropicReader
from proxy.dialects.anthropic.request import parse_messages_request
from proxy.dialects.anthropic.send import send_anthropic
from proxy.dialects.anthropic.write import MessagesWriter
from proxy.dialects.base import ClientDialect, VendorDialect

VENDOR = VendorDialect(
    name="anthropic",
    native="messages",
    send=send_anthropic,
    reader=lambda _sent: AnthropicReader(),
    path=lambda _model, _stream, _sent: "/messages",
    # Each version of this API is a contract of its own; this one takes sampling parameters, the next refuses them.
    headers={"anthropic-version": "2023-06-01"},
    key_header="x-api-key",
    passed_headers=("anthropic-beta",),
    end_marks=(b"message_stop", b"[done]"),
)

CLIENT = ClientDialect(
    name="messages",
    endpoint="/v1/messages",
    parse=parse_messages_request,
    writer=lambda seed, created, model, _asked: MessagesWriter(f"msg_{seed}", created, model),
    error_body=lambda error: {"type": "error", "error": error},
)
