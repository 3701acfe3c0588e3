"""The error body of the contract, which every client dialect puts into its own envelope (contract W6, E)."""

from __future__ import annotations

from math import ceil

from proxy.canon.verdict import Verdict


def error_of(verdict: Verdict, *, trace_id: str, upstream: str | None, param: str | None = None) -> dict[str, object]:
    """The object under `error`; `upstream` is the configured name, None if no attempt was made."""
    told: dict[str, object] | None = None
    if upstream is not None:
        told = {
            "name": upstream,
            "status": verdict.vendor_status,
            "code": verdict.vendor_code,
            "message": verdict.vendor_message,
        }
    return {
        "message": verdict.message,
        "type": verdict.error_class.value,
        "code": verdict.code,
        "param": param,
        "retryable": verdict.retryable,
        # Whole seconds, as in the header: typed clients read an integer here, and 20.0 is none to them.
        "retry_after": None if verdict.retry_after_s is None else ceil(verdict.retry_after_s),
        "upstream": told,
        "trace_id": trace_id,
    }
