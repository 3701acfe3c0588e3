"""Recordings in; the client's bytes and the row's facts out, byte for byte, and what each recording says of itself.

A golden (`data/<vendor>/<name>.txt`) holds what a client that asked for a stream gets, what one that asked for a plain
answer gets, and the facts of the first, with the clock held still. `--update-golden` rewrites them; their diff is to
be reviewed like code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest

from proxy.canon.ending import Ending
from proxy.pipeline import Asked
from proxy.stores.recordings import Recording
from tests.support.joined import joined, messages
from tests.support.pipelines import PLAIN, STREAM, Transcript, asked_by, play, recordings
from tests.support.shape import complaints_about

DATA: Final = Path(__file__).parent / "data"
#: What the row will say, and what the metrics count.
_FACTS: Final = (
    *("ending", "upstream_status", "served_model", "service_tier", "vendor_response_id", "rule_id", "error_class"),
    *(
        "error_code",
        "finish_reason",
        "finish_inferred",
        "vendor_usage",
        "events_in",
        "events_out",
        "heartbeats",
        "replaced",
    ),
    *("held_chars", "unmapped", "notes"),
)

every_recording = pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.key)


@pytest.mark.clause("W1", "W2", "W4", "W5", "L2")
@every_recording
def test_the_bytes_are_the_golden_ones(recording: Recording, update_golden: bool) -> None:
    """Each recording gives the bytes and the facts that were reviewed."""
    file = DATA / recording.vendor / f"{recording.name}.txt"
    streamed = play(recording, STREAM)
    made = b"\n".join(
        (
            b"== stream ==",
            _shown(streamed),
            b"== plain ==",
            _shown(play(recording, PLAIN)),
            b"== facts of the stream ==",
            _facts_of(streamed),
        )
    )
    if update_golden:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(made)
    assert made.split(b"\n") == file.read_bytes().split(b"\n")


def test_no_golden_has_lost_its_recording() -> None:
    """A golden whose recording is gone holds nothing any more."""
    assert {f"{file.parent.name}/{file.stem}" for file in DATA.glob("*/*.txt")} == {r.key for r in recordings()}


@pytest.mark.clause("W1", "W3", "W4", "W5")
@every_recording
@pytest.mark.parametrize("usage", [True, False], ids=["usage", "no usage"])
def test_streams_have_the_shape_that_clients_rely_on(recording: Recording, usage: bool) -> None:
    """Role once, no empty delta, one finish of the four words, usage apart, one identity, [DONE] only if complete."""
    streamed = play(recording, Asked(stream=True, usage=usage))

    if streamed.head.status == 200:
        complete = streamed.closing.ending is Ending.COMPLETED
        assert complaints_about(streamed.client, complete=complete, usage=usage) == []
    else:
        assert "error" in streamed.body


@pytest.mark.clause("W3", "W4", "W5", "E", "L2")
@every_recording
@pytest.mark.parametrize("asked", [STREAM, PLAIN], ids=["streamed", "plain"])
def test_each_recording_means_what_it_says(recording: Recording, asked: Asked) -> None:
    """Text, reasoning, tool calls, finish, ending, class and usage are those of the recording's `expect`."""
    transcript = play(recording, asked)
    expect = recording.expect

    assert transcript.closing.ending == expect["ending"]
    if transcript.closing.ending is Ending.COMPLETED or (asked.stream and transcript.head.status == 200):
        _assert_said(_messages_of(transcript, asked), expect)
    if "class" in expect:
        assert transcript.facts.error_class == expect["class"]
    if "code" in expect:
        assert transcript.facts.error_code == expect["code"]
    if "usage" in expect:
        assert transcript.facts.vendor_usage == expect["usage"]
    if "status" in expect:
        assert transcript.head.status == expect["status"]
    assert transcript.facts.finish_inferred is expect.get("finish_inferred", False)


@pytest.mark.clause("W3")
@every_recording
def test_with_the_recorded_timing_the_text_is_the_same(recording: Recording) -> None:
    """Held tails leave after 40 ms in the recording's own time: in other events, with the same text."""
    still, moving = play(recording, STREAM), play(recording, STREAM, as_recorded=True)

    if still.head.status == 200:
        assert _messages_of(moving, STREAM) == _messages_of(still, STREAM)
        complete = moving.closing.ending is Ending.COMPLETED
        assert complaints_about(moving.client, complete=complete, usage=True) == []


def test_the_golden_set_is_asked_as_the_recordings_were() -> None:
    """Some recordings answer a client that asked for one body."""
    assert any(not asked_by(recording).stream for recording in recordings())


def _shown(transcript: Transcript) -> bytes:
    headers = "".join(f" {name}: {value}" for name, value in transcript.head.headers.items())
    return f"{transcript.head.status} {transcript.head.content_type}{headers}\n".encode() + transcript.client


def _facts_of(transcript: Transcript) -> bytes:
    facts = transcript.facts
    told = {name: getattr(facts, name) for name in _FACTS}
    normal = asdict(transcript.pipeline.normal_usage())
    told |= {
        "normal_usage": {name: value for name, value in normal.items() if value is not None},
        "received": "".join(map("".join, facts.all_received())),
        "delivered": "".join(map("".join, facts.all_delivered())),
    }
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in told.items()).encode(
        "utf-8", "backslashreplace"
    )


def _messages_of(transcript: Transcript, asked: Asked) -> dict[int, dict[str, object]]:
    return joined(transcript.payloads) if asked.stream else messages(transcript.body)


def _assert_said(said: Mapping[int, Mapping[str, object]], expect: Mapping[str, object]) -> None:
    first = said.get(0, {"text": "", "finish_reason": None})
    for name in ("text", "refusal", "finish_reason"):
        if name in expect:
            assert first.get(name) == expect[name], name
    if "reasoning" in expect:
        assert first.get("reasoning", first.get("reasoning_content")) == expect["reasoning"]
    if "tool_calls" in expect:
        assert first.get("tool_calls") == expect["tool_calls"]
    if "choices" in expect:
        choices = expect["choices"]
        assert isinstance(choices, list)
        for index, choice in enumerate(choices):
            _assert_said({0: said[index]}, choice)
