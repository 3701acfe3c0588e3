"""One answer of an engine, from a checked request to its last byte: what both routes have in common (docs/toon.md).

In: a request of ids and the model that serves it. Out: what the route makes of the answer, or the contract's error. A
client that leaves takes its row with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from aiohttp.http import HttpVersion11

from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import ToonRequest
from proxy.toon.engine.engine import JobTooLarge, Overloaded
from proxy.toon.engine.job import Job
from proxy.toon.service.asking import make_job
from proxy.toon.service.models import ServedModel
from proxy.toon.service.refusals import mistake, overloaded
from proxy.toon.service.streams import Answering

_STREAM_HEADERS: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

#: Writes the answer of a job as it comes.
Written = Callable[[Job, Answering], Awaitable[web.StreamResponse]]


async def run(asked: ToonRequest, model: ServedModel, trace_id: str, ids: str, write: Written) -> web.StreamResponse:
    """`ids` names the field that is to blame where the request is too long."""
    job = await asyncio.to_thread(make_job, asked, model)
    if isinstance(job, BadRequest):
        return mistake(job, trace_id)
    try:
        ticket, answering = model.switchboard.ask(model.engine, job)
    except Overloaded:
        return overloaded(trace_id)
    except JobTooLarge as error:
        return mistake(BadRequest("context_length_exceeded", str(error), ids, 413), trace_id)
    try:
        return await write(job, answering)
    finally:  # the client has its answer, or has left: a row that still runs ends before the next step
        model.switchboard.forget(ticket)
        model.engine.cancel(ticket)


async def begin_stream(request: web.Request, trace_id: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={**_STREAM_HEADERS, "x-trace-id": trace_id})
    if request.version < HttpVersion11:
        response.force_close()  # nothing else would say where it ends
    await response.prepare(request)
    return response
