"""Every answer in every client dialect: each recording, whatever its vendor speaks, as each kind of client reads it.

A dialect gets these tests by being registered. What must come out is what the recording says of itself (`expect`); the
form is that of the public APIs (tests/support/decoders). (contract D1, D2; W1 to W6 in each dialect's own form)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pytest

from proxy.canon.ending import Ending, Stop
from proxy.dialects.registry import CHAT_DIALECTS, CLIENT_DIALECTS
from proxy.pipeline import Asked
from proxy.stores.recordings import Recording
from tests.support.decoders import DECODERS, Said
from tests.support.pipelines import Transcript, play, recordings, run, shipped_rules

#: Embeddings are no conversation.
CLIENTS: Final = sorted(set(CLIENT_DIALECTS) - {"embeddings", "toon"})
every_recording = pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.key)
every_client = pytest.mark.parametrize("client", CLIENTS)


def asked(client: str, stream: bool) -> Asked:
    return Asked(stream, usage=True, client=client, body={"model": "alias", "stream": stream})


def said_by(recording: Recording, client: str, stream: bool) -> tuple[Transcript, Said]:
    transcript = play(recording, asked(client, stream))
    is_stream = transcript.head.content_type.startswith("text/event-stream")
    return transcript, DECODERS[client](transcript.client, is_stream)


def test_every_client_dialect_has_a_decoder() -> None:
    """A dialect that no test can read would be untested."""
    assert set(DECODERS) == set(CLIENTS)


@pytest.mark.clause("D1", "D2", "W4", "W5", "W6")
@every_client
@every_recording
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
def test_an_answer_means_the_same_to_every_client(recording: Recording, client: str, stream: bool) -> None:
    """Text, reasoning, calls and finish are the recording's; the end is there only if the answer is complete, and an
    error says its class."""
    transcript, said = said_by(recording, client, stream)
    complete = transcript.closing.ending is Ending.COMPLETED

    assert said.ended is complete
    if complete or transcript.head.content_type.startswith("text/event-stream"):
        assert_said(said, recording.expect, client, complete=complete)
    if not complete:
        assert said.error is not None and said.error["type"] == transcript.facts.error_class


def assert_said(said: Said, expect: Mapping[str, object], client: str, *, complete: bool) -> None:
    if "text" in expect:
        assert_text(said, expect, client)
    if client == "completions":
        return  # it has no place for reasoning and calls
    if "reasoning" in expect and not isinstance(expect.get("choices"), list):
        assert said.reasoning == expect["reasoning"]
    calls = expect.get("tool_calls")
    if isinstance(calls, list) and complete:
        found = [(name, json.loads(arguments or "{}")) for _, name, arguments in said.calls]
        assert found == [(call["name"], json.loads(call["arguments"] or "{}")) for call in calls]
    if complete and expect.get("finish_reason"):
        # A refusal is a stop reason of its own in the Messages API.
        refused = client == "messages" and bool(expect.get("refusal"))
        assert said.finish == ("content_filter" if refused else expect["finish_reason"])


def assert_text(said: Said, expect: Mapping[str, object], client: str) -> None:
    """A refusal has a place of its own in some grammars, and is text in the others."""
    text, refusal = expect["text"] or "", expect.get("refusal") or ""
    assert said.text + said.refusal in (f"{text}{refusal}", f"{refusal}{text}")


@pytest.mark.clause("W2", "D1", "D2")
@every_client
@every_recording
def test_the_cuts_do_not_matter_to_any_client(recording: Recording, client: str) -> None:
    """One byte at a time, and in sevens, give the same bytes as the whole."""
    size = len(recording.body)
    whole = play(recording, asked(client, True), at=[]).client
    assert play(recording, asked(client, True), at=range(1, size)).client == whole
    assert play(recording, asked(client, True), at=range(7, size, 7)).client == whole


@pytest.mark.clause("L2", "D1", "D2")
@every_client
@every_recording
def test_usage_is_the_vendors_for_every_client(recording: Recording, client: str) -> None:
    """Prompt with what came from a cache, answer with reasoning: the same two figures in each grammar's own terms."""
    transcript, said = said_by(recording, client, True)
    if transcript.closing.ending is not Ending.COMPLETED:
        return
    chat = DECODERS["chat"](play(recording, asked("chat", True)).client, True)
    assert said.usage == chat.usage


@pytest.mark.clause("E", "D1", "D2")
@every_client
@every_recording
def test_an_error_has_every_field_for_every_client(recording: Recording, client: str) -> None:
    """The contract's error object, in each grammar's envelope."""
    transcript, said = said_by(recording, client, True)
    if transcript.closing.verdict is None:
        return
    assert said.error is not None
    fields = {"message", "type", "code", "param", "retryable", "retry_after", "upstream", "trace_id"}
    assert fields <= set(said.error)


#: Whole answers; what is cut off of one must be missed. (Not where the vendor says the finish all along: nobody can.)
WHOLE: Final = [
    recording
    for recording in recordings()
    if recording.expect.get("ending") == "completed"
    and recording.end == "close"
    and recording.status == 200
    and not play(recording, asked("chat", True)).pipeline._answer.spoke_on
]


@pytest.mark.clause("W5", "W6", "D1", "D2")
@pytest.mark.parametrize("stop", [Stop.EOF, Stop.CUT], ids=["ended", "broken off"])
@pytest.mark.parametrize("recording", WHOLE, ids=lambda recording: recording.key)
def test_an_answer_that_is_cut_never_looks_complete(recording: Recording, stop: Stop) -> None:
    """Cut at any of many places: the end is told only if all text, reasoning and calls were there, else there is an
    error, and what was said is the beginning of the whole."""
    body = recording.body
    whole = said_by(recording, "chat", True)[1]
    for size in {*range(1, len(body), max(1, len(body) // 60)), len(body) - 1, len(body) - 2}:
        transcript = run_body(recording, body[:size], stop)
        said = DECODERS["chat"](transcript.client, transcript.head.content_type.startswith("text/event-stream"))
        if said.ended:
            assert (said.text, said.reasoning, said.calls) == (whole.text, whole.reasoning, whole.calls), body[:size]
        else:
            assert said.error is not None
            assert whole.text.startswith(_trimmed(said.text)) and whole.reasoning.startswith(_trimmed(said.reasoning))


def _trimmed(text: str) -> str:
    """Without half a surrogate pair whose other half was cut off."""
    return text.removesuffix("\ufffd")


def run_body(recording: Recording, body: bytes, stop: Stop) -> Transcript:
    return run(
        [body],
        asked("chat", True),
        stop=stop,
        vendor=recording.vendor,
        headers=dict(recording.headers),
        dialect=recording.dialect or None,
        sent=recording.request.get("body") or {},
    )


@pytest.mark.clause("L2", "W6")
@every_client
@every_recording
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
def test_what_is_booked_as_delivered_is_what_was_written(recording: Recording, client: str, stream: bool) -> None:
    """Every text that counts as delivered stands in the client's bytes, and every JSON event is counted."""
    transcript = play(recording, asked(client, stream))
    facts = transcript.facts
    if transcript.head.content_type.startswith("text/event-stream"):
        ends = transcript.client.count(b"data: [DONE]\n\n")
        assert facts.events_out == transcript.client.count(b"\n\n") - ends
    if client == "completions" and facts.ending is Ending.COMPLETED:
        said = DECODERS[client](transcript.client, stream)
        assert "".join(facts.delivered) == said.text


def kinds_of(dialect: str) -> set[str]:
    """What the recordings of a vendor dialect are about."""
    found: set[str] = set()
    for recording in recordings():
        if (recording.dialect or shipped_rules().vendors[recording.vendor].dialect) != dialect:
            continue
        ending = recording.expect.get("ending")
        found |= {"calls"} if recording.expect.get("tool_calls") else set()
        found |= {"reasoning"} if recording.expect.get("reasoning") else set()
        found |= {"plain body"} if not recording.asks_stream and ending == "completed" else {str(ending)}
        found |= {"cut letters"} if any(_ends_in_a_letter(read.data) for read in recording.reads[:-1]) else set()
    return found


def _ends_in_a_letter(data: bytes) -> bool:
    """Do these bytes stop inside a character?"""
    return "\ufffd" in data.decode("utf-8", "replace")[-1:] and b"\xef\xbf\xbd" not in data[-3:]


@pytest.mark.parametrize("dialect", list(CHAT_DIALECTS))
def test_every_vendor_dialect_has_recordings_of_every_kind(dialect: str) -> None:
    """So that the tests above hold something for it: whole, cut, an error midway, letters cut, a plain body, calls."""
    wanted = {"completed", "stream_cut", "vendor_error", "cut letters", "plain body", "calls"}
    if dialect in ("completions",):
        wanted -= {"calls"}
    if dialect == "vertex":
        wanted -= {"plain body"}  # its payloads are Gemini's
    assert wanted <= kinds_of(dialect)
