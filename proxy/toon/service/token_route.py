"""`POST /v1/completions/toon` of the engine's service: TOON in, TOON out (docs/toon.md).

In: a request whose model stands in the query or in the body. Out: one answer, or a stream of events that ends with
`[DONE]`; or the contract's error. A client that leaves takes its row with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import structlog
from aiohttp import web
from msgspec import UNSET

from proxy.canon.chunk import Chunk
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import BadRequest
from proxy.dialects.toon.format import MEDIA_TYPE, ToonRequest, parse_toon
from proxy.dialects.toon.outline import outline
from proxy.dialects.toon.write import ToonWriter
from proxy.toon.engine.job import IdLogprob, Job
from proxy.toon.service.models import Models, ServedModel
from proxy.toon.service.refusals import failed, failure_object, mistake
from proxy.toon.service.running import begin_stream, run
from proxy.toon.service.streams import Answering, Gathered

log = structlog.get_logger()


async def answer_ids(request: web.Request, models: Models, trace_id: str) -> web.StreamResponse:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        wanted = BadRequest("unsupported_media_type", f"The content type must be {MEDIA_TYPE}.", "content-type", 415)
        return mistake(wanted, trace_id)
    asked = await asyncio.to_thread(parse_toon, await request.read())
    if isinstance(asked, BadRequest):
        return mistake(asked, trace_id)
    model = _model_for(asked, request.query.get("model"), models)
    if isinstance(model, BadRequest):
        return mistake(model, trace_id)

    async def write(job: Job, answering: Answering) -> web.StreamResponse:
        written = _Written(asked, model, job, trace_id)
        return await (_stream(request, answering, written) if asked.stream else _whole(answering, written))

    return await run(asked, model, trace_id, "/tids/ids", write)


def _model_for(asked: ToonRequest, name: str | None, models: Models) -> ServedModel | BadRequest:
    version = asked.tids.v
    name = name if name is not None else None if asked.model is UNSET else asked.model
    found = models.speaking(version) if name is None else models.named(name)
    if found is None and name is not None:
        return BadRequest("model_not_found", f"There is no model `{name[:200]}` here.", "/model", 404)
    if found is None or found.card.version != version:
        served = ", ".join(models.versions())
        message = f"No model here speaks the tokenizer version {version}; served are {served}."
        return BadRequest("unsupported_version", message, "/tids/v")
    return found


class _Written:
    """One answer in TOON, as far as it has been written."""

    def __init__(self, asked: ToonRequest, model: ServedModel, job: Job, trace_id: str) -> None:
        self.trace_id = trace_id
        self._writer = ToonWriter(
            f"toon-{trace_id}", int(time.time()), model.entry.name, {"toon": outline(asked), "trace_id": trace_id}
        )
        plan = job.plan
        placed = (plan.first_offset - asked.pos.offset) // asked.pos.stride
        extra: dict[str, object] = {"x_prompt_ids": placed}
        if plan.truncated:
            extra["x_truncated"] = plan.truncated
        self._chunk = Chunk([], extra=extra)
        self._writer.adopt(self._chunk)
        self._writer.settle()
        self._prompt_ids, self._made, self._cached = len(plan.ids), 0, 0
        self._whole = Gathered()

    def events(self, come: Gathered) -> bytes:
        """The ids that came, and the finish as an event of its own."""
        self._made += len(come.ids)
        self._cached = max(self._cached, come.cached_ids)
        delta = {"token_ids": come.ids, "token_logprobs": _told(come.logprobs)}
        out = self._writer.event(self._chunk, 0, delta)
        if come.finish is not None:
            stop = {"stop_id": come.stop_id} if come.stop_id is not None else None
            out += self._writer.event(self._chunk, 0, {}, finish=come.finish, choice_extra=stop)
        return out

    def error(self, error: Mapping[str, object]) -> bytes:
        return self._writer.error_event(error)

    def seal(self) -> bytes:
        return self._writer.seal(self._usage(), None, Count(), wanted=True)

    def body(self, whole: Gathered) -> bytes:
        self._made, self._cached = len(whole.ids), whole.cached_ids
        message = {"token_ids": whole.ids, "token_logprobs": _told(whole.logprobs)}
        choice: dict[str, object] = {"message": message, "finish_reason": whole.finish, "stop_id": whole.stop_id}
        return self._writer.body([choice], self._usage(), None, Count(), self._chunk.extra)

    def _usage(self) -> Usage:
        return Usage(self._prompt_ids, self._made, cache_read=self._cached)


def _told(logprobs: list[IdLogprob]) -> list[object]:
    return [{"id": one.id, "logprob": one.logprob, "top": [list(pair) for pair in one.top]} for one in logprobs]


async def _stream(request: web.Request, answering: Answering, written: _Written) -> web.StreamResponse:
    """A failure before the first id is an HTTP error, later an event (contract W6)."""
    come = await answering.next()
    if come.failure is not None and not come.ids:
        return failed(come.failure, written.trace_id)
    response = await begin_stream(request, written.trace_id)
    while not come.is_last:
        if out := written.events(come):
            await response.write(out)
        come = await answering.next()
    out = written.events(come)
    if come.failure is None:
        await response.write_eof(out + written.seal())
    else:
        await response.write_eof(out + written.error(failure_object(come.failure, written.trace_id)))
    return response


async def _whole(answering: Answering, written: _Written) -> web.Response:
    whole = Gathered()
    while not whole.is_last:
        come = await answering.next()
        whole.ids += come.ids
        whole.logprobs += come.logprobs
        whole.finish, whole.stop_id, whole.failure = come.finish, come.stop_id, come.failure
        whole.cached_ids = max(whole.cached_ids, come.cached_ids)
    if whole.failure is not None:
        return failed(whole.failure, written.trace_id)
    headers = {"content-type": MEDIA_TYPE, "x-trace-id": written.trace_id}
    return web.Response(headers=headers, body=written.body(whole))
