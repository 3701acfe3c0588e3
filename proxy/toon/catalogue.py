"""Which model serves a request of token ids: by its alias, or the first that speaks its version (docs/toon.md).

In: the aliases of this installation whose upstreams take ids, each with its model's card, and requests. Out: an alias,
or the caller's mistake, before anything is sent. Never: loads a model, or needs torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import ToonRequest, parse_toon
from proxy.dialects.toon.outline import Outline, outline
from proxy.toon.fitting import misfit

if TYPE_CHECKING:
    from proxy.toon.card import Card

_NOT_ENABLED = (
    "No model of this installation takes token ids. To enable the route: install the extra (`pip install "
    "'sluice-proxy[toon]'`), run `sluice toon serve`, and name its registry under `toon:` and its address as an "
    "upstream of the vendor `toon`; or name a vLLM server (docs/toon.md)."
)


class TokenModels:
    """`cards` are in the order of the configuration's `models`."""

    def __init__(self, cards: Mapping[str, Card]) -> None:
        self.cards = cards
        self._first: dict[str, str] = {}
        for alias, card in cards.items():
            self._first.setdefault(card.version, alias)

    def alias_of(self, request: ToonRequest) -> str | BadRequest:
        """The model that takes this request as it is."""
        if not self.cards:
            return BadRequest("toon_not_enabled", _NOT_ENABLED, status=404)
        version = request.tids.v
        alias = self._first.get(version) if request.model is UNSET else request.model
        if alias is None:
            return self._unspoken(version, ", ".join(sorted(self._first)))
        card = self.cards.get(alias)
        if card is None:
            known = ", ".join(self.cards)
            return BadRequest("model_not_found", f"No model `{alias}` takes token ids here; {known} do.", "/model", 404)
        if card.version != version:
            return self._unspoken(version, f"{card.version} by {alias}")
        return misfit(request, card) or alias

    def read(self, body: bytes) -> tuple[Outline, str] | BadRequest:
        """A body checked to its end: what it asks, and of which alias."""
        request = parse_toon(body)
        if isinstance(request, BadRequest):
            return request
        alias = self.alias_of(request)
        return alias if isinstance(alias, BadRequest) else (outline(request), alias)

    @staticmethod
    def _unspoken(version: str, spoken: str) -> BadRequest:
        message = f"No model here speaks the tokenizer version {version}; served are {spoken}."
        return BadRequest("unsupported_version", message, "/tids/v")
