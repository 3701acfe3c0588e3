"""A TOON request as the rest of the proxy sees it: a `ClientRequest` whose body goes on as it came (contract Q1).

In: a body's bytes. Out: a `ToonIncoming`, or the caller's mistake. Ids are no conversation, so there is no canonical
form: an upstream that takes no ids cannot be asked this.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET

from proxy.canon.request import Request
from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import ToonRequest, parse_toon

CLIENT = "toon"


class ToonIncoming:
    """`request` is what was asked, `data` the body's bytes, `model` the alias ("" where the request names none)."""

    __slots__ = ("_body", "data", "model", "request")

    client = CLIENT
    #: Usage always stands in the answer; its text is no JSON of ours to mend.
    usage = True
    json = False

    def __init__(self, request: ToonRequest, data: bytes) -> None:
        self.request, self.data = request, data
        self.model = "" if request.model is UNSET else request.model
        self._body = {
            "toon": request,
            "max_tokens": request.max_tokens,
        }

    @property
    def body(self) -> Mapping[str, object]:
        """What of the request others look at: the whole of it, under `toon`, and the longest answer."""
        return self._body

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def stream(self) -> bool:
        return self.request.stream

    @property
    def canonical(self) -> Request | BadRequest:
        return BadRequest("model_not_found", "This model takes no token ids; see docs/toon.md.", "/model", 404)

    def for_upstream(self, model: str) -> bytes:
        """Byte for byte what came: the model's name there goes into the address."""
        return self.data


def parse_toon_request(data: bytes) -> ToonIncoming | BadRequest:
    parsed = parse_toon(data)
    return parsed if isinstance(parsed, BadRequest) else ToonIncoming(parsed, data)
