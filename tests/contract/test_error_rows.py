"""Every error that a vendor is known to send, as recordings, against the shipped rules.

The recordings under `recordings/*/errors/` are the data. Each is played through the pipeline as it came; an event of a
stream is also judged as the first event and in the middle of an answer. A rule's evidence must be decided by that rule.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from proxy.canon.verdict import Observation, Phase, Verdict
from proxy.learning.checking import check
from proxy.learning.known import evidence_of
from proxy.learning.replaying import replay
from proxy.semantics.classifier import classify
from proxy.semantics.ruleset import RuleSet
from proxy.stores.recordings import Recording, find_recordings
from proxy.stores.rules import default_rules_dir, load_rules
from proxy.wire.sse import SseDecoder

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_795_996_800.0
LIMIT = 1 << 20


@cache
def rules() -> RuleSet:
    return load_rules(default_rules_dir())


ROWS = find_recordings(sorted((ROOT / "recordings").glob("*/errors")))
# Moderation that ends an answer, and an empty 200, are endings: the pipeline judges them without a rule (contract W5).
# Only chat completions say an error in one SSE event that can be judged without their dialect's reader.
CHAT = [row for row in ROWS if "/chat/completions" in str(row.request["path"])]


def is_moderated_end(row: Recording) -> bool:
    return b'"error"' not in row.body and row.expect["class"] == ["content_blocked"] and b'"finish_reason"' in row.body


IN_STREAM = [row for row in CHAT if row.expect["phase"] == "first" and not is_moderated_end(row)]


def names(rows: list[Recording]) -> list[str]:
    return [row.key for row in rows]


def classes(row: Recording) -> object:
    return row.expect["class"]


def event_of(row: Recording, phase: Phase) -> Observation:
    """The first event of a stream as the pipeline would show it."""
    decoder = SseDecoder(LIMIT, LIMIT)
    frame = (decoder.feed(row.body) + decoder.finish())[0]
    comments = tuple(comment.decode() for comment in frame.comments)
    return Observation(row.vendor, phase, row.status, dict(row.headers), frame.data, None, None, frame.event, comments)


def judged(obs: Observation) -> Verdict:
    return classify(rules().profile(obs.vendor), obs, NOW)


@pytest.mark.clause("E")
@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_a_recorded_error_gets_its_class_and_its_code(row: Recording) -> None:
    """The whole exchange through the pipeline: the class it must have, the code that programs rely on."""
    facts = replay(rules().profile(row.vendor), row)
    assert facts.error_class in row.expect["class"]  # type: ignore[operator]  # a list, by the format of error rows
    assert facts.error_code == row.expect.get("code", facts.error_code)


@pytest.mark.clause("E")
@pytest.mark.parametrize("phase", [Phase.FIRST, Phase.MID])
@pytest.mark.parametrize("row", IN_STREAM, ids=names(IN_STREAM))
def test_an_error_in_a_stream_means_the_same_first_and_midway(row: Recording, phase: Phase) -> None:
    """Where an event stands does not change what it means."""
    verdict = judged(event_of(row, phase))
    assert verdict.error_class in row.expect["class"]  # type: ignore[operator]
    assert verdict.mapped


@pytest.mark.clause("E")
@pytest.mark.parametrize("row", [row for row in ROWS if "retry_after" in row.expect], ids=lambda row: row.key)
def test_a_wait_that_the_vendor_asks_for_is_passed_on(row: Recording) -> None:
    """Retry-After of a limit is the vendor's own."""
    verdict = judged(Observation(row.vendor, Phase.HEAD, row.status, dict(row.headers), row.body))
    if verdict.error_class == "rate_limited":
        assert verdict.retry_after_s == row.expect["retry_after"]


PAGES = [row for row in ROWS if row.path.name.startswith("infra")]


@pytest.mark.clause("E")
@pytest.mark.parametrize("vendor", sorted(rules().vendors))
def test_what_stands_in_front_of_a_vendor_is_known_in_front_of_any(vendor: str) -> None:
    """Pages of CDNs, balancers and gateways, under every vendor's rules."""
    wrong = {}
    for row in PAGES:
        verdict = judged(Observation(vendor, Phase.HEAD, row.status, dict(row.headers), row.body))
        if verdict.error_class not in (wanted := row.expect["class"]):  # type: ignore[operator]
            wrong[row.name] = (verdict.error_class, verdict.rule_id, wanted)
    assert {name: found for name, found in wrong.items() if not is_vendors_own(vendor, found[1])} == {}


def is_vendors_own(vendor: str, rule_id: str | None) -> bool:
    """A vendor may know better what its statuses mean, even where a gateway writes the page."""
    return rule_id is not None and rule_id.startswith(f"{vendor}.")


@pytest.mark.clause("R1")
def test_every_rule_is_proved_by_its_evidence_and_no_earlier_rule_takes_it() -> None:
    """The check that operators run finds nothing to say about the shipped set."""
    report = check(rules(), evidence_of(ROOT / "recordings"))
    assert [f"{one.recording} {one.reason}" for one in report.differences] == []
    assert report.recordings > 350


@pytest.mark.clause("R1")
def test_every_rule_has_evidence_that_is_there() -> None:
    """Every path that a rule names is a file."""
    missing = [
        (rule.id, place) for rule in rules().all_rules() for place in rule.evidence if not (ROOT / place).is_file()
    ]
    assert missing == []


@pytest.mark.clause("R1")
def test_nothing_composed_claims_to_be_captured() -> None:
    """A rule's proof is that of its recordings."""
    obtained = {f"recordings/{row.vendor}/{row.name}.jsonl": row.obtained for row in ROWS}
    wrong = [
        (rule.id, place)
        for rule in rules().all_rules()
        for place in rule.evidence
        if obtained.get(place, rule.proof) != rule.proof
    ]
    assert wrong == []


@pytest.mark.clause("E")
@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_no_vendor_text_reaches_a_person_unscrubbed(row: Recording) -> None:
    """No key, no address, no markup in what the caller reads."""
    said = judged(Observation(row.vendor, Phase.HEAD, row.status, dict(row.headers), row.body))
    for text in (said.message, said.vendor_message or "", said.vendor_code or ""):
        assert not any(secret in text for secret in ("sk-", "http://", "https://", "<html", "***", ".invalid"))


@pytest.mark.clause("E")
def test_an_error_before_any_header_is_still_judged() -> None:
    """A body alone, without a status."""
    row = next(row for row in ROWS if row.key == "openai/errors/openai-09")
    obs = Observation(row.vendor, Phase.END, None, {}, b"error: " + row.body)
    assert judged(obs).error_class == "model_unavailable"
    assert judged(replace(obs, body=b"")).code == "unmapped"
