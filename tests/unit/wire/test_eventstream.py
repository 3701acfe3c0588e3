"""What `wire.eventstream` makes of bytes, held to what AWS's own parser (botocore) reads from the same ones."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer  # type: ignore[import-untyped]  # it has no types
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.errors import LimitExceeded
from proxy.wire.eventstream import EventStreamDecoder
from proxy.wire.frame import Frame
from tests.support.cuts import cut, cuts_of, fed, outcome, three_ways
from tests.support.eventstream import event, exception, header, message

LIMIT = 1000


def frames_of(reads: list[bytes]) -> list[object]:
    return fed(EventStreamDecoder(LIMIT), reads)


def to_the_end(reads: list[bytes]) -> list[object]:
    return outcome(EventStreamDecoder(LIMIT), reads)


# ---- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.clause("W2")
def test_each_message_is_a_frame_with_its_payload_and_its_type() -> None:
    """Events by `:event-type`, exceptions by `:exception-type`; headers of other types are passed over."""
    data = (
        event("messageStart", b'{"role":"assistant"}')
        + event("contentBlockDelta", '{"delta":{"text":"Grüße 東京 👩‍👧"}}'.encode())
        + exception("throttlingException", b'{"message":"m"}')
        + message([("flag", 0, b""), ("at", 8, bytes(8)), (":event-type", 7, b"metadata"), ("id", 9, bytes(16))], b"{}")
    )

    assert three_ways(frames_of, data, event("x", b"{}")[:-1]) == [
        Frame(b'{"role":"assistant"}', "messageStart"),
        Frame('{"delta":{"text":"Grüße 東京 👩‍👧"}}'.encode(), "contentBlockDelta"),
        Frame(b'{"message":"m"}', "throttlingException"),
        Frame(b"{}", "metadata"),
    ]


@pytest.mark.clause("W2")
def test_an_error_that_is_told_in_headers_alone_is_an_event_called_error() -> None:
    """`:message-type: error` has a code and a message in its headers, and no payload: it gets one."""
    headers = [
        (":message-type", 7, b"error"),
        (":error-code", 7, b"InternalFailure"),
        (":error-message", 7, "کار نکرد".encode()),
    ]
    told = '{"__type": "InternalFailure", "message": "کار نکرد"}'.encode()
    assert three_ways(frames_of, message(headers, b""), b"\0") == [Frame(told, "error")]
    nothing = b'{"__type": "", "message": ""}'
    assert three_ways(frames_of, message(headers[:1], b""), b"\0") == [Frame(nothing, "error")]
    assert three_ways(frames_of, message(headers, b"{}"), b"\0") == [Frame(b"{}", "error")]


@pytest.mark.parametrize("data", [b"{}", b"", b"\xff\xfe"])
def test_a_message_without_headers_has_no_type(data: bytes) -> None:
    """Whatever its payload is: also none at all, and no text."""
    assert frames_of([message([], data)]) == [Frame(data)]


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        (header(":event-type", 7, b"a") + header(":event-type", 7, b"b"), "a"),
        (header(":event-type", 7, b"a") + b"\x05short", "a"),
        (header(":event-type", 7, b"a") + b"\x01x\x63", "a"),  # a type that does not exist
        (header(":event-type", 7, b"a") + b"\x01x\x07\x00", "a"),  # half of a length
        (header(":event-type", 7, b"a") + b"\x01x\x07\x00\x09abc", "a"),  # a value that is cut
        (b"\x01x\x07\xff\xff" + header(":event-type", 7, b"a"), None),
        (b"\xff" + header(":event-type", 7, b"a"), None),
        (header(":event-type", 7, b"\xff"), "\ufffd"),
        (header(":event-type", 4, b"abcd"), None),
    ],
)
def test_malformed_headers_end_the_headers_and_not_the_stream(headers: bytes, named: str | None) -> None:
    """What stood before the fault counts; the payload is there in any case."""
    assert frames_of([raw(headers, b"{}"), event("next", b"[]")]) == [Frame(b"{}", named), Frame(b"[]", "next")]


# ---- faults and the end ----------------------------------------------------------------------------------------------


@pytest.mark.clause("W2")
@pytest.mark.parametrize("place", range(20))
def test_one_wrong_bit_ends_the_stream_and_the_cuts_do_not_matter(place: int) -> None:
    """Nobody knows where the next message begins: a frame without data is the last."""
    good, bad = event("a", b'{"n":1}'), bytearray(event("b", b'{"n":2}'))
    at = place * (len(bad) - 1) // 19
    bad[at] ^= 1

    assert three_ways(to_the_end, good + bytes(bad) + good, good) == [Frame(b'{"n":1}', "a"), Frame(b"")]


@pytest.mark.parametrize("lengths", [(15, 0), (0, 0), (20, 5), (16, 1), (20, 2**32 - 1)])
def test_lengths_that_cannot_be_are_a_fault(lengths: tuple[int, int]) -> None:
    """Shorter than a message can be, or headers longer than the message, with a checksum that is right."""
    prelude = struct.pack(">II", *lengths)
    prelude += struct.pack(">I", zlib.crc32(prelude))
    assert three_ways(to_the_end, prelude, b"more") == [Frame(b"")]


@pytest.mark.clause("W2")
@pytest.mark.parametrize("length", [1, 11, 12, 30])
def test_a_message_that_did_not_come_whole_says_nothing(length: int) -> None:
    """The connection ended inside it: unlike a line, it cannot be whole by chance."""
    data = event("a", b"{}")
    assert to_the_end([data + data[:length]]) == [Frame(b"{}", "a")]
    assert to_the_end([data[:length]]) == []


@pytest.mark.clause("W7")
@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT])
def test_a_message_up_to_the_limit_is_a_frame(length: int) -> None:
    """limit - 1 and limit bytes pass."""
    data = b"x" * (length - 16)
    assert three_ways(to_the_end, message([], data), b"") == [Frame(data)]


@pytest.mark.clause("W2", "W7")
def test_a_message_beyond_the_limit_is_refused_after_what_stood_before_it() -> None:
    """limit + 1 bytes are an error as soon as the length is known; the frames in front come first."""
    good, long = event("a", b"{}"), message([], b"x" * (LIMIT - 15))
    assert three_ways(to_the_end, good + long + good, b"") == [Frame(b"{}", "a"), ("limit", "line", LIMIT)]

    decoder = EventStreamDecoder(LIMIT)
    with pytest.raises(LimitExceeded):
        decoder.feed(long[:12])
    with pytest.raises(LimitExceeded):
        decoder.feed(good)


# ---- held to botocore ------------------------------------------------------------------------------------------------

_names = st.text(min_size=1, max_size=12).filter(lambda name: len(name.encode()) < 256)
_values = st.one_of(
    st.tuples(st.sampled_from((0, 1)), st.just(b"")),
    st.sampled_from(((2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16))).flatmap(
        lambda kind: st.tuples(st.just(kind[0]), st.binary(min_size=kind[1], max_size=kind[1]))
    ),
    st.tuples(st.just(6), st.binary(max_size=40)),
    st.tuples(st.just(7), st.text(max_size=20).map(str.encode)),
)
_special = st.sampled_from((":event-type", ":exception-type", ":error-code", ":message-type", ":content-type"))
_headers = st.lists(st.tuples(st.one_of(_special, _names), _values), max_size=5, unique_by=lambda pair: pair[0])
_messages = st.lists(st.tuples(_headers, st.binary(max_size=60)), max_size=4)


def _is_error(headers: Mapping[str, str]) -> bool:
    return headers.get(":message-type") == "error"


def read_by_botocore(data: bytes) -> list[Frame]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    frames: list[Frame] = []
    for one in buffer:
        strings = {name: value for name, value in one.headers.items() if isinstance(value, str)}
        event = strings.get(":exception-type") or strings.get(":event-type") or None
        payload = one.payload
        if event is None and (strings.keys() & {":error-code", ":error-message"} or _is_error(strings)):
            told = {"__type": strings.get(":error-code", ""), "message": strings.get(":error-message", "")}
            event, payload = "error", payload or json.dumps(told, ensure_ascii=False).encode()
        frames.append(Frame(payload, event))
    return frames


@pytest.mark.clause("W2")
@given(st.data(), _messages)
def test_random_messages_are_what_botocore_reads(
    data: st.DataObject, messages: Sequence[tuple[Sequence[tuple[str, tuple[int, bytes]]], bytes]]
) -> None:
    """Headers of every type, any payload, any cuts."""
    whole = b"".join(
        message([(name, kind, value) for name, (kind, value) in headers], payload) for headers, payload in messages
    )
    reads = data.draw(cuts_of(whole))
    assert fed(EventStreamDecoder(10_000), reads) == read_by_botocore(whole)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
@example(event("a", b"{}") + b"\0" * 20, [3, 50])
def test_any_bytes_and_any_cuts_give_one_outcome(data: bytes, places: list[int]) -> None:
    """Nothing raises but a limit, and the reads do not matter."""
    assert to_the_end(cut(data, (min(place, len(data)) for place in places))) == to_the_end([data])


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_botocore_finds_the_same_faults(place: int, bit: int) -> None:
    """Where botocore refuses a flipped bit by its checksum, this decoder is broken at the same message."""
    bad = bytearray(event("a", '{"text":"你好"}'.encode()))
    bad[place % len(bad)] ^= 1 << bit
    decoder = EventStreamDecoder(LIMIT)
    decoder.feed(bytes(bad))
    with pytest.raises(ChecksumMismatch):
        read_by_botocore(bytes(bad))
    assert decoder.broken


def raw(headers: bytes, payload: bytes) -> bytes:
    """A message whose headers are these bytes."""
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    prelude += struct.pack(">I", zlib.crc32(prelude))
    body = prelude + headers + payload
    return body + struct.pack(">I", zlib.crc32(body))
