"""The ledger row (contract L2, C5) and what a store of rows must do (L1).

In: what is known before a request leaves (`AttemptOpen`) and how the attempt ended (`AttemptClose`). Out: nothing; a
store makes rows durable. There is no field for a prompt or a completion, and there must never be one (L3): what the
client and the vendor said to each other is not the ledger's business. The key's configured name stands in
`credential`, never the key.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Protocol

from proxy.canon.ending import Ending
from proxy.canon.verdict import ErrorClass

# Longer names and codes than this are cut: they come from vendors, and a row must stay small.
MAX_TEXT_CHARS = 1024
# A vendor's usage object or notes above this are left out, and the notes say so. Known ones are under 2 kB.
MAX_OBJECT_BYTES = 64 * 1024


@dataclass(slots=True)
class AttemptOpen:
    """Known before the request leaves. `started_at` is in unix seconds; `writer` is filled in by the store.

    `request_bytes` is the size of the body that leaves and `max_output` the longest answer that was asked for, in
    tokens: together they bound what the attempt may cost (`cost_bound`), whatever becomes of it; None where nobody set
    a limit. `price_version` names the price it is priced with, None where there is none; money is in nano-units of
    `currency`."""

    attempt_id: str
    request_id: str
    trace_id: str
    attempt_no: int
    tenant: str
    endpoint: str
    streamed: bool
    started_at: float
    upstream: str
    vendor: str
    credential: str | None
    model_alias: str
    model: str
    request_bytes: int = 0
    max_output: int | None = None
    price_version: str | None = None
    currency: str | None = None
    cost_bound: int | None = None
    writer: str = ""


@dataclass(slots=True)
class AttemptClose:
    """How the attempt ended.

    `vendor_usage` is the vendor's object as it was decoded, or its JSON text as `bytes` where that must be kept to the
    letter. `counted_output` is over what the vendor sent, `delivered_output` over what was written to the client.
    `counted_reasoning` is the part of `counted_output` that was reasoning. `tokenizer` is None if nothing was counted;
    `count_formula` names how a prompt was counted. `usage_*` is `vendor_usage` in one vocabulary
    (`canon.usage.NormalUsage`), `cost_*` its price and `own_cost_*` that of our own count, by part, in nano-units of
    the row's currency; None where there is no figure or no price. `notes` holds what heartbeats carried that matters:
    small values, never text of a prompt or an answer."""

    attempt_id: str
    ended_at: float
    ending: Ending | str
    duration_ms: float
    ttft_ms: float | None = None
    served_model: str | None = None
    service_tier: str | None = None
    vendor_request_id: str | None = None
    vendor_response_id: str | None = None
    upstream_status: int | None = None
    rule_id: str | None = None
    error_class: ErrorClass | str | None = None
    error_code: str | None = None
    finish_reason: str | None = None
    finish_inferred: bool = False
    vendor_usage: object = None
    counted_input: int = 0
    counted_output: int = 0
    counted_reasoning: int = 0
    delivered_output: int = 0
    tokenizer: str | None = None
    count_formula: str | None = None
    usage_state: str | None = None
    usage_told: str | None = None
    usage_input: int | None = None
    usage_output: int | None = None
    usage_cache_read: int | None = None
    usage_cache_write: int | None = None
    usage_reasoning: int | None = None
    usage_total: int | None = None
    billed_input: int | None = None
    billed_output: int | None = None
    price_tier: str | None = None
    cost_input: int | None = None
    cost_cache_read: int | None = None
    cost_cache_write: int | None = None
    cost_output: int | None = None
    own_cost_input: int | None = None
    own_cost_output: int | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    events_in: int = 0
    events_out: int = 0
    notes: dict[str, object] = field(default_factory=dict)


class LedgerStore(Protocol):
    """Where rows go. Every call is made on the event loop's thread, except `close_now`."""

    @property
    def writer(self) -> str:
        """Who writes here: instance, worker and boot in one word."""

    @property
    def healthy(self) -> bool:
        """False while the disk refuses rows: `open` will raise and the process is not ready."""

    def open(self, row: AttemptOpen) -> None:
        """Write the row so that it survives `kill -9`. Raises `LedgerUnavailable`: the request must not leave."""

    def close(self, row: AttemptClose) -> Awaitable[None]:
        """Write the end of an opened attempt; what is returned resolves when that survives a power cut, or raises
        `LedgerUnavailable`: then `[DONE]` must not be sent. The write goes on when nobody waits for it. An attempt
        that is not open is a `LookupError`."""

    def close_now(self, row: AttemptClose) -> None:
        """The same, done before it returns, on any thread: for the last moments of a process."""
