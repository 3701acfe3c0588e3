"""Fake upstreams for asynchronous tests: one that plays what a test hands it, and one that hangs in a chosen phase.

Both are the product's own simulator underneath, so what they send is exact to the read, and `hits` says what arrived,
when, how many reads went out, and when the peer left.
"""

from __future__ import annotations

import asyncio
import math
import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from proxy.stores.playback import Connection, Hit
from proxy.stores.recordings import End, Read, Recording
from proxy.stores.simulator import Simulator

SSE = (("content-type", "text/event-stream; charset=utf-8"),)
JSON = (("content-type", "application/json"),)
HOST = "127.0.0.1"
#: Below what any kernel gives of itself.
_NEVER_GIVEN: Final = (20_000, 30_000)


@dataclass(frozen=True, slots=True)
class Play:
    """One answer. Each read is `(seconds after the one before, bytes)`. `head_delay` is silence before the status line
    (`math.inf`: it never comes); `end_delay` is silence between the last read and the end."""

    reads: Sequence[tuple[float, bytes]] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = SSE
    end: End = "close"
    head_delay: float = 0.0
    end_delay: float = 0.0

    def as_recording(self) -> Recording:
        t, reads = 0.0, []
        for delay, data in self.reads:
            t += delay
            reads.append(Read(t, data))
        return Recording(
            path=Path("a test"),
            vendor="test",
            name="play",
            obtained="composed",
            odd="",
            request={},
            status=self.status,
            headers=tuple((name.lower(), value) for name, value in self.headers),
            end=self.end,
            reads=tuple(reads),
            end_at=t + self.end_delay,
        )


def play_events(*payloads: bytes | str, delay: float = 0.0, end: End = "close", done: bool = True) -> Play:
    """The usual case: one event per read."""
    lines = [payload if isinstance(payload, bytes) else payload.encode() for payload in payloads]
    lines += [b"[DONE]"] if done else []
    return Play([(delay, b"data: %b\n\n" % line) for line in lines], end=end)


class ReplayUpstream(Simulator):
    """Answers the first request with the first play, and so on; the last one is repeated for ever.

    `async with ReplayUpstream(play) as upstream:` … `upstream.base_url` … `upstream.hits`
    """

    def __init__(self, *plays: Play | Recording, speed: float = 1.0) -> None:
        super().__init__([], speed=speed)
        self.plays = list(plays)
        self.port = 0
        self._played = 0
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.port = await self.start(HOST, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"

    def choose(self, hit: Hit) -> Recording:
        play = self._current()
        return play.as_recording() if isinstance(play, Play) else play

    async def answer(self, connection: Connection, hit: Hit) -> bool:
        self._arrived.set()
        play = self._current()
        if isinstance(play, Play) and play.head_delay and await self._stay_silent(play, connection, hit):
            return False
        try:
            return await super().answer(connection, hit)
        finally:
            self._played += 1

    def _current(self) -> Play | Recording:
        return self.plays[min(self._played, len(self.plays) - 1)]

    async def _stay_silent(self, play: Play, connection: Connection, hit: Hit) -> bool:
        if not await connection.wait_gone(None if math.isinf(play.head_delay) else play.head_delay):
            return False
        hit.gone_at = connection.gone_at
        hit.over.set()
        return True

    async def wait_hits(self, count: int = 1, timeout_s: float = 2.0) -> list[Hit]:
        """Until that many requests have arrived."""
        async with asyncio.timeout(timeout_s):
            while len(self.hits) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.hits


class HangPhase(StrEnum):
    """Where an upstream goes silent for ever, with its connection open."""

    HEAD = "head"  # the request is read, no status line ever comes
    BODY = "body"  # status and headers, and nothing more
    FIRST_EVENT = "first_event"  # one whole event
    MID_EVENT = "mid_event"  # half of the second event, cut inside a character


_FIRST = 'data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":' + (
    '{"role":"assistant","content":"سلام"},"finish_reason":null}]}\n\n'
)
_CUT_IN_A_LETTER = _FIRST.encode().index("م".encode()) + 1
_HANGS = {
    HangPhase.HEAD: Play(head_delay=math.inf),
    HangPhase.BODY: Play(end="hang"),
    HangPhase.FIRST_EVENT: Play([(0.0, _FIRST.encode())], end="hang"),
    HangPhase.MID_EVENT: Play([(0.0, _FIRST.encode()), (0.0, _FIRST.encode()[:_CUT_IN_A_LETTER])], end="hang"),
}


class HangingUpstream(ReplayUpstream):
    """Reads every request and goes silent in the given phase."""

    def __init__(self, phase: HangPhase) -> None:
        super().__init__(_HANGS[phase])


@dataclass(slots=True)
class UnreachableUpstream:
    """A port at which a TCP connect neither succeeds nor fails (on Linux a full accept queue drops SYNs)."""

    port: int = 0
    _sockets: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        listener = socket.socket()
        listener.bind((HOST, 0))
        listener.listen(0)
        self.port = listener.getsockname()[1]
        self._sockets.append(listener)
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((HOST, self.port))
            self._sockets.append(filler)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each in self._sockets:
            each.close()

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"


def find_refusing_port() -> int:
    """A port at which nobody listens: a connect is refused at once. It is none of those that the kernel gives to who
    asks for any, so no other test, in this process or beside it, is given it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(*_NEVER_GIVEN)
        with socket.socket() as taken:
            try:
                taken.bind((HOST, port))
            except OSError:
                continue
        return port
