"""The shapes in which vendors tell an error, and what is read from each."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.semantics.envelope import MAX_TEXT, MAX_TEXTS, read_envelope

pytestmark = pytest.mark.clause("E")


@pytest.mark.parametrize(
    ("body", "message", "code", "status"),
    [
        ('{"error":{"message":"m","type":"t","code":"c"}}', "m", "c", None),
        ('{"error":{"message":"m","type":"t","code":null}}', "m", "t", None),
        ('{"error":{"message":"m","type":"None","code":"429"}}', "m", "429", 429),
        ('{"error":"unauthorized"}', "unauthorized", None, None),
        ('{"code":"a sentence","error":"a text"}', "a text (…)", "a sentence", None),
        ('{"message":"flat","code":20012,"data":null}', "flat", "20012", None),
        (
            '{"object":"error","message":{"detail":[{"type":"missing","loc":["body","m"],"msg":"Field required"}]}}',
            "body.m: Field required",
            "missing",
            None,
        ),
        ('{"detail":"Not Found"}', "Not Found", None, None),
        (
            '{"detail":[{"type":"missing","loc":["body",0],"msg":"Field required","input":"secret"}]}',
            "body.0: Field required",
            "missing",
            None,
        ),
        (
            '{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}',
            "insufficient balance",
            "1008",
            None,
        ),
        ('{"Response":{"Error":{"Code":"AuthFailure.X","Message":"no"}}}', "no", "AuthFailure.X", None),
        ('{"ResponseMetadata":{"Error":{"Code":"InvalidAccessKey","Message":"no"}}}', "no", "InvalidAccessKey", None),
        ('[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]', "m", "429", 429),
        ('"Api key is invalid"', "Api key is invalid", None, None),
        ('{"status":429,"title":"Too Many Requests"}', "Too Many Requests", "429", 429),
        ('{"error":{"message":"x","status_code":400,"code":"tool_use_failed"}}', "x", "tool_use_failed", 400),
        ('{"error":{"message":"x","http_status_code":422}}', "x", None, 422),
        ('{"error":{"message":"x","type":"upstream_error","param":"429","code":"bad"}}', "x", "bad", 429),
        (
            '{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}',
            "m",
            "server_error",
            None,
        ),
        ('error: {"error":{"code":500,"message":"m"}}', "m", "500", 500),
        ('{"code":1002,"msg":"非法","success":false}', "非法", "1002", None),
        ("<html><head><title>502 Bad &amp; Gateway</title></head></html>", "502 Bad & Gateway", None, None),
        ("<html><body><h1>Sorry, <b>blocked</b></h1></body></html>", "Sorry,  blocked", None, None),
        ("error code: 524", "error code: 524", None, None),
        ("", None, None, None),
        ("null", "null", None, None),
        ("{broken", "{broken", None, None),
    ],
)
def test_a_shape_is_read(body: str, message: str | None, code: str | None, status: int | None) -> None:
    """Message, code and status, wherever the envelope keeps them."""
    said = read_envelope(None, body.encode())
    wanted = message.removesuffix(" (…)") if message is not None else None
    assert (said.messages[0] if said.messages else None, said.code, said.status) == (wanted, code, status)


def test_json_inside_a_string_is_looked_into() -> None:
    """A relay's metadata.raw holds the provider's own body; both its code and its words are found."""
    raw = json.dumps({"error": {"code": "data_inspection_failed", "message": "不当内容"}}, ensure_ascii=False)
    said = read_envelope({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}, b"")
    assert "data_inspection_failed" in said.codes
    assert said.message == "Provider returned error (不当内容)"


def test_json_of_any_length_inside_a_message_is_looked_into() -> None:
    """Whole JSON, and JSON behind words, also where it is longer than what is kept of a message."""
    inner = json.dumps({"pad": "ж" * MAX_TEXT, "error": {"message": "余额不足", "code": "Arrearage"}})
    for text in (inner, f"Error code: 400 - {inner}"):
        said = read_envelope({"error": {"message": text, "type": "upstream_error"}}, b"")
        assert "余额不足" in said.messages
        assert {"Arrearage", "upstream_error"} <= set(said.codes)


@pytest.mark.parametrize(
    ("code", "spellings"),
    [
        ("RateLimitExceeded", ["RateLimitExceeded", "rate_limit_exceeded"]),
        ("rate-limit-exceeded", ["rate-limit-exceeded", "rate_limit_exceeded"]),
        ("Throttling.RateQuota", ["Throttling.RateQuota", "throttling.rate_quota"]),
        ("RESOURCE_EXHAUSTED", ["RESOURCE_EXHAUSTED"]),
        ("30001", ["30001"]),
        ("The service is currently unavailable", ["The service is currently unavailable"]),
    ],
)
def test_a_code_of_many_words_has_one_spelling_for_rules(code: str, spellings: list[str]) -> None:
    """What the vendor wrote stays; a sentence is no code."""
    said = read_envelope({"error": {"code": code}}, b"")
    assert (said.codes, said.spellings) == ([code], spellings)


def test_a_python_repr_inside_a_message_is_looked_into() -> None:
    """Some relays print the exception of the client they use."""
    text = "Error code: 400 - {'error': {'message': 'The response was filtered', 'code': 'content_filter'}}"
    said = read_envelope({"error": {"message": text}}, b"")
    assert "content_filter" in said.codes
    assert "The response was filtered" in said.messages


def test_a_status_in_a_comment_counts_where_the_body_has_none() -> None:
    """DashScope writes it there."""
    assert read_envelope({"code": "Throttling", "message": "x"}, b"", (":HTTP_STATUS/429",)).status == 429


def test_content_is_never_looked_at() -> None:
    """An answer that speaks of errors is no error (messages, choices, quoted input)."""
    chunk = {
        "choices": [{"delta": {"content": "error 429: rate limit"}, "message": {"content": "invalid api key"}}],
        "input": "insufficient balance",
        "prompt_token_ids": [429],
    }
    said = read_envelope(chunk, b"")
    assert (said.messages, said.codes, said.status) == ([], [], None)


def test_fields_about_waiting_and_headers_of_a_relay_are_kept() -> None:
    """For `hints` to read."""
    error = {
        "code": 429,
        "message": "m",
        "metadata": {"headers": {"X-RateLimit-Reset": "1795996860000", "Retry-After": 7}},
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "20s"}],
    }
    said = read_envelope({"error": error}, b"")
    assert said.waits == [("retryDelay", "20s")]
    assert said.headers == {"x-ratelimit-reset": "1795996860000", "retry-after": "7"}


def test_depth_width_and_length_are_bounded() -> None:
    """A hostile body costs little and breaks nothing."""
    deep: dict[str, object] = {"message": "bottom"}
    for _ in range(400):
        deep = {"error": deep}
    assert read_envelope(deep, b"").messages == []
    wide = {"errors": [{"message": f"m{i}", "code": f"c{i}"} for i in range(1000)]}
    assert len(read_envelope(wide, b"").messages) < 50
    assert len(read_envelope({"error": "x" * 10**6}, b"").messages[0]) == MAX_TEXT
    long = [{"message": f"{i}: {'超限 ' * 10**3}"} for i in range(8)]
    told = read_envelope({"errors": [{"errors": long}, {"errors": long}, *long]}, b"").messages
    assert (len(told[0]), sum(map(len, told))) == (MAX_TEXT, MAX_TEXTS)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "status", "detail", "metadata", "raw", "headers", "retry_after", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_JSON, st.binary(max_size=200))
def test_any_payload_and_any_bytes_are_read(payload: object, body: bytes) -> None:
    """Traffic never raises."""
    for said in (read_envelope(payload, body), read_envelope(None, body)):
        assert all(isinstance(text, str) for text in (*said.messages, *said.codes))
        assert said.status is None or 400 <= said.status <= 599
