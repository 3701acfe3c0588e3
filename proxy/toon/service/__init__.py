"""`sluice toon serve`: the models that take token ids, behind HTTP, in a process of their own (docs/toon.md).

In: a registry. Out: a service that is ready once it says `listening on http://H:P`, and ends with 0 after SIGTERM when
what runs has finished. A process of its own, because a model's arithmetic and a proxy's event loop would hold each
other up; and so that one engine serves all of a proxy's workers, or those of several machines.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

import structlog
from aiohttp import web

from proxy.stores.logs import configure_logging
from proxy.toon.registry import Registry
from proxy.toon.service.app import Service
from proxy.toon.service.models import Models

log = structlog.get_logger()
#: How long rows that run may go on after SIGTERM, in seconds.
FINISH_S = 30.0


def serve(registry: Registry, sock: socket.socket, on_ready: Callable[[], None]) -> int:
    """Runs in the foreground until SIGTERM or SIGINT."""
    configure_logging([])
    return asyncio.run(_serve(registry, sock, on_ready))


async def _serve(registry: Registry, sock: socket.socket, on_ready: Callable[[], None]) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    models = await asyncio.to_thread(Models.load, registry, loop)
    try:
        service = Service(models)
        # Without handler_cancellation a handler is not told that its client left, and its row would run on (W8).
        runner = web.AppRunner(service.application(), handler_cancellation=True, access_log=None)
        await runner.setup()
        site = web.SockSite(runner, sock)
        await site.start()
        on_ready()
        await stop.wait()
        service.stopping = True
        await _let_finish(models)
        await asyncio.to_thread(models.stop)
        await runner.cleanup()
    finally:
        await asyncio.to_thread(models.stop)
    return 0


async def _let_finish(models: Models) -> None:
    """Answers may go on for a while; what is open then loses its engine, and is told so."""
    try:
        async with asyncio.timeout(FINISH_S):
            for model in models:
                await model.switchboard.wait_idle()
    except TimeoutError:
        log.warning("answers interrupted by shutdown")
