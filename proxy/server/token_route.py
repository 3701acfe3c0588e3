"""What the route of token ids asks of a request's headers, and who its caller is (docs/toon.md).

In: headers in lower case. Out: yes or no, or the caller's mistake. Decides nothing about a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import MEDIA_TYPE
from proxy.dialects.toon.incoming import ToonIncoming
from proxy.server.identity import is_safe_id
from proxy.upstream.attempts import Caller

_STREAM_TYPE = "text/event-stream"
_ZERO = re.compile(r"\s*q\s*=\s*0(?:\.0{0,3})?\s*", re.IGNORECASE)


def is_toon(headers: Mapping[str, str]) -> bool:
    """Is the body said to be TOON? Parameters do not matter, but for a charset that is not JSON's."""
    kind, _, parameters = headers.get("content-type", "").partition(";")
    charset = re.search(r"charset\s*=\s*\"?([\w-]+)", parameters, re.IGNORECASE)
    return kind.strip().lower() == MEDIA_TYPE and (charset is None or charset[1].lower() in ("utf-8", "utf8"))


def may_answer(accept: str, *, stream: bool) -> bool:
    """Does `Accept` leave room for what would be sent? TOON always; for a stream its framing will do as well. The most
    exact range that names a type decides (RFC 9110, 12.5.1)."""
    if not accept.strip():
        return True
    kinds = (MEDIA_TYPE, _STREAM_TYPE) if stream else (MEDIA_TYPE,)
    ranges = {}
    for one in accept.split(","):
        name, _, parameters = one.partition(";")
        ranges[name.strip().lower()] = not any(map(_ZERO.fullmatch, parameters.split(";")))
    for kind in kinds:
        names = (kind, f"{kind.partition('/')[0]}/*", "*/*")
        if next((ranges[name] for name in names if name in ranges), False):
            return True
    return False


def not_acceptable(*, stream: bool) -> BadRequest:
    wanted = f"{_STREAM_TYPE} or {MEDIA_TYPE}" if stream else MEDIA_TYPE
    return BadRequest("not_acceptable", f"`Accept` excludes the answer; it must allow {wanted}.", "accept", 406)


def adopt_trace(caller: Caller, incoming: ToonIncoming) -> Caller:
    """The request's own trace id is that of the attempt too, where it can stand in a header and no other came."""
    trace_id = incoming.asked.trace_id
    if trace_id is None or caller.traceparent is not None or not is_safe_id(trace_id):
        return caller
    return replace(caller, trace_id=trace_id)
