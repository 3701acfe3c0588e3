"""What was seen (`Observation`) and what it means (`Verdict`): the vocabulary of contract E."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ErrorClass(StrEnum):
    """The five classes, and the caller's own mistakes."""

    AUTH_FAILURE = "auth_failure"
    RATE_LIMITED = "rate_limited"
    CONTENT_BLOCKED = "content_blocked"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    MODEL_UNAVAILABLE = "model_unavailable"
    INVALID_REQUEST = "invalid_request"


class Phase(StrEnum):
    """When an answer was seen. `head`: the status says error, or a plain body does. `first`: inside a 200, before any
    progress. `mid`: after progress. `end`: at the end of input (lines kept aside, a cut)."""

    HEAD = "head"
    FIRST = "first"
    MID = "mid"
    END = "end"


@dataclass(frozen=True, slots=True)
class Observation:
    """One answer that may be an error, as it was seen. Header names are lower case; `body` is bounded by whoever made
    it; `payload` is the decoded JSON of the body, event or line (None if it is none); `finish` the vendor's own finish
    reason, when that is what looked wrong; `event` the SSE event name; `comments` the SSE comment lines of the event
    (DashScope writes `:HTTP_STATUS/429` there)."""

    vendor: str
    phase: Phase
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    payload: object = None
    finish: str | None = None
    event: str | None = None
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an observation means. `status` is the HTTP status for the client; `retry_after_s` is None if nobody knows;
    `vendor_status`, `vendor_code` and `vendor_message` (scrubbed, bounded) are what the vendor itself said; `mapped` is
    False when only the fallback table knew it (`code` is then `unmapped`)."""

    error_class: ErrorClass
    code: str
    message: str
    status: int
    retryable: bool
    retry_after_s: float | None = None
    rule_id: str | None = None
    vendor_status: int | None = None
    vendor_code: str | None = None
    vendor_message: str | None = None
    mapped: bool = True
