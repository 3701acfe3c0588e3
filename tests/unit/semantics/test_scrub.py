"""A vendor's words, before a caller reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.semantics.scrub import MAX_CHARS, scrub


@pytest.mark.clause("Q2")
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect API key provided: sk-test-000. Check it.", "Incorrect API key provided: [key] Check it."),
        ("Received API Key = sk-...000, sorry", "Received API Key = [key], sorry"),
        ("header Authorization: Bearer abcdef123456 refused", "header Authorization: [key] refused"),
        ("bad url ?key=AIzaSyA1234567&alt=sse", "bad url ?key=[key]&alt=sse"),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc expired", "token [key] expired"),
        ("hf_abcdefghijk is revoked", "[key] is revoked"),
        ("gsk_abc123 is revoked", "[key] is revoked"),
        ("Your api key: ****0000 is invalid", "Your api key: [key] is invalid"),
        ("Incorrect API key provided: xa***00.", "Incorrect API key provided: [key]."),
        ("id 0123456789abcdef0123456789abcdef failed", "id […] failed"),
        ("see https://platform.example.com/account?x=1 for more", "see [url] for more"),
        ("api.example.invalid | 524: A timeout occurred", "[host] | 524: A timeout occurred"),
        ("dial tcp 10.1.2.3:8443: connection refused", "dial tcp [address]: connection refused"),
        ("Cannot connect to host vllm:8000 ssl:default", "Cannot connect to host [host] ssl:default"),
        ("lookup model-svc on [fd00:1:2:3::10]:53: no such host", "lookup [host] on [address]: no such host"),
        ("connection to localhost:11434 refused", "connection to [host] refused"),
        ("organization org-abcDEF123456 is over", "organization [id] is over"),
        ("mail ops@example.com", "mail [mail]"),
        ("input_value={'role': 'secret words'}, input_type=dict", "input_value=[…], input_type=dict"),
        ("refused: '" + "my long private prompt " * 5 + "'", "refused: '[…]'"),
        ("two\nlines\tand \x1b[31mcolour\u2028here", "two lines and [31mcolour here"),
        ("账户余额不足，请充值 👋", "账户余额不足，请充值 👋"),
        ("model gpt-4o-2024-11-20 at 12:30:00 is v1.5.2", "model gpt-4o-2024-11-20 at 12:30:00 is v1.5.2"),
        ("litellm.BadRequestError: litellm.Timeout", "litellm.BadRequestError: litellm.Timeout"),
    ],
)
def test_keys_addresses_and_quotations_are_taken_out(said: str, shown: str) -> None:
    """What remains still tells a person what is wrong."""
    assert scrub(said) == shown


@pytest.mark.clause("L3")
@given(st.text(max_size=300))
def test_any_text_is_one_bounded_line_of_valid_text(text: str) -> None:
    """No line breaks, no half surrogates, no more than the limit."""
    line = scrub(text)
    assert len(line) <= MAX_CHARS
    assert line.encode("utf-8").decode() == line
    assert not set(line) & set("\n\r\u2028\x00")


def test_a_long_message_is_cut_with_a_mark() -> None:
    """At the limit it stays, one more and it is cut."""
    words = "ab " * 200
    assert scrub(words[:MAX_CHARS].strip().ljust(MAX_CHARS, "c")) == words[:MAX_CHARS].strip().ljust(MAX_CHARS, "c")
    assert scrub(words).endswith("…")
    assert len(scrub("x y" * MAX_CHARS)) <= MAX_CHARS


def test_half_a_surrogate_pair_does_no_harm() -> None:
    """A payload may hold one, since vendors cut inside characters."""
    assert scrub("bad \ud83d end") == "bad ? end"
