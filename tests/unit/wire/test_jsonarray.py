"""What `wire.jsonarray` makes of bytes: one frame per element of an array, as soon as it is closed."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.errors import LimitExceeded
from proxy.wire.frame import Frame
from proxy.wire.jsonarray import JsonArrayDecoder
from tests.support.cuts import cuts_of, fed, outcome, three_ways


def frames_of(reads: list[bytes]) -> list[object]:
    return fed(JsonArrayDecoder(1000), reads)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    ("data", "frames"),
    [
        ('[{"text":"你好"}\r\n,\r\n{"text":"سلام"}\r\n]'.encode(), ['{"text":"你好"}', '{"text":"سلام"}']),
        (b'[{"a":[1,{"b":[]}]},{"c":{}}]', ['{"a":[1,{"b":[]}]}', '{"c":{}}']),
        (b'[{"a":"]}[{,"},{"b":"\\"]\\\\"}]', ['{"a":"]}[{,"}', '{"b":"\\"]\\\\"}']),
        (b'[1,"a, b",null , [2,3] ,true]', ["1", '"a, b"', "null", "[2,3]", "true"]),
        (b"[]\n", []),
        (b"[ , ,]", []),
        (b'[{\n  "a": 1,\n  "b": [ ]\n}\n]\n', ['{\n  "a": 1,\n  "b": [ ]\n}']),
    ],
)
def test_each_element_is_a_frame(data: bytes, frames: list[str]) -> None:
    """Brackets and commas inside of strings and of elements part nothing; blanks belong to no element."""
    assert three_ways(frames_of, data, b'{"tail') == [Frame(frame.encode()) for frame in frames]


@pytest.mark.clause("W2")
def test_an_element_comes_out_when_its_last_bracket_comes() -> None:
    """Nobody waits for the comma: the next element may be seconds away."""
    decoder = JsonArrayDecoder(1000)
    reads = (b'[{"a":', b"1", b"}", b",", b'{"b":2}')
    assert [decoder.feed(read) for read in reads] == [[], [], [Frame(b'{"a":1}')], [], [Frame(b'{"b":2}')]]


@pytest.mark.parametrize(
    ("data", "frames"),
    [
        (b'[{"a":1}]{"error":{"code":503}}', ['{"a":1}', '{"error":{"code":503}}']),
        (b'[{"a":1}]\n[{"error":{}}]', ['{"a":1}', '{"error":{}}']),
        (b'{"error":{"code":[1,2]}}', ['{"error":{"code":[1,2]}}']),
        (b"[{]}", ["{]"]),
        (b'[oops {"a":1}]', ["oops", '{"a":1}']),
    ],
)
def test_what_is_no_array_comes_out_in_pieces(data: bytes, frames: list[str]) -> None:
    """Objects without an array, or behind its end, are seen; what is no JSON at all is given to the reader."""
    assert three_ways(frames_of, data, b'{"tail') == [Frame(frame.encode()) for frame in frames]


@pytest.mark.clause("W2")
def test_an_element_that_is_never_closed_is_marked() -> None:
    """The connection ended inside an element: the frame says so, and the caller decides."""
    reads = [b'[{"a":1},{"b', b'":"', "\u06a9".encode()[:1]]
    assert outcome(JsonArrayDecoder(1000), reads) == [
        Frame(b'{"a":1}'),
        Frame(b'{"b":"\xda', terminated=False),
    ]
    never_closed = Frame(b"", terminated=False)
    assert outcome(JsonArrayDecoder(1000), [b'[{"a":1}\n, \n']) == [Frame(b'{"a":1}'), never_closed]
    assert outcome(JsonArrayDecoder(1000), [b"["]) == [never_closed]
    assert outcome(JsonArrayDecoder(1000), [b"[ ]\n"]) == []


LIMIT = 10


@pytest.mark.clause("W7")
@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT])
def test_an_element_up_to_the_limit_is_a_frame(length: int) -> None:
    """limit - 1 and limit bytes pass, however many blanks stand around them."""
    element = b'"' + b"x" * (length - 2) + b'"'
    data = b" " * 30 + b"[" + b"\n" * 30 + element + b" " * 30 + b"]"
    assert three_ways(lambda reads: outcome(JsonArrayDecoder(LIMIT), reads), data, b"") == [Frame(element)]


@pytest.mark.clause("W2", "W7")
@pytest.mark.parametrize("long", [b'{"a":"bcd"}', b"[[[[[[[[[[[", b'"abcdefghi"', b"12345678901"])
def test_an_element_beyond_the_limit_is_refused_after_what_stood_before_it(long: bytes) -> None:
    """limit + 1 bytes are an error; the frames in front of them come first, whatever the cuts."""
    got = three_ways(lambda reads: outcome(JsonArrayDecoder(LIMIT), reads), b"[1," + long + b",2]", b"")
    assert got == [Frame(b"1"), ("limit", "line", LIMIT)]


@pytest.mark.clause("W7")
def test_with_no_frame_to_return_the_call_that_meets_the_limit_raises() -> None:
    """And every call after it."""
    decoder = JsonArrayDecoder(LIMIT)
    for read in (b"[" + b"1" * (LIMIT + 1), b"]"):
        with pytest.raises(LimitExceeded):
            decoder.feed(read)
    with pytest.raises(LimitExceeded):
        decoder.finish()


_pieces = st.lists(
    st.sampled_from(
        [b"[", b"]", b"{", b"}", b",", b'"', b"\\", b'\\"', b" ", b"\r\n", b"a", b"1", b":", "\u06cc".encode(), b"\xff"]
    ),
    max_size=30,
).map(b"".join)


@pytest.mark.clause("W2", "W7")
@given(st.data(), _pieces)
@example(None, b'["\\')
@example(None, b'[a   b"c  d"]')
def test_any_bytes_in_any_cuts_give_the_same(data: st.DataObject | None, stream: bytes) -> None:
    """Whatever comes, cuts decide nothing, also where the limit strikes; and every byte but blanks and what parts
    elements comes out."""
    reads = data.draw(cuts_of(stream)) if data is not None else [stream[n : n + 1] for n in range(len(stream))]
    for limit in (5, 1000):
        assert outcome(JsonArrayDecoder(limit), reads) == outcome(JsonArrayDecoder(limit), [stream])


_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(st.lists(_values), st.sampled_from([None, 1]), st.booleans())
def test_the_elements_of_any_array_come_out(array: list[object], indent: int | None, ascii_only: bool) -> None:
    """As a parser would say it that has all of it."""
    stream = json.dumps(array, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    frames = JsonArrayDecoder(1 << 20).feed(stream)
    assert [json.loads(frame.data) for frame in frames] == array


def test_a_long_array_costs_time_in_proportion() -> None:
    """A hundred thousand small elements in one read: nothing is copied again and again."""
    stream = b"[" + b"{}," * 100_000 + b"{}]"
    assert len(JsonArrayDecoder(1000).feed(stream)) == 100_001
