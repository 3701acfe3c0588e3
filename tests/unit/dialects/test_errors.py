"""The error object that every client dialect carries (contract W6, E)."""

from __future__ import annotations

import pytest

from proxy.canon.verdict import ErrorClass, Verdict
from proxy.dialects.errors import error_of


@pytest.mark.clause("E")
@pytest.mark.parametrize(("wait", "told"), [(None, None), (20.0, 20), (0.2, 1), (0.0, 0)])
def test_the_error_body_has_every_field(wait: float | None, told: int | None) -> None:
    """Whole seconds to wait; an upstream whenever an attempt was made."""
    verdict = Verdict(ErrorClass.RATE_LIMITED, "rate_limited", "m", 429, True, wait, "r", 429, "1302", "慢一点")
    assert error_of(verdict, trace_id="t", upstream="main", param="model") == {
        "message": "m",
        "type": "rate_limited",
        "code": "rate_limited",
        "param": "model",
        "retryable": True,
        "retry_after": told,
        "upstream": {"name": "main", "status": 429, "code": "1302", "message": "慢一点"},
        "trace_id": "t",
    }
    assert error_of(verdict, trace_id="t", upstream=None)["upstream"] is None
