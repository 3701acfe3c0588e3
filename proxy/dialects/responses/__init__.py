"""The Responses API of OpenAI: both ways, for vendors and for clients."""

from proxy.dialects.base import ClientDialect, VendorDialect
from proxy.dialects.responses.parse import CLIENT as NAME
from proxy.dialects.responses.read import ResponsesReader
from proxy.dialects.responses.request import parse_responses_request
from proxy.dialects.responses.send import send_responses
from proxy.dialects.responses.write import ResponsesWriter

VENDOR = VendorDialect(
    name=NAME,
    native=NAME,
    send=send_responses,
    reader=ResponsesReader,
    path=lambda _model, _stream, _sent: "/responses",
    passed_headers=("openai-beta",),
)

CLIENT = ClientDialect(
    name=NAME,
    endpoint="/v1/responses",
    parse=parse_responses_request,
    writer=ResponsesWriter,
    error_body=lambda error: {"error": error},
)
