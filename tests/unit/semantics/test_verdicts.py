"""Verdicts of our own: each code is stable, each class has its status (contract E)."""

from __future__ import annotations

import pytest

from proxy.canon.ending import Stop
from proxy.canon.verdict import ErrorClass
from proxy.errors import LimitExceeded
from proxy.semantics import verdicts

pytestmark = pytest.mark.clause("E", "W6")


@pytest.mark.parametrize(
    ("stop", "error_class", "code", "status"),
    [
        (Stop.EOF, "upstream_timeout", "stream_cut", 504),
        (Stop.CUT, "upstream_timeout", "stream_cut", 504),
        (Stop.AFTER_FINISH, "upstream_timeout", "stream_cut", 504),
        (Stop.CONNECT, "upstream_timeout", "connect_timeout", 504),
        (Stop.FIRST_BYTE, "upstream_timeout", "first_byte_timeout", 504),
        (Stop.STALL, "upstream_timeout", "stall_timeout", 504),
        (Stop.IDLE, "upstream_timeout", "idle_timeout", 504),
        (Stop.TOTAL, "upstream_timeout", "total_timeout", 504),
        (Stop.CONNECT_FAILED, "model_unavailable", "connect_failed", 503),
        (Stop.SHUTDOWN, "model_unavailable", "shutting_down", 503),
        (Stop.INTERNAL, "model_unavailable", "internal_error", 503),
    ],
)
def test_each_way_to_stop_short_has_its_code(stop: Stop, error_class: str, code: str, status: int) -> None:
    """All of them may be tried again, and say so in words of their own."""
    verdict = verdicts.of_stop(stop, 200)
    assert (verdict.error_class, verdict.code, verdict.status) == (error_class, code, status)
    assert verdict.retryable
    assert verdict.mapped
    assert verdict.vendor_status == 200
    assert verdict.message.endswith(".")


@pytest.mark.clause("W7")
@pytest.mark.parametrize(
    ("what", "code"), [("answer", "answer_too_long"), ("line", "line_too_long"), ("event", "line_too_long")]
)
def test_a_limit_names_what_was_too_long(what: str, code: str) -> None:
    """With the number that the operator can change."""
    verdict = verdicts.of_limit(LimitExceeded(what, 4096, 5000), 200)
    assert (verdict.error_class, verdict.code, verdict.status) == (ErrorClass.MODEL_UNAVAILABLE, code, 503)
    assert "4096 bytes" in verdict.message


@pytest.mark.parametrize("error_class", ErrorClass)
def test_only_what_waiting_or_another_upstream_cures_is_retried(error_class: ErrorClass) -> None:
    """Never the caller's own mistake, a refused credential, or moderation."""
    verdict = verdicts.verdict(error_class, "c", "m")
    assert verdict.status == verdicts.STATUS[error_class]
    assert verdict.retryable is (error_class.value in ("rate_limited", "upstream_timeout", "model_unavailable"))


def test_the_other_verdicts() -> None:
    """Moderation before text, a lost event, a ledger that cannot write, a bad request."""
    filtered, lost, ledger = verdicts.content_filtered(200), verdicts.malformed(200), verdicts.ledger_unavailable()
    wrong = verdicts.invalid("invalid_json", "m", 413)

    assert (filtered.error_class, filtered.code, filtered.status, filtered.retryable) == (
        "content_blocked",
        "content_filter",
        400,
        False,
    )
    assert (lost.error_class, lost.code, lost.status, lost.retryable) == (
        "model_unavailable",
        "malformed_event",
        503,
        True,
    )
    assert (ledger.code, ledger.status, ledger.vendor_status) == ("ledger_unavailable", 503, None)
    assert (wrong.error_class, wrong.status, wrong.retryable) == ("invalid_request", 413, False)
