"""Whole answers that need no attempt: an error in the body of the contract, or JSON of ours (contract E, Q2)."""

from __future__ import annotations

from aiohttp import web

from proxy.canon.verdict import Verdict
from proxy.dialects.base import ClientDialect
from proxy.dialects.errors import error_of
from proxy.dialects.payload import encode_json
from proxy.dialects.registry import CLIENT_DIALECTS
from proxy.pipeline.stream import error_head
from proxy.server.identity import told_ids
from proxy.upstream.attempts import Caller

_CHAT = CLIENT_DIALECTS["chat"]


def refusal(verdict: Verdict, caller: Caller, param: str | None = None, dialect: ClientDialect = _CHAT) -> web.Response:
    """An error for which no attempt was made: `error.upstream` is null. In the envelope of the client's dialect."""
    error = error_of(verdict, trace_id=caller.trace_id, upstream=None, param=param)
    body = encode_json(dialect.error_body(error))
    head = error_head(verdict)
    headers = {"content-type": head.content_type, "server": "sluice", **told_ids(caller), **head.headers}
    return web.Response(status=head.status, headers=headers, body=body)


def json_answer(value: object, caller: Caller) -> web.Response:
    headers = {"content-type": "application/json", "server": "sluice", **told_ids(caller)}
    return web.Response(body=encode_json(value), headers=headers)
