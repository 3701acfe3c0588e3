"""Bodies of token ids, checked where they hold nobody up: short ones at once, long ones in a process beside.

In: a body. Out: a `ToonIncoming` with the alias that serves it, or the caller's mistake. JSON is parsed while the
interpreter's lock is held, so a thread would not do: 8192 ids take a millisecond, a body made to be slow takes ten, and
every stream of the process would stand still. The process is started by the first long body and ends with this one, by
whatever way: it reads a pipe. `python -m proxy.toon.intake` is that process. Never: two bodies at once.
"""

from __future__ import annotations

import asyncio
import signal
import struct
import sys
from typing import BinaryIO, Final

import msgspec
import structlog

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.incoming import ToonIncoming
from proxy.dialects.toon.outline import Outline
from proxy.toon.card import Card
from proxy.toon.catalogue import TokenModels
from proxy.upstream.tasks import Tasks

log = structlog.get_logger()

#: Some 700 ids: what is longer takes more than 0.1 ms.
INLINE_BYTES: Final = 4 * 1024
_SIZE: Final = struct.Struct("<I")
_ENDING_S: Final = 2.0
#: A body takes milliseconds, starting the process a second: one that takes longer is held by somebody.
_PATIENCE_S: Final = 10.0


class _Read(msgspec.Struct, frozen=True):
    """What crosses the pipe: an outline and its alias, or a mistake."""

    outline: Outline | None = None
    alias: str = ""
    mistake: BadRequest | None = None


_ENCODER: Final = msgspec.msgpack.Encoder()
_READ: Final = msgspec.msgpack.Decoder(_Read)
_CARDS: Final = msgspec.msgpack.Decoder(dict[str, Card])


class Intake:
    """Of one worker. A body that the process beside cannot check, because it was killed, is checked in a thread."""

    def __init__(
        self, models: TokenModels, tasks: Tasks, inline_bytes: int = INLINE_BYTES, patience_s: float = _PATIENCE_S
    ) -> None:
        self._models, self._tasks = models, tasks
        self._inline_bytes, self._patience_s = inline_bytes, patience_s
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def read(self, body: bytes) -> ToonIncoming | BadRequest:
        if len(body) <= self._inline_bytes:
            return _incoming(_read(self._models, body), body)
        # A task of its own: a client that leaves must not leave half an answer in the pipe.
        asking = self._tasks.start(self._ask(body), "read token ids")
        return _incoming(await asyncio.shield(asking), body)

    async def _ask(self, body: bytes) -> _Read:
        async with self._turn:
            try:
                async with asyncio.timeout(self._patience_s):
                    return await self._exchange(body)
            # RuntimeError: what uvloop says to bytes for a pipe that it has seen close.
            except (OSError, EOFError, RuntimeError, TimeoutError, msgspec.DecodeError) as error:
                log.error("reader of token ids ended", error=type(error).__name__)
                await self._end()
        return await asyncio.to_thread(_read, self._models, body)

    async def _exchange(self, body: bytes) -> _Read:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "proxy.toon.intake"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            await self._send(_ENCODER.encode(dict(self._models.cards)))
        await self._send(body)
        stdout = self._process.stdout
        assert stdout is not None, "it is a pipe"
        (size,) = _SIZE.unpack(await stdout.readexactly(_SIZE.size))
        return _READ.decode(await stdout.readexactly(size))

    async def _send(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(_SIZE.pack(len(data)))
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None, "it is a pipe"
        process.stdin.close()
        try:
            async with asyncio.timeout(_ENDING_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def close(self) -> None:
        """The process beside ends when its pipe does."""
        async with self._turn:
            await self._end()


def _read(models: TokenModels, body: bytes) -> _Read:
    found = models.read(body)
    return _Read(mistake=found) if isinstance(found, BadRequest) else _Read(found[0], found[1])


def _incoming(read: _Read, body: bytes) -> ToonIncoming | BadRequest:
    if read.outline is None:
        assert read.mistake is not None, "one of the two"
        return read.mistake
    return ToonIncoming(read.outline, body, read.alias)


def serve_pipe(requests: BinaryIO, answers: BinaryIO) -> None:
    """The process beside: the cards of the models, then bodies, each answered, until the pipe ends."""
    first = _received(requests)
    if first is None:
        return
    models = TokenModels(_CARDS.decode(first))
    while (body := _received(requests)) is not None:
        answer = _ENCODER.encode(_read(models, body))
        answers.write(_SIZE.pack(len(answer)) + answer)
        answers.flush()


def _received(requests: BinaryIO) -> bytes | None:
    head = requests.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    return requests.read(size)


if __name__ == "__main__":
    # Ctrl-C reaches the whole group, and it is the proxy that decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve_pipe(sys.stdin.buffer, sys.stdout.buffer)
