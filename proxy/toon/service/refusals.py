"""Errors of the engine's service in the contract's body, with the classes of the contract (contract E).

In: a mistake of the caller, or a failure of the engine. Out: an HTTP answer, or the object under `error`.
"""

from __future__ import annotations

from aiohttp import web

from proxy.canon.verdict import ErrorClass, Verdict
from proxy.dialects.base import BadRequest
from proxy.dialects.errors import error_of
from proxy.dialects.payload import encode_json
from proxy.pipeline.stream import error_head
from proxy.semantics import verdicts
from proxy.toon.engine.job import Failure

#: The seconds after which an engine that is full may have room again.
_ROOM_S = 1.0
#: What the engine calls it where a schema turns out to be too large for its parser only as the answer grows.
_CONSTRAINT = "constraint_failed"


def mistake(bad: BadRequest, trace_id: str) -> web.Response:
    return _answer(verdicts.invalid(bad.code, bad.message, bad.status), trace_id, bad.param)


def overloaded(trace_id: str) -> web.Response:
    message = "The engine has as many requests waiting as it may have; try again in a moment."
    return _answer(
        verdicts.verdict(ErrorClass.MODEL_UNAVAILABLE, "overloaded", message, retry_after_s=_ROOM_S), trace_id
    )


def stopping(trace_id: str) -> web.Response:
    message = "The engine is shutting down."
    return _answer(verdicts.verdict(ErrorClass.MODEL_UNAVAILABLE, "shutting_down", message), trace_id)


def failed(failure: Failure, trace_id: str) -> web.Response:
    return _answer(_verdict(failure), trace_id)


def failure_object(failure: Failure, trace_id: str) -> dict[str, object]:
    """For an event, where the answer has begun."""
    return error_of(_verdict(failure), trace_id=trace_id, upstream=None)


def _verdict(failure: Failure) -> Verdict:
    if failure.code == _CONSTRAINT:  # the schema's doing, so the same request would fail again
        return verdicts.invalid("unsupported_schema", f"The schema cannot be enforced to its end: {failure.message}")
    return verdicts.verdict(ErrorClass.MODEL_UNAVAILABLE, failure.code, failure.message)


def _answer(verdict: Verdict, trace_id: str, param: str | None = None) -> web.Response:
    head = error_head(verdict)
    body = encode_json({"error": error_of(verdict, trace_id=trace_id, upstream=None, param=param)})
    headers = {"content-type": head.content_type, "x-trace-id": trace_id, **head.headers}
    return web.Response(status=head.status, headers=headers, body=body)
