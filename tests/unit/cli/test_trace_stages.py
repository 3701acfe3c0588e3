"""The whole trace: from the vendor's bytes to the client's, each stage under the read that made it work."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.cli.trace import Step, trace_steps
from proxy.cli.trace_stages import Stages
from proxy.semantics.ruleset import RuleSet
from proxy.stores.recordings import load_recording
from proxy.stores.rules import load_rules

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load_rules(ROOT / "rules")


def trace(name: str, rules: RuleSet) -> list[Step]:
    recording = load_recording(ROOT / "recordings" / f"{name}.jsonl")
    return list(trace_steps(recording, Stages(recording, rules)))


def said(steps: list[Step], *stages: str) -> list[tuple[float, str, str]]:
    """Moment, stage and text; of the client's events only the delta, which says most."""
    return [
        (round(step.t, 3), step.stage, step.text.partition('"delta":')[2] or step.text)
        for step in steps
        if step.stage in stages
    ]


@pytest.mark.clause("C2")
def test_a_dirty_stream_is_followed_to_the_client(rules: RuleSet) -> None:
    """Hindi letters cut inside their bytes, tails due between reads, two finishes, two end marks."""
    steps = trace("one_api/no-space-empty-finish-done-twice", rules)

    assert said(steps, "chunk", "due", "client")[:7] == [
        (0.12, "chunk", "role assistant"),
        (0.178, "chunk", 'content "गं"'),
        (0.178, "client", '{"role":"assistant","content":""},"finish_reason":null}]}'),
        (0.218, "due", "a tail has waited long enough"),
        (0.218, "client", '{"content":"गं"},"finish_reason":null}]}'),
        (0.221, "chunk", 'content "गा"'),
        (0.261, "due", "a tail has waited long enough"),
    ]
    chunks = [step.text for step in steps if step.stage == "chunk"]
    assert chunks[-4:] == ["finish stop", "finish stop", "end mark", "end mark"]
    after = [step.stage for step in steps[[step.stage for step in steps].index("end") :]]
    assert after == ["end", "client", "row", "client", "client"]
    assert steps[-1].text == "data: [DONE]"
    assert sum('"finish_reason":"stop"' in step.text for step in steps if step.stage == "client") == 1


@pytest.mark.clause("C2")
def test_an_error_is_followed_from_the_candidate_to_the_row(rules: RuleSet) -> None:
    """The dialect sees a candidate, a rule says what it means, the client gets an event and no end mark."""
    steps = trace("openrouter/error-chunk-midway", rules)

    last = [step for step in steps if step.stage in ("chunk", "verdict", "client", "row")][-5:]
    assert [step.stage for step in last] == ["chunk", "chunk", "verdict", "client", "row"]
    assert last[0].text.startswith("error candidate ")
    assert last[2].text == "model_unavailable provider_failed by openrouter.provider"
    assert '"ending":"vendor_error"' in last[4].text


@pytest.mark.clause("C2")
def test_every_recording_can_be_traced(rules: RuleSet) -> None:
    """Whatever a vendor sent, the trace ends with its row."""
    for path in sorted((ROOT / "recordings").rglob("*.jsonl")):
        recording = load_recording(path)
        steps = list(trace_steps(recording, Stages(recording, rules)))
        assert [step.stage for step in steps].count("row") == 1, path
