"""The routes: chat completions, the list of models, health and metrics. Parse, ask, answer; nothing is decided here.

Everything that can go wrong before an attempt is answered with the error body of the contract and `x-trace-id`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import structlog
from aiohttp import web

from proxy.canon.ending import Stop
from proxy.canon.verdict import ErrorClass, Verdict
from proxy.dialects.base import BadRequest, ClientDialect, ClientRequest
from proxy.dialects.incoming import ADDRESS_HEADERS
from proxy.dialects.registry import CLIENT_DIALECTS
from proxy.dialects.toon.format import MAX_BYTES, MEDIA_TYPE, too_large
from proxy.dialects.toon.incoming import ToonIncoming
from proxy.errors import LedgerUnavailable
from proxy.semantics import verdicts
from proxy.server.answers import json_answer, refusal
from proxy.server.client import HttpClient
from proxy.server.identity import Keys, identify, told_ids
from proxy.server.readiness import Readiness
from proxy.server.token_route import adopt_trace, is_toon, may_answer, not_acceptable
from proxy.server.usage import Asked, UsageAnswer, parse_query
from proxy.upstream.attempts import Attempts, Caller

log = structlog.get_logger()

_CHAT, _MESSAGES, _TOON = (CLIENT_DIALECTS[name] for name in ("chat", "messages", "toon"))
_ANTHROPIC = "anthropic-version"
_PIECE_BYTES = 64 * 1024
_SERVER = {"server": "sluice"}  # nobody needs to know what we are built on (contract Q2)

_JSON_TYPE = re.compile(r"[\w.-]+/(?:[\w.-]+\+)?json\s*(?:;.*)?", re.ASCII | re.IGNORECASE)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Routes:
    """`usage_of` reads a tenant's usage; `read_ids` a request of token ids, with the model that serves it, or what is
    wrong with it. `ready` says whether new requests may come, and why not; `render_metrics` is the text of `/metrics`
    and its type."""

    def __init__(
        self,
        attempts: Attempts,
        keys: Keys,
        max_request_bytes: int,
        ready: Callable[[], Readiness],
        stopping: Callable[[], bool],
        render_metrics: Callable[[], tuple[bytes, str]],
        usage_of: Callable[[Asked], Awaitable[UsageAnswer]],
        read_ids: Callable[[bytes], Awaitable[ToonIncoming | BadRequest]],
    ) -> None:
        self._attempts, self._keys, self._max_request_bytes = attempts, keys, max_request_bytes
        self._ready, self._stopping, self._render_metrics = ready, stopping, render_metrics
        self._usage_of, self._read_ids = usage_of, read_ids
        self._started = int(time.time())

    def application(self) -> web.Application:
        # No middleware and no signal: aiohttp would build their chain for each request.
        app = web.Application(client_max_size=self._max_request_bytes)
        get = app.router.add_get  # HEAD as well
        app.router.add_post(f"{_MESSAGES.endpoint}/count_tokens", self._guarded(self.count_tokens, _MESSAGES))
        for dialect in CLIENT_DIALECTS.values():
            app.router.add_post(dialect.endpoint, self._guarded(self._answers(dialect), dialect))
        get("/v1/models", self._guarded(self.models))
        get("/v1/models/{model:.+}", self._guarded(self.model))
        get("/v1/usage", self._guarded(self.usage))
        get("/healthz", self._guarded(self.healthz))
        get("/readyz", self._guarded(self.readyz))
        get("/metrics", self._guarded(self.metrics))
        app.router.add_route("*", "/{path:.*}", self._guarded(self.nowhere))
        return app

    def _answers(self, dialect: ClientDialect) -> Handler:
        """The handler of a dialect's endpoint."""

        async def _answer(request: web.Request) -> web.StreamResponse:
            return await self._ask(request, dialect)

        return _answer

    async def _ask(self, request: web.Request, dialect: ClientDialect) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        tenant = self._keys.tenant_of(headers)
        caller = identify(headers, tenant or "")
        if tenant is None:
            return refusal(_bad_key(), caller, dialect=dialect)
        if self._stopping():
            return refusal(verdicts.of_stop(Stop.SHUTDOWN, None), caller, dialect=dialect)
        parsed: ClientRequest | BadRequest
        if dialect is _TOON:
            parsed = await self._read_toon(request, headers)
            if isinstance(parsed, ToonIncoming):
                caller = adopt_trace(caller, parsed)
                parsed.trace(caller.trace_id)
        elif not _is_json(headers):
            return refusal(_no_json(), caller, "content-type", dialect)
        else:
            parsed = dialect.parse(await request.read())
        if isinstance(parsed, BadRequest):
            return _bad(parsed, caller, dialect)
        if (address := next((name for name in headers if name in ADDRESS_HEADERS), None)) is not None:
            message = f"The header `{address}` is not accepted: upstreams are configured by the operator."
            return refusal(verdicts.invalid("upstream_not_allowed", message), caller, address, dialect)
        target = self._attempts.route(parsed.model)
        if target is None:
            return refusal(_no_model(parsed.model), caller, "model", dialect)
        client = HttpClient(request, caller)
        refused = await self._attempts.run(parsed, target, caller, client)
        if isinstance(refused, BadRequest):
            return _bad(refused, caller, dialect)
        if refused is not None:
            return refusal(refused, caller, dialect=dialect)
        assert client.response is not None, "an attempt answers"
        return client.response

    async def _read_toon(self, request: web.Request, headers: Mapping[str, str]) -> ToonIncoming | BadRequest:
        """A request of token ids, with the alias that serves it."""
        if not is_toon(headers):
            return BadRequest("unsupported_media_type", f"The content type must be {MEDIA_TYPE}.", "content-type", 415)
        if request.content_length is not None and request.content_length > MAX_BYTES:
            return too_large()
        parsed = await self._read_ids(await request.read())
        accept = ", ".join(request.headers.getall("accept", ()))  # which may come in several lines
        if isinstance(parsed, ToonIncoming) and not may_answer(accept, stream=parsed.stream):
            return not_acceptable(stream=parsed.stream)
        return parsed

    async def count_tokens(self, request: web.Request) -> web.StreamResponse:
        """Anthropic's way of asking how long a prompt is: our own count, which every vendor's rows are counted by."""
        dialect = _MESSAGES
        caller, denied = self._caller(request, dialect)
        if denied is not None:
            return denied
        if not _is_json(caller.headers):
            return refusal(_no_json(), caller, "content-type", dialect)
        parsed = dialect.parse(await request.read())
        if not isinstance(parsed, BadRequest) and isinstance(parsed.canonical, BadRequest):
            parsed = parsed.canonical
        if isinstance(parsed, BadRequest):
            return _bad(parsed, caller, dialect)
        if self._attempts.route(parsed.model) is None:
            return refusal(_no_model(parsed.model), caller, "model", dialect)
        return json_answer({"input_tokens": await self._attempts.count_prompt(parsed)}, caller)

    async def models(self, request: web.Request) -> web.StreamResponse:
        caller, denied = self._caller(request, _dialect_of(request))
        if denied is not None:
            return denied
        listed = [self._listed(alias, caller) for alias in self._attempts.routes]
        if _ANTHROPIC in caller.headers:
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]}
            return json_answer({"data": listed, "has_more": False, **ends}, caller)
        return json_answer({"object": "list", "data": listed}, caller)

    async def model(self, request: web.Request) -> web.StreamResponse:
        dialect = _dialect_of(request)
        caller, denied = self._caller(request, dialect)
        if denied is not None:
            return denied
        alias = request.match_info["model"]
        if self._attempts.route(alias) is None:
            return refusal(_no_model(alias), caller, "model", dialect)
        return json_answer(self._listed(alias, caller), caller)

    async def usage(self, request: web.Request) -> web.StreamResponse:
        """The tenant's own figures, in pieces, so that a slow reader holds up nobody."""
        dialect = _dialect_of(request)
        caller, denied = self._caller(request, dialect)
        if denied is not None:
            return denied
        asked = parse_query(request.query, caller.headers.get("accept", ""), caller.tenant)
        if isinstance(asked, BadRequest):
            return _bad(asked, caller, dialect)
        try:
            found = await self._usage_of(asked)
        except LedgerUnavailable as error:
            log.error("usage cannot be read", trace_id=caller.trace_id, error=str(error))
            return refusal(verdicts.ledger_unavailable(reading=True), caller, dialect=dialect)
        response = web.StreamResponse(headers={"content-type": found.content_type, **told_ids(caller), **_SERVER})
        await response.prepare(request)
        for start in range(0, len(found.body), _PIECE_BYTES):
            await response.write(found.body[start : start + _PIECE_BYTES])
        await response.write_eof()
        return response

    async def healthz(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="alive\n", headers=_SERVER)

    async def readyz(self, _: web.Request) -> web.StreamResponse:
        now = self._ready()
        return web.Response(status=200 if now.ready else 503, text=now.text, headers=_SERVER)

    async def metrics(self, _: web.Request) -> web.StreamResponse:
        body, content_type = self._render_metrics()
        return web.Response(body=body, headers={"content-type": content_type, **_SERVER})

    def _listed(self, alias: str, caller: Caller) -> dict[str, object]:
        """A model in the form of the API whose header the caller sent."""
        if _ANTHROPIC in caller.headers:
            since = datetime.fromtimestamp(self._started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            return {"type": "model", "id": alias, "display_name": alias, "created_at": since}
        return {"id": alias, "object": "model", "created": self._started, "owned_by": "sluice"}

    def _caller(self, request: web.Request, dialect: ClientDialect) -> tuple[Caller, web.Response | None]:
        headers = {name.lower(): value for name, value in request.headers.items()}
        tenant = self._keys.tenant_of(headers)
        caller = identify(headers, tenant or "")
        return caller, None if tenant is not None else refusal(_bad_key(), caller, dialect=dialect)

    def _too_large(self) -> str:
        return f"The request body is larger than the {self._max_request_bytes} bytes allowed here."

    async def nowhere(self, request: web.Request) -> web.StreamResponse:
        message = f"There is no {request.method} {request.path} here."
        dialect = _dialect_of(request)
        return refusal(verdicts.invalid("not_found", message, 404), _stranger(request), dialect=dialect)

    def _guarded(self, handler: Handler, dialect: ClientDialect = _CHAT) -> Handler:
        """No answer without the contract's error body and a trace id, also where we fail ourselves."""

        async def _guard(request: web.Request) -> web.StreamResponse:
            try:
                response = await handler(request)
            except web.HTTPRequestEntityTooLarge:
                too_large = verdicts.invalid("request_too_large", self._too_large(), 413)
                return refusal(too_large, _stranger(request), dialect=dialect)
            except web.RequestPayloadError:
                message = "The request body cannot be read: it is cut, or not in the encoding that its headers name."
                response = refusal(verdicts.invalid("invalid_body", message), _stranger(request), dialect=dialect)
                # After a bad chunk nobody knows where the next request begins; aiohttp would answer that as well.
                response.force_close()
                return response
            except ConnectionError:
                raise
            except Exception as error:  # the last net: logged, and told as the contract says
                caller = _stranger(request)
                log.error("request failed", trace_id=caller.trace_id, error=type(error).__name__, exc_info=error)
                message = "The proxy failed to handle this request."
                failed = verdicts.verdict(ErrorClass.MODEL_UNAVAILABLE, "internal_error", message)
                return refusal(failed, caller, dialect=dialect)
            if not response.prepared and "x-trace-id" not in response.headers:
                response.headers["x-trace-id"] = _stranger(request).trace_id
            return response

        return _guard


def _dialect_of(request: web.Request) -> ClientDialect:
    """Whose client asks, where the path is no endpoint of one: the error body is in its envelope."""
    is_theirs = request.path.startswith(_MESSAGES.endpoint) or _ANTHROPIC in request.headers
    return _MESSAGES if is_theirs else _CHAT


def _bad(mistake: BadRequest, caller: Caller, dialect: ClientDialect) -> web.Response:
    return refusal(verdicts.invalid(mistake.code, mistake.message, mistake.status), caller, mistake.param, dialect)


def _stranger(request: web.Request) -> Caller:
    """Who asks, where it does not matter who: for the trace id."""
    return identify({name.lower(): value for name, value in request.headers.items()}, "")


def _is_json(headers: Mapping[str, str]) -> bool:
    """Text and forms are what a browser sends for any page to any address, ours on localhost included, without asking
    first, and without `auth` such a page would spend the operator's money. The same goes for a body without a type,
    which programs do send: but a browser then says where the page came from."""
    form = headers.get("content-type")
    return "origin" not in headers if form is None else _JSON_TYPE.fullmatch(form.strip()) is not None


def _no_json() -> Verdict:
    message = "The request body must be JSON, and say so: `Content-Type: application/json`."
    return verdicts.invalid("unsupported_media_type", message, 415)


def _bad_key() -> Verdict:
    message = "The API key is missing or not known here; send it as `Authorization: Bearer KEY` or `x-api-key: KEY`."
    return verdicts.verdict(ErrorClass.AUTH_FAILURE, "invalid_api_key", message, status=401)


def _no_model(alias: str) -> Verdict:
    return verdicts.invalid("model_not_found", f"There is no model `{alias[:200]}` here; see /v1/models.", 404)
