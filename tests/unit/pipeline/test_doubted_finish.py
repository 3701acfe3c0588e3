"""Finishes that a vendor also says before the end: `untrusted_finishes` and `end_mark` of a rule file."""

from __future__ import annotations

import pytest

from proxy.canon.ending import Ending, Stop
from proxy.pipeline import Asked
from tests.support.joined import joined
from tests.support.pipelines import PLAIN, STREAM, begin, run
from tests.support.strategies import END, HEAD, ROLE, chunk, encode, say
from tests.support.ways import profile_with

pytestmark = pytest.mark.clause("W5", "R1")

MARKED = "untrusted_finishes: [STOP]\nend_mark: sent"
UNMARKED = "untrusted_finishes: [STOP]\nend_mark: never"
UNKNOWN = "untrusted_finishes: [STOP]"
EARLY = [ROLE, chunk({"content": "می"}, "STOP"), chunk({"content": "‌روم"}, "STOP")]


@pytest.mark.parametrize(
    ("keys", "reads", "stop", "ending"),
    [
        (MARKED, [*EARLY, END], Stop.EOF, Ending.COMPLETED),
        (MARKED, EARLY, Stop.EOF, Ending.STREAM_CUT),
        (MARKED, EARLY, Stop.CUT, Ending.STREAM_CUT),
        (MARKED, EARLY, Stop.IDLE, Ending.TIMEOUT),
        (UNKNOWN, [*EARLY, END], Stop.EOF, Ending.COMPLETED),
        (UNKNOWN, EARLY, Stop.EOF, Ending.STREAM_CUT),
        (UNMARKED, EARLY, Stop.EOF, Ending.COMPLETED),
        (UNMARKED, [*EARLY, b'data: {"choices":[{"del'], Stop.EOF, Ending.STREAM_CUT),
        (UNMARKED, EARLY, Stop.CUT, Ending.STREAM_CUT),
        (UNMARKED, EARLY, Stop.IDLE, Ending.TIMEOUT),
        (UNMARKED, [*EARLY, END], Stop.CUT, Ending.COMPLETED),
        (UNMARKED, [*EARLY[:2], chunk({}, "length")], Stop.CUT, Ending.COMPLETED),
        (UNMARKED, EARLY[:2], Stop.CUT, Ending.STREAM_CUT),
        ("", EARLY[:2], Stop.CUT, Ending.COMPLETED),
    ],
)
def test_a_finish_that_is_also_said_early_proves_nothing_alone(
    keys: str, reads: list[bytes], stop: Stop, ending: Ending
) -> None:
    """It needs the end mark or, of a vendor that sends none, a proper end of the body; another finish is one."""
    transcript = run(reads, profile=profile_with(keys), stop=stop)

    assert transcript.closing.ending is ending
    assert transcript.is_done is (ending is Ending.COMPLETED)
    assert joined(transcript.payloads)[0]["text"] == ("می‌روم" if EARLY[2] in reads else "می")


def test_the_finish_is_held_and_text_behind_it_goes_on() -> None:
    """One finish goes out, at the end."""
    transcript = run([*EARLY, say(" 👋🏽"), chunk({}, "STOP"), END], profile=profile_with(MARKED))

    finishes = [choice["finish_reason"] for payload in transcript.payloads for choice in payload["choices"]]  # type: ignore[attr-defined]  # JSON
    assert [finish for finish in finishes if finish is not None] == ["stop"]
    assert joined(transcript.payloads)[0]["text"] == "می‌روم 👋🏽"
    assert not transcript.facts.finish_inferred


def test_the_word_is_compared_without_case() -> None:
    """As everywhere in the rule language."""
    transcript = run([ROLE, chunk({"content": "好"}, "stop")], profile=profile_with(UNMARKED), stop=Stop.CUT)
    assert transcript.closing.ending is Ending.STREAM_CUT


@pytest.mark.parametrize("keys", [MARKED, UNMARKED])
def test_a_plain_answer_that_is_whole_is_complete(keys: str) -> None:
    """The end of its JSON is the end."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "ठीक"}, "finish_reason": "STOP"}
    body = encode({**HEAD, "object": "chat.completion", "choices": [choice]})
    transcript = run([body], PLAIN, profile=profile_with(keys))

    assert (transcript.closing.ending, transcript.facts.finish_inferred) == (Ending.COMPLETED, False)


def test_only_a_finish_that_can_be_relied_on_ends_the_waiting() -> None:
    """Until the end mark has come the clock waits for more text, and then for usage alone."""
    pipeline = begin(Asked(stream=True), profile=profile_with(MARKED))
    pipeline.feed(b"".join(EARLY), 0.0)
    assert not pipeline.finished
    pipeline.feed(END, 0.0)
    assert pipeline.finished and not pipeline.over


def test_each_choice_needs_a_finish_that_holds() -> None:
    """One choice that is truly finished does not vouch for the other."""
    reads = [chunk({"content": "a"}, "length", 0), chunk({"content": "b"}, "STOP", 1)]
    transcript = run(reads, STREAM, profile=profile_with(UNMARKED), stop=Stop.CUT)
    assert transcript.closing.ending is Ending.STREAM_CUT
