"""What moved at a vendor since its evidence was taken: for `sluice probe --watch` and for cron (contract C3).

In: the recordings that are there and what the vendor says now. Out: a `Drift` for each exchange whose meaning or shape
moved, and one for each way that did. Nothing is written. An exchange without a recording has nothing to be compared
with, and is no drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.learning.keeping import Fate, Kept
from proxy.learning.probes import Kind
from proxy.learning.replaying import replay
from proxy.learning.ways import findings, moved_ways
from proxy.pipeline.values import Facts
from proxy.semantics.rule import VendorProfile


@dataclass(frozen=True, slots=True)
class Drift:
    """`what` is a recording's place, or a way of the vendor; `kind` is verdict, shape or way."""

    what: str
    kind: str
    before: str
    now: str


def drifts(profile: VendorProfile, kept: Sequence[Kept]) -> list[Drift]:
    """In the order in which it was asked, ways last."""
    return [moved for one in kept if (moved := _of(profile, one)) is not None] + _ways(profile, kept)


def _of(profile: VendorProfile, kept: Kept) -> Drift | None:
    new = kept.heard.recording
    if kept.before is None or new is None or kept.heard.probe.kind is Kind.OURS:
        return None
    if kept.fate is Fate.SAME:
        return None
    before, now = replay(profile, kept.before), replay(profile, new)
    what = f"{kept.heard.probe.name} {kept.heard.number}"
    told_before, told_now = _told(before), _told(now)
    if told_before != told_now:
        return Drift(what, "verdict", told_before, told_now)
    # A limit is told with other figures, and by another limiter, from day to day; how answers come is a way.
    is_same_source = kept.before.obtained == new.obtained
    if is_same_source and kept.heard.probe.kind is Kind.REFUSAL and not kept.heard.probe.burst:
        return Drift(what, "shape", _shown(kept.before.body), _shown(new.body))
    return None


def _told(facts: Facts) -> str:
    if facts.error_class is None:
        return f"{facts.ending}" if facts.observation is None else "no error"
    return f"{facts.error_class} {facts.error_code} ({facts.rule_id or 'no rule'})"


def _shown(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "replace").split())
    return text if len(text) <= 120 else f"{text[:119]}…"


def _ways(profile: VendorProfile, kept: Sequence[Kept]) -> list[Drift]:
    pairs = [
        (one.before, one.heard.recording)
        for one in kept
        if one.heard.probe.kind is Kind.ANSWER and one.before is not None and one.heard.recording is not None
    ]
    if not pairs:
        return []
    before = findings([old for old, _ in pairs], profile)
    now = findings([new for _, new in pairs], profile)
    return [Drift(moved.what, "way", moved.before, moved.now) for moved in moved_ways(before, now)]
