"""The engine's service: its addresses, its health, its metrics (docs/toon.md).

In: loaded models. Out: an aiohttp application. Every error has the contract's body and a trace id; a handler whose
client leaves is cancelled, and its row with it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from proxy.dialects.base import BadRequest
from proxy.dialects.payload import encode_json
from proxy.dialects.toon.format import MAX_BYTES
from proxy.toon.engine.job import Failure
from proxy.toon.service.chat_route import answer_chat
from proxy.toon.service.models import Models
from proxy.toon.service.refusals import failed, mistake, stopping
from proxy.toon.service.token_route import answer_ids
from proxy.upstream.ids import new_id

log = structlog.get_logger()

Answer = Callable[[web.Request, Models, str], Awaitable[web.StreamResponse]]
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_SAFE_ID = re.compile(r"[A-Za-z0-9._:/-]{1,128}")


class Service:
    """`stopping` is set when no new work is taken."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._since = int(time.time())
        self.stopping = False

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BYTES + 1)
        app.router.add_post("/v1/completions/toon", self._guarded(answer_ids))
        app.router.add_post("/v1/chat/completions", self._guarded(answer_chat))
        app.router.add_get("/v1/models", self._models_listed)
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_route("*", "/{path:.*}", self._guarded(_nowhere))
        return app

    def _guarded(self, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def _guard(request: web.Request) -> web.StreamResponse:
            trace_id = _trace_id(request)
            if self.stopping:
                return stopping(trace_id)
            try:
                return await answer(request, self._models, trace_id)
            except web.HTTPRequestEntityTooLarge:
                message = f"The request body is larger than the {MAX_BYTES} bytes allowed here."
                return mistake(BadRequest("request_too_large", message, "", 413), trace_id)
            except web.RequestPayloadError:
                message = "The request body cannot be read: it is cut, or not in the encoding that its headers name."
                response = mistake(BadRequest("invalid_body", message), trace_id)
                response.force_close()
                return response
            except ConnectionError:  # the client has left, and a write saw it before anybody said so
                raise asyncio.CancelledError from None
            except Exception as error:  # the last net: logged, and told as the contract says
                log.error("request failed", trace_id=trace_id, error=type(error).__name__, exc_info=error)
                return failed(Failure("internal_error", "The service failed to handle this request."), trace_id)

        return _guard

    async def _models_listed(self, _: web.Request) -> web.Response:
        listed = [
            {
                **{"id": model.entry.name, "object": "model", "created": self._since, "owned_by": "sluice"},
                **{"tokenizer_version": model.card.version, "context": model.card.context, "base": model.card.base},
            }
            for model in self._models
        ]
        return _json({"object": "list", "data": listed})

    async def _alive(self, _: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _ready(self, _: web.Request) -> web.Response:
        if self.stopping:
            return web.Response(status=503, text="shutting down\n")
        return web.Response(text="ready\n")

    async def _metrics(self, _: web.Request) -> web.Response:
        lines = []
        for model in self._models:
            for name, value in model.engine.state().figures().items():
                lines.append(f'sluice_toon_{name}{{model="{model.entry.name}"}} {value}')
        return web.Response(text="\n".join([*lines, ""]))


async def _nowhere(request: web.Request, _models: Models, trace_id: str) -> web.Response:
    message = f"There is no {request.method} {request.path} here."
    return mistake(BadRequest("not_found", message, None, 404), trace_id)


def _trace_id(request: web.Request) -> str:
    found = _TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
    asked = request.headers.get("x-request-id", "")
    return found[1] if found is not None else asked if _SAFE_ID.fullmatch(asked) else new_id()


def _json(value: object) -> web.Response:
    return web.Response(headers={"content-type": "application/json"}, body=encode_json(value))
