"""What kind of body is it? Its first character says, not its content type; limits and cut compression included."""

from __future__ import annotations

import gzip

import pytest

from proxy.dialects.base import Framing
from proxy.errors import LimitExceeded
from proxy.pipeline import Asked
from proxy.pipeline.intake import MAX_ERROR_BODY, Intake, Shape
from proxy.wire.frame import Frame
from tests.support.cuts import one_by_one
from tests.support.eventstream import message
from tests.support.pipelines import PLAIN, SSE, STREAM, run
from tests.support.strategies import END, ROLE, STOP, encode, say

BOM = b"\xef\xbb\xbf"
COMPLETION = encode({"id": "c", "choices": [{"message": {"content": "سلام"}, "finish_reason": "stop"}]})


def intake(status: int = 200, content_type: str = "text/event-stream", limit: int = 1000) -> Intake:
    return Intake(status, content_type, "", limit, limit)


@pytest.mark.clause("W2", "W6")
@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (b"data: x", Shape.SSE),
        (b": hb", Shape.SSE),
        (b"\n\n: hb", Shape.SSE),
        (b"oops", Shape.SSE),
        (b"[DONE]", Shape.BODY),
        (b'{"a":1}', Shape.BODY),
        (b" \r\n\t[1]", Shape.BODY),
        (b'"words"', Shape.BODY),
        (b"<html>", Shape.BODY),
        (BOM + b"{}", Shape.BODY),
        (BOM + b"data: x", Shape.SSE),
        (b"", Shape.UNKNOWN),
        (b" \n", Shape.UNKNOWN),
        (BOM, Shape.UNKNOWN),
    ],
)
@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json", "text/plain", ""])
def test_the_first_character_decides(data: bytes, shape: Shape, content_type: str) -> None:
    """Whatever the content type claims, and however the bytes are cut."""
    for reads in ([data], one_by_one(data)):
        one = intake(content_type=content_type)
        for read in reads:
            one.feed(read)
        assert one.shape is shape


@pytest.mark.clause("W2")
@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/jsonl; charset=utf-8"])
def test_ndjson_is_known_by_its_type(content_type: str) -> None:
    """Its first character is that of a body."""
    one = intake(content_type=content_type)
    assert [frame.data for frame in one.feed(b'{"a":1}\n{"b"')] == [b'{"a":1}']
    assert [(frame.data, frame.terminated) for frame in (*one.feed(b":2}"), *one.finish())] == [(b'{"b":2}', False)]


@pytest.mark.clause("W6")
@pytest.mark.parametrize("status", [300, 400, 429, 500])
def test_an_error_status_is_a_body_whatever_stands_in_it(status: int) -> None:
    """Also an event stream."""
    one = intake(status)
    assert one.shape is Shape.ERROR_BODY
    assert one.feed(b"data: x\n\n") == []
    assert one.body == b"data: x\n\n"


@pytest.mark.clause("W7")
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_body_may_be_as_long_as_an_answer(over: int, size: int) -> None:
    """limit-1, limit, limit+1, in one read and in many; blanks before it are no part of it."""
    body = b"{" + b"x" * (999 + over)
    one = intake()
    one.feed(b"\n" * 70_000)
    reads = [body[start : start + size] for start in range(0, len(body), size)]
    if over <= 0:
        for read in reads:
            one.feed(read)
        assert one.body == body
    else:
        with pytest.raises(LimitExceeded, match="answer is longer than 1000 bytes"):
            for read in reads:
                one.feed(read)


@pytest.mark.clause("W7")
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_an_error_body_is_kept_as_far_as_it_may_be_long(over: int) -> None:
    """The rest is read and dropped: it is no reason to lose the error."""
    body = b"x" * (MAX_ERROR_BODY + over)
    one = intake(500)
    one.feed(body[:10])
    one.feed(body[10:])
    assert one.body == body[:MAX_ERROR_BODY]


@pytest.mark.clause("W5", "W7")
def test_blanks_without_end_are_not_kept() -> None:
    """DeepSeek's keep-alives before a plain answer; nothing else is an empty answer."""
    one = intake()
    for _ in range(100):
        one.feed(b"\n" * 4096)
    assert one.body == b""

    empty = run([b"\n" * 100] * 3, PLAIN, headers={"content-type": "application/json"})
    assert (empty.head.status, empty.facts.error_code) == (504, "stream_cut")
    whole = run([b"\n" * 70_000, COMPLETION], PLAIN, headers={"content-type": "application/json"})
    assert whole.facts.ending == "completed"


@pytest.mark.clause("W4")
@pytest.mark.parametrize("asked", [STREAM, PLAIN], ids=["streamed", "plain"])
def test_a_body_behind_a_byte_order_mark_is_read(asked: Asked) -> None:
    """Relays on Windows write one; parsers refuse it."""
    for reads in ([BOM + COMPLETION], one_by_one(BOM + b"\r\n" + COMPLETION)):
        assert "".join(run(reads, asked).facts.delivered) == "سلام"


@pytest.mark.clause("W5")
@pytest.mark.parametrize("missing", [0, 1, 8, 30])
def test_a_compressed_answer_cut_short_is_judged_by_what_came_out(missing: int) -> None:
    """With its finish it is complete, without it is a cut; never an exception."""
    packed = gzip.compress(ROLE + say("سلام") + STOP + END)
    headers = {**SSE, "content-encoding": "gzip"}
    transcript = run([packed[: len(packed) - missing]], headers=headers)

    assert transcript.facts.ending == ("completed" if b'"finish_reason":"stop"' in transcript.client else "stream_cut")
    assert transcript.is_done is (transcript.facts.ending == "completed")
    assert missing > 8 or transcript.is_done, "the trailer alone is missing"


@pytest.mark.clause("W5")
@pytest.mark.parametrize("coding", ["zstd", "deflate", "br"])
def test_bytes_that_cannot_be_inflated_are_told_of(coding: str) -> None:
    """An unknown coding, or bytes that are not what their coding says: the error names the header."""
    transcript = run([ROLE, say("سلام")], headers={**SSE, "content-encoding": coding})
    assert (transcript.head.status, transcript.facts.error_code) == (503, "unreadable_encoding")
    assert coding in str(transcript.body)


@pytest.mark.clause("W5")
@pytest.mark.parametrize("coding", ["gzip", "none", "utf-8", "identity, utf-8", "GZIP"])
def test_plain_bytes_under_another_name_are_read(coding: str) -> None:
    """Relays inflate what they pass on and leave the header; some write what is no coding at all."""
    body = ROLE + say("سلام") + STOP + END
    for reads in ([body], [body[:1], body[1:]]):
        assert run(reads, headers={**SSE, "content-encoding": coding}).is_done


@pytest.mark.clause("W2", "W6")
@pytest.mark.parametrize("claim", ["application/x-ndjson", "application/vnd.amazon.eventstream"])
@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (b"data: x", Shape.SSE),
        (b"event: x", Shape.SSE),
        (b"upstream request timeout", Shape.SSE),
        (b"<html>", Shape.BODY),
        (b'"words"', Shape.BODY),
        (b'\n["words"]', Shape.BODY),
    ],
)
def test_a_claim_does_not_hide_what_stands_there(claim: str, data: bytes, shape: Shape) -> None:
    """A gateway's page, or its words, under the type of the stream that should have been."""
    for reads in ([data], one_by_one(data)):
        one = intake(content_type=claim)
        for read in reads:
            one.feed(read)
        assert one.shape is shape


@pytest.mark.clause("W2")
@pytest.mark.parametrize("claim", ["application/vnd.amazon.eventstream", "application/octet-stream", "text/plain", ""])
def test_binary_messages_are_known_by_their_first_byte(claim: str) -> None:
    """Relays forget the type of what they pass on."""
    data = message([(":event-type", 7, b"messageStop")], b"{}")
    for reads in ([data], one_by_one(data)):
        one = Intake(200, claim, "", 1000, 1000, frozenset((Framing.EVENTSTREAM,)))
        frames = [frame for read in reads for frame in one.feed(read)]
        assert (one.shape, frames) == (Shape.EVENTSTREAM, [Frame(b"{}", "messageStop")])


def test_an_error_as_json_under_the_type_of_binary_messages_is_a_body() -> None:
    one = intake(content_type="application/vnd.amazon.eventstream")
    one.feed(b'{"message":"x"}')
    assert (one.shape, one.body) == (Shape.BODY, b'{"message":"x"}')
