"""AWS event-stream messages, as a server would write them: for tests and for composed recordings."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable


def header(name: str, kind: int, value: bytes) -> bytes:
    """One header; byte arrays (6) and strings (7) carry their length."""
    told = name.encode()
    length = struct.pack(">H", len(value)) if kind in (6, 7) else b""
    return bytes((len(told),)) + told + bytes((kind,)) + length + value


def message(headers: Iterable[tuple[str, int, bytes]], payload: bytes) -> bytes:
    """One message with both of its checksums."""
    head = b"".join(header(*one) for one in headers)
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    prelude += struct.pack(">I", zlib.crc32(prelude))
    body = prelude + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def event(kind: str, payload: bytes) -> bytes:
    return _typed("event", ":event-type", kind, payload)


def exception(kind: str, payload: bytes) -> bytes:
    return _typed("exception", ":exception-type", kind, payload)


def _typed(message_type: str, name: str, kind: str, payload: bytes) -> bytes:
    headers = [
        (name, 7, kind.encode()),
        (":content-type", 7, b"application/json"),
        (":message-type", 7, message_type.encode()),
    ]
    return message(headers, payload)
