"""One HTTP/1.1 exchange on an open connection, played exactly: one HTTP chunk and one write per recorded read.

In: a connection, and what to play. Out: bytes at the recorded moments, and the recorded end: a proper last chunk, a
FIN without one, a TCP reset, or silence until the peer leaves. Bare asyncio instead of an HTTP server, because those
buffer, merge writes and end bodies politely; here the cuts and the bad manners are the point (contract C2). Never:
looks into the bytes.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol, cast

from proxy.stores.recordings import SIMULATED_HEADER, Recording

#: The longest request head (nginx and Node allow 32 and 16 KiB), and the longest body or chunk of one; a request beyond
#: them is not answered.
HEAD_LIMIT: Final = 64 * 1024
BODY_LIMIT: Final = 64 * 1024 * 1024
#: A reset destroys what the peer has not read yet. Recordings say what the peer *did* read before it, so the reset
#: waits until the kernel has delivered everything and the peer had a moment to read it.
RESET_GRACE_S: Final = 0.02
_UNSENT_WAIT_MS: Final = 1000
_TIOCOUTQ: Final = 0x5411
_HOP_HEADERS: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "date"})


@dataclass(slots=True)
class Hit:
    """One request as the simulator saw it. Times are of the event loop's clock; `gone_at` is when the peer closed or
    half closed its side *before* the answer was played to its end; `sent` counts whole reads handed to the kernel."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    recording: str | None = None
    sent: int = 0
    bytes_sent: int = 0
    finished_at: float | None = None
    gone_at: float | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    async def wait_over(self, timeout_s: float = 2.0) -> Hit:
        """Wait until the exchange has ended on this side, by the recorded end or by the peer's leaving."""
        async with asyncio.timeout(timeout_s):
            await self.over.wait()
        return self


class _Sock(Protocol):
    def fileno(self) -> int: ...


class Connection(asyncio.StreamReaderProtocol):
    """A server-side connection that knows when its peer has left, also while nobody reads from it."""

    def __init__(self, serve: Callable[[Connection], Awaitable[None]]) -> None:
        self.reader = asyncio.StreamReader(limit=HEAD_LIMIT)
        super().__init__(self.reader, self._on_open)
        self._serve = serve
        self.gone = asyncio.Event()
        self.gone_at: float | None = None
        self.writer: asyncio.StreamWriter

    async def _on_open(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        _set_option(writer, socket.IPPROTO_TCP, socket.TCP_NODELAY, struct.pack("i", 1))
        # `drain` returns when the kernel has taken everything, so that `sent` is what really left.
        writer.transport.set_write_buffer_limits(high=0)
        try:
            await self._serve(self)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the peer left, or does not speak HTTP: either way there is nobody to answer; the hit says so
        finally:
            writer.close()

    def eof_received(self) -> bool | None:
        self._leave()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def _leave(self) -> None:
        if self.gone_at is None:
            self.gone_at = asyncio.get_running_loop().time()
            self.gone.set()

    async def read_request(self) -> Hit | None:
        """The next request on this connection; None when the peer has closed it between two."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return None
        start, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, path, *_version = [*start.split(" "), "", ""]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await self._read_body(headers)
        return Hit(method, path, headers, body, at=asyncio.get_running_loop().time())

    async def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self.reader.readexactly(_parse_size(headers.get("content-length", "0"), 10))
        pieces: list[bytes] = []
        while size := _parse_size((await self.reader.readuntil(b"\r\n")).split(b";")[0].decode("latin-1"), 16):
            pieces.append((await self.reader.readexactly(size + 2))[:-2])
        await self.reader.readuntil(b"\r\n")
        return b"".join(pieces)

    async def send(self, data: bytes) -> None:
        if self.writer.transport.is_closing():  # uvloop would raise a RuntimeError, which is about something else
            raise ConnectionResetError("the peer left")
        self.writer.write(data)
        await self.writer.drain()

    async def wait_gone(self, seconds: float | None) -> bool:
        """Let time pass; True if the peer left meanwhile. None waits for exactly that."""
        if seconds is not None and seconds <= 0:
            await asyncio.sleep(0)
            return self.gone.is_set()
        try:
            async with asyncio.timeout(seconds):
                await self.gone.wait()
        except TimeoutError:
            return False
        return True

    async def reset(self) -> None:
        """TCP RST, after everything sent has arrived."""
        await self._wait_delivered()
        _set_option(self.writer, socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def _wait_delivered(self) -> None:
        sock = cast("_Sock | None", self.writer.get_extra_info("socket"))
        for _ in range(_UNSENT_WAIT_MS):  # asking is the only way: the kernel tells nobody when its queue is empty
            if sock is None or not _count_unsent(sock.fileno()):
                break
            await asyncio.sleep(0.001)
        await asyncio.sleep(RESET_GRACE_S)


async def play(recording: Recording, connection: Connection, hit: Hit, speed: float) -> bool:
    """Answer one request with a recording. True if the connection may serve another request afterwards."""
    try:
        return await _play(recording, connection, hit, speed)
    finally:
        hit.gone_at = connection.gone_at if hit.finished_at is None else None
        hit.over.set()


async def _play(recording: Recording, connection: Connection, hit: Hit, speed: float) -> bool:
    chunked = not recording.header("content-length")
    await connection.send(encode_head(recording, chunked))
    loop = asyncio.get_running_loop()
    began = loop.time()
    for read in recording.reads:
        if await connection.wait_gone(began + read.t / speed - loop.time() if speed else 0):
            return False
        await connection.send(_encode_chunk(read.data) if chunked else read.data)
        hit.sent += 1
        hit.bytes_sent += len(read.data)
    if await connection.wait_gone(began + recording.end_at / speed - loop.time() if speed else 0):
        return False
    return await _end(recording, connection, hit, chunked)


async def _end(recording: Recording, connection: Connection, hit: Hit, chunked: bool) -> bool:
    match recording.end:
        case "hang":
            await connection.wait_gone(None)
            return False
        case "reset":
            await connection.reset()
        case "close" if chunked:
            await connection.send(b"0\r\n\r\n")
        case "close" | "abort":
            pass
    hit.finished_at = asyncio.get_running_loop().time()
    return recording.end == "close" and "close" not in hit.headers.get("connection", "").lower()


def encode_head(recording: Recording, chunked: bool) -> bytes:
    """The recorded head, plus what marks it as simulated (contract C2). Framing headers are ours: the recorded ones
    describe another connection."""
    try:
        reason = HTTPStatus(recording.status).phrase
    except ValueError:
        reason = "Vendor"  # 498, 520, 529, 598: real, and registered nowhere
    lines = [f"HTTP/1.1 {recording.status} {reason}"]
    lines += [f"{name}: {value}" for name, value in recording.headers if name not in _HOP_HEADERS]
    lines += [f"{SIMULATED_HEADER}: true", f"x-sluice-recording: {recording.key}"]
    lines += ["transfer-encoding: chunked"] if chunked else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _encode_chunk(data: bytes) -> bytes:
    # An empty chunk would be the last one: a read that brought nothing is a pause only.
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _parse_size(text: str, base: int) -> int:
    try:
        size = int(text, base)
    except ValueError as error:
        raise ConnectionError(f"not HTTP: {text!r} is no length") from error
    if not 0 <= size <= BODY_LIMIT:
        raise ConnectionError(f"a request body of {size} bytes is beyond {BODY_LIMIT}")
    return size


def _set_option(writer: asyncio.StreamWriter, level: int, option: int, value: bytes) -> None:
    """By file descriptor: uvloop's socket object has no `setsockopt`."""
    sock = cast("_Sock | None", writer.get_extra_info("socket"))
    if sock is None or sock.fileno() < 0:
        return
    with socket.socket(fileno=socket.dup(sock.fileno())) as twin:
        twin.setsockopt(level, option, value)


def _count_unsent(fd: int) -> int:
    """Bytes that the peer's kernel has not acknowledged (Linux); 0 where the system does not say."""
    try:
        import fcntl
        import termios

        return int(struct.unpack("i", fcntl.ioctl(fd, getattr(termios, "TIOCOUTQ", _TIOCOUTQ), b"\0\0\0\0"))[0])
    except (ImportError, OSError):
        return 0
