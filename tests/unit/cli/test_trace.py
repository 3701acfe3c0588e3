"""The trace: what went in and what each stage made of it, in order, readable whatever the bytes are."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from proxy.cli.trace import Step, show, trace_recording, trace_steps
from proxy.stores.recordings import End, Read, Recording
from proxy.wire.frame import Frame

SSE = "text/event-stream"


def make(*reads: bytes, end: End = "close", **headers: str) -> Recording:
    return Recording(
        path=Path("a.jsonl"),
        vendor="openai",
        name="a",
        obtained="composed",
        odd="a letter is cut",
        request={},
        status=200,
        headers=tuple((name.replace("_", "-"), value) for name, value in headers.items()),
        end=end,
        reads=tuple(Read(number / 10, data) for number, data in enumerate(reads)),
        end_at=len(reads) / 10,
    )


@pytest.mark.clause("C2")
def test_each_read_is_followed_by_what_the_wire_made_of_it() -> None:
    """Reads, frames, swallowed heartbeats and what is kept aside, each under the read that completed it."""
    letter = "س".encode()
    recording = make(
        b": hb\n\n: hb\n\nretry: 1\n\ndata: {" + letter[:1],
        letter[1:] + b"}\r",
        b"\n\r\nevent: ping\ndata: a\ndata: b\n\n",
        b"oops\ndata: [DONE]",
        end="abort",
        content_type=SSE,
    )

    assert list(trace_recording(recording)) == [
        "openai/a (composed, 4 reads, 82 bytes)",
        "odd: a letter is cut",
        "   0.000  head      200 content-type: text/event-stream",
        r"   0.000  read         30 bytes  : hb\n\n: hb\n\nretry: 1\n\ndata: {\xd8",
        "          swallowed 2 comments",
        "          swallowed 1 empty event",
        "          swallowed 1 id or retry field",
        r"   0.100  read          3 bytes  \xb3}\r",
        r"   0.200  read         32 bytes  \n\r\nevent: ping\ndata: a\ndata: b\n\n",
        "          frame         4 bytes  {س}",
        r"          frame         3 bytes of 2 data lines event=ping  a\nb",
        r"   0.300  read         17 bytes  oops\ndata: [DONE]",
        "   0.400  end       abort",
        "          frame         6 bytes not terminated  [DONE]",
        "          aside     kept for classification: oops",
    ]


def test_a_compressed_body_is_shown_both_ways() -> None:
    """The bytes as they came, and what came out of them; a cut body is told."""
    packer = zlib.compressobj(wbits=31)
    body = packer.compress("data: 你好\n\n".encode()) + packer.flush(zlib.Z_SYNC_FLUSH)

    steps = list(trace_steps(make(body[:5], body[5:], content_type=SSE, content_encoding="gzip")))

    assert [(step.stage, step.text) for step in steps if step.stage in ("inflate", "frame")] == [
        ("inflate", "    0 bytes  "),
        ("inflate", r"   14 bytes  data: 你好\n\n"),
        ("frame", "    6 bytes  你好"),
        ("inflate", "the compressed body is cut"),
    ]


@pytest.mark.parametrize(
    ("recording", "frames"),
    [
        (make(b'{"a":', b"1}", content_type="application/json"), ["7 bytes  {"]),
        (make(b"\n\n", content_type="application/json"), []),
        (make(b'{"a":1}\n{"b"', b":2}\n", content_type="application/x-ndjson"), ["7 bytes  {", "7 bytes  {"]),
        (make(b"data: x\n\n", content_type="application/octet-stream"), ["1 bytes  x"]),
    ],
    ids=["json", "blank", "ndjson", "events under another type"],
)
def test_other_bodies_are_traced_too(recording: Recording, frames: list[str]) -> None:
    """A plain body is one frame at its end, NDJSON one per line, events are known by how they begin."""
    found = [step.text.lstrip() for step in trace_steps(recording) if step.stage == "frame"]

    assert [text[: len(wanted)] for text, wanted in zip(found, frames, strict=True)] == frames


def test_later_stages_are_observed_read_by_read() -> None:
    """An observer gets the frames of each read, then `None` at the end of input, and its steps stand below them."""
    seen: list[tuple[list[bytes] | None, float]] = []

    def observe(frames: list[Frame] | None, now: float) -> Iterable[Step]:
        seen.append((None if frames is None else [frame.data for frame in frames], now))
        return [Step(now, "dialect", "text")] if frames else []

    steps = list(trace_steps(make(b"data: a\n\ndata: b\n\n", b"data: c", content_type=SSE), observe))

    assert seen == [([b"a", b"b"], 0.0), ([], 0.1), ([b"c"], 0.2), (None, 0.2)]
    assert [step.stage for step in steps] == [
        "head",
        "read",
        "frame",
        "frame",
        "dialect",
        "read",
        "end",
        "frame",
        "dialect",
    ]


@pytest.mark.clause("W7")
def test_a_line_beyond_the_limit_ends_the_trace() -> None:
    """As it would end the stream, with the limit named."""
    steps = list(trace_steps(make(b"data: " + bytes(9 << 20), content_type=SSE)))

    assert steps[-1].stage == "limit"
    assert "8388608" in steps[-1].text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("مرحبا 🌊".encode(), "مرحبا 🌊"),
        (b"a\r\n\t\0\x1b[31m", r"a\r\n\t\x00\x1b[31m"),
        ("a\u2028b\u0085c\ufeff".encode(), r"a\u2028b\x85c\ufeff"),
        ("é".encode()[:1], r"\xc3"),
        (b"ab" * 60, "ab" * 18 + " … " + "ab" * 37),
    ],
)
def test_bytes_are_shown_on_one_line(data: bytes, shown: str) -> None:
    """Letters as they are, what would break a terminal as escapes, the middle of long ones left out."""
    assert show(data) == shown
