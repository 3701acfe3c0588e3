"""The rules cost a healthy stream nothing: they are asked about errors alone (contract E)."""

from __future__ import annotations

import pytest

from proxy.canon.ending import Ending
from proxy.canon.verdict import Observation, Verdict
from proxy.learning.replaying import play
from proxy.pipeline import stream
from proxy.semantics.classifier import classify
from proxy.semantics.rule import VendorProfile
from tests.support.pipelines import recordings, shipped_rules

pytestmark = pytest.mark.clause("E")


def test_a_healthy_stream_never_asks_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every recording that completes, in every dialect; one that a vendor ends with an error asks them."""
    asked: list[str] = []

    def counting(profile: VendorProfile, seen: Observation, now_wall: float) -> Verdict:
        asked.append(profile.vendor)
        return classify(profile, seen, now_wall)

    monkeypatch.setattr(stream, "classify", counting)
    judged: list[str] = []
    unjudged: list[str] = []
    refused = 0
    for recording in recordings():
        asked.clear()
        facts = play(shipped_rules().profile(recording.vendor), recording).facts
        if facts.ending is Ending.COMPLETED:
            (judged if asked else unjudged).append(recording.key)
        refused += facts.rule_id is not None and bool(asked)

    assert judged == []
    assert len(unjudged) > 100
    assert refused > 0
