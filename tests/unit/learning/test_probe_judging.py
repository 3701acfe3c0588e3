"""What an answer to a probe should mean, and whether it does (contracts R1, E)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from proxy.canon.ending import Stop
from proxy.learning.asking import Heard
from proxy.learning.catalogue import Allowed, catalogue
from proxy.learning.judging import Judgement, expecting, judge
from proxy.learning.keeping import same_refusal
from proxy.learning.known import answer_of
from proxy.stores.recordings import End, Read, Recording
from tests.support.learning import acme, shipped_corpus

pytestmark = pytest.mark.clause("R1", "E")

PROBES: Final = {probe.name: probe for probe in catalogue(Allowed("m", "k" * 20, ("x",), 3))}
RIGHT, WRONG, UNSURE = Judgement.RIGHT, Judgement.WRONG, Judgement.UNSURE
HEALTHY: Final = {"choices": [{"index": 0, "message": {"content": "سلام"}, "finish_reason": "stop"}]}
TOO_LARGE: Final = {"error": {"message": "Request too large: tokens per min (TPM): Limit 30000, Requested 140000"}}


def recording(status: int, body: object, *, end: End = "close") -> Recording:
    raw = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return Recording(
        path=Path("probe-x-1.jsonl"),
        vendor="acme",
        name="probe-x-1",
        obtained="captured",
        odd="",
        request={"body": {"model": "m"}},
        status=status,
        headers=(("content-type", "application/json"),),
        end=end,
        reads=(Read(0.0, raw.encode()),) if raw else (),
    )


def heard(probe: str, status: int, body: object, *, stop: Stop = Stop.EOF, end: End = "close") -> Heard:
    return Heard(PROBES[probe], PROBES[probe].asks[0], 1, stop, recording(status, body, end=end), 0.1)


def judged(one: Heard) -> tuple[Judgement, str | None]:
    outcome = judge(acme(), one, shipped_corpus())
    return outcome.judgement, outcome.wanted


def error(message: str, code: str = "") -> dict[str, object]:
    return {"error": {"message": message, "code": code}}


@pytest.mark.parametrize(
    ("probe", "status", "body", "expected"),
    [
        ("plain", 200, HEALTHY, (RIGHT, None)),
        ("tool", 400, error("tools are not supported", "invalid_request_error"), (Judgement.REFUSED, None)),
        ("tool", 418, error("Не сейчас", "Z-1"), (WRONG, None)),
        ("stream", 200, "", (WRONG, None)),
        ("unknown-model", 404, error("no such model", "model_not_found"), (RIGHT, "model_unavailable")),
        ("unknown-model", 418, error("این نیست", "M-4"), (WRONG, "model_unavailable")),
        ("unknown-model", 503, error("این نیست", "M-4"), (WRONG, "model_unavailable")),  # right by chance alone
        ("unknown-model", 200, HEALTHY, (Judgement.ACCEPTED, "model_unavailable")),
        ("too-long", 400, error("too long", "context_length_exceeded"), (RIGHT, "invalid_request")),
        ("too-long", 429, error("TPM", "rate_limit_exceeded"), (RIGHT, "rate_limited")),
        ("moderation", 200, {"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "content_filter"}]},
         (RIGHT, "content_blocked")),
        ("burst", 429, error("slow", "rate_limit_exceeded"), (RIGHT, "rate_limited")),
        ("burst", 418, error("یواش", "R-1"), (WRONG, "rate_limited")),
        ("burst", 503, error("Zug", "O-1"), (UNSURE, None)),
        ("burst", 401, error("no", "invalid_api_key"), (UNSURE, None)),
        ("burst", 200, HEALTHY, (Judgement.ACCEPTED, "rate_limited")),
    ],
)  # fmt: skip
def test_each_answer_is_judged_by_what_was_asked(
    probe: str, status: int, body: object, expected: tuple[Judgement, str | None]
) -> None:
    """A class that only the fallback table gave is chance; an overload is no rate; another limit may come first."""
    assert judged(heard(probe, status, body)) == expected


def test_what_is_like_answers_to_another_limit_is_not_called_too_long() -> None:
    """A minute's budget is told to who asks for too much of it at once, in words that only resemble known ones."""
    outcome = judge(acme(), heard("too-long", 418, TOO_LARGE), shipped_corpus())
    assert outcome.wanted == "rate_limited"


@pytest.mark.parametrize(
    ("probe", "stop", "end", "expected"),
    [
        ("deadline", Stop.TOTAL, "hang", (RIGHT, "upstream_timeout")),
        ("hang-up", Stop.GONE, "hang", (RIGHT, None)),
        ("unknown-model", Stop.IDLE, "hang", (Judgement.UNHEARD, "model_unavailable")),
        ("unknown-model", Stop.CUT, "reset", (Judgement.UNHEARD, "model_unavailable")),
    ],
)
def test_silence_is_no_refusal(probe: str, stop: Stop, end: End, expected: tuple[Judgement, str | None]) -> None:
    """What we ended is ours; a vendor that says nothing teaches nothing."""
    assert judged(heard(probe, 200, "", stop=stop, end=end)) == expected


def test_without_a_head_there_is_no_recording() -> None:
    """The deadline that passed is the verdict."""
    one = Heard(PROBES["deadline"], PROBES["deadline"].asks[0], 1, Stop.FIRST_BYTE, None, 0.1)
    outcome = judge(acme(), one, shipped_corpus())
    assert (outcome.judgement, outcome.error_class, outcome.code) == (RIGHT, "upstream_timeout", "first_byte_timeout")
    assert expecting(one, outcome) is one


def test_a_recording_is_told_what_it_must_mean() -> None:
    """Only where that is known."""
    for one, expect in (
        (heard("unknown-model", 418, error("این نیست", "M-4")), {"class": ["model_unavailable"]}),
        (heard("unknown-model", 200, HEALTHY), {}),
        (heard("burst", 503, error("Zug", "O-1")), {}),
        (heard("plain", 200, HEALTHY), {}),
    ):
        told = expecting(one, judge(acme(), one, shipped_corpus())).recording
        assert told is not None
        assert told.expect == expect


# ---- do two refusals say the same? -----------------------------------------------------------------------------------


RULE: Final = """\
vendor: acme
rules:
  - id: acme.model
    when: {json: {error.code: M-4}}
    then: {class: model_unavailable, code: model_not_found}
"""


def same(one: object, other: object, *, status: int = 418, text: str = "vendor: acme\n") -> bool:
    profile = acme(text)
    seen = [answer_of(profile, recording(status, body), "") for body in (one, other)]
    assert seen[0] is not None
    assert seen[1] is not None
    return same_refusal(profile, seen[0].observation, seen[1].observation)


def test_ids_moments_and_counts_change_nothing() -> None:
    """They differ from answer to answer."""
    one = {**error("نام acme-77 نیست، پس از 12s", "M-4"), "id": "req_0123456789abcdef0123", "ts": 1795202652}
    other = {**error("نام acme-78 نیست، پس از 3.5s", "M-4"), "id": "req_fedcba9876543210fedc", "ts": 1795202999}
    assert same(one, other)


@pytest.mark.parametrize(
    "other", [error("این نیست", "M-5"), error("سخن دیگر", "M-4"), {"fehler": "این نیست"}, "<html>M-4</html>"]
)
def test_another_code_or_another_word_is_another_answer(other: object) -> None:
    """As long as no rule knows either."""
    assert not same(error("این نیست", "M-4"), other)


def test_other_words_are_the_same_answer_where_one_rule_decides_both() -> None:
    """Unless fields came or went."""
    one = error("این نیست", "M-4")
    assert same(one, error("سخن دیگر", "M-4"), text=RULE)
    assert not same(one, {**error("سخن دیگر", "M-4"), "hint": 5}, text=RULE)
    assert not same(one, error("این نیست", "M-5"), text=RULE)
