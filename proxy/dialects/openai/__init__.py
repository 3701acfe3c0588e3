"""Chat completions, the OpenAI family's: both ways, for vendors and for clients."""

from proxy.dialects.base import ClientDialect, VendorDialect
from proxy.dialects.openai.read import OpenAIReader
from proxy.dialects.openai.request import parse_chat_request
from proxy.dialects.openai.send import send_chat
from proxy.dialects.openai.write import ChatWriter

VENDOR = VendorDialect(
    name="openai",
    native="chat",
    send=send_chat,
    reader=lambda _sent: OpenAIReader(),
    path=lambda _model, _stream, _sent: "/chat/completions",
    passed_headers=("openai-beta",),
)

CLIENT = ClientDialect(
    name="chat",
    endpoint="/v1/chat/completions",
    parse=parse_chat_request,
    writer=lambda seed, created, model, _asked: ChatWriter(f"chatcmpl-{seed}", created, model),
    error_body=lambda error: {"error": error},
)
