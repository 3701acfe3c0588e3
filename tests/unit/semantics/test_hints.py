"""How long to wait, from everything that vendors write."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.semantics.hints import MAX_WAIT_S, parse_wait, wait_from_fields, wait_from_headers, wait_from_message

pytestmark = pytest.mark.clause("E")

# 2026-11-30 00:00:00 UTC
NOW = 1_795_996_800.0
DAY = 86400.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"x-ms-retry-after-ms": "2500"}, 2.5),
        ({"x-rate-limit-reset": "30"}, 30.0),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-11-30T00:00:30Z",
                "anthropic-ratelimit-requests-remaining": "9",
                "anthropic-ratelimit-requests-reset": "2026-11-30T00:01:00Z",
            },
            30.0,
        ),
        ({"anthropic-ratelimit-unified-7d-reset": "1796500000"}, None),
        ({"retry-after": "Mon, 30 Nov 2026 00:01:30 GMT"}, 90.0),
        ({"retry-after": "Sun, 29 Nov 2026 00:00:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "99999999999"}, MAX_WAIT_S),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_WAIT_S),
        ({"retry-after": "1e400"}, MAX_WAIT_S),
        ({"retry-after": "9" * 80}, MAX_WAIT_S),
        ({"retry-after": "9" * 8000}, MAX_WAIT_S),
        ({"retry-after-ms": "9" * 30}, MAX_WAIT_S),
        ({"retry-after": "1e3"}, 1000.0),
        ({"retry-after": "7, 9"}, 7.0),
        ({"retry-after": "7;x"}, 7.0),
        ({"retry-after": "7 (busy)"}, 7.0),
        ({"retry-after": "7 dwarfs"}, None),
        ({"retry-after": "2020-11-30, gone"}, None),
        ({"retry-after": "1", "retry-after-ms": "800"}, 0.8),
        ({"x-ratelimit-reset-requests": "1s"}, 1.0),
        ({"x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-reset-tokens": "7.66s", "x-ratelimit-remaining-tokens": "5000"}, None),
        (
            {
                "x-ratelimit-reset-requests": "8m",
                "x-ratelimit-remaining-requests": "12",
                "x-ratelimit-reset-tokens": "3s",
                "x-ratelimit-remaining-tokens": "0",
            },
            3.0,
        ),
        ({"x-ratelimit-reset": "1795996860"}, 60.0),
        ({"x-ratelimit-reset": "1795996860000"}, 60.0),
        ({"anthropic-ratelimit-requests-reset": "2026-11-30T00:01:00Z"}, None),
        ({}, None),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, dates, milliseconds, and the reset of the window that is used up."""
    assert wait_from_headers(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 20s.", 20.0),
        ("Please try again in 800ms.", 0.8),
        ("Quota will be replenished in 2.10:00:00.", 2 * DAY + 36000.0),
        ("Please try again in 20 ſecondſ, or in a mınute.", 20.0),
        ("Your access returns on ſep 1, 2027.", 275 * DAY),
        ("Please try again in 11m31s.", 691.0),
        ("Try again in 5 seconds. Passed model=m-test.", 5.0),
        ("Please retry after 26 seconds.", 26.0),
        ("request reached max concurrency: 1, please try again after 1 seconds", 1.0),
        ("Please retry in 34.07s.", 34.07),
        ("retry after 5", 5.0),
        ("Your limit resets in 1 hour and 30 minutes", 5400.0),
        ("请求过于频繁，请在 20 秒后重试", 20.0),
        ("请 5 分钟之后再试", 300.0),
        ("Monthly usage limit reached; access returns on 2026-12-01.", DAY),
        ("You will regain access on 2026-12-01 at 00:00 UTC", DAY),
        ("Quota resets at 2026-11-30T01:00:00+01:00", None),
        ("Quota resets at 2026-11-30T02:00:00+01:00", 3600.0),
        ("Your access returns on December 1, 2026", DAY),
        ("您的限额将在 2026-11-30 12:00:00 重置。", 4 * 3600.0),
        ("The model was released on 2027-01-01.", None),
        ("access returned on 2020-01-01", None),
        ("resets on 2026-99-99", None),
        ("limit is 60 queries per minute", None),
        ("Limit 30000, Used 29500, Requested 900.", None),
        ("nothing about waiting", None),
        ("请稍后 5 秒再试", 5.0),
        ("请 1 分 30 秒后重试", 90.0),
        ("In 20s, please retry", 20.0),
        ("Try again in a minute", 60.0),
        ("You must wait an hour", 3600.0),
        ("try again in 00:05:10", 310.0),
        ("rate limited for 15 seconds", 15.0),
        ("the quota will be refreshed in 45 minutes", 2700.0),
        ("limited to 5 hours of audio", None),
        ("Please wait a moment", None),
    ],
)
def test_words(text: str, seconds: float | None) -> None:
    """English and Chinese wordings, and dates that the words around them make an end."""
    assert wait_from_message(text, NOW) == seconds


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ([("retryDelay", "20s")], 20.0),
        ([("retryDelay", "68940s")], 68940.0),
        ([("retryDelay", "900ms")], 0.9),
        ([("retry_after_ms", 1500)], 1.5),
        ([("estimated_time", 149.3)], 149.3),
        ([("retry_after", None), ("retry_after_seconds", 7)], 7.0),
        ([("resets_at", 1795996900)], 100.0),
        ([("retry_after", 10**400)], MAX_WAIT_S),
        ([("retry_after", True)], None),
        ([("retry_after", {"s": 1})], None),
    ],
)
def test_fields(fields: list[tuple[str, object]], seconds: float | None) -> None:
    """Fields of the body, Gemini's RetryInfo and relays' own."""
    assert wait_from_fields(fields, NOW) == seconds


@given(st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.booleans()), st.floats(0, 1e11))
def test_any_value_is_a_sane_wait_or_none(value: object, now: float) -> None:
    """Never an exception, never infinite, never negative."""
    for wait in (parse_wait(value, now), wait_from_message(str(value), now)):
        assert wait is None or (wait >= 0 and math.isfinite(wait))
