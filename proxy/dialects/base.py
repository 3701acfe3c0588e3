"""What a dialect is: the seams that each API family fills in, and the pipeline and the server rely on.

An API family may be spoken by vendors (`VendorDialect`: how a request is written and an answer read), by clients
(`ClientDialect`: how a request is parsed and an answer written), or by both. Between the two stand the canonical
values: `canon.request.Request` one way, `canon.chunk` the other. Protocols and values only. (contract D1, D2, Q1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from proxy.canon.chunk import Chunk, Parsed
from proxy.canon.request import Part, Request
from proxy.canon.usage import Count, Usage

ContentOf = Callable[[int, str], str]
#: A vendor's own names of request fields, from its rule file; None where it does not take the field at all.
Ways = Mapping[str, str | None]


class Framing(Enum):
    """How a vendor frames a stream, where it is not (only) SSE."""

    SSE = auto()
    NDJSON = auto()
    ARRAY = auto()  # one JSON array, an element at a time
    EVENTSTREAM = auto()  # AWS: binary messages with headers


class Reader(Protocol):
    """Reads the payloads of one answer; may keep state. Never raises. `replaced` counts U+FFFD put in for bad bytes."""

    replaced: int
    #: False where a finish is said before the answer ends, so that only the end of the body ends it.
    finish_is_last: bool

    def read(self, data: bytes, event: str | None, one_line: bool = True) -> Parsed:
        """What one frame says. `event` is its name, where it has one."""

    def read_body(self, data: bytes) -> Parsed:
        """What a plain JSON answer says: one Chunk with whole messages as deltas, an error, or Malformed. A Chunk
        without deltas is an answer that says nothing."""

    def usage(self, vendor: Mapping[str, object]) -> Usage:
        """A usage object as this reader put it into `Chunk.usage`, in our vocabulary."""


class Writer(Protocol):
    """Writes one answer in a client's grammar. What it is given is in order, whole characters, with tool calls in
    slots. Deltas are in the terms of chat completions: `role`, `content`, `reasoning_content` (or `reasoning`),
    `refusal`, `tool_calls` (`index`, `id`, `type`, `function`), `reasoning_details`, and what a vendor added."""

    id: str
    created: int
    model: str
    #: The text fields that this grammar has a place for, and no tool calls; None where it has for everything.
    speaks: frozenset[str] | None

    def adopt(self, chunk: Chunk) -> None:
        """Take identity from a chunk that came before the commit point."""

    def settle(self) -> None:
        """From here on identity is constant."""

    def is_mine(self, chunk: Chunk) -> bool:
        """May `chunk.wire` pass as it is?"""

    def event(
        self,
        chunk: Chunk | None,
        choice: int,
        delta: Mapping[str, object],
        *,
        finish: str | None = None,
        word: str | None = None,
        logprobs: object = None,
        choice_extra: Mapping[str, object] | None = None,
    ) -> bytes:
        """Zero or more whole SSE events. `finish` is canonical and comes once per choice; `word` is the vendor's own
        word for it. `chunk` gives unknown fields and usage so far."""

    def seal(self, usage: Usage, native: Mapping[str, object] | None, count: Count, *, wanted: bool) -> bytes:
        """What stands for `[DONE]`, with what must not be sent before the row is durable: usage (if `wanted`) and the
        end. `native` is the vendor's own usage object where it is of this client's family."""

    def seal_events(self, *, wanted: bool) -> int:
        """How many JSON events `seal` will give."""

    def error_event(self, error: Mapping[str, object]) -> bytes:
        """The contract's error (the object under `error`) as this grammar's last event."""

    def body(
        self,
        choices: list[dict[str, object]],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        extra: Mapping[str, object],
    ) -> bytes:
        """A whole plain answer. `choices` are those of a chat.completion (`index message finish_reason logprobs`), with
        `native_finish` as the vendor's word."""

    def patch(
        self,
        body: bytes,
        finishes: Mapping[int, str],
        usage: Usage,
        native: Mapping[str, object] | None,
        count: Count,
        content_of: ContentOf,
        seed: str,
    ) -> bytes:
        """The vendor's own plain body, which is of this client's family, made right. `content_of` repairs a choice's
        text."""


@dataclass(frozen=True, slots=True)
class BadRequest:
    """The caller's mistake: `code` and `param` are stable, `message` says what to do."""

    code: str
    message: str
    param: str | None = None
    status: int = 400


class Losses:
    """What of a request its upstream cannot be told. `real` changes the answer, `hints` do not (a cache marker, a
    user's id). Both by the names of chat completions; parts as `messages[3].image`."""

    def __init__(self) -> None:
        self._real: dict[str, None] = {}
        self._hints: dict[str, None] = {}

    @property
    def real(self) -> tuple[str, ...]:
        return tuple(self._real)

    @property
    def all(self) -> tuple[str, ...]:
        return (*self._real, *self._hints)

    def add(self, name: str) -> None:
        self._real[name] = None

    def hint(self, name: str) -> None:
        self._hints[name] = None

    def part(self, at: int, kind: str) -> None:
        """A part of the client's message number `at`."""
        self.add(f"messages[{at}].{kind}")

    def fields(self, request: Request, *names: str) -> None:
        """These fields of the request, as far as they are said."""
        for name in names:
            value = getattr(request, name)
            if value is not None and value is not False and value != ():
                self.add(name)

    def extra(self, request: Request, *known: str) -> None:
        """The client's own fields, but for those `known` here."""
        for name, value in request.extra.items():
            if name not in known and value is not None:
                if name in HINTS:
                    self.hint(name)
                else:
                    self.add(name)

    def unknown_part(self, at: int, part: Part) -> None:
        """Report a part that this dialect has no place for, by its kind."""
        self.part(at, getattr(part, "kind", type(part).__name__.lower()))


#: Client fields that tell the vendor nothing about what is asked: bookkeeping, caching, what it may cost, by which way
#: it runs, whether its reasoning is shown; and how many words to make.
HINTS = frozenset(
    (
        *("client_metadata", "truncation", "verbosity", "usage", "provider", "route", "models", "include_reasoning"),
        *("reasoning_format", "reasoning_split", "reasoning.exclude", "reasoning.summary"),
        *("user", "metadata", "store", "service_tier", "safety_identifier", "prediction", "include"),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "stream_options", "inference_geo"),
        *("context_management", "diagnostics", "speed", "user_profile_id"),
    )
)


@dataclass(frozen=True, slots=True)
class VendorDialect:
    """An API family as vendors speak it.

    `native` is the client dialect whose requests and answers are of the same family and pass as they are. `send` writes
    the vendor's body for a canonical request and a model's name there; `path` is what is appended to the base URL (for
    model, streaming, and the body that is sent), query included. `reader` makes the reader of an answer to that body.
    `key_header` is where our key goes (None: `Authorization: Bearer`); `signing` names a way of signing instead.
    `end_marks` are words in lower case that stand in each line which ends an answer, and seldom in another.
    """

    name: str
    native: str | None
    send: Callable[[Request, str, Losses, Ways], dict[str, object]]
    reader: Callable[[Mapping[str, object]], Reader]
    path: Callable[[str, bool, Mapping[str, object]], str]
    headers: Mapping[str, str] = field(default_factory=dict)
    stream_headers: Mapping[str, str] = field(default_factory=dict)
    accept: str = "text/event-stream"
    key_header: str | None = None
    key_query: str | None = None
    signing: str | None = None
    passed_headers: tuple[str, ...] = ()
    framings: frozenset[Framing] = frozenset((Framing.SSE,))
    end_marks: tuple[bytes, ...] = (b"[done]",)


class ClientRequest(Protocol):
    """A request as one of our client dialects parsed it. `body` is the JSON as it came, `size` its bytes; `usage`: the
    client asked for usage in the stream; `json`: it asked for JSON as the answer's text."""

    @property
    def body(self) -> Mapping[str, object]: ...
    @property
    def size(self) -> int: ...
    @property
    def model(self) -> str: ...
    @property
    def stream(self) -> bool: ...
    @property
    def usage(self) -> bool: ...
    @property
    def json(self) -> bool: ...
    @property
    def client(self) -> str: ...
    @property
    def canonical(self) -> Request | BadRequest:
        """The request in canonical form, parsed when first asked for."""

    def for_upstream(self, model: str) -> bytes:
        """The body for a vendor of the same family: its own name of the model, and every number as it was written."""


@dataclass(frozen=True, slots=True)
class ClientDialect:
    """An API family as our clients speak it. `endpoint` is its path here; `writer` makes the writer of one answer from
    the hex seed of ids, the unix time, the model asked for and the client's body; `error_body` is the whole HTTP error
    answer for the contract's `error` object; `media_type` is that of requests and of plain answers."""

    name: str
    endpoint: str
    parse: Callable[[bytes], ClientRequest | BadRequest]
    writer: Callable[[str, int, str, Mapping[str, object]], Writer]
    error_body: Callable[[Mapping[str, object]], Mapping[str, object]]
    media_type: str = "application/json"
