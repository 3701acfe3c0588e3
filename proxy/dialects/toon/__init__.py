"""TOON: token ids in, token ids out (docs/toon.md).

Like embeddings, a route beside the chat dialects: `TOKEN_ROUTES` says which dialect a vendor's `token_route` names. Our
engine speaks TOON itself, and its model's name goes into the address, so that a body passes byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from proxy.canon.request import Request
from proxy.dialects.base import BadRequest, ClientDialect, Losses, VendorDialect, Ways
from proxy.dialects.parts import path_of
from proxy.dialects.toon.format import MEDIA_TYPE
from proxy.dialects.toon.incoming import ToonIncoming, parse_toon_request
from proxy.dialects.toon.read import ToonReader
from proxy.dialects.toon.vllm import VllmReader, ask_vllm
from proxy.dialects.toon.write import ToonWriter

CLIENT = ClientDialect(
    name="toon",
    endpoint="/v1/completions/toon",
    parse=parse_toon_request,
    writer=lambda seed, created, model, asked: ToonWriter(f"toon-{seed}", created, model, asked),
    error_body=lambda error: {"error": error},
    media_type=MEDIA_TYPE,
)


def _send_nothing(_request: Request, _model: str, losses: Losses, _ways: Ways) -> dict[str, object]:
    """Ids are not in a canonical request."""
    losses.add("tids")
    return {}


_ENGINE = VendorDialect(
    name="toon.engine",
    native=None,
    send=_send_nothing,
    reader=lambda _sent: ToonReader(),
    path=lambda model, _stream, _sent: path_of("/completions/toon?model={}", model),
    headers={"content-type": MEDIA_TYPE},
)
_VLLM = VendorDialect(
    name="toon.vllm",
    native=None,
    send=_send_nothing,
    reader=VllmReader,
    path=lambda _model, _stream, _sent: "/completions",
)

VENDORS = (_ENGINE, _VLLM)
TOKEN_ROUTES: Mapping[str, VendorDialect] = {dialect.name: dialect for dialect in VENDORS}
#: How each is asked: the body for a request and the model's name there.
ASKS: Mapping[str, Callable[[ToonIncoming, str], bytes | BadRequest]] = {
    _ENGINE.name: ToonIncoming.for_upstream,
    _VLLM.name: ask_vllm,
}
