"""Texts that are said again, told once: `text_mode` of a rule file."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from proxy.canon.chunk import Chunk, Delta, ToolFragment
from proxy.pipeline import Asked
from proxy.pipeline.repeats import Repeats
from tests.support.joined import joined, messages
from tests.support.pipelines import PLAIN, STREAM, Transcript, run
from tests.support.shape import complaints_about
from tests.support.strategies import END, ROLE, STOP, call, chunk, say
from tests.support.ways import profile_with

pytestmark = pytest.mark.clause("W3", "R1")

CUMULATIVE = "text_mode: cumulative"
FINAL = "text_mode: final_repeat"


def played(keys: str, reads: Sequence[bytes], asked: Asked = STREAM) -> Transcript:
    transcript = run(reads, asked, profile=profile_with(keys))
    if asked.stream:
        assert complaints_about(transcript.client, complete=True, usage=True) == []
    return transcript


def text_of(transcript: Transcript) -> object:
    stream = transcript.head.content_type.startswith("text/event-stream")
    return (joined(transcript.payloads) if stream else messages(transcript.body))[0]["text"]


def noted(transcript: Transcript) -> bool:
    return "text_mode" in transcript.facts.notes


@pytest.mark.parametrize("asked", [STREAM, PLAIN], ids=["streamed", "plain"])
@pytest.mark.parametrize("at_once", [False, True], ids=["one event a read", "one read"])
def test_cumulative_text_is_told_once(asked: Asked, at_once: bool) -> None:
    """Only what is new goes on, however many events a read brings; the finish that repeats all adds nothing."""
    texts = ["س", "سلام", "سلام، 你", "سلام، 你好", *(f"سلام، 你好{'!' * n}" for n in range(1, 40))]
    reads = [ROLE, *map(say, texts), chunk({"content": texts[-1]}, "stop"), END]

    transcript = played(CUMULATIVE, [b"".join(reads)] if at_once else reads, asked)

    assert text_of(transcript) == texts[-1]
    assert "".join(transcript.facts.received) == texts[-1]
    assert not noted(transcript)


def test_a_half_character_waits_for_the_event_that_says_it_whole() -> None:
    """A tokenizer cuts an emoji in two and shows U+FFFD for the half, or JSON half a surrogate pair."""
    reads = [
        ROLE,
        say("晚安 \ufffd\ufffd"),
        say("晚安 \ud83c"),
        say("晚安 🌙"),
        chunk({"content": "晚安 🌙"}, "stop"),
        END,
    ]
    transcript = played(CUMULATIVE, reads)

    assert text_of(transcript) == "晚安 🌙"
    assert not noted(transcript)


def test_text_that_does_not_go_on_is_told_whole_and_noted() -> None:
    """Nothing gets lost when the vendor rewrites what it said; the row says that something may stand there twice."""
    transcript = played(CUMULATIVE, [ROLE, say("नमस्ते जग"), say("नमस्कार जगत"), say("नमस्कार जगत!"), STOP, END])

    assert text_of(transcript) == "नमस्ते जगनमस्कार जगत!"
    assert noted(transcript)


def test_a_text_that_grows_shorter_takes_nothing_back_and_is_noted() -> None:
    """What a client has read it has read; where the text goes on again, only that is new."""
    transcript = played(CUMULATIVE, [ROLE, say("안녕하세요"), say("안녕"), say("안녕하세요!"), STOP, END])

    assert text_of(transcript) == "안녕하세요!"
    assert noted(transcript)


def test_choices_fields_and_calls_are_kept_apart() -> None:
    """Two choices with reasoning and text of their own, and a call whose arguments grow, each told once."""
    first = {"reasoning_content": "فکر", "content": "A"}
    more = {"reasoning_content": "فکر کن", "content": "A and B"}
    grown = [{"function": {"name": "आज", "arguments": text}} for text in ('{"a"', '{"a":1}')]
    reads = [
        *(chunk(first, None, index) for index in (0, 1)),
        chunk(more, None, 1),
        *(chunk({"tool_calls": [one]}) for one in (*grown, grown[-1])),
        *(chunk({}, "stop", index) for index in (0, 1)),
        END,
    ]
    said = joined(played(CUMULATIVE, reads).payloads)

    assert [(said[index]["text"], said[index]["reasoning_content"]) for index in (0, 1)] == [
        ("A", "فکر"),
        ("A and B", "فکر کن"),
    ]
    calls = said[0]["tool_calls"]
    assert isinstance(calls, list)
    assert [(one["name"], one["arguments"]) for one in calls] == [("आज", '{"a":1}')]


def test_pieces_of_one_event_are_one_text() -> None:
    """A family whose events hold several deltas of one choice repeats them all, piece by piece."""
    repeats = Repeats("cumulative")
    events = [[("content", "a"), ("reasoning", "r"), ("content", "b")], [("content", "a"), ("content", "bc")]]
    told = []
    for event in events:
        made = Chunk([Delta(0, {field: text}) for field, text in event], wire=b"{}")
        repeats.trim(made)
        told.append([delta.texts for delta in made.deltas])

    assert told == [[{"content": "a"}, {"reasoning": "r"}, {"content": "b"}], [{}, {"content": "c"}]]
    assert not repeats.differs


def test_only_what_was_changed_loses_its_bytes() -> None:
    """An event with nothing said before may pass as it came."""
    repeats = Repeats("final_repeat")
    new, again = (
        Chunk([Delta(0, {"content": "你好"})], wire=b"{}"),
        Chunk([Delta(0, {"content": "你好"}, finish="stop")]),
    )
    for one in (new, again):
        repeats.trim(one)

    assert (new.wire, new.deltas[0].texts) == (b"{}", {"content": "你好"})
    assert (again.wire, again.deltas[0].texts) == (None, {})


@pytest.mark.parametrize("asked", [STREAM, PLAIN], ids=["streamed", "plain"])
@pytest.mark.parametrize(
    ("last", "text"),
    [
        ("晚安，世界", "晚安，世界"),
        ("晚安，世界！", "晚安，世界！"),
        ("！", "晚安，世界！"),
        ("", "晚安，世界"),
    ],
    ids=["repeats", "repeats and goes on", "goes on", "says nothing"],
)
def test_a_finish_that_says_all_again_adds_only_what_is_new(asked: Asked, last: str, text: str) -> None:
    """The whole once more, with or without an end of its own, and a last increment like any other."""
    reads = [ROLE, *map(say, ("晚安", "，", "世界")), chunk({"content": last}, "stop"), END]
    transcript = played(FINAL, reads, asked)

    assert text_of(transcript) == text
    assert not noted(transcript)


def test_increments_that_look_like_repetitions_stay_before_the_finish() -> None:
    """`ha` and `ha` are two increments where only the last event repeats."""
    transcript = played(FINAL, [ROLE, *map(say, ("ha", "ha", "ha")), chunk({"content": "hahaha"}, "stop"), END])
    assert text_of(transcript) == "hahaha"


def test_a_final_repetition_in_other_words_is_told_whole_and_noted() -> None:
    """A vendor that masks names in its last event has said two texts, and the row says so."""
    reads = [ROLE, say("با سارا "), say("تماس بگیرید"), chunk({"content": "با سارا *** بگیرید"}, "stop"), END]
    transcript = played(FINAL, reads)

    assert text_of(transcript) == "با سارا تماس بگیریدبا سارا *** بگیرید"
    assert noted(transcript)


def test_calls_that_the_finish_repeats_are_told_once() -> None:
    """Name and arguments come in pieces, then whole with the finish: one call."""
    whole = {"index": 0, "id": "call_1", "function": {"name": "天气", "arguments": '{"市":"京"}'}}
    reads = [
        ROLE,
        call(index=0, id="call_1", function={"name": "天气", "arguments": '{"市":'}),
        call(index=0, function={"arguments": '"京"}'}),
        chunk({"tool_calls": [whole]}, "tool_calls"),
        END,
    ]
    said = joined(played(FINAL, reads).payloads)[0]

    assert said["finish_reason"] == "tool_calls"
    calls = said["tool_calls"]
    assert isinstance(calls, list)
    assert [(one["id"], one["name"], one["arguments"]) for one in calls] == [("call_1", "天气", '{"市":"京"}')]


def test_a_second_call_of_the_same_function_is_no_repetition() -> None:
    """Calls are told apart by their place."""
    repeats = Repeats("cumulative")
    made = Chunk([Delta(0, {}, [ToolFragment(None, None, "f", "{}"), ToolFragment(None, None, "f", "{}")])])
    repeats.trim(made)

    tools = made.deltas[0].tools
    assert tools is not None
    assert [(one.index, one.name, one.arguments) for one in tools] == [(0, "f", "{}"), (1, "f", "{}")]


def test_another_dialect_of_the_vendor_keeps_its_own_ways() -> None:
    """The key is said of the usual dialect: in the others increments stay increments."""
    reads = [ROLE, say("ha"), say("ha"), STOP, END]
    transcript = run(reads, STREAM, profile=profile_with(CUMULATIVE, dialect="anthropic"), dialect="openai")
    assert text_of(transcript) == "haha"


def test_increments_behind_a_doubted_finish_are_no_repetitions() -> None:
    """A vendor that says its finish too early goes on in increments, however often they come."""
    reads = [ROLE, say("می‌خواهم " * 40), chunk({}, "stop"), *([say("ها ")] * 500), chunk({}, "length"), END]
    transcript = played(FINAL + "\nuntrusted_finishes: [stop]", reads)

    assert text_of(transcript) == "می‌خواهم " * 40 + "ها " * 500
    assert not noted(transcript)
