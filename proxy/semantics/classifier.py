"""What an answer means: an `Observation` and a vendor's rules in, a `Verdict` out.

The first rule whose conditions all hold decides; when none does, the table by status at the end of `_default.yaml`
decides and the verdict says `unmapped`. Hints about waiting are read here for every vendor alike. Pure and total: any
bytes, any JSON, any headers give a verdict; the clock is an argument. What of the vendor's words goes into the verdict
has been scrubbed and bounded. Contract clauses E, R1 and W6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from re import Match

from proxy.canon.verdict import ErrorClass, Observation, Verdict
from proxy.semantics.envelope import MAX_TEXT, Said, read_envelope
from proxy.semantics.hints import parse_wait, wait_from_fields, wait_from_headers, wait_from_message
from proxy.semantics.kinds import as_text
from proxy.semantics.paths import JsonPath
from proxy.semantics.rule import Condition, Outcome, Rule, VendorProfile
from proxy.semantics.rule_models import CALLER_STATUSES
from proxy.semantics.scrub import scrub
from proxy.semantics.sieve import Texts
from proxy.semantics.verdicts import STATUS

UNMAPPED = "unmapped"
# Beyond this a caller should not be kept waiting: it is told, and asked not to retry by itself (contract E).
MAX_RETRY_WAIT_S = 60.0
# When a vendor limits but does not say for how long. Short, because most windows slide and a fixed minute for
# everybody turns one full second into an outage; the proxy's own backoff grows from here.
DEFAULT_WAIT_S = 2.0

_RETRIED = frozenset({ErrorClass.RATE_LIMITED, ErrorClass.UPSTREAM_TIMEOUT, ErrorClass.MODEL_UNAVAILABLE})
_IN_PLAIN_WORDS = {
    ErrorClass.AUTH_FAILURE: "The upstream refused the proxy's credential or account; someone must act first.",
    ErrorClass.RATE_LIMITED: "The upstream is limiting requests; try again later.",
    ErrorClass.CONTENT_BLOCKED: "The upstream's moderation held back the prompt or the answer.",
    ErrorClass.UPSTREAM_TIMEOUT: "The upstream did not answer in time.",
    ErrorClass.MODEL_UNAVAILABLE: "The upstream cannot serve this model now.",
    ErrorClass.INVALID_REQUEST: "The upstream refused the request as invalid.",
}


def classify(profile: VendorProfile, obs: Observation, now_wall: float) -> Verdict:
    """`now_wall` is unix time, for hints that are dates."""
    seen = Seen.of(profile, obs)
    for rule in profile.rules:
        if holds(rule.when, seen):
            return _verdict(rule, rule.then, seen, now_wall)
    return _verdict(None, _fallback(profile, seen.status), seen, now_wall)


@dataclass(frozen=True, slots=True)
class Seen:
    """An observation with what its envelope says. `status` is what the vendor meant: the HTTP status where that is an
    error, else the one inside the body, since a 200 proves nothing. `messages`, `codes` and `body` (None where it is
    JSON) are what expressions search in: made ready once for all rules."""

    obs: Observation
    said: Said
    status: int | None
    headers: Mapping[str, str]
    finishes: frozenset[str]
    messages: Texts
    codes: Texts
    body: Texts | None
    zone: tzinfo | None

    @staticmethod
    def of(profile: VendorProfile, obs: Observation) -> Seen:
        said = read_envelope(obs.payload, obs.body, obs.comments)
        status = obs.status
        if status is None or 200 <= status < 300:
            status = said.status if said.status is not None else status
        return Seen(
            obs,
            said,
            status,
            obs.headers,
            _finishes(profile, obs, said.payload),
            messages=Texts.of(said.messages),
            codes=Texts.of(said.spellings),
            body=None if said.text is None else Texts.of([said.text]),
            zone=profile.time_zone,
        )


def _finishes(profile: VendorProfile, obs: Observation, payload: object) -> frozenset[str]:
    """The finish reason in the vendor's word and in ours, as words to compare."""
    finish = obs.finish
    if finish is None:
        told = _FINISH_PATH.select(payload)
        finish = next((word for word in told if isinstance(word, str)), None)
    if finish is None:
        return frozenset()
    return frozenset({finish.lower(), profile.finish_reasons.get(finish, finish).lower()})


_FINISH_PATH = JsonPath("choices[*].finish_reason", ("choices", None, "finish_reason"))


def holds(when: Condition, seen: Seen) -> bool:
    """Does all that the condition asks hold?"""
    if when.statuses is not None and seen.status not in when.statuses:
        return False
    if when.body_sieve is not None and (seen.body is None or not when.body_sieve.finds_any(seen.body)):
        return False
    # Plain loops: this is asked of every rule, and most have nothing to loop over.
    for path, words in when.json:
        if not _is_among(words, _select(path, seen)):
            return False
    for path, sieve in when.sieves:
        if not sieve.finds_any(_texts(path, seen)):
            return False
    obs = seen.obs
    return (
        (when.phase is None or obs.phase in when.phase)
        and (when.finish is None or bool(seen.finishes & when.finish))
        and (when.event is None or (obs.event or "").lower() in when.event)
        and (when.comment is None or any(when.comment.search(comment[:MAX_TEXT]) for comment in obs.comments))
        and not (when.header and _lacks_header(when, seen))
    )


def _is_among(words: frozenset[str], values: Sequence[object]) -> bool:
    return any(as_text(value) in words for value in values if not isinstance(value, (dict, list)))


def _lacks_header(when: Condition, seen: Seen) -> bool:
    return any(pattern.search(seen.headers.get(name, "")[:MAX_TEXT]) is None for name, pattern in when.header)


def _select(path: JsonPath, seen: Seen) -> Sequence[object]:
    match path.text:
        case "$message":
            return seen.said.messages
        case "$code":
            return seen.said.spellings
        case "$status":
            return [seen.status]
        case _:
            return path.select(seen.said.payload)


def _texts(path: JsonPath, seen: Seen) -> Texts:
    match path.text:
        case "$message":
            return seen.messages
        case "$code":
            return seen.codes
        case _:
            values = _select(path, seen)
            return Texts.of(text for value in values if (text := _searchable(value)) is not None)


def _searchable(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    # An integer of ten thousand digits cannot be turned into text, and says nothing.
    if isinstance(value, int) and abs(value) >= 10**18:
        return None
    return str(value)[:MAX_TEXT]


def _fallback(profile: VendorProfile, status: int | None) -> Outcome:
    for row in profile.fallback:
        if any((status or 0) in span for span in row.status):
            return Outcome(row.error_class, UNMAPPED)
    return Outcome(ErrorClass.MODEL_UNAVAILABLE, UNMAPPED)


def _verdict(rule: Rule | None, then: Outcome, seen: Seen, now_wall: float) -> Verdict:
    wait = _wait(then, seen, now_wall) if then.error_class in _RETRIED else None
    vendor_message = scrub(seen.said.message) if seen.said.message else None
    return Verdict(
        error_class=then.error_class,
        code=then.code,
        message=_message(then, vendor_message),
        status=_client_status(then, seen.status),
        retryable=_is_retryable(then, seen, wait),
        retry_after_s=wait,
        rule_id=rule.id if rule is not None else None,
        vendor_status=seen.obs.status,
        vendor_code=scrub(seen.said.code, 80) if seen.said.code else None,
        vendor_message=vendor_message or None,
        mapped=rule is not None,
    )


def _message(then: Outcome, vendor_message: str | None) -> str:
    plain = then.message or _IN_PLAIN_WORDS[then.error_class]
    return f"{plain} It said: {vendor_message}" if vendor_message else plain


def _client_status(then: Outcome, status: int | None) -> int:
    if then.status is not None:
        return then.status
    if then.error_class is ErrorClass.INVALID_REQUEST and status in CALLER_STATUSES:
        return status
    return STATUS[then.error_class]


def _is_retryable(then: Outcome, seen: Seen, wait: float | None) -> bool:
    if then.error_class not in _RETRIED or then.retryable is False:
        return False
    if wait is not None and wait > MAX_RETRY_WAIT_S:
        return False
    return seen.headers.get("x-should-retry", "").strip().lower() != "false"


def _wait(then: Outcome, seen: Seen, now_wall: float) -> float | None:
    """The nearest source wins: what this rule names, headers, fields of the body, words; then the rule's own number."""
    if not math.isfinite(now_wall):
        now_wall = 0.0
    told = _named_wait(then, seen, now_wall)
    if told is None:
        told = wait_told(seen, now_wall)
    if told is None:
        told = then.retry_after
    return DEFAULT_WAIT_S if told is None and then.error_class is ErrorClass.RATE_LIMITED else told


def wait_told(seen: Seen, now_wall: float) -> float | None:
    """Seconds to wait, as the answer says it in a place that needs no rule."""
    said = seen.said
    hints = (
        wait_from_headers(seen.headers, now_wall),
        wait_from_headers(said.headers, now_wall),
        wait_from_fields(said.waits, now_wall, seen.zone),
        next((w for text in said.messages if (w := wait_from_message(text, now_wall, seen.zone)) is not None), None),
    )
    return next((wait for wait in hints if wait is not None), None)


def _named_wait(then: Outcome, seen: Seen, now_wall: float) -> float | None:
    if then.retry_after_json is not None:
        waits = (parse_wait(value, now_wall, seen.zone) for value in _select(then.retry_after_json, seen))
        return next((wait for wait in waits if wait is not None), None)
    if then.retry_after_match is not None:
        for text in seen.said.messages:
            if (found := then.retry_after_match.search(text)) is not None:
                return _matched_wait(found, now_wall, seen.zone)
    return None


def _matched_wait(found: Match[str], now_wall: float, zone: tzinfo | None) -> float | None:
    groups = (found.groupdict().get(name) for name in ("seconds", "length", "date"))
    return next((wait for text in groups if text and (wait := parse_wait(text, now_wall, zone)) is not None), None)
