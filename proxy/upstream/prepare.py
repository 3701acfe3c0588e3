"""One client request, ready for one upstream: which body, which address, what could not be said (contract Q1).

In: a parsed request and a target. Out: a `Prepared`, or the caller's mistake. A vendor of the client's own family gets
the body as it came; every other gets what its dialect makes of the canonical form, and what that cannot express is
refused or dropped as the upstream is configured. Nothing is changed without a word: the header says what was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.dialects.base import BadRequest, ClientRequest, Losses, VendorDialect, Ways
from proxy.dialects.payload import encode_json
from proxy.dialects.toon import ASKS
from proxy.dialects.toon.incoming import ToonIncoming

DROPPED_HEADER = "x-sluice-dropped"
# Proxies in front of clients refuse long heads (nginx: 4 or 8 KiB for all of it).
_MAX_HEADER = 1024


@dataclass(frozen=True, slots=True)
class Prepared:
    """`sent` is the body as the dialect's reader wants to know it; `headers` are for the client."""

    body: bytes
    path: str
    sent: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict)


def prepare(
    request: ClientRequest, dialect: VendorDialect, model: str, ways: Ways, *, drops: bool
) -> Prepared | BadRequest:
    if isinstance(request, ToonIncoming):
        body = ASKS[dialect.name](request, model)
        return (
            body
            if isinstance(body, BadRequest)
            else Prepared(body, dialect.path(model, request.stream, {}), request.body)
        )
    if dialect.native == request.client:
        return Prepared(request.for_upstream(model), dialect.path(model, request.stream, request.body), request.body)
    canonical = request.canonical
    if isinstance(canonical, BadRequest):
        return canonical
    losses = Losses()
    sent = dialect.send(canonical, model, losses, ways)
    if losses.real and not drops:
        named = ", ".join(losses.real[:8])
        message = (
            f"The model `{request.model[:200]}` cannot be told: {named}. Leave it out, or let the operator configure "
            "`unsupported: drop` for its upstream."
        )
        return BadRequest("unsupported_parameter", message, losses.real[0])
    headers = {DROPPED_HEADER: _listed(losses.all)} if losses.all else {}
    return Prepared(encode_json(sent), dialect.path(model, request.stream, sent), sent, headers)


def _listed(names: tuple[str, ...]) -> str:
    """A header's value: the client's own names, made safe, and how many more there were."""
    told: list[str] = []
    size = 0
    for count, name in enumerate(names):
        safe = "".join(char if char.isascii() and char.isprintable() and char != "," else "?" for char in name[:120])
        size += len(safe) + 2
        if size > _MAX_HEADER:
            return ", ".join((*told, f"and {len(names) - count} more"))
        told.append(safe)
    return ", ".join(told)
