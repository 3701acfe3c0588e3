"""Messages clients before whole pipelines: cases, sample streams and recordings, any cuts, both families behind them.

Each stream is read by Anthropic's own SDK and held against what a chat client gets of the same bytes.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canon.ending import Ending
from proxy.pipeline import Asked
from proxy.stores.recordings import Recording
from tests.support.anthropic_sdk import body_of, checked_request, complaints_about, events_of, message_of, raw_events
from tests.support.joined import joined
from tests.support.pipelines import STREAM, Transcript, play, recordings, run, shipped_rules

ASKED = Asked(stream=True, usage=True, client="messages")
PLAIN = Asked(stream=False, usage=True, client="messages")


def _is_readable(recording: Recording) -> bool:
    return (recording.dialect or shipped_rules().vendors[recording.vendor].dialect) in ("openai", "anthropic")


READABLE = [recording for recording in recordings() if _is_readable(recording)]
OWN = [recording for recording in READABLE if recording.vendor == "anthropic"]


def events(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields}, ensure_ascii=False)}\n\n".encode()


def head(**usage: int) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-test", "content": [], "usage": usage}
    return events("message_start", message=message)


def block(*texts: str) -> bytes:
    start = events("content_block_start", index=0, content_block={"type": "text", "text": ""})
    deltas = [events("content_block_delta", index=0, delta={"type": "text_delta", "text": text}) for text in texts]
    return start + b"".join(deltas)


def texts_of(transcript: Transcript) -> str:
    deltas = [event["delta"] for event in raw_events(transcript.client) if event["type"] == "content_block_delta"]
    return "".join(delta.get("text", "") for delta in deltas)


@pytest.mark.clause("D1", "W5", "W6")
def test_an_error_after_output_is_anthropics_error_event() -> None:
    """No message_stop, and the class is the contract's (case B26)."""
    error = {"type": "overloaded_error", "message": "Overloaded"}
    told = run(
        [head(input_tokens=11, output_tokens=1), block("Half a thou"), events("error", error=error)],
        ASKED,
        vendor="anthropic",
    )
    last = events_of(told.client)[-1]

    assert texts_of(told) == "Half a thou"
    assert complaints_about(events_of(told.client), complete=False) == []
    assert (last["type"], last["error"]["type"], last["error"]["code"]) == ("error", "model_unavailable", "overloaded")
    assert told.facts.vendor_usage == {"message_start": {"input_tokens": 11, "output_tokens": 1}}


@pytest.mark.clause("D1", "L2")
def test_the_vendors_last_figures_are_told_as_they_are() -> None:
    """Totals that are said twice are not added up (case B43)."""
    usage = {"input_tokens": 31, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0}
    reads = [
        head(**usage, output_tokens=1),
        block("Yes."),
        events("content_block_stop", index=0),
        events("message_delta", delta={"stop_reason": "end_turn"}, usage={**usage, "output_tokens": 52}),
        events("message_stop"),
    ]
    told = run(reads, ASKED, vendor="anthropic")

    assert told.closing.ending is Ending.COMPLETED
    assert events_of(told.client)[-2]["usage"] == {**usage, "output_tokens": 52}
    assert told.facts.vendor_usage == {
        "message_start": {**usage, "output_tokens": 1},
        "message_delta": {**usage, "output_tokens": 52},
    }


@pytest.mark.clause("D1", "W4", "W5")
@pytest.mark.parametrize("recording", READABLE, ids=lambda recording: recording.key)
def test_every_answer_can_be_told_in_this_grammar(recording: Recording) -> None:
    """In Anthropic's order, valid by its SDK, with the text that a chat client gets."""
    told, chat = play(recording, ASKED), play(recording, STREAM)
    if told.head.status != 200:
        assert json.loads(told.client)["type"] == "error"
        return
    complete = told.closing.ending is Ending.COMPLETED

    assert complaints_about(events_of(told.client), complete=complete) == []
    first = joined(chat.payloads).get(0, {})
    assert texts_of(told) == f"{first.get('text', '')}{first.get('refusal', '')}"
    if complete:
        assert told.facts.events_out == len(events_of(told.client))
        calls = [one for one in message_of(told.client)["content"] if one["type"] == "tool_use"]
        wanted = first.get("tool_calls", [])
        assert isinstance(wanted, list)
        assert [(c["id"], c["name"]) for c in calls] == [(c["id"], c["name"]) for c in wanted]


@pytest.mark.clause("D1")
@pytest.mark.parametrize("recording", READABLE, ids=lambda recording: recording.key)
def test_every_answer_can_be_one_message(recording: Recording) -> None:
    """Patched or built, it is a message by the SDK's own model."""
    told = play(recording, PLAIN)
    if told.head.status == 200:
        body_of(told.client)
    else:
        assert json.loads(told.client)["type"] == "error"


@pytest.mark.clause("W2")
@given(st.sampled_from(OWN), st.lists(st.integers(0, 6000), max_size=12))
def test_no_cut_changes_a_byte(recording: Recording, cuts: list[int]) -> None:
    """Same family, with everything that only it knows."""
    at = [min(place, len(recording.body)) for place in cuts]

    assert play(recording, ASKED, at=at).client == play(recording, ASKED).client


@pytest.mark.parametrize("recording", OWN, ids=lambda recording: recording.key)
def test_the_familys_own_stream_comes_out_as_it_went_in(recording: Recording) -> None:
    """What the SDK makes of the vendor's bytes is what it makes of ours."""
    told = play(recording, ASKED)
    if told.closing.ending is not Ending.COMPLETED or recording.name in ("plain-json", "spliced-message-start"):
        return
    sent = recording.body.replace(b"\r\n", b"\n").decode()
    own = "".join(f"{one}\n\n" for one in sent.split("\n\n")[:-1] if "event: ping" not in one).encode()

    assert _bare(message_of(told.client)) == _bare(message_of(own))


def _bare(message: dict[str, object]) -> dict[str, object]:
    """Without who called a tool, where nothing is special about it, and where nobody is cited."""
    content = message["content"]
    assert isinstance(content, list)
    blocks = [
        {k: v for k, v in one.items() if (k, v) not in (("caller", {"type": "direct"}), ("citations", []))}
        for one in content
    ]
    return {**message, "content": blocks}


def test_recorded_requests_are_what_the_vendor_wants() -> None:
    """By the SDK's published types."""
    for recording in OWN:
        body = recording.request["body"]
        assert isinstance(body, dict)
        checked_request(body)
