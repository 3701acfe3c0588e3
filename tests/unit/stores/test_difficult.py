"""The difficult vendor: hidden habits, drawn from a seed, that can be learned in principle (contract R1)."""

from __future__ import annotations

import json
import re

import pytest

from proxy.canon.verdict import ErrorClass
from proxy.learning.replaying import replay
from proxy.semantics.rule import VendorProfile
from proxy.semantics.ruleset import parse_rule_files
from proxy.stores.difficult import KEY, RATE_LIMIT, RATE_WINDOW_S, Cause, DifficultServer, DifficultVendor
from proxy.stores.difficult_answers import Asked
from proxy.stores.difficult_habits import Envelope, Habit, Mark, Place, WaitPlace, draw_habits
from proxy.stores.playback import Hit
from proxy.stores.recordings import Recording
from proxy.stores.rules import default_rules_dir

SEEDS = range(20)
pytestmark = pytest.mark.clause("R1")


def shown(vendor: DifficultVendor, cause: Cause) -> list[Recording]:
    return [vendor.answer(cause, number, Asked(stream=number % 2 == 0)) for number in range(6)]


def says(recording: Recording, habit: Habit) -> bool:
    """Does the answer bear the mark, wherever it stands?"""
    told = [recording.body.decode(), *(value for _, value in recording.headers)]
    mark = re.compile(rf"(?<!\w){re.escape(habit.mark_text)}(?!\w)")
    return any(mark.search(text) for text in told)


def without_rules() -> VendorProfile:
    """A vendor of which nothing is known but its family."""
    files = {path.name: path.read_text() for path in default_rules_dir().glob("_*.yaml")}
    files["difficult.yaml"] = "vendor: difficult\ndialect: openai\nuse: [_infra]\n"
    return parse_rule_files(files).profile("difficult")


def test_the_same_seed_is_the_same_vendor() -> None:
    """Table, ways, answers and the held-out half; another seed is another vendor."""
    one, same, other = DifficultVendor(7), DifficultVendor(7), DifficultVendor(8)
    assert one.habits == same.habits
    assert one.habits.table != other.habits.table
    for cause in Cause:
        assert shown(one, cause) == shown(same, cause)
        assert one.held_out(cause) == same.held_out(cause)


def test_no_two_answers_of_a_cause_are_alike() -> None:
    """Ids, numbers and wordings change; what is held out is never shown."""
    vendor = DifficultVendor(3)
    for cause, habit in vendor.habits.table.items():
        seen = [(each.body, each.headers) for each in [*shown(vendor, cause), *vendor.held_out(cause)]]
        assert len(set(seen)) == len(seen)
        assert not set(habit.shown) & set(habit.held)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_cause_has_a_mark_that_no_other_has(seed: int) -> None:
    """In every answer of the cause, shown or held out, and in none of another cause: so it can be learned."""
    vendor = DifficultVendor(seed)
    answers = {cause: [*shown(vendor, cause), *vendor.held_out(cause)] for cause in Cause}
    for cause, habit in vendor.habits.table.items():
        assert all(says(each, habit) for each in answers[cause])
        assert not any(says(each, habit) for other in Cause if other is not cause for each in answers[other])


@pytest.mark.parametrize("seed", SEEDS)
def test_every_error_is_seen_as_one(seed: int) -> None:
    """No habit is so odd that an answer passes for a good one, or for nothing, to a proxy that has no rules for it."""
    vendor, profile = DifficultVendor(seed), without_rules()
    for cause in Cause:
        for each in [*shown(vendor, cause), *vendor.held_out(cause)]:
            facts = replay(profile, each)
            assert facts.observation is not None
            assert facts.error_class is not None


@pytest.mark.parametrize("seed", SEEDS)
def test_what_no_caller_can_bring_about_is_not_misunderstood(seed: int) -> None:
    """The shared rules class it rightly or know nothing: only then it is kept, and can be learned."""
    vendor, profile = DifficultVendor(seed), without_rules()
    for cause in (cause for cause in Cause if not cause.is_probeable):
        for each in [*shown(vendor, cause), *vendor.held_out(cause)]:
            facts = replay(profile, each)
            assert facts.unmapped or facts.error_class == cause.error_class


def test_habits_differ_in_all_that_they_may() -> None:
    """Over the seeds: every place, envelope, mark and wait; statuses that mislead; codes that causes share."""
    tables = [draw_habits(seed).table for seed in range(100)]
    habits = [habit for table in tables for habit in table.values()]
    assert {habit.place for habit in habits} == set(Place)
    assert {habit.envelope for habit in habits} == set(Envelope)
    assert {habit.mark for habit in habits} == set(Mark)
    assert {habit.wait for habit in habits} == set(WaitPlace)
    assert any(habit.error_class is ErrorClass.AUTH_FAILURE and habit.status == 500 for habit in habits)
    assert any(len({habit.code for habit in table.values()}) < len(table) // 2 for table in tables)
    assert all((habit.place is Place.HEAD) is (habit.status >= 400) for habit in habits)


def hit(body: object, key: str | None = KEY, at: float = 0.0, **headers: str) -> Hit:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        named["authorization"] = f"Bearer {key}"
    return Hit("POST", "/v1/chat/completions", named, sent, at)


def ask(text: str = "سلام", **more: object) -> dict[str, object]:
    return {"model": "fine", "messages": [{"role": "user", "content": text}], **more}


CAUSES: list[tuple[Hit, Cause]] = [
    (hit(ask(), key=None), Cause.NO_KEY),
    (hit(ask(), key="another"), Cause.WRONG_KEY),
    (hit(ask(model="fine-not-there")), Cause.UNKNOWN_MODEL),
    (hit(b'{"model": "fine", '), Cause.MALFORMED_JSON),
    (hit({"model": "fine"}), Cause.MISSING_FIELD),
    (hit({"model": "fine", "messages": []}), Cause.MISSING_FIELD),
    (hit({"model": "fine", "messages": 42}), Cause.WRONG_TYPE),
    (hit({"model": "fine", "messages": ["سلام", 7]}), Cause.WRONG_TYPE),
    (hit(ask(max_tokens="many")), Cause.WRONG_TYPE),
    (hit(ask("again " * 5000)), Cause.TOO_LONG),
    (hit(ask("I want to kill them all.")), Cause.MODERATED),
    (hit(ask("我要杀了他们所有人。")), Cause.MODERATED),
    (hit(ask(model="fine:debt")), Cause.DEBT),
    (hit(ask(), x_sluice_cause="overloaded"), Cause.OVERLOADED),
]


@pytest.mark.clause("C2")
@pytest.mark.parametrize(("sent", "cause"), CAUSES, ids=[f"{n}-{cause}" for n, (_, cause) in enumerate(CAUSES)])
def test_what_a_caller_does_wrong_is_the_cause(sent: Hit, cause: Cause) -> None:
    """Nothing in the answer names it but the vendor's own words."""
    server = DifficultServer(DifficultVendor(11))
    answer = server.choose(sent)
    habit = server.vendor.habits.table[cause]
    assert answer.status == habit.status
    assert says(answer, habit)
    assert answer.key == "difficult/answer"


@pytest.mark.clause("C2")
def test_too_many_requests_are_too_many_until_the_window_has_passed() -> None:
    """Good requests alone count."""
    server = DifficultServer(DifficultVendor(11))
    habit = server.vendor.habits.table[Cause.RATE_LIMITED]
    answers = [server.choose(hit(ask(), at=number / 1000)) for number in range(RATE_LIMIT + 1)]
    assert [says(answer, habit) for answer in answers] == [False] * RATE_LIMIT + [True]
    assert not says(server.choose(hit(ask(), at=RATE_WINDOW_S + 0.1)), habit)


@pytest.mark.clause("C2")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_an_answer_says_the_same_in_any_ways(seed: int, stream: bool) -> None:
    """What stands between the lines is given back; usage is ours times a slope, and an offset; cuts fall anywhere."""
    vendor = DifficultVendor(seed)
    server = DifficultServer(vendor)
    answer = server.choose(hit(ask("Repeat.\n---\nآب و نان، 水和面包\n---", stream=stream)))
    assert answer.expect["text"] == "آب و نان، 水和面包"
    assert (b"[DONE]" in answer.body) is (stream and vendor.habits.ways.end_mark)
    assert vendor.habits.ways.stop in answer.body.decode().replace("\\u7ed3\\u675f", "结束")
    assert len(answer.reads) > 1 or not stream
    short = server.choose(hit(ask(stream=stream, max_tokens=3)))
    assert short.expect["finish_reason"] == "length"
