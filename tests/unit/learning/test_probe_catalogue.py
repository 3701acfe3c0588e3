"""The catalogue of probes: the same questions for every API family, and nothing of a key in those that are wrong."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Final

import pytest

from proxy.canon.verdict import ErrorClass
from proxy.dialects.registry import CHAT_DIALECTS
from proxy.learning.catalogue import MAX_BURST, NAMES, Allowed, catalogue, wrong_keys
from proxy.learning.probes import Ask, Key, Kind, Probe, Until, encode, unaskable

pytestmark = pytest.mark.clause("R1")

ALL: Final = Allowed("acme-large", "sk-proj-Z9y8X7w6V5u4T3s2R1q0", ("سلام", "我"), 5, 2000)
every_dialect = pytest.mark.parametrize("dialect", sorted(CHAT_DIALECTS))
#: What a family has no words for.
LEFT_OUT: Final = {"completions": {"tool"}, "hunyuan": {"length"}}


def asks(dialect: str) -> list[tuple[Probe, Ask]]:
    """Those that can be asked in this family."""
    family = CHAT_DIALECTS[dialect]
    return [(probe, ask) for probe in catalogue(ALL) for ask in probe.asks if unaskable(ask, family, {}) is None]


@every_dialect
def test_every_family_is_asked_the_same(dialect: str) -> None:
    """But for what it has no words for."""
    asked = {probe.name for probe, _ in asks(dialect)}
    assert set(NAMES) - asked == LEFT_OUT.get(dialect, set())


@every_dialect
def test_a_body_is_damaged_where_it_is_meant_to_be_and_nowhere_else(dialect: str) -> None:
    """Broken JSON does not parse; a missing field and a wrong type do, and differ from a healthy one in that alone."""
    family = CHAT_DIALECTS[dialect]
    for probe, ask in asks(dialect):
        encoded = encode(ask, family, {})
        healthy = json.loads(encode(Ask(ask.request, ""), family, {}).body)
        if probe.name == "broken-json":
            with pytest.raises(ValueError, match=r"Expecting|Unterminated|Illegal"):
                json.loads(encoded.body.decode())
            continue
        body = json.loads(encoded.body)
        different = {name for name in healthy.keys() | body.keys() if healthy.get(name) != body.get(name)}
        if probe.name == "missing-field":
            assert body.items() <= healthy.items()
            assert different
        elif probe.name == "wrong-type":
            assert len(different) == 1
            assert type(body[different.pop()]) in (int, bool, list)
        else:
            assert body == healthy
            assert ask.damage is None


@every_dialect
def test_another_model_is_another_request(dialect: str) -> None:
    """In the body or in the path, as the family wants it."""
    family = CHAT_DIALECTS[dialect]
    for probe, ask in asks(dialect):
        if probe.name != "unknown-model":
            continue
        encoded = encode(ask, family, {})
        other = encode(
            Ask(ask.request.__class__(client="chat", model="x", messages=ask.request.messages), ""), family, {}
        )
        assert (encoded.body, encoded.path) != (other.body, other.path)


def test_every_refusal_is_asked_for_twice_or_more_plain_and_as_a_stream() -> None:
    """What both answers say is the vendor's; the rest is of one request."""
    for probe in catalogue(ALL):
        if probe.kind is Kind.REFUSAL:
            assert len(probe.asks) >= 2
            if probe.name not in ("broken-json", "burst"):
                assert {ask.request.stream for ask in probe.asks} == {True, False}
            assert probe.wanted is not None


def test_each_class_that_can_be_brought_about_is() -> None:
    """Debt and overload cannot; they are learned from production."""
    wanted = {probe.wanted for probe in catalogue(ALL)} - {None}
    assert wanted == set(ErrorClass)


def test_what_may_anger_a_vendor_needs_leave_and_comes_last() -> None:
    """No moderation bait, no burst, and wrong keys only where there is a right one."""
    names = [probe.name for probe in catalogue(Allowed("m"))]
    assert not {"moderation", "burst", "no-key", "wrong-key"} & set(names)
    assert [probe.name for probe in catalogue(ALL)][-3:] == ["no-key", "wrong-key", "burst"]
    assert names[0] == "plain"


def test_a_burst_is_bounded() -> None:
    """Whatever is asked for."""
    burst = next(probe for probe in catalogue(Allowed("m", burst=10**6)) if probe.burst)
    assert len(burst.asks) == MAX_BURST


@pytest.mark.parametrize(
    "key",
    ["sk-proj-Z9y8X7w6V5u4T3s2R1q0", "gsk_9Zk2", "geheim", "AKIAZ9Y8X7W6V5U4:q1W2e3R4t5Y6u7I8o9P0", "کلید-۱۲۳۴۵۶۷"],
)
def test_wrong_keys_have_the_form_of_ours_and_nothing_else_of_it(key: str) -> None:
    """The public prefix is no secret; of the rest no four characters are there, and no two keys are of one length."""
    made = wrong_keys(key)
    secrets = [re.sub("^(sk-proj-|gsk_|AKIA)", "", half) for half in key.split(":")]
    for wrong in made:
        assert wrong != key
        assert (":" in wrong) == (":" in key)
        for secret in secrets:
            assert not any(secret[at : at + 4] in wrong for at in range(len(secret) - 3))
    assert all(len(one) != len(other) for one, other in combinations(made, 2))


def test_the_ends_that_are_ours_are_asked_for() -> None:
    """A deadline before the head, one in the middle, and a hang-up after the first words."""
    until = [ask.until for probe in catalogue(ALL) for ask in probe.asks if probe.kind is Kind.OURS]
    assert until == [Until.HEAD, Until.MIDDLE, Until.PROGRESS]
    assert {ask.key for probe in catalogue(ALL) if probe.name == "no-key" for ask in probe.asks} == {Key.NONE}
