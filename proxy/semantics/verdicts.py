"""Verdicts that need no vendor's words: cuts, deadlines, limits, our own failures and the caller's mistakes (contract
E).

Only values are made here. The `code` of each is stable: frontends and alerts may rely on it.
"""

from __future__ import annotations

from proxy.canon.ending import TIMEOUTS, Stop
from proxy.canon.verdict import ErrorClass, Verdict
from proxy.errors import LimitExceeded

STATUS = {
    ErrorClass.AUTH_FAILURE: 502,
    ErrorClass.RATE_LIMITED: 429,
    ErrorClass.CONTENT_BLOCKED: 400,
    ErrorClass.UPSTREAM_TIMEOUT: 504,
    ErrorClass.MODEL_UNAVAILABLE: 503,
    ErrorClass.INVALID_REQUEST: 400,
}
_NEVER_RETRIED = (ErrorClass.AUTH_FAILURE, ErrorClass.CONTENT_BLOCKED, ErrorClass.INVALID_REQUEST)

_STOP_MESSAGES = {
    Stop.EOF: "The upstream ended the answer before it was finished.",
    Stop.CUT: "The connection to the upstream broke before the answer was finished.",
    Stop.CONNECT_FAILED: "The upstream could not be reached.",
    Stop.CONNECT: "The upstream did not accept a connection in time.",
    Stop.FIRST_BYTE: "The upstream did not begin its answer in time.",
    Stop.STALL: "The upstream stopped making progress in the middle of the answer.",
    Stop.IDLE: "The upstream fell silent.",
    Stop.TOTAL: "The answer took longer than the time allowed for one request.",
    Stop.SHUTDOWN: "The proxy is shutting down; please send the request again.",
    Stop.INTERNAL: "The proxy failed to handle this answer.",
}


def verdict(
    error_class: ErrorClass,
    code: str,
    message: str,
    *,
    status: int | None = None,
    vendor_status: int | None = None,
    retry_after_s: float | None = None,
) -> Verdict:
    """A verdict of ours, with the status and the retry advice of its class."""
    return Verdict(
        error_class,
        code,
        message,
        status if status is not None else STATUS[error_class],
        error_class not in _NEVER_RETRIED,
        retry_after_s,
        vendor_status=vendor_status,
    )


def of_stop(stop: Stop, vendor_status: int | None) -> Verdict:
    """The verdict for an answer that stopped short without a word from the vendor."""
    if stop in (Stop.SHUTDOWN, Stop.INTERNAL, Stop.CONNECT_FAILED):
        error_class = ErrorClass.MODEL_UNAVAILABLE
    else:
        error_class = ErrorClass.UPSTREAM_TIMEOUT
    code = stop.value if stop in TIMEOUTS or error_class is ErrorClass.MODEL_UNAVAILABLE else Stop.CUT.value
    message = _STOP_MESSAGES.get(stop, _STOP_MESSAGES[Stop.EOF])
    return verdict(error_class, code, message, vendor_status=vendor_status)


def of_limit(limit: LimitExceeded, vendor_status: int | None) -> Verdict:
    """The verdict for an upstream that sent a line, an event or an answer beyond the configured limit."""
    code = "answer_too_long" if limit.what == "answer" else "line_too_long"
    message = f"The upstream sent a longer {limit.what} than the {limit.limit} bytes allowed here."
    return verdict(ErrorClass.MODEL_UNAVAILABLE, code, message, vendor_status=vendor_status)


def content_filtered(vendor_status: int | None) -> Verdict:
    """Moderation held the answer back before any text of it came."""
    return verdict(
        ErrorClass.CONTENT_BLOCKED,
        "content_filter",
        "The upstream's moderation held back the answer.",
        vendor_status=vendor_status,
    )


def unreadable(encoding: str, vendor_status: int | None) -> Verdict:
    """The body is compressed in a way that we cannot read, or is not what its header says."""
    return verdict(
        ErrorClass.MODEL_UNAVAILABLE,
        "unreadable_encoding",
        f"The upstream's body cannot be read as the `content-encoding: {encoding[:40]}` that its header names.",
        vendor_status=vendor_status,
    )


def malformed(vendor_status: int | None) -> Verdict:
    """An event of the answer was no JSON: what it held is lost, so the answer is not whole."""
    return verdict(
        ErrorClass.MODEL_UNAVAILABLE,
        "malformed_event",
        "The upstream sent an event that is not valid JSON; part of the answer is lost.",
        vendor_status=vendor_status,
    )


def ledger_unavailable(*, full: bool = False, reading: bool = False) -> Verdict:
    """`full`: its journal is, because the database is away. `reading`: it cannot be looked into."""
    message = "The proxy cannot record this request at the moment."
    if full:
        message = "The proxy's journal is full while its ledger is away: it takes no work that it could not bill."
    if reading:
        message = "The ledger cannot be read at the moment."
    return verdict(ErrorClass.MODEL_UNAVAILABLE, "ledger_unavailable", message)


def invalid(code: str, message: str, status: int = 400) -> Verdict:
    """The caller's own mistake."""
    return verdict(ErrorClass.INVALID_REQUEST, code, message, status=status)
