"""A TOON request as the rest of the proxy sees it: a `ClientRequest` whose body goes on as it came (contract Q1).

In: a body's bytes and their outline. Out: a `ToonIncoming`. Ids are no conversation, so there is no canonical form: an
upstream that takes no ids cannot be asked this.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.canon.request import Request
from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import parse_toon
from proxy.dialects.toon.outline import Outline, outline

CLIENT = "toon"


class ToonIncoming:
    """`asked` is what was asked, `data` the body's bytes, `model` the alias that serves it ("" while none is known)."""

    __slots__ = ("_body", "asked", "data", "model")

    client = CLIENT
    #: Usage always stands in the answer; its text is no JSON of ours to mend.
    usage = True
    json = False

    def __init__(self, asked: Outline, data: bytes, model: str = "") -> None:
        self.asked, self.data, self.model = asked, data, model
        self._body: dict[str, object] = {"toon": asked, "max_tokens": asked.max_tokens}

    def trace(self, trace_id: str) -> None:
        """The attempt's own trace id, which its answer tells where the request has none."""
        self._body["trace_id"] = trace_id

    @property
    def body(self) -> Mapping[str, object]:
        """What of the request others look at: its outline, under `toon`, the longest answer, the trace."""
        return self._body

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def stream(self) -> bool:
        return self.asked.stream

    @property
    def canonical(self) -> Request | BadRequest:
        return BadRequest("model_not_found", "This model takes no token ids; see docs/toon.md.", "/model", 404)

    def for_upstream(self, model: str) -> bytes:
        """Byte for byte what came: the model's name there goes into the address."""
        return self.data


def parse_toon_request(data: bytes) -> ToonIncoming | BadRequest:
    """For a body of any length: `proxy.toon.intake` keeps long ones off the event loop."""
    parsed = parse_toon(data)
    return parsed if isinstance(parsed, BadRequest) else ToonIncoming(outline(parsed), data)
