"""`proxy.toon.reading`: a response becomes chunks whatever way it was cut, and what goes wrong becomes one error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.toon.placing import Misplaced
from proxy.toon.reading import StreamReader, ToonAnswer, ToonChunk, ToonError, read_answer, read_refusal
from proxy.toon.text import load_vocabulary
from tests.support.cuts import cut, one_by_one
from tests.support.scripts import byte_level
from tests.support.toon_events import TEXT, TEXT_IDS, TRACE, Event, event, events, request, sse, text_portions
from tests.unit.toon.test_placing import parsed

VOCABULARY = load_vocabulary(byte_level())
ASKED = request()
TOLD = events(ASKED, text_portions())
STREAM = sse(TOLD)


def read(reads: Sequence[bytes], asked: dict[str, Any] = ASKED) -> tuple[list[ToonChunk], StreamReader]:
    reader, chunks = StreamReader(parsed(asked), VOCABULARY), []
    for one in reads:
        if not reader.over:
            chunks += reader.feed(one)
    if not reader.over:
        chunks += reader.finish()
    return chunks, reader


@given(
    cuts=st.lists(st.integers(0, len(STREAM)), max_size=20),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    size=st.sampled_from([1, 2, 3, 50]),
)
def test_cuts_change_nothing(cuts: list[int], end: str, size: int) -> None:
    """Any line ends, any cuts, any portions: the ids, the text, each chunk at its place, and no half character."""
    stream = sse(events(ASKED, text_portions(size)), end=end)
    chunks, reader = read(cut(stream, [min(at, len(stream)) for at in cuts]))
    assert reader.failure is None
    assert not reader.misplaced
    assert [one for chunk in chunks for one in chunk.ids] == list(TEXT_IDS)
    assert "".join(chunk.text or "" for chunk in chunks) == TEXT
    assert not any("\ufffd" in (chunk.text or "") for chunk in chunks)
    count = len(TEXT_IDS)
    assert [chunk.offset for chunk in chunks[:-2]] == [112 + 3 * at for at in range(0, count, size)]
    assert [chunk.offset for chunk in chunks[-2:]] == [112 + 3 * count] * 2
    assert (chunks[-2].finish_reason, chunks[-2].stop_id) == ("stop", 2)
    assert chunks[-1].usage == {"prompt_ids": 4, "completion_ids": count, "cached_ids": 0}


def test_a_byte_at_a_time_is_the_same() -> None:
    """Cut inside every character."""
    assert read(one_by_one(STREAM))[0] == read([STREAM])[0]


def test_a_character_that_never_became_whole_comes_with_the_finish() -> None:
    """As U+FFFD; the ids are all there."""
    wave = [VOCABULARY.pieces.index(bytes([byte])) for byte in "👋".encode()]
    chunks, reader = read([sse(events(ASKED, [wave[:3]]))])
    assert [chunk.text for chunk in chunks] == ["", "\ufffd", ""]
    assert reader.failure is None


def test_what_is_dropped_is_told_in_its_order() -> None:
    """To the callback and in the list; its text is not in the text."""
    told: list[Misplaced] = []
    reader = StreamReader(parsed(ASKED), VOCABULARY, told.append)
    chunks = reader.feed(sse([TOLD[0], TOLD[0], *TOLD[1:4], {"x": 1}, *TOLD[4:]]))
    assert [one.reason for one in told] == ["behind", "shape"]
    assert told == reader.misplaced
    assert "".join(chunk.text or "" for chunk in chunks) == TEXT
    assert reader.failure is None


def test_an_answer_with_a_hole_fails_at_its_end() -> None:
    """What stands before the hole was handed out; the error says where it is."""
    chunks, reader = read([sse([*TOLD[:2], *TOLD[3:]])])
    assert [one for chunk in chunks for one in chunk.ids] == list(TEXT_IDS[:6])
    assert reader.failure is not None
    assert (reader.failure.code, reader.failure.retryable) == ("answer_incomplete", True)
    assert "`ahead`, and nothing in place came from position 130 on" in reader.failure.message


FAILURES: dict[str, tuple[Callable[[], bytes], str, bool]] = {
    "no end mark": (lambda: sse(TOLD, done=False), "stream_cut", True),
    "inside an event": (lambda: sse(TOLD)[:5000], "stream_cut", True),
    "nothing at all": (lambda: b"", "stream_cut", True),
    "an end mark alone": (lambda: b"data: [DONE]\n\n", "answer_incomplete", True),
    "broken JSON": (lambda: sse(TOLD[:1], done=False) + b"data: {\n\n", "malformed_event", False),
    "no object": (lambda: b"data: [1]\n\n", "malformed_event", False),
    "an endless line": (lambda: b"data: " + b"x" * 9_000_000, "line_too_long", False),
    "an error": (lambda: sse([TOLD[0], {"error": {"code": "idle_timeout", "retryable": True}}]), "idle_timeout", True),
    "an odd error": (lambda: sse([{"error": "down"}]), "unknown", False),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_bad_end_is_one_error(name: str) -> None:
    """After all that was in place before it."""
    stream, code, retryable = FAILURES[name]
    chunks, reader = read([stream()])
    assert reader.failure is not None
    assert (reader.failure.code, reader.failure.retryable) == (code, retryable)
    assert str(reader.failure).startswith(code)
    assert [one for chunk in chunks for one in chunk.ids] == list(TEXT_IDS[: sum(len(chunk.ids) for chunk in chunks)])


def test_an_end_mark_needs_no_blank_line_and_ends_all() -> None:
    """Nothing is read behind it."""
    assert read([STREAM.rstrip(b"\n")])[1].failure is None
    chunks, reader = read([STREAM + sse([event(ASKED, [1], 500)])])
    assert reader.failure is None
    assert len(chunks) == len(TOLD)
    assert not reader.misplaced


def whole(**changed: Any) -> Event:
    body = event(ASKED, TEXT_IDS, 0, finish_reason="length", stop_id=None, usage={"prompt_ids": 4}, x_prompt_ids=4)
    return body | changed


def test_a_whole_answer_has_its_place_and_its_text() -> None:
    """As the stream has them."""
    answer = read_answer(json.dumps(whole(x_mine=1)).encode(), parsed(ASKED), VOCABULARY)
    assert isinstance(answer, ToonAnswer)
    assert (answer.ids, answer.offset, answer.stride, answer.text) == (list(TEXT_IDS), 112, 3, TEXT)
    assert (answer.finish_reason, answer.stop_id, answer.usage) == ("length", None, {"prompt_ids": 4})
    assert answer.body["x_mine"] == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<html>", "malformed_answer"),
        (b"[]", "malformed_answer"),
        (json.dumps(whole(pos={"base": "none", "offset": 100, "stride": 3})).encode(), "answer_misplaced"),
        (json.dumps(whole(meta={"trace_id": "another-one"})).encode(), "answer_misplaced"),
        (b"{}", "answer_misplaced"),
    ],
)
def test_an_answer_out_of_place_is_an_error(body: bytes, code: str) -> None:
    """There is nothing after it that could be right."""
    answer = read_answer(body, parsed(ASKED), None)
    assert isinstance(answer, ToonError)
    assert answer.code == code


def test_a_refusal_is_the_contracts_error_or_somebodys_page() -> None:
    """With all that the error says; a page is quoted, not all of it."""
    error = {"code": "rate_limited", "message": "Slow.", "param": "/tids", "retryable": True, "retry_after": 20}
    told = read_refusal(429, {}, json.dumps({"error": error | {"trace_id": TRACE}}).encode())
    assert (told.status, told.code, told.message, told.param) == (429, "rate_limited", "Slow.", "/tids")
    assert (told.retryable, told.retry_after, told.trace_id) == (True, 20.0, TRACE)
    assert str(told) == "rate_limited at /tids: Slow."
    page = read_refusal(502, {"x-trace-id": TRACE}, b"<html>" + b"x" * 1000)
    assert (page.status, page.code, page.retryable, page.trace_id) == (502, "unexpected_answer", True, TRACE)
    assert len(page.message) < 300


def test_the_client_needs_no_extra() -> None:
    """What is imported with it is in the base install."""
    names = ("torch", "transformers", "tokenizers", "numpy", "jinja2", "llguidance", "gguf")
    program = f"import sys, proxy.toon.client; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"
