"""Whole answers that need no attempt: an error in the body of the contract, or JSON of ours (contract E, Q2)."""

from __future__ import annotations

from aiohttp import web

from proxy.canon.verdict import Verdict
from proxy.dialects.openai_write import error_body
from proxy.dialects.payload import encode_json
from proxy.pipeline.stream import error_head
from proxy.upstream.attempts import Caller


def refusal(verdict: Verdict, caller: Caller, param: str | None = None) -> web.Response:
    """An error for which no attempt was made: `error.upstream` is null."""
    body = encode_json(error_body(verdict, trace_id=caller.trace_id, upstream=None, param=param))
    head = error_head(verdict)
    headers = {"content-type": head.content_type, "server": "sluice", "x-trace-id": caller.trace_id, **head.headers}
    return web.Response(status=head.status, headers=headers, body=body)


def json_answer(value: object, caller: Caller) -> web.Response:
    headers = {"content-type": "application/json", "server": "sluice", "x-trace-id": caller.trace_id}
    return web.Response(body=encode_json(value), headers=headers)
