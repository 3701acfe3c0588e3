"""From an observation to a verdict: order, scope, conditions, statuses, waiting, and that nothing raises."""

from __future__ import annotations

import json
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.verdict import ErrorClass, Observation, Phase, Verdict
from proxy.semantics.classifier import DEFAULT_WAIT_S, classify
from proxy.semantics.ruleset import RuleSet, parse_rule_files
from proxy.stores.rules import default_rules_dir, load_rules

NOW = 1_795_996_800.0  # 2026-11-30 00:00:00 UTC

FALLBACK = "fallback:\n  - {status: [401, 403], class: auth_failure}\n  - {status: any, class: model_unavailable}\n"


@cache
def shipped() -> RuleSet:
    return load_rules(default_rules_dir())


def seen(vendor: str, status: int, body: object, phase: Phase = Phase.HEAD, **headers: str) -> Verdict:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, str) else json.dumps(body)
    return classify(shipped().profile(vendor), Observation(vendor, phase, status, named, raw.encode()), NOW)


def error(message: str | None, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


def ruled(when: str, obs: Observation, then: str = "class: rate_limited, code: it") -> Verdict:
    """The verdict of a set with one rule."""
    rule = (
        f"rules:\n  - id: acme.it\n    when: {{{when}}}\n    then: {{{then}}}\n"
        "    evidence: x\n    seen: 2026-11-30\n    proof: composed\n"
    )
    rules = parse_rule_files({"acme.yaml": "vendor: acme\n" + rule, "_default.yaml": FALLBACK})
    return classify(rules.profile("acme"), obs, NOW)


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("when", "obs", "holds"),
    [
        ("status: 429", Observation("acme", Phase.HEAD, 429), True),
        ("status: 429", Observation("acme", Phase.HEAD, 430), False),
        ("status: 5xx", Observation("acme", Phase.HEAD, 599), True),
        ("status: [400, 5xx]", Observation("acme", Phase.HEAD, 404), False),
        ("status: 503", Observation("acme", Phase.MID, 200, payload={"error": {"code": "503"}}), True),
        ("status: 400", Observation("acme", Phase.HEAD, 500, payload={"error": {"code": 400}}), False),
        ("status: 429", Observation("acme", Phase.MID, None, payload={"x": 1}), False),
        ("header: {X-Kind: 'quo'}", Observation("acme", Phase.HEAD, 400, {"x-kind": "Quota"}), True),
        ("header: {X-Kind: '.'}", Observation("acme", Phase.HEAD, 400), False),
        ("json: {error.code: 7}", Observation("acme", Phase.HEAD, 400, payload={"error": {"code": "7"}}), True),
        (
            "json: {error.code: [a, null]}",
            Observation("acme", Phase.HEAD, 400, payload={"error": {"code": None}}),
            True,
        ),
        ("json: {ok: false}", Observation("acme", Phase.HEAD, 400, payload={"ok": False}), True),
        ("json: {error.code: RATE}", Observation("acme", Phase.HEAD, 400, payload={"error": {"code": "rate"}}), True),
        ("json: {error: x}", Observation("acme", Phase.HEAD, 400, payload={"error": {"x": "x"}}), False),
        ("json: {$code: inner}", Observation("acme", Phase.HEAD, 400, payload={"detail": {"reason": "inner"}}), True),
        ("json: {$status: 418}", Observation("acme", Phase.HEAD, 418, payload={}), True),
        ("match: {$message: '余额'}", Observation("acme", Phase.HEAD, 400, payload={"msg": "账户余额不足"}), True),
        ("match: {$: 'api key'}", Observation("acme", Phase.HEAD, 400, payload="Api key is invalid"), True),
        ("match: {error.code: '^4'}", Observation("acme", Phase.HEAD, 200, payload={"error": {"code": 42}}), True),
        ("match: {error: x}", Observation("acme", Phase.HEAD, 200, payload={"error": {"x": "x"}}), False),
        ("body: 'nginx'", Observation("acme", Phase.HEAD, 502, body=b"<html>nginx</html>"), True),
        ("body: 'nginx'", Observation("acme", Phase.HEAD, 502, body=b'{"text": "nginx"}'), False),
        ("body: '^$'", Observation("acme", Phase.HEAD, 502), True),
        ("phase: [first, mid]", Observation("acme", Phase.MID, 200), True),
        ("phase: head", Observation("acme", Phase.MID, 200), False),
        ("finish: network_error", Observation("acme", Phase.MID, 200, finish="network_error"), True),
        ("finish: x", Observation("acme", Phase.MID, 200, payload={"choices": [{"finish_reason": "x"}]}), True),
        ("finish: x", Observation("acme", Phase.MID, 200), False),
        ("event: error", Observation("acme", Phase.MID, 200, event="error"), True),
        ("event: error", Observation("acme", Phase.MID, 200), False),
        ("comment: 'STATUS/429'", Observation("acme", Phase.MID, 200, comments=(":HTTP_STATUS/429",)), True),
        ("status: 429, event: error", Observation("acme", Phase.MID, 429), False),
    ],
)
def test_a_condition_holds_or_not(when: str, obs: Observation, holds: bool) -> None:
    """Each kind of condition, held and missed; all that is asked must hold."""
    assert (ruled(when, obs).rule_id == "acme.it") is holds


@pytest.mark.clause("E")
@pytest.mark.parametrize(
    ("file", "wait"), [("", 3600.0), ("time_zone: '+00:30'\n", 1800.0), ("time_zone: '-02:30'\n", 12600.0)]
)
def test_a_date_without_a_zone_is_in_the_vendors(file: str, wait: float) -> None:
    """UTC where nobody knows; a zone that is said in the answer wins."""
    rule = "rules:\n  - id: acme.it\n    when: {status: 429}\n    then: {class: rate_limited, code: it}\n"
    profile = parse_rule_files({"acme.yaml": f"vendor: acme\n{file}{rule}", "_default.yaml": FALLBACK}).profile("acme")

    def wait_of(message: str) -> float | None:
        body = json.dumps(error(message)).encode()
        return classify(profile, Observation("acme", Phase.HEAD, 429, {}, body), NOW).retry_after_s

    assert wait_of("Your limit will reset at 2026-11-30 01:00:00") == wait
    assert wait_of("Your limit will reset at 2026-11-30 01:00:00+00:00") == 3600.0


@pytest.mark.clause("E")
def test_identical_bodies_mean_what_their_vendor_means() -> None:
    """`insufficient_quota` is money at OpenAI and tokens per minute at Alibaba."""
    body = error(
        "You exceeded your current quota, please check your plan and billing details.",
        type="insufficient_quota",
        code="insufficient_quota",
    )
    assert seen("openai", 429, body).error_class is ErrorClass.AUTH_FAILURE
    assert seen("qwen_compat", 429, body).error_class is ErrorClass.RATE_LIMITED


@pytest.mark.clause("E")
def test_one_status_means_what_its_vendor_means() -> None:
    """498 is capacity at Groq, a token elsewhere; 403 is an over-long prompt at Together."""
    assert seen("groq", 498, error("x")).error_class is ErrorClass.MODEL_UNAVAILABLE
    assert seen("openai", 498, error("x")).error_class is ErrorClass.AUTH_FAILURE
    assert seen("together", 403, error("too many tokens")).error_class is ErrorClass.INVALID_REQUEST


@pytest.mark.clause("E")
@pytest.mark.parametrize(
    ("status", "cls", "client_status"),
    [
        (401, "auth_failure", 502),
        (402, "auth_failure", 502),
        (403, "auth_failure", 502),
        (404, "model_unavailable", 503),
        (408, "upstream_timeout", 504),
        (413, "invalid_request", 413),
        (418, "invalid_request", 400),
        (422, "invalid_request", 422),
        (429, "rate_limited", 429),
        (451, "content_blocked", 400),
        (500, "model_unavailable", 503),
        (504, "upstream_timeout", 504),
        (529, "model_unavailable", 503),
        (301, "model_unavailable", 503),
    ],
)
def test_an_answer_without_words_is_classed_by_its_status(status: int, cls: str, client_status: int) -> None:
    """The client's status is that of the class, the vendor's own only for the caller's mistakes."""
    verdict = seen("openai_compatible", status, {"x": "y"})
    assert (verdict.error_class, verdict.status, verdict.vendor_status) == (cls, client_status, status)


@pytest.mark.clause("E")
def test_what_no_rule_knows_is_unmapped() -> None:
    """Classed by the fallback table, and marked."""
    verdict = seen("openai_compatible", 500, {"x": "y"})
    assert (verdict.code, verdict.mapped, verdict.rule_id) == ("unmapped", False, None)
    known = seen("openai_compatible", 500, error("Internal server error"))
    assert (known.code, known.mapped, known.rule_id) == ("server_error", True, "default.weak.server-text")


@pytest.mark.clause("E")
def test_a_number_elsewhere_in_the_body_is_no_status() -> None:
    """`429` among token ids does not make a limit of a 400."""
    body = {**error("field tools is empty", type="invalid_request_error", code=400), "prompt_token_ids": [11, 429, 7]}
    verdict = seen("openai", 400, body)
    assert (verdict.error_class, verdict.status, verdict.retryable) == (ErrorClass.INVALID_REQUEST, 400, False)


@pytest.mark.clause("E")
def test_a_limit_whose_end_is_a_date_waits_until_then() -> None:
    """A spend limit under 400 that names its day: rate_limited, not to be retried by itself."""
    verdict = seen("openai", 400, error("Monthly usage limit of this workspace reached; access returns on 2026-12-01."))
    assert (verdict.error_class, verdict.status) == (ErrorClass.RATE_LIMITED, 429)
    assert (verdict.retry_after_s, verdict.retryable) == (86400.0, False)


@pytest.mark.clause("E")
def test_a_limit_without_a_hint_gets_a_short_wait_of_ours() -> None:
    """Never a fixed minute for everybody."""
    verdict = seen("openai", 429, error("model not available", type="rate_limit_error"))
    assert (verdict.error_class, verdict.retry_after_s, verdict.retryable) == ("rate_limited", DEFAULT_WAIT_S, True)


@pytest.mark.clause("E")
@pytest.mark.parametrize(
    ("seconds", "retryable"),
    [("60", True), ("61", False), ("99999999999", False), ("Fri, 31 Dec 9999 23:59:59 GMT", False), ("1e3", False)],
)
def test_beyond_a_minute_nobody_is_asked_to_retry(seconds: str, retryable: bool) -> None:
    """At the limit and one above."""
    assert seen("openai", 429, error("Rate limit reached"), retry_after=seconds).retryable is retryable


@pytest.mark.clause("E")
def test_the_vendors_own_word_on_retrying_is_obeyed() -> None:
    """`x-should-retry: false` from a vendor; `true` never makes a refused request retryable."""
    assert seen("openai", 503, error("overloaded"), x_should_retry="false").retryable is False
    assert seen("openai", 401, error("no key"), x_should_retry="true").retryable is False


@pytest.mark.clause("E")
def test_hints_are_taken_from_the_nearest_source() -> None:
    """Headers, then fields of the body, then words."""
    body = error("Please try again in 9s.", retry_after=5, code="rate_limit_exceeded")
    assert seen("openai", 429, body, retry_after="3").retry_after_s == 3.0
    assert seen("openai", 429, body).retry_after_s == 5.0
    assert seen("openai", 429, error("Please try again in 9s.", code="rate_limit_exceeded")).retry_after_s == 9.0


@pytest.mark.clause("E")
def test_what_is_never_retried_has_no_wait() -> None:
    """Waiting cures neither a credential nor a refused prompt."""
    verdict = seen("openai", 401, error("no key"), retry_after="5")
    assert (verdict.retry_after_s, verdict.retryable) == (None, False)


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("then", "wait"),
    [
        ("class: rate_limited, code: it, retry_after: 300", 300.0),
        ("class: rate_limited, code: it, retry_after: {json: error.wait}", 7.0),
        ("class: rate_limited, code: it, retry_after: {match: 'dans (?P<length>[0-9]+ m)'}", 240.0),
        ("class: rate_limited, code: it, retry_after: {match: 'dans (?P<seconds>[0-9]+)'}", 4.0),
        ("class: rate_limited, code: it, retry_after: {match: 'nie (?P<seconds>[0-9]+)'}", DEFAULT_WAIT_S),
    ],
)
def test_a_rule_says_where_its_vendor_hides_the_wait(then: str, wait: float) -> None:
    """A number of its own, a field, or a group in the message."""
    obs = Observation("acme", Phase.HEAD, 429, payload={"error": {"message": "dans 4 minutes", "wait": "7"}})
    assert ruled("status: 429", obs, then).retry_after_s == wait


@pytest.mark.clause("E")
def test_the_message_is_for_a_person_and_holds_no_secret() -> None:
    """Plain English, then the vendor's words without keys and hosts; page and body never."""
    verdict = seen(
        "openai", 401, error("Incorrect API key provided: sk-live-abc123. See https://api.example.com/keys.")
    )
    assert verdict.message == (
        "The upstream refused the proxy's credential or account; someone must act first. "
        "It said: Incorrect API key provided: [key] See [url]"
    )
    page = seen("openai", 502, "<html><head><title>502 Bad Gateway</title></head><body>10.0.0.7</body></html>")
    assert page.vendor_message == "502 Bad Gateway"


@pytest.mark.clause("E")
def test_a_quoted_prompt_does_not_come_back() -> None:
    """What a validator refused is quoted beside the fault; only the fault is told."""
    body = {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": "my secret"}]}
    verdict = seen("vllm", 422, body)
    assert verdict.vendor_message == "body.messages: Field required"


@pytest.mark.clause("E")
def test_a_finish_reason_may_be_an_error() -> None:
    """In the vendor's own word, with a code of its own."""
    profile = shipped().profile("zhipu")
    verdict = classify(profile, Observation("zhipu", Phase.MID, 200, finish="network_error"), NOW)
    assert (verdict.error_class, verdict.code) == (ErrorClass.MODEL_UNAVAILABLE, "network_error")
    profile = shipped().profile("deepseek")
    verdict = classify(profile, Observation("deepseek", Phase.MID, 200, finish="insufficient_system_resource"), NOW)
    assert (verdict.error_class, verdict.code) == (ErrorClass.MODEL_UNAVAILABLE, "insufficient_system_resource")


@pytest.mark.clause("E")
def test_an_error_beside_a_finish_reason_decides() -> None:
    """OpenRouter ends such a chunk with finish_reason error; the code in it says more."""
    chunk = {"error": {"code": 429, "message": "Rate limited"}, "choices": [{"index": 0, "finish_reason": "error"}]}
    profile = shipped().profile("openrouter")
    verdict = classify(profile, Observation("openrouter", Phase.MID, 200, payload=chunk, finish="error"), NOW)
    assert (verdict.error_class, verdict.code) == (ErrorClass.RATE_LIMITED, "rate_limited")


_KEYS = st.sampled_from(
    [
        "error",
        "message",
        "code",
        "type",
        "status",
        "detail",
        "metadata",
        "raw",
        "choices",
        "finish_reason",
        "base_resp",
        "x",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)
_OBSERVED = st.builds(
    Observation,
    vendor=st.just("any"),
    phase=st.sampled_from(Phase),
    status=st.none() | st.integers(-1, 10**6),
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry", "x-ratelimit-reset-tokens", "server"]),
        st.text(),
    ),
    body=st.binary(max_size=300) | st.text().map(str.encode),
    payload=st.none() | _JSON,
    finish=st.none() | st.text(max_size=12) | st.sampled_from(["error", "timeout", "content_filter"]),
    event=st.none() | st.text(max_size=12),
    comments=st.lists(st.text(max_size=30), max_size=3).map(tuple),
)
_CLIENT_STATUSES = {
    "auth_failure": {502},
    "rate_limited": {429},
    "content_blocked": {400},
    "upstream_timeout": {504},
    "model_unavailable": {503},
    "invalid_request": {400, 404, 413, 415, 422},
}


@pytest.mark.clause("E")
@given(_OBSERVED, st.sampled_from(sorted(shipped().vendors)), st.floats())
def test_any_observation_gets_a_verdict_that_keeps_the_contract(obs: Observation, vendor: str, now: float) -> None:
    """Any bytes, any JSON, any headers, any clock: no exception, and statuses, retries and waits as E says."""
    verdict = classify(shipped().profile(vendor), obs, now)
    assert verdict.status in _CLIENT_STATUSES[verdict.error_class]
    if verdict.error_class in ("auth_failure", "content_blocked", "invalid_request"):
        assert not verdict.retryable
    if verdict.error_class == "rate_limited":
        assert verdict.retry_after_s is not None
    if (verdict.retry_after_s or 0) > 60:
        assert not verdict.retryable
    assert len(verdict.message) < 1000
    for text in (verdict.message, verdict.vendor_message, verdict.vendor_code):
        assert text is None or text.encode("utf-8").decode() == text
    assert verdict.mapped is (verdict.code != "unmapped") is (verdict.rule_id is not None)


@pytest.mark.clause("E")
@pytest.mark.parametrize(
    "piece", ["a", "1", "a-", "a.", "a:", " ", "(", "*", "key ", "model is invalid key ", "'code':{", "<h1", "错误"]
)
def test_a_hostile_message_costs_little(piece: str) -> None:
    """Repeated text that makes careless expressions backtrack: a verdict takes milliseconds, and the loop goes on."""
    profile = shipped().profile("openai_compatible")
    body = json.dumps(error(piece * (20_000 // len(piece)))).encode()
    began = time.process_time()
    classify(profile, Observation("openai_compatible", Phase.HEAD, 400, {}, body), NOW)
    classify(profile, Observation("openai_compatible", Phase.HEAD, 400, {}, body[20:]), NOW)
    assert time.process_time() - began < 0.4
