"""The row's figures are those of the bytes (contract L2): what the vendor said, what the client got, event by event."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.ending import Ending
from proxy.dialects.payload import whole_text
from proxy.pipeline import Asked
from proxy.stores.recordings import Recording
from proxy.wire.hold import Boundary
from tests.support.cuts import cuts_of
from tests.support.pipelines import DONE, PLAIN, STREAM, Transcript, play, recordings, run
from tests.support.strategies import END, ROLE, STOP, say, streams, texts, uniform_streams

asked = st.builds(Asked, stream=st.booleans(), usage=st.booleans(), json=st.booleans())
every_recording = pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.key)


def told_in(messages: Iterable[object]) -> list[str]:
    """Every text, function name and piece of arguments in these deltas or messages, as one pile of characters."""
    pieces: list[str] = []
    for message in messages:
        assert isinstance(message, dict)
        pieces += [message.get(name) or "" for name in ("content", "reasoning_content", "reasoning", "refusal")]
        for call in message.get("tool_calls") or ():
            function = call["function"]
            pieces += [function.get("name") or "", function.get("arguments") or ""]
    return sorted("".join(pieces))


def assert_delivered_is_what_the_client_got(transcript: Transcript) -> None:
    """Order apart: choices and fields stand interleaved in the pieces and apart in a body."""
    facts = transcript.facts
    if transcript.head.status != 200:
        assert not any(facts.all_delivered())
    elif transcript.head.content_type.startswith("text/event-stream"):
        deltas = [choice["delta"] for payload in transcript.payloads for choice in payload.get("choices") or ()]  # type: ignore[attr-defined]  # JSON
        assert sorted(chain.from_iterable(chain.from_iterable(facts.all_delivered()))) == told_in(deltas)


def assert_events_are_counted(transcript: Transcript) -> None:
    if transcript.head.content_type.startswith("text/event-stream"):
        assert transcript.facts.events_out == transcript.client.count(b"\n\n") - transcript.client.count(DONE)
    else:
        assert transcript.facts.events_out == 0


@pytest.mark.clause("L2", "C5")
@every_recording
@pytest.mark.parametrize("asked", [STREAM, PLAIN, Asked(stream=True)], ids=["usage", "plain", "no usage"])
def test_recordings_are_counted_as_told(recording: Recording, asked: Asked) -> None:
    """Delivered texts are those in the client's events, and events out are the client's events."""
    transcript = play(recording, asked)

    assert_delivered_is_what_the_client_got(transcript)
    assert_events_are_counted(transcript)
    assert transcript.facts.bytes_in <= len(recording.body)


@pytest.mark.clause("L2", "C5")
@given(whole=st.one_of(streams(), uniform_streams()), asked=asked, boundary=st.sampled_from(Boundary), data=st.data())
def test_generated_streams_are_counted_as_told(
    whole: bytes, asked: Asked, boundary: Boundary, data: st.DataObject
) -> None:
    """The same for whatever a vendor may send, cut anywhere."""
    reads = data.draw(cuts_of(whole))
    transcript = run(reads, asked, boundary=boundary)
    facts = transcript.facts

    assert_delivered_is_what_the_client_got(transcript)
    assert_events_are_counted(transcript)
    if not facts.altered and facts.ending is Ending.COMPLETED:
        assert facts.all_delivered() == facts.all_received(), "not altered, so it is counted once"


@pytest.mark.clause("L2", "W3")
@given(pieces=st.lists(texts, max_size=10), boundary=st.sampled_from(Boundary), stream=st.booleans())
def test_received_is_the_vendors_text(pieces: list[str], boundary: Boundary, stream: bool) -> None:
    """Piece for piece as the vendor sent it; the client gets the same characters, halves joined or replaced."""
    transcript = run([ROLE, *map(say, pieces), STOP, END], Asked(stream=stream), boundary=boundary)

    assert transcript.facts.received == [piece for piece in pieces if piece]
    if transcript.facts.ending is Ending.COMPLETED:
        assert whole_text("".join(transcript.facts.delivered)) == whole_text("".join(pieces))


@pytest.mark.clause("W1", "W6")
@given(
    beats=st.lists(
        st.sampled_from(
            (b": hb\n\n", b"data:\n\n", b"data: {}\n\n", b"event: ping\ndata: {}\n\n", b'data: {"choices":[]}\n\n')
        )
    ),
    at=st.integers(0, 3),
)
def test_each_heartbeat_is_swallowed_and_counted(beats: list[bytes], at: int) -> None:
    """Comments, empty events, pings, chunks without choices: counted one by one, told to nobody."""
    events = [ROLE, say("سلام"), STOP]
    events[at:at] = beats
    transcript = run([*events, END])

    assert transcript.client == run([ROLE, say("سلام"), STOP, END]).client
    assert transcript.facts.heartbeats == len(beats)


@pytest.mark.clause("W7")
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("text", ["a", "س", "🧵"], ids=["ascii", "persian", "emoji"])
def test_the_answers_limit_is_on_its_text(text: str, stream: bool, over: int) -> None:
    """An answer of `limits.answer_bytes` is whole; one byte more is the ending `limit`, told as `answer_too_long`."""
    size = 24 * len(text.encode())
    transcript = run([ROLE, *[say(text)] * 24, STOP, END], Asked(stream=stream), max_answer_bytes=max(size - over, 1))

    if over <= 0:
        assert transcript.closing.ending is Ending.COMPLETED
    else:
        assert transcript.closing.ending is Ending.LIMIT
        assert transcript.error is not None
        assert transcript.error["code"] == "answer_too_long"


@pytest.mark.clause("W7")
def test_what_is_kept_beside_the_text_is_limited_too() -> None:
    """Choices without end, and unknown fields that wait for the commit point or for the one body, are an error."""
    many = [b'data: {"choices":[{"index":%d,"delta":{"content":"x"}}]}\n\n' % index for index in range(100)]
    before = [b'data: {"choices":[{"index":0,"delta":{"x":"%s"}}]}\n\n' % (b"y" * 900)] * 30
    for reads, stream in ((many, True), (many, False), (before, True), (before, False)):
        transcript = run(reads, Asked(stream=stream), max_answer_bytes=10_000, max_line_bytes=10_000)
        assert transcript.closing.ending is Ending.LIMIT, json.dumps(transcript.error)
