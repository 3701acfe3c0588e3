"""The runner under the application: what aiohttp refuses before any handler sees it is answered in our words.

In: an application. Out: a server whose every answer, also to what is no HTTP, has the contract's error body, a trace id
and our name (contract E, Q2), and whose log never holds a byte of the caller's (L3).

aiohttp answers broken HTTP itself, as text, with the offending line in it, and logs a traceback with that same line: a
header line may well be the one with the caller's key. It has no setting for this. The answer is made in
`RequestHandler.handle_error`, and the only way to a `RequestHandler` of one's own is a `Server` that makes it and a
runner that makes the `Server`; each of the three overrides one step of its parent.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Coroutine
from typing import Any, Final

import structlog
from aiohttp import http_exceptions, web
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from proxy.canon.verdict import ErrorClass, Verdict
from proxy.semantics import verdicts
from proxy.server.answers import refusal
from proxy.server.identity import identify

log = structlog.get_logger()

# aiohttp's 8,190 bytes are less than some carry in one header: tokens with many group claims, cookies of a whole
# domain. nginx takes lines of 8 KiB, Envoy 60 KiB of headers in all, Node 16 KiB.
MAX_LINE_BYTES: Final = 16 * 1024
MAX_FIELD_BYTES: Final = 32 * 1024
MAX_FIELDS: Final = 128


class Protocol(RequestHandler):
    """One connection of a client."""

    __slots__ = ("_body",)

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._body: StreamReader = EMPTY_PAYLOAD

    def data_received(self, data: bytes) -> None:
        """When a later read shows that a body is broken, aiohttp's fast parser tells the next request and leaves the
        handler that reads the body waiting until the client goes."""
        super().data_received(data)
        if not self._messages:
            return
        newest, body = self._messages[-1]
        if not isinstance(newest, _ErrInfo):
            self._body = body
        elif not self._body.is_eof():
            self._body.set_exception(web.RequestPayloadError("broken"))

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """`message` and the text of `exc` are the caller's bytes: neither is shown nor logged."""
        if isinstance(exc, http_exceptions.HttpProcessingError):
            return _refused(_of_bad_http(exc), type(exc).__name__)
        if isinstance(exc, ConnectionError):
            raise exc  # the client has left: nobody to answer, and nothing of ours went wrong
        self.log_exception("request failed", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a response is under way: another cannot be sent")
        text = "The proxy failed to handle this request."
        failure = verdicts.verdict(ErrorClass.MODEL_UNAVAILABLE, "internal_error", text)
        return _refused(failure, type(exc).__name__)

    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Coroutine[Any, Any, tuple[web.StreamResponse, bool]]:
        """Also what the router and the `Expect` header raise past our handlers becomes an answer of ours."""
        if isinstance(resp, web.HTTPException):
            resp = _refused(_of_exception(resp), f"status {resp.status}")
        return super().finish_response(request, resp, start_time)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Where it happened and what kind it was; its text may hold what the caller sent."""
        error = kw.get("exc_info")
        frames = traceback.format_tb(error.__traceback__) if isinstance(error, BaseException) else []
        log.error("request failed", error=type(error).__name__ if frames else None, frames="".join(frames))


class Server(web.Server):
    """Makes a `Protocol` for each connection."""

    def __call__(self) -> RequestHandler:
        return Protocol(
            self,
            loop=asyncio.get_running_loop(),
            access_log=None,  # the row of the attempt tells more
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_FIELD_BYTES,
            max_headers=MAX_FIELDS,
        )


class Runner(web.AppRunner):
    """aiohttp's own, but for the server that it makes."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return Server(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
        )


def _of_bad_http(error: http_exceptions.HttpProcessingError) -> Verdict:
    match error:
        case http_exceptions.LineTooLong():
            text = f"The request line is longer than {MAX_LINE_BYTES} bytes, or a header than {MAX_FIELD_BYTES}."
            return verdicts.invalid("headers_too_large", text)
        case http_exceptions.ContentEncodingError():
            text = "The request's `Content-Encoding` is not accepted here: send it as it is, or with gzip or deflate."
            return verdicts.invalid("unsupported_content_encoding", text, 415)
        case _:
            return verdicts.invalid("bad_request", "The request is not valid HTTP/1.1.")


def _of_exception(error: web.HTTPException) -> Verdict:
    match error.status:
        case 417:
            return verdicts.invalid("expectation_failed", "`Expect` may only be `100-continue`.")
        case 404 | 405:
            return verdicts.invalid("not_found", "There is nothing of this name here.", 404)
        case _:
            return verdicts.invalid("bad_request", "The request cannot be served.")


def _refused(verdict: Verdict, reason: str) -> web.StreamResponse:
    """Nothing of the request is trusted any more, so its ids are new, and the connection ends."""
    caller = identify({}, "")
    log.info("request refused", trace_id=caller.trace_id, code=verdict.code, status=verdict.status, reason=reason)
    response = refusal(verdict, caller)
    response.force_close()
    return response
