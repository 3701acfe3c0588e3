"""One vendor request over aiohttp: open it, yield reads, and turn every failure into a `Stop`.

No aiohttp exception leaves this module and no deadline is set in aiohttp but that of connecting: the others are ours,
on the clock of `upstream.clock`, which ends a waiting read through `interrupt`. Bodies stay compressed here (the
pipeline inflates), redirects are not followed, cookies are not kept, proxies of the environment are not used.
(contract Q2, W6)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from proxy.canon.ending import Stop

# Shorter than any vendor's idle time that we know of (60 s and up), so that a pooled connection is rarely a dead one.
_KEEPALIVE_S = 15.0
# Twice this is buffered for a slow client before its upstream is made to wait (contract W7).
_READ_BUFFER = 64 * 1024
_DNS_TTL_S = 30


class Stopped(Exception):
    """Reading stopped: `stop` says why, `detail` what happened, for the log alone; `is_reset`: the other side broke the
    connection rather than closing it."""

    def __init__(self, stop: Stop, detail: str = "", *, is_reset: bool = False) -> None:
        self.stop, self.detail, self.is_reset = stop, detail, is_reset
        super().__init__(stop.value)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines of one upstream in seconds, 0 = off (contract C4)."""

    connect: float = 5.0
    first_byte: float = 120.0
    stall: float = 60.0
    idle: float = 30.0
    total: float = 1800.0
    after_finish: float = 2.0

    def head(self) -> tuple[float | None, Stop]:
        """How long to wait for the head, and what it means when that has passed."""
        if self.total and (not self.first_byte or self.total < self.first_byte):
            return self.total, Stop.TOTAL
        return self.first_byte or None, Stop.FIRST_BYTE


class Exchange:
    """An open answer. `read` gives what has come, b"" at its proper end."""

    __slots__ = ("_content", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self.status = response.status
        self.headers: Mapping[str, str] = {k.lower(): v for k, v in response.headers.items()}

    async def read(self) -> bytes:
        content = self._content
        if content.exception() is not None and content._buffer:
            # aiohttp would raise at once and lose what came before the failure, which for a slow client can be the end
            # of a whole answer. There is no public way to take it.
            return content._read_nowait(-1)
        try:
            return await content.readany()
        except Stopped:
            raise
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            raise Stopped(Stop.CUT, type(error).__name__, is_reset=_is_reset(error)) from error

    def interrupt(self, stop: Stop) -> None:
        """End a read that is waiting, or the next one."""
        self._content.set_exception(Stopped(stop))

    def abandon(self, stop: Stop) -> None:
        """As `interrupt`, for a reader that is not reading: the connection is closed now. What has come can be read."""
        self.interrupt(stop)
        self._response.close()

    def close(self) -> None:
        """Give the connection back if the answer was read to its end, else close it (contract W8)."""
        if self._content.is_eof() and self._content.exception() is None:
            self._response.release()
        else:
            self._response.close()


def _is_reset(error: Exception) -> bool:
    """In the middle of a body aiohttp tells it in the words of its own error alone."""
    return isinstance(error, OSError) or "ConnectionResetError" in str(error)


class Session:
    """One connection pool per process. Built inside a running loop; `close` when the process stops."""

    def __init__(self) -> None:
        self._connectors: dict[float, aiohttp.ClientSession] = {}

    def _session(self, connect_s: float) -> aiohttp.ClientSession:
        session = self._connectors.get(connect_s)
        if session is None:
            # limit=0: the default of 100 would make stream 101 wait. total=None: a stream may take hours.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S, ttl_dns_cache=_DNS_TTL_S)
            session = self._connectors[connect_s] = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s or None),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                read_bufsize=_READ_BUFFER,
                skip_auto_headers=("user-agent", "accept"),
            )
        return session

    async def open(self, url: URL, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> Exchange:
        """Send the request and wait for the head, which only the caller bounds (`Timeouts.head`). Raises `Stopped`."""
        session = self._session(timeouts.connect)
        try:
            response = await session.post(url, data=body, headers=headers, allow_redirects=False)
        except aiohttp.ConnectionTimeoutError as error:
            raise Stopped(Stop.CONNECT) from error
        except aiohttp.ClientConnectorError as error:
            raise Stopped(Stop.CONNECT_FAILED, type(error.os_error).__name__) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Stopped(Stop.CUT, type(error).__name__) from error
        return Exchange(response)

    async def close(self) -> None:
        for session in self._connectors.values():
            await session.close()
        self._connectors.clear()
