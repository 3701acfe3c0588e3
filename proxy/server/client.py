"""The client's side of one attempt over aiohttp: the `Client` that the pump writes to.

`write` waits while the client does not read (contract W7). The `_now` methods are for the clock, which cannot wait:
they run aiohttp's coroutine up to its first suspension, and it suspends only to wait for a slow client, after the
bytes have been handed to the transport in order; `ready` says that even this will not happen.
"""

from __future__ import annotations

from collections.abc import Coroutine

from aiohttp import HttpVersion11, web

from proxy.pipeline import Head
from proxy.server.identity import told_ids
from proxy.upstream.attempts import Caller

# Buffering proxies in front of us would hold events back (nginx reads the first, caches the second).
_STREAM_HEADERS = {"server": "sluice", "cache-control": "no-cache", "x-accel-buffering": "no"}


class HttpClient:
    """`response` is what the handler returns in the end."""

    def __init__(self, request: web.Request, caller: Caller) -> None:
        self._request = request
        self._ids = told_ids(caller)
        self._stream: web.StreamResponse | None = None
        self.response: web.StreamResponse | None = None

    async def start(self, head: Head) -> None:
        await self._prepared(head).prepare(self._request)

    def start_now(self, head: Head) -> None:
        _run_now(self._prepared(head).prepare(self._request))

    def _prepared(self, head: Head) -> web.StreamResponse:
        headers = {"content-type": head.content_type, **self._ids, **_STREAM_HEADERS, **head.headers}
        self._stream = self.response = web.StreamResponse(status=head.status, headers=headers)
        if self._request.version < HttpVersion11:
            self._stream.force_close()  # nothing else would say where it ends
        return self._stream

    async def write(self, data: bytes) -> None:
        assert self._stream is not None, "start comes first"
        await self._stream.write(data)

    @property
    def ready(self) -> bool:
        transport = self._request.transport
        return transport is not None and not transport.is_closing() and transport.get_write_buffer_size() == 0

    def write_now(self, data: bytes) -> None:
        assert self._stream is not None, "start comes first"
        _run_now(self._stream.write(data))

    async def finish(self, data: bytes) -> None:
        assert self._stream is not None, "start comes first"
        await self._stream.write_eof(data)

    def answer(self, head: Head, body: bytes) -> None:
        headers = {"content-type": head.content_type, "server": "sluice", **self._ids, **head.headers}
        self.response = web.Response(status=head.status, headers=headers, body=body)


def _run_now(work: Coroutine[object, None, object]) -> None:
    """Run a coroutine to its first suspension and leave it there."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
