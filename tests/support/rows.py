"""Ledger rows for tests: complete ones, made in one line."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from proxy.metering.ledger import AttemptClose, AttemptOpen

#: 2026-03-01T12:00:00Z
STARTED: Final = 1_772_366_400.0
USAGE: Final = {"prompt_tokens": 12, "completion_tokens": 34, "prompt_tokens_details": {"cached_tokens": 0}}
_numbers = count(1)


def opened(attempt_id: str | None = None, **fields: Any) -> AttemptOpen:
    number = next(_numbers)
    known: dict[str, Any] = {
        "attempt_id": attempt_id or f"attempt-{number:06d}",
        "request_id": f"request-{number}",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "attempt_no": 1,
        "tenant": "default",
        "endpoint": "/v1/chat/completions",
        "streamed": True,
        "started_at": STARTED,
        "upstream": "main",
        "vendor": "openai",
        "credential": "main-key",
        "model_alias": "gpt-4o",
        "model": "gpt-4o-2024-11-20",
    }
    return AttemptOpen(**(known | fields))


def closed(row: AttemptOpen, **fields: Any) -> AttemptClose:
    known: dict[str, Any] = {
        "attempt_id": row.attempt_id,
        "ended_at": row.started_at + 1.5,
        "ending": "completed",
        "duration_ms": 1500.0,
        "ttft_ms": 250.125,
        "served_model": "gpt-4o-2024-11-20",
        "vendor_response_id": "chatcmpl-1",
        "upstream_status": 200,
        "finish_reason": "stop",
        "vendor_usage": USAGE,
        "counted_input": 12,
        "counted_output": 34,
        "delivered_output": 33,
        "tokenizer": "o200k_base/446a9538/quicktok-v1-0.4.0",
        "bytes_in": 4000,
        "bytes_out": 3900,
        "events_in": 40,
        "events_out": 41,
    }
    return AttemptClose(**(known | fields))
