"""A raw HTTP client for tests: keeps every read with its moment, and behaves badly on demand.

It takes chunked bodies apart itself, so a test sees exactly what was on the wire: how the body ended (properly, cut,
reset), what stood in which write, and the events one by one. It can leave after N events, read slowly through a small
socket buffer, or stop reading for a while.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

HOST = "127.0.0.1"
CHAT = "/v1/chat/completions"


class BodyEnd(StrEnum):
    """How the response's body stopped, seen from here."""

    WHOLE = "whole"  # last chunk, or all of content-length
    CUT = "cut"  # the connection was closed before that
    RESET = "reset"  # the connection was reset
    LEFT = "left"  # we hung up


@dataclass(frozen=True, slots=True)
class TimedRead:
    """Bytes as they came, in seconds after the request was sent."""

    t: float
    data: bytes


@dataclass(slots=True)
class Dechunker:
    """Chunked transfer coding, incrementally. `chunks` are the whole HTTP chunks so far; `ended`: the last one came."""

    chunks: list[bytes] = field(default_factory=list)
    ended: bool = False
    _buffer: bytes = b""

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        before = len(self.chunks)
        while not self.ended and b"\r\n" in self._buffer:
            line, rest = self._buffer.split(b"\r\n", 1)
            size = int(line.split(b";")[0], 16)
            if len(rest) < size + 2:
                break
            assert rest[size : size + 2] == b"\r\n", "a chunk must end in CRLF"
            self._buffer = rest[size + 2 :]
            if size:
                self.chunks.append(rest[:size])
            self.ended = not size
        return self.chunks[before:]


@dataclass(slots=True)
class Reply:
    """All that came back. `body` is without transfer coding, `arrivals` its pieces and when each was complete."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    reads: list[TimedRead] = field(default_factory=list)
    arrivals: list[TimedRead] = field(default_factory=list)
    end: BodyEnd = BodyEnd.LEFT

    @property
    def body(self) -> bytes:
        return b"".join(piece.data for piece in self.arrivals)

    @property
    def blocks(self) -> list[bytes]:
        """Between blank lines, LF only, as contract W1 has it; a last block without its blank line is not one."""
        return self.body.split(b"\n\n")[:-1]

    @property
    def data_lines(self) -> list[bytes]:
        """The payload of each `data: ` block, in order, `[DONE]` included; comments are not events."""
        return [block[6:] for block in self.blocks if block.startswith(b"data: ")]

    @property
    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.data_lines if line != b"[DONE]"]

    @property
    def is_done(self) -> bool:
        return bool(self.data_lines) and self.data_lines[-1] == b"[DONE]"

    @property
    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def text(self) -> str:
        """`delta.content` of choice 0, joined."""
        return self.joined("content")

    def joined(self, name: str, choice: int = 0) -> str:
        """One text field of the deltas (or, in a plain answer, of the message), joined."""
        is_stream = self.headers.get("content-type", "").startswith("text/event-stream")
        pieces = [
            (each.get("delta") or each.get("message") or {}).get(name) or ""
            for event in (self.events if is_stream else [self.json])
            for each in event.get("choices") or []  # type: ignore[attr-defined]  # JSON, narrowed by failing
            if each.get("index", 0) == choice
        ]
        return "".join(pieces)

    @property
    def event_times(self) -> list[float]:
        """When each block was complete."""
        times: list[float] = []
        body = b""
        for piece in self.arrivals:
            body += piece.data
            times += [piece.t] * (body.count(b"\n\n") - len(times))
        return times


class RawStream:
    """One open exchange. Read as much as the test wants, as fast as it wants, then `leave` or read to the end."""

    def __init__(self, sock: socket.socket, read_bytes: int) -> None:
        self.reply = Reply()
        self._sock = sock
        self._read_bytes = read_bytes
        self._head = b""
        self._dechunker: Dechunker | None = None
        self._left_to_read: int | None = None
        self._sent_at = asyncio.get_running_loop().time()
        self._open = True

    @property
    def is_open(self) -> bool:
        return self._open

    async def send(self, request: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._sock, request)
        self._sent_at = asyncio.get_running_loop().time()

    async def read_once(self) -> bool:
        """One read from the socket; False when the exchange is over."""
        if not self._open:
            return False
        loop = asyncio.get_running_loop()
        try:
            data = await loop.sock_recv(self._sock, self._read_bytes)
        except ConnectionResetError:
            return self._finish(BodyEnd.RESET)
        t = loop.time() - self._sent_at
        if not data:
            return self._finish(BodyEnd.WHOLE if self._is_whole_at_eof() else BodyEnd.CUT)
        self.reply.reads.append(TimedRead(t, data))
        return self._take(data, t)

    async def read_head(self) -> Reply:
        while self.reply.status == 0 and await self.read_once():
            pass
        return self.reply

    async def read_events(self, count: int) -> Reply:
        """Until that many events have come, or the exchange is over."""
        while len(self.reply.data_lines) < count and await self.read_once():
            pass
        return self.reply

    async def read_to_end(self, pause_s: float = 0.0) -> Reply:
        """`pause_s` between reads makes a slow reader."""
        while await self.read_once():
            if pause_s:
                await asyncio.sleep(pause_s)
        return self.reply

    def leave(self) -> float:
        """Close the socket at once; returns the moment, by the loop's clock."""
        if self._open:
            self._finish(BodyEnd.LEFT)
        return asyncio.get_running_loop().time()

    def _take(self, data: bytes, t: float) -> bool:
        if self.reply.status == 0:
            self._head += data
            if b"\r\n\r\n" not in self._head:
                return True
            head, data = self._head.split(b"\r\n\r\n", 1)
            self._parse_head(head.decode("latin-1"))
        if self._dechunker is not None:
            self.reply.arrivals += [TimedRead(t, piece) for piece in self._dechunker.feed(data)]
            return True if not self._dechunker.ended else self._finish(BodyEnd.WHOLE)
        self.reply.arrivals += [TimedRead(t, data)] if data else []
        if self._left_to_read is None:
            return True
        self._left_to_read -= len(data)
        return True if self._left_to_read > 0 else self._finish(BodyEnd.WHOLE)

    def _parse_head(self, head: str) -> None:
        start, *lines = head.split("\r\n")
        self.reply.status = int(start.split(" ")[1])
        self.reply.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if self.reply.headers.get("transfer-encoding") == "chunked":
            self._dechunker = Dechunker()
        elif "content-length" in self.reply.headers:
            self._left_to_read = int(self.reply.headers["content-length"])

    def _is_whole_at_eof(self) -> bool:
        return self.reply.status != 0 and self._dechunker is None and self._left_to_read is None

    def _finish(self, end: BodyEnd) -> bool:
        self.reply.end = end
        self._open = False
        self._sock.close()
        return False


@asynccontextmanager
async def open_stream(
    port: int,
    body: Mapping[str, object] | bytes | None = None,
    *,
    method: str = "POST",
    path: str = CHAT,
    headers: Mapping[str, str] | None = None,
    read_bytes: int = 65536,
    receive_buffer: int | None = None,
    timeout_s: float = 10.0,
) -> AsyncIterator[RawStream]:
    """Send one request and hand out the open exchange. `receive_buffer` (SO_RCVBUF) makes a small window."""
    sock = socket.socket()
    sock.setblocking(False)
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    fields = {"host": f"{HOST}:{port}", "content-type": "application/json", "content-length": str(len(content))}
    lines = [
        f"{method} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in {**fields, **(headers or {})}.items()),
    ]
    stream = RawStream(sock, read_bytes)
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(sock, (HOST, port))
            await stream.send("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
            yield stream
    finally:
        stream.leave()


async def fetch(
    port: int,
    body: Mapping[str, object] | bytes | None = None,
    *,
    method: str = "POST",
    path: str = CHAT,
    headers: Mapping[str, str] | None = None,
    leave_after_events: int | None = None,
    pause_s: float = 0.0,
    read_bytes: int = 65536,
    receive_buffer: int | None = None,
    timeout_s: float = 10.0,
) -> Reply:
    """One request, read to its end, or left after so many events."""
    async with open_stream(
        port,
        body,
        method=method,
        path=path,
        headers=headers,
        read_bytes=read_bytes,
        receive_buffer=receive_buffer,
        timeout_s=timeout_s,
    ) as stream:
        if leave_after_events is not None:
            return await stream.read_events(leave_after_events)
        return await stream.read_to_end(pause_s)
