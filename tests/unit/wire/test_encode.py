"""What `wire.encode` writes, and how it reads bytes as text."""

from __future__ import annotations

import pytest

from proxy.wire.encode import DONE, KEEP_ALIVE, clean_utf8, event
from proxy.wire.frame import Frame
from proxy.wire.sse import SseDecoder


@pytest.mark.clause("W1")
def test_an_event_is_one_data_line_and_a_blank_line() -> None:
    """What we write is what an SSE reader reads back, keep-alives in between included."""
    stream = event('{"text":"سلام"}'.encode()) + KEEP_ALIVE + event(b"{}") + DONE
    assert stream == 'data: {"text":"سلام"}\n\n: keep-alive\ndata: {}\n\ndata: [DONE]\n\n'.encode()
    assert SseDecoder(1000, 1000).feed(stream) == [
        Frame('{"text":"سلام"}'.encode()),
        Frame(b"{}", comments=(b": keep-alive",)),
        Frame(b"[DONE]"),
    ]


@pytest.mark.clause("W3")
@pytest.mark.parametrize(
    ("data", "text", "replaced"),
    [
        ("चाय 茶 🍵".encode(), "चाय 茶 🍵", 0),
        (b"", "", 0),
        (b"a\xffb", "a\ufffdb", 1),
        ("茶".encode()[:2] + b"!", "\ufffd!", 1),
        ("🍵".encode()[:3], "\ufffd", 1),
        (b"\xed\xa0\xbd", "\ufffd\ufffd\ufffd", 3),
        (b"\xc0\xaf", "\ufffd\ufffd", 2),
        ("\ufffd".encode(), "\ufffd", 0),
        ("\ufffd".encode() + b"\xff" + "\ufffd".encode(), "\ufffd\ufffd\ufffd", 1),
    ],
)
def test_invalid_utf8_is_replaced_and_counted(data: bytes, text: str, replaced: int) -> None:
    """What can never be a character becomes U+FFFD and is counted; one that was sent as such is not."""
    assert clean_utf8(data) == (text, replaced)
