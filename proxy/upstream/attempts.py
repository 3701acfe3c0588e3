"""From a parsed request to an attempt at its upstream: which upstream, which bytes and headers, which row.

One attempt per request: retries and continuation are decided elsewhere, and their place is here. Routes and rules are
read when an attempt begins, so an attempt keeps the rule set that was current then. (contract Q1, Q2, L1, R2)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from yarl import URL

from proxy.canon.ending import Stop
from proxy.canon.verdict import Verdict
from proxy.dialects.base import BadRequest, ClientRequest, VendorDialect
from proxy.dialects.embeddings import EMBEDDINGS
from proxy.dialects.openai.send import countable
from proxy.dialects.registry import CLIENT_DIALECTS, VENDOR_DIALECTS
from proxy.dialects.toon import TOKEN_ROUTES
from proxy.dialects.toon.incoming import ToonIncoming
from proxy.errors import JournalFull, LedgerUnavailable
from proxy.metering.ledger import AttemptOpen
from proxy.metering.prices import Price, PriceBook
from proxy.metering.pricing import bound
from proxy.pipeline import Asked, Pipeline, Setup
from proxy.semantics import verdicts
from proxy.semantics.rule import RuleSet, VendorProfile
from proxy.upstream.id_counter import IdCounter
from proxy.upstream.ids import new_id
from proxy.upstream.prepare import Prepared, prepare
from proxy.upstream.pump import Client, PromptCount, Pump, Services
from proxy.upstream.session import Exchange, Session, Stopped, Timeouts
from proxy.wire.hold import Boundary

_NO_PRICES = PriceBook({})
# What of the caller's headers any vendor may see.
_PASSED = ("idempotency-key", "accept-language", "http-referer", "x-title")


class Signer(Protocol):
    """Signs requests where a key in a header is not enough."""

    def sign(self, url: URL, headers: Mapping[str, str], body: bytes, wall: float) -> Mapping[str, str]:
        """The headers to be sent, signature included. `wall` is the unix time."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One vendor account, ready to be called: `base` is the URL that its dialect's paths are appended to. `headers`
    hold our key: never log them. `drops`: what its dialect cannot express is left out rather than refused.
    `timeouts_said` names the deadlines that are configured: the others are the vendor's own to say."""

    name: str
    vendor: str
    base: URL
    headers: Mapping[str, str]
    credential: str
    secrets: tuple[str, ...]
    timeouts: Timeouts
    timeouts_said: frozenset[str] = frozenset()
    dialect: VendorDialect = VENDOR_DIALECTS["openai"]
    signer: Signer | None = None
    drops: bool = False
    drain: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    upstream: Upstream
    model: str


@dataclass(frozen=True, slots=True)
class Shaping:
    """What every answer's pipeline is set up with (contract C4: `text`, `limits`, `json`)."""

    boundary: Boundary = Boundary.GRAPHEME
    hold_s: float = 0.040
    max_line_bytes: int = 8 * 1024 * 1024
    max_answer_bytes: int = 64 * 1024 * 1024
    strip_fences: bool = True


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: ids, tenant, and the headers that came."""

    request_id: str
    trace_id: str
    tenant: str
    headers: Mapping[str, str]
    traceparent: str | None = None


class Attempts:
    """Runs requests. `rules` gives the current rule set, `prices` the current prices; `count_prompt` our count of a
    prompt, or the making of it."""

    def __init__(
        self,
        routes: Mapping[str, Target],
        session: Session,
        services: Services,
        shaping: Shaping,
        rules: Callable[[], RuleSet],
        count_prompt: Callable[[Mapping[str, object], int], PromptCount],
        prices: Callable[[], PriceBook] = lambda: _NO_PRICES,
    ) -> None:
        self.routes = routes
        self._session, self._services, self._shaping = session, services, shaping
        self._rules, self._count_prompt, self._prices = rules, count_prompt, prices
        self._running: set[Pump] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def open(self) -> int:
        """How many attempts run now."""
        return len(self._running)

    async def wait_idle(self, timeout_s: float) -> bool:
        """Wait until no attempt runs; False if one still does after that time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def route(self, alias: str) -> Target | None:
        return self.routes.get(alias)

    async def run(
        self, request: ClientRequest, target: Target, caller: Caller, client: Client
    ) -> Verdict | BadRequest | None:
        """Serve the request. Returns a verdict, or the caller's mistake, only if no attempt could be made; the client
        then has got nothing."""
        upstream = target.upstream
        profile = self._rules().profile(upstream.vendor)
        dialect = dialect_for(request, upstream.dialect, profile)
        if dialect is None:
            return _unasked(request)
        prepared = prepare(request, dialect, target.model, profile.request_fields, drops=upstream.drops)
        if isinstance(prepared, BadRequest):
            return prepared
        started_at = time.time()
        price = self._prices().find(upstream.vendor, (target.model,), int(started_at * 1_000_000))
        row = self._row(request, target, caller, started_at, len(prepared.body), price)
        count, services = self._counting(request)
        try:
            services.ledger.open(row)
        except LedgerUnavailable as error:
            return verdicts.ledger_unavailable(full=isinstance(error, JournalFull))
        asked = Asked(request.stream, request.usage, request.json, request.client, request.body)
        pipeline = Pipeline(self._setup(target, caller, row, profile, prepared, dialect), asked)
        timeouts = timeouts_of(upstream, profile)
        pump = Pump(pipeline, client, row, timeouts, services, count, price, drain=upstream.drain)
        self._running.add(pump)
        self._idle.clear()
        services.watcher.opened(upstream.name)
        try:
            headers = self._headers(request, upstream, dialect, caller)
            await pump.run(self._open(upstream, headers, prepared, timeouts))
        finally:
            self._running.discard(pump)
            if not self._running:
                self._idle.set()
        return None

    async def _open(
        self, upstream: Upstream, headers: Mapping[str, str], prepared: Prepared, timeouts: Timeouts
    ) -> Exchange | Stop:
        url = address(upstream.base, prepared.path)
        if upstream.signer is not None:
            headers = upstream.signer.sign(url, headers, prepared.body, time.time())
        try:
            return await self._session.open(url, headers, prepared.body, timeouts)
        except Stopped as stopped:
            return stopped.stop

    def _counting(self, request: ClientRequest) -> tuple[PromptCount, Services]:
        """Our count of the prompt, and what counts the answer: ids are counted as they are."""
        if isinstance(request, ToonIncoming):
            asked = request.asked
            return lambda: asked.count, replace(self._services, counter=IdCounter(asked.version))
        return self._count_prompt(_countable(request), request.size), self._services

    async def count_prompt(self, request: ClientRequest) -> int:
        """Our count of a request's prompt, without asking anybody."""
        counted = self._count_prompt(_countable(request), request.size)()
        return counted if isinstance(counted, int) else await counted

    def interrupt(self) -> None:
        """The time to finish is over: every stream ends with `shutting_down` (contract C1)."""
        for pump in tuple(self._running):
            pump.interrupt(Stop.SHUTDOWN)

    def _row(
        self,
        request: ClientRequest,
        target: Target,
        caller: Caller,
        started_at: float,
        request_bytes: int,
        price: Price | None,
    ) -> AttemptOpen:
        upstream = target.upstream
        max_output = _max_output(request.body)
        return AttemptOpen(
            attempt_id=new_id(),
            request_id=caller.request_id,
            trace_id=caller.trace_id,
            attempt_no=1,
            tenant=caller.tenant,
            endpoint=CLIENT_DIALECTS[request.client].endpoint,
            streamed=request.stream,
            started_at=started_at,
            upstream=upstream.name,
            vendor=upstream.vendor,
            credential=upstream.credential,
            model_alias=request.model,
            model=target.model,
            request_bytes=request_bytes,
            max_output=max_output,
            price_version=price.version if price is not None else None,
            currency=price.currency if price is not None else None,
            cost_bound=bound(price, request_bytes, max_output) if price is not None else None,
        )

    def _setup(
        self,
        target: Target,
        caller: Caller,
        row: AttemptOpen,
        profile: VendorProfile,
        prepared: Prepared,
        dialect: VendorDialect,
    ) -> Setup:
        shaping = self._shaping
        return Setup(
            profile=profile,
            upstream=target.upstream.name,
            model=target.model,
            trace_id=caller.trace_id,
            seed=row.attempt_id[:24],
            wall=row.started_at,
            boundary=shaping.boundary,
            hold_s=shaping.hold_s,
            max_line_bytes=shaping.max_line_bytes,
            max_answer_bytes=shaping.max_answer_bytes,
            strip_fences=shaping.strip_fences,
            secrets=target.upstream.secrets,
            dialect=dialect.name,
            sent=prepared.sent,
            headers=prepared.headers,
        )

    @staticmethod
    def _headers(request: ClientRequest, upstream: Upstream, dialect: VendorDialect, caller: Caller) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": dialect.accept if request.stream else "application/json",
            # A compressed stream is a buffered stream at many vendors; a plain answer may be compressed.
            "accept-encoding": "identity" if request.stream else "gzip, deflate, br",
            "x-request-id": caller.request_id,
        }
        if caller.traceparent is not None:
            headers["traceparent"] = caller.traceparent
        # What of the caller's headers a vendor may see (contract Q2); those of a family mean something in it alone.
        passed = (*_PASSED, *(dialect.passed_headers if dialect.native == request.client else ()))
        headers |= dialect.headers
        if request.stream:
            headers |= dialect.stream_headers
        headers |= {name: caller.headers[name] for name in passed if name in caller.headers}
        # Last, so that what the operator configured wins over what a caller sent.
        return {**headers, **upstream.headers}


def timeouts_of(upstream: Upstream, profile: VendorProfile) -> Timeouts:
    """The deadlines of an attempt: those configured, else the vendor's by the rules that are current, else ours."""
    own = {name: value for name, value in profile.deadlines.items() if name not in upstream.timeouts_said}
    return replace(upstream.timeouts, **own) if own else upstream.timeouts


def dialect_for(request: ClientRequest, usual: VendorDialect, profile: VendorProfile) -> VendorDialect | None:
    """How the upstream is asked this; None if it cannot be."""
    if request.client == "embeddings":
        return EMBEDDINGS.get(usual.name)
    if request.client == "toon":
        return TOKEN_ROUTES.get(profile.token_route or "")
    return usual


def _unasked(request: ClientRequest) -> BadRequest:
    if request.client == "toon":
        return BadRequest("model_not_found", f"The model `{request.model[:200]}` takes no token ids.", "/model", 404)
    message = f"The model `{request.model[:200]}` gives no embeddings: its upstream has no API for them here."
    return BadRequest("unsupported_endpoint", message, "model")


@lru_cache(maxsize=1024)  # most upstreams have two addresses; making one takes as long as parsing a small request
def address(base: URL, path: str) -> URL:
    """The base URL with a dialect's path behind its own, and both their queries."""
    target = URL(path, encoded=True)
    url = base.with_path(base.raw_path.rstrip("/") + target.raw_path, encoded=True)
    query = "&".join(part for part in (base.raw_query_string, target.raw_query_string) if part)
    return URL(f"{url}?{query}", encoded=True) if query else url


def _max_output(body: Mapping[str, object]) -> int | None:
    """The longest answer that the client asked for, of all its choices together, in tokens; None: it set no limit."""
    limits = [body.get(name) for name in ("max_completion_tokens", "max_output_tokens", "max_tokens")]
    limit = next((value for value in limits if type(value) is int and value > 0), None)
    choices = body.get("n")
    return limit * choices if limit is not None and type(choices) is int and choices > 1 else limit


def _countable(request: ClientRequest) -> Mapping[str, object]:
    """What is counted of the prompt: the same for the same request, in whatever dialect it came."""
    if request.client == "chat":
        return request.body
    if request.client == "embeddings":
        texts = request.body.get("input")
        return {"texts": texts if isinstance(texts, list) else [texts]}
    canonical = request.canonical
    return {} if isinstance(canonical, BadRequest) else countable(canonical)
