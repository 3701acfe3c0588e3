"""What composed answers of an unknown vendor show, and what is proposed for its rule file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest

from proxy.learning.values import WayChange
from proxy.learning.ways import Ways, findings, moved_ways, way_changes
from proxy.metering.tokens import load_counter
from proxy.semantics.paths import parse_path
from proxy.semantics.rule import StreamWays, UsageWays, VendorProfile
from proxy.stores.recordings import Recording
from tests.support.exchanges import DONE, delta, exchange, usage
from tests.support.pipelines import shipped_rules

PROFILE: Final = shipped_rules().profile("openai_compatible")
PIECES: Final = ("می‌", "روم ", "به ", "خانه، ", "回家", "。", " 🏠")
PROMPTS: Final = (
    "سلام",
    "یک جمله دربارهٔ باران بنویس و بگو چرا مردم آن را دوست دارند.",
    "写一句关于雨的话，再说说为什么人们喜欢它；最后写一首四行的小诗，每行七个字，不要标题，也不要解释。",
    "बारिश के बारे में एक वाक्य लिखो।",
    "Write one sentence about rain, and then one about snow. " * 3,
    "अब इसे फिर से, धीरे-धीरे, सौ शब्दों में लिखो, और हर वाक्य के बाद एक नई पंक्ति शुरू करो। " * 2,
)
FIGURES: Final = delta(usage=usage(6, 14))


def profile(**ways: object) -> VendorProfile:
    return replace(PROFILE, ways=StreamWays(**ways))  # type: ignore[arg-type]  # by name


def ways_of(*recordings: Recording, of: VendorProfile = PROFILE) -> Ways:
    return findings(recordings, of)


def changes(*recordings: Recording, of: VendorProfile = PROFILE) -> dict[str, object]:
    """What is proposed, by key."""
    return {change.key: change.value for change in way_changes(of, ways_of(*recordings, of=of))}


def spoken(
    pieces: Sequence[str], *behind: dict[str, object] | str, finish: str = "stop"
) -> list[dict[str, object] | str]:
    return [delta(role="assistant"), *map(delta, pieces), delta(finish_reason=finish), *behind, DONE]


def so_far(pieces: Sequence[str]) -> list[str]:
    return ["".join(pieces[:count]) for count in range(1, len(pieces) + 1)]


# ---- text mode


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("pieces", "mode"),
    [
        (PIECES, "delta"),
        (so_far(PIECES), "cumulative"),
        ([*so_far(PIECES), "".join(PIECES)], "cumulative"),
        ([*PIECES, "".join(PIECES)], "final_repeat"),
        ([*PIECES, "".join(PIECES), "".join(PIECES)], "final_repeat"),
        (["ha", "haha"], "not shown"),
        (["no", "no"], "not shown"),
        (["سلام"], "not shown"),
        (["👩", "👩\u200d", "👩\u200d👧", "👩\u200d👧 خانواده"], "cumulative"),
        (["很", "很高", "很高兴\ufffd", "很高兴认识你。"], "cumulative"),  # half a character, said otherwise later
        (["ha ", "ha ", "ha ", "ha "], "delta"),
    ],
)
def test_text_mode_is_decided_by_the_events(pieces: Sequence[str], mode: str) -> None:
    """What repeats all so far, what repeats it at the end, and what is too short to tell."""
    assert ways_of(exchange(spoken(pieces))).text.mode == mode


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("repeated", "mode"), [(so_far(PIECES), "cumulative"), ([*PIECES, "".join(PIECES)], "final_repeat")]
)
def test_a_repetition_is_proposed_when_two_answers_show_it(repeated: Sequence[str], mode: str) -> None:
    """One answer is not enough, a known mode is not proposed again, and one that differs forbids it."""
    answers = [exchange(spoken(repeated), name=name) for name in ("one", "two")]
    assert "text_mode" not in changes(answers[0])
    assert changes(*answers)["text_mode"] == mode
    assert "text_mode" not in changes(*answers, of=profile(text_mode=mode))
    assert "text_mode" not in changes(*answers, exchange(spoken(PIECES)))
    assert (
        changes(exchange(spoken(PIECES)), exchange(spoken(PIECES)), of=profile(text_mode=mode))["text_mode"] == "delta"
    )


# ---- finishes


@pytest.mark.clause("W5")
def test_a_finish_that_more_text_follows_is_a_lie() -> None:
    """It is proposed as untrusted, but not where nothing else would end an answer, nor twice."""
    liar = exchange(
        [
            delta("雨", finish_reason="stop"),
            delta("が", finish_reason="stop"),
            delta("降る。", finish_reason="stop"),
            DONE,
        ]
    )
    assert ways_of(liar).finishes[0].early.count == 1
    assert changes(liar) == {"untrusted_finishes": ["stop"]}
    assert changes(liar, of=profile(untrusted_finishes=frozenset({"stop"}))) == {}
    assert changes(liar, of=replace(PROFILE, end_mark_trusted=False)) == {}


@pytest.mark.clause("R1")
def test_unknown_finish_words_are_guessed_from_what_was_asked() -> None:
    """A limit that was reached, a tool call, and an end for which nothing was asked at least twice."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "hava", "arguments": '{"shahr":"تبریز"}'}}
    length = exchange(spoken(PIECES, delta(usage=usage(5, 16)), finish="cut_off"), max_tokens=16)
    tool = exchange([delta(tool_calls=[call]), delta(finish_reason="wants_tool"), DONE])
    end = exchange(spoken(PIECES, finish="fini"))
    assert changes(length, tool, end)["finish_reasons"] == {"cut_off": "length", "wants_tool": "tool_calls"}
    assert changes(length, tool, end, end)["finish_reasons"] == {
        "fini": "stop",
        "cut_off": "length",
        "wants_tool": "tool_calls",
    }
    known = {word.word: word.means for word in ways_of(exchange(spoken(PIECES, finish="eos"))).finishes}
    assert known == {"eos": "stop"}


@pytest.mark.clause("R1")
def test_a_word_that_ends_everything_means_stop() -> None:
    """None for a limit alone would end answers without one; a single other end leaves it open."""
    short = exchange(spoken(PIECES, delta(usage=usage(5, 16)), finish="done"), max_tokens=16)
    free = exchange(spoken(PIECES, delta(usage=usage(5, 16)), finish="done"))
    assert changes(short, free, free)["finish_reasons"] == {"done": "stop"}
    assert "finish_reasons" not in changes(short, free)


@pytest.mark.clause("R1")
def test_a_limit_is_seen_without_any_usage() -> None:
    """By our own count, which comes near to it."""
    cut = exchange(spoken(PIECES, finish="满"), max_tokens=12)
    assert changes(cut)["finish_reasons"] == {"满": "length"}
    assert "finish_reasons" not in changes(exchange(spoken(PIECES, finish="满"), max_tokens=400))


# ---- ends and signs of life


@pytest.mark.clause("R1")
def test_an_end_mark_is_proposed_after_three_whole_answers() -> None:
    """Sent or never; a cut answer says nothing, and answers that differ propose nothing."""
    with_mark, without = exchange(spoken(PIECES)), exchange(spoken(PIECES)[:-1])
    cut = exchange(spoken(PIECES)[:4], end="abort")
    assert changes(with_mark, with_mark, with_mark, cut)["end_mark"] == "sent"
    assert changes(without, without, without, cut)["end_mark"] == "never"
    assert "end_mark" not in changes(with_mark, with_mark)
    assert "end_mark" not in changes(with_mark, with_mark, without)
    assert "end_mark" not in changes(with_mark, with_mark, with_mark, of=profile(end_mark="sent"))


@pytest.mark.clause("R1")
def test_words_after_which_the_answer_goes_on_are_a_heartbeat() -> None:
    """They get a pattern that also fits the next one; words of an answer that failed get none."""
    beats = [f"در صف، نفر {place} از 20" for place in (3, 2)]
    events = [*beats, *spoken(PIECES)]
    pattern = changes(exchange(events))["heartbeats"]
    assert isinstance(pattern, list) and len(pattern) == 1
    assert re.search(pattern[0], "در صف، نفر 17 از 40")
    assert not re.search(pattern[0], "حساب شما بسته است")
    sign = ways_of(exchange(events)).signs[0]
    assert (sign.kind, sign.seen.count, sign.every_s) == ("words", 2, 0.1)
    assert changes(exchange(events), of=replace(PROFILE, heartbeats=(re.compile(pattern[0]),))) == {}
    assert "heartbeats" not in changes(exchange([*beats, delta("نیم")], end="abort"))


@pytest.mark.clause("R1")
def test_signs_that_every_reader_passes_over_propose_nothing() -> None:
    """Comments, empty events, an object that says nothing, a ping."""
    events = [": still here\n\n", "data:\n\n", {}, {"type": "ping"}, *spoken(PIECES)]
    kinds = [sign.kind for sign in ways_of(exchange(events)).signs]
    assert sorted(kinds) == ["comment", "empty event", "event", "event"]
    assert changes(exchange(events)) == {}


# ---- usage


@pytest.mark.clause("L2")
def test_usage_at_a_place_that_nobody_knows_is_found() -> None:
    """Where the reader could read it there, the path is proposed; once the profile has it, it is read."""
    odd = {"meta": {"billing": {**usage(5, 9), "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}}}}
    answer = exchange(spoken(PIECES, {**delta(), **odd}))
    way = ways_of(answer, answer).usage
    assert [path for path, _ in way.unread] == ["meta.billing"] and not way.at
    assert changes(answer, answer) == {"usage": {"at": ["meta.billing"]}}
    known = profile(usage=UsageWays(at=(parse_path("meta.billing"),)))
    assert changes(answer, answer, of=known) == {}
    assert [path for path, _ in ways_of(answer, of=known).usage.at] == ["meta.billing"]


@pytest.mark.clause("L2")
def test_increments_are_told_from_running_totals() -> None:
    """By our own count: only the sum comes near to it."""
    text = ("یک جملهٔ نسبتاً بلند ", "که در چند تکه می‌آید ", "و هر تکه شمار خود را دارد. ", "پایان داستان همین است.")
    counts = [load_counter().count(piece) for piece in text]
    totals = [sum(counts[: number + 1]) for number in range(len(counts))]
    increments = exchange([*(delta(t, usage=usage(9, n)) for t, n in zip(text, counts, strict=True)), *spoken(())])
    cumulative = exchange([*(delta(t, usage=usage(9, n)) for t, n in zip(text, totals, strict=True)), *spoken(())])
    assert ways_of(increments).usage.scope == "increments"
    assert ways_of(cumulative).usage.scope == "cumulative"
    assert changes(increments, increments) == {"usage": {"scope": "increments"}}
    assert changes(cumulative, cumulative) == {}
    assert changes(cumulative, cumulative, of=profile(usage=UsageWays(scope="increments"))) == {
        "usage": {"scope": "cumulative"}
    }


@pytest.mark.clause("L2")
def test_usage_that_never_comes_is_absent() -> None:
    """After three whole answers."""
    answer = exchange(spoken(PIECES))
    assert "usage" not in changes(answer, answer)
    assert changes(answer, answer, answer)["usage"] == {"scope": "absent"}


@pytest.mark.clause("L2")
def test_parts_that_stand_outside_are_proposed_where_the_reader_leaves_them_out() -> None:
    """Cached tokens beside the prompt, by a total that only adds up with them; sums that never do are told."""
    outside = {"prompt_tokens_details": {"cached_tokens": 900}, "prompt_tokens": 20, "completion_tokens": 9}
    answer = exchange(spoken(PIECES, delta(usage={**outside, "total_tokens": 929})))
    assert changes(answer, answer) == {"usage": {"cache": "outside"}}
    assert changes(answer, answer, of=profile(usage=UsageWays(cache="outside"))) == {}
    odd = ways_of(exchange(spoken(PIECES, delta(usage={**usage(20, 9), "total_tokens": 500})))).usage
    assert odd.odd_sums.count == 1


@pytest.mark.clause("L2")
@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0), (1.31, 7), (0.8, 3)])
def test_the_vendor_s_figures_stand_to_our_count_as_a_line(slope: float, offset: int) -> None:
    """Slope and offset over prompts in several scripts, for input and output apart."""
    counter = load_counter()
    answers = []
    for prompt in PROMPTS:
        said = [*prompt[::-1].split(" "), "。"]
        ours = counter.count(f"user\n{prompt}"), counter.count("".join(said))
        told = usage(*(round(slope * count + offset) for count in ours))
        answers.append(exchange(spoken(said, delta(usage=told)), prompt=prompt))
    way = ways_of(*answers).usage
    for fit in (way.input, way.output):
        assert fit.points == len(PROMPTS)
        assert fit.slope == pytest.approx(slope, abs=0.02)
        assert fit.offset == pytest.approx(offset, abs=1)
        assert (fit.verdict == "agrees") is (slope == 1)


# ---- drift, and what is proposed


def answer(
    *, pieces: Sequence[str] = PIECES, finish: str = "stop", mark: bool = True, figures: dict[str, object] | None = None
) -> Recording:
    events = spoken(pieces, delta(usage=figures or usage(6, 14)), finish=finish)
    return exchange(events if mark else events[:-1])


@pytest.mark.clause("R1")
@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (answer(), answer(pieces=so_far(PIECES)), "text mode: delta -> cumulative"),
        (answer(), answer(mark=False), "end mark: sent -> never"),
        (answer(), answer(finish="fertig"), "finish word: none -> 'fertig'"),
        (answer(), exchange(["لطفاً صبر کنید", *spoken(PIECES, FIGURES)]), "sign of life: none -> 'لطفاً صبر کنید'"),
        (
            answer(),
            exchange([delta("雨", finish_reason="stop"), *spoken(PIECES, FIGURES)]),
            "finish word 'stop': last -> before",
        ),
        (answer(), exchange(spoken(PIECES, {"meter": usage(6, 14)})), "usage stands at: usage -> meter"),
    ],
)
def test_what_moved_is_named(before: Recording, after: Recording, moved: str) -> None:
    """One line for each finding that is another now, and none when all is as it was."""
    (one,) = moved_ways(ways_of(before), ways_of(after))
    assert f"{one.what}: {one.before} -> {one.now}".startswith(moved)
    assert moved_ways(ways_of(before), ways_of(before)) == ()


@pytest.mark.clause("R1")
def test_what_one_of_the_two_does_not_show_is_no_drift() -> None:
    """A cut answer after a whole one, other counts, other cuts."""
    whole, cut = ways_of(answer()), ways_of(exchange([delta("نیم")], end="abort"))
    assert moved_ways(whole, cut) == ()
    assert moved_ways(cut, whole) == ()
    assert moved_ways(whole, ways_of(answer(pieces=PIECES[:4], figures=usage(6, 9)))) == ()


@pytest.mark.clause("R1")
def test_a_change_says_why_and_where() -> None:
    """The reason names an answer that shows it."""
    told = [exchange(spoken(so_far(PIECES)), name=f"probe-stream-{number}") for number in (1, 2)]
    (change,) = (change for change in way_changes(PROFILE, ways_of(*told)) if change.key == "text_mode")
    assert change == WayChange("text_mode", "cumulative", change.reason)
    assert "openai_compatible/probe-stream-1" in change.reason
