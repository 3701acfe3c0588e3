"""`POST /v1/chat/completions` of the engine's service: the same model in words, so that both ways can be compared.

In: a chat completion. Out: one, or its chunks and `[DONE]`, as OpenAI's API has them. (docs/toon.md)
"""

from __future__ import annotations

import asyncio
import time

from aiohttp import web

from proxy.canon.usage import Count, Usage
from proxy.dialects.base import BadRequest
from proxy.dialects.openai.write import ChatWriter
from proxy.toon.engine.job import IdLogprob, Job
from proxy.toon.service.chatting import Chat, as_ids, parse_chat
from proxy.toon.service.models import Models, ServedModel
from proxy.toon.service.refusals import failed, failure_object, mistake
from proxy.toon.service.running import begin_stream, run
from proxy.toon.service.streams import Answering, Gathered
from proxy.toon.service.words import Words


async def answer_chat(request: web.Request, models: Models, trace_id: str) -> web.StreamResponse:
    incoming = await asyncio.to_thread(parse_chat, await request.read())
    if isinstance(incoming, BadRequest):
        return mistake(incoming, trace_id)
    model = models.named(incoming.model)
    if model is None:
        message = f"There is no model `{incoming.model[:200]}` here."
        return mistake(BadRequest("model_not_found", message, "model", 404), trace_id)
    chat = await asyncio.to_thread(as_ids, incoming, model)
    if isinstance(chat, BadRequest):
        return mistake(chat, trace_id)

    async def write(_: Job, answering: Answering) -> web.StreamResponse:
        return await _answer(request, _Written(chat, model, trace_id), answering)

    return await run(chat.toon, model, trace_id, "messages", write)


class _Written:
    """One answer in words, as far as it has been written. `over`: a stop word has ended it."""

    def __init__(self, chat: Chat, model: ServedModel, trace_id: str) -> None:
        self.chat, self.trace_id = chat, trace_id
        self._model = model
        self._writer = ChatWriter(f"chatcmpl-{trace_id}", int(time.time()), model.entry.name)
        self._writer.settle()
        self._words = Words(model.tokenizer.decoder(), chat.stop)
        self._begun = False
        self._made, self._cached = 0, 0
        self._logprobs: list[object] = []
        self._waiting: list[object] = []  # those of ids whose text is still to come
        self._text: list[str] = []
        self.over = False

    def take(self, come: Gathered) -> bytes:
        """The events of what came; of the last one, its finish too."""
        self._made += len(come.ids)
        self._cached = max(self._cached, come.cached_ids)
        text = self._words.feed(come.ids)
        if come.finish is not None:
            text += self._words.finish()
        self.over = self._words.stopped
        self._text.append(text)
        shown = [self._shown(one) for one in come.logprobs]
        self._logprobs += shown
        self._waiting += shown
        is_last = self.over or come.finish is not None
        out = b"" if self._begun else self._writer.event(None, 0, {"role": "assistant", "content": ""})
        self._begun = True
        if text or (is_last and self._waiting):
            told = {"content": self._waiting} if self._waiting else None
            self._waiting = []
            out += self._writer.event(None, 0, {"content": text}, logprobs=told)
        if is_last:
            out += self._writer.event(None, 0, {}, finish="stop" if self.over else come.finish)
        return out

    def seal(self) -> bytes:
        return self._writer.seal(self._usage(), None, Count(), wanted=self.chat.usage)

    def error(self, error: dict[str, object]) -> bytes:
        return self._writer.error_event(error)

    def body(self, finish: str | None) -> bytes:
        message = {"role": "assistant", "content": "".join(self._text)}
        told = {"content": self._logprobs} if self._logprobs else None
        choice = {"index": 0, "message": message, "finish_reason": "stop" if self.over else finish, "logprobs": told}
        return self._writer.body([choice], self._usage(), None, Count(), {})

    def _usage(self) -> Usage:
        return Usage(len(self.chat.toon.tids.ids), self._made, cache_read=self._cached)

    def _shown(self, one: IdLogprob) -> dict[str, object]:
        top = [self._token(id, logprob) for id, logprob in one.top]
        return {**self._token(one.id, one.logprob), "top_logprobs": top}

    def _token(self, id: int, logprob: float) -> dict[str, object]:
        said = self._model.tokenizer.bytes_of(id)
        return {"token": said.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(said)}


async def _answer(request: web.Request, written: _Written, answering: Answering) -> web.StreamResponse:
    """A failure before the first word is an HTTP error, later an event (contract W6)."""
    response: web.StreamResponse | None = None
    while True:
        come = await answering.next()
        if come.failure is not None:
            return await _end(response, written, come)
        out = written.take(come)
        if written.chat.stream:
            if response is None:
                response = await begin_stream(request, written.trace_id)
            await response.write(out)
        if written.over or come.is_last:
            break
    if response is not None:
        await response.write_eof(written.seal())
        return response
    headers = {"content-type": "application/json", "x-trace-id": written.trace_id}
    return web.Response(headers=headers, body=written.body(come.finish))


async def _end(response: web.StreamResponse | None, written: _Written, come: Gathered) -> web.StreamResponse:
    assert come.failure is not None, "called for one that failed"
    if response is None:
        return failed(come.failure, written.trace_id)
    await response.write_eof(written.error(failure_object(come.failure, written.trace_id)))
    return response
