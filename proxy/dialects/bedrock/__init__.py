"""AWS Bedrock's Converse API: one grammar for every model there, for vendors alone."""

from proxy.dialects.base import Framing, VendorDialect
from proxy.dialects.bedrock.read import BedrockReader
from proxy.dialects.bedrock.send import send_converse
from proxy.dialects.parts import path_of

VENDOR = VendorDialect(
    name="bedrock",
    native=None,
    send=send_converse,
    reader=lambda _sent: BedrockReader(),
    # Colons and slashes of a model's id or ARN are encoded, as AWS's own libraries do: the signature is made over this.
    path=lambda model, stream, _sent: path_of("/model/{}/converse-stream" if stream else "/model/{}/converse", model),
    accept="application/vnd.amazon.eventstream",
    signing="aws",
    framings=frozenset((Framing.EVENTSTREAM,)),
)
