"""Who asks, from the request's headers: ids for the trace, and the tenant behind a key (contract Q2, C4 `auth.keys`).

Only hashes of keys are known here; a key that came is hashed and forgotten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from proxy.upstream.attempts import Caller
from proxy.upstream.ids import new_id

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_SAFE_ID = re.compile(r"[A-Za-z0-9._:/-]{1,128}")
_NO_TRACE = "0" * 32


class Keys:
    """`tenant_of` is None for a key that is not known. Without keys everybody is the tenant `default`."""

    def __init__(self, tenants: Mapping[str, str] | None) -> None:
        self._tenants = tenants

    def tenant_of(self, headers: Mapping[str, str]) -> str | None:
        """`headers` are lower case. The key is where clients of OpenAI's APIs put it, or where Anthropic's do."""
        if self._tenants is None:
            return "default"
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            key = headers.get("x-api-key", "")
        if not key.strip():
            return None
        # Looking a hash up takes no time that depends on the key: there is nothing to compare byte by byte.
        # Bytes of a header that are no UTF-8 come as lone surrogates.
        return self._tenants.get(hashlib.sha256(key.strip().encode(errors="surrogateescape")).hexdigest())


def told_ids(caller: Caller) -> dict[str, str]:
    """The ids of a request as headers of its answer: ours, and where OpenAI's and Anthropic's SDKs look for one."""
    return {"x-trace-id": caller.trace_id, "x-request-id": caller.request_id, "request-id": caller.request_id}


def is_safe_id(text: str) -> bool:
    """May a caller's id stand in headers, rows and logs as it came?"""
    return _SAFE_ID.fullmatch(text) is not None


def identify(headers: Mapping[str, str], tenant: str) -> Caller:
    """Ids are the caller's own where they are well-formed, else new ones. `headers` are lower case."""
    asked = headers.get("x-request-id", "")
    request_id = asked if is_safe_id(asked) else new_id()
    traceparent = headers.get("traceparent")
    found = _TRACEPARENT.fullmatch(traceparent) if traceparent is not None else None
    if found is not None and found[1] != _NO_TRACE:
        return Caller(request_id, found[1], tenant, headers, traceparent)
    return Caller(request_id, request_id, tenant, headers)
