"""The upstream stops after byte N, for every N (contract W5, W6): cut is cut, whole is whole, nothing in between."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from proxy.canon.ending import Ending, Stop
from proxy.stores.recordings import End, Recording
from tests.support.client import BodyEnd, Reply
from tests.support.pipelines import STREAM, Transcript, recordings, run
from tests.support.proxy import chat, running_proxy
from tests.support.shape import complaints_about
from tests.support.upstream import Play, ReplayUpstream

#: Joined emoji in CRLF, two tool calls at once, and lines that end in CR: each breaks in its own way. The full size is
#: every recording that was not cut itself.
SHORT: Final = ("xai/joined-emoji-cut-between-deltas", "openai/tool-calls-interleaved", "mistral/cr-only-line-ends")
#: From here on the time grows with the square: every seventh byte, which falls on every place of a character.
LONG: Final = 8_000
#: Says with every chunk that it was the last: nobody could tell its cut from its end.
ALWAYS_FINISHED: Final = "one_api/finish-stop-on-every-chunk"
IS_DEEP: Final = os.environ.get("SLUICE_DEEP") == "1"
ENDS: Final[tuple[End, ...]] = ("close", "abort", "reset")
Texts = dict[tuple[object, ...], str]


def chosen() -> Iterator[Recording]:
    for recording in recordings():
        is_whole = recording.end == "close" and recording.is_event_stream and not recording.header("content-encoding")
        if recording.key in SHORT or (IS_DEEP and is_whole and recording.key != ALWAYS_FINISHED):
            yield recording


def texts_of(transcript: Transcript) -> Texts:
    return joined(transcript.payloads) if transcript.head.status == 200 else {}


def joined(payloads: list[dict[str, object]]) -> Texts:
    """Every text that grows by deltas, by choice and field."""
    texts: Texts = {}
    for payload in payloads:
        for choice in payload.get("choices", ()):  # type: ignore[attr-defined]  # JSON, narrowed by failing
            delta = choice["delta"]
            pieces = {name: delta.get(name) for name in ("content", "reasoning_content", "refusal")}
            for call in delta.get("tool_calls", ()):
                pieces[call["index"]] = call["function"]["arguments"]
            for name, piece in pieces.items():
                key = (choice["index"], name)
                texts[key] = texts.get(key, "") + (piece or "")
    return texts


def is_prefix(part: Texts, whole: Texts) -> bool:
    """Half a pair whose other half never came is told as U+FFFD."""
    return all(whole.get(key, "").startswith((text, text.removesuffix("\ufffd"))) for key, text in part.items())


def speaks_of_an_end(body: bytes) -> bool:
    """Has the vendor said that it is done, in whatever words?"""
    return b"[DONE]" in body or re.search(rb'"finish_reason": ?"[^"]', body) is not None


@pytest.mark.clause("W5", "W6", "L2")
@pytest.mark.parametrize("recording", list(chosen()), ids=lambda recording: recording.key)
@pytest.mark.parametrize("stop", [Stop.EOF, Stop.CUT, Stop.IDLE])
@pytest.mark.timeout(600 if IS_DEEP else 60)
def test_after_every_byte_there_is_one_ending_and_the_right_one(recording: Recording, stop: Stop) -> None:
    """Whatever byte was the last: one ending, complete only after the vendor's own word, a prefix of the text."""
    body, headers = recording.body, dict(recording.headers)
    whole = run([body], vendor=recording.vendor, headers=headers)
    completed_at: list[int] = []
    sizes = range(0, len(body), 1 if len(body) < LONG else 7)
    for size in sizes:
        cut = run([body[:size]], vendor=recording.vendor, headers=headers, stop=stop)
        where = f"cut after byte {size} of {len(body)}: {body[max(0, size - 60) : size]!r}"
        is_complete = cut.closing.ending is Ending.COMPLETED
        assert cut.facts.ending is cut.closing.ending, where
        assert is_prefix(texts_of(cut), texts_of(whole)), where
        assert cut.is_done is is_complete, where
        if cut.head.content_type.startswith("text/event-stream"):
            assert complaints_about(cut.client, complete=is_complete, usage=True) == [], where
        if is_complete:
            completed_at.append(size)
            assert speaks_of_an_end(body[:size]), where
            assert texts_of(cut) == texts_of(whole), where
        else:
            assert cut.error is not None, where
    if whole.closing.ending is Ending.COMPLETED and completed_at:
        assert completed_at == [size for size in sizes if size >= completed_at[0]], "what is complete stays so"


@pytest.mark.clause("W6", "L1")
@pytest.mark.parametrize("end", ENDS)
async def test_over_http_every_cut_is_told_and_has_its_row(tmp_path: Path, end: End) -> None:
    """Closed, broken off or reset after byte N of a real answer: the client's body ends properly and says what it was,
    its row says the same, and the same bytes without a socket mean the same."""
    recording = next(one for one in recordings() if one.key == SHORT[0])
    body = recording.body
    step = 7 if IS_DEEP else max(1, len(body) // 24)
    sizes = [*range(1, len(body), step), len(body) - 1]
    plays = [Play([(0.0, body[:size])], end=end) for size in sizes]
    async with (
        ReplayUpstream(*plays) as upstream,
        running_proxy(tmp_path, upstream.base_url, vendor=recording.vendor) as proxy,
    ):
        replies = [await proxy.ask(chat("👋🏽 سلام", stream_options={"include_usage": True})) for _ in sizes]
        rows = {row["trace_id"]: row for row in await proxy.rows(len(sizes))}
        assert upstream.open_connections <= 1  # one may be kept alive

    for size, reply in zip(sizes, replies, strict=True):
        row = rows[reply.headers["x-trace-id"]]
        stop = Stop.EOF if end == "close" else Stop.CUT
        alone = run([body[:size]], STREAM, vendor=recording.vendor, stop=stop)
        assert reply.end is BodyEnd.WHOLE, size
        assert row["ending"] == alone.closing.ending.value, size
        assert (row["ending"] == "completed") is reply.is_done, size
        assert told(reply) == (alone.head.status, texts_of(alone), code_of(alone)), size
        assert row["error_code"] == code_of(alone), size


def told(reply: Reply) -> tuple[int, Texts, object]:
    if reply.status != 200:
        return reply.status, {}, json.loads(reply.body)["error"]["code"]
    last = reply.events[-1].get("error")
    return 200, joined(reply.events), last["code"] if isinstance(last, dict) else None


def code_of(transcript: Transcript) -> object:
    return transcript.error["code"] if transcript.error is not None else None
