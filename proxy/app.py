"""The composition root: the only place that builds objects and joins them.

In: settings. Out: a worker that serves until it is told to stop. Everything is built inside the worker, after the fork:
locks, threads and connections do not survive one. `preload` is for the parent: what all workers share in memory.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import structlog
import uvloop
from aiohttp import web
from yarl import URL

from proxy.books.source import LiveLedger
from proxy.config import Settings
from proxy.config.settings import UpstreamSettings
from proxy.dialects.base import VendorDialect
from proxy.dialects.registry import CHAT_DIALECTS
from proxy.errors import ConfigError
from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.metering.meter import INLINE_CHARS, short_text, short_texts
from proxy.metering.prices import PriceBook
from proxy.metering.prompt import FORMULA, is_quick, read_prompt
from proxy.metering.tokens import TokenCounter, load_counter, tokenizer_id
from proxy.pipeline.values import Facts
from proxy.semantics.rule import VendorProfile
from proxy.semantics.ruleset import RuleSet
from proxy.server.handlers import Routes
from proxy.server.identity import Keys
from proxy.server.readiness import readiness
from proxy.server.runner import Runner
from proxy.server.usage import Asked, UsageAnswer
from proxy.server.usage import answer as usage_answer
from proxy.stores.counting import CountingPool, GrowingCount
from proxy.stores.inbox import Inbox
from proxy.stores.ledger_db import Ledger
from proxy.stores.logs import AttemptLog, configure_logging
from proxy.stores.metrics import Metrics
from proxy.stores.price_files import default_prices_dir, load_prices
from proxy.stores.rules import FolderWatcher, default_rules_dir, load_rules
from proxy.toon.catalogue import TokenModels
from proxy.toon.intake import Intake
from proxy.upstream.attempts import Attempts, Shaping, Target, Upstream
from proxy.upstream.clock import Clock
from proxy.upstream.pump import PromptCount, Services
from proxy.upstream.session import Session, Timeouts
from proxy.upstream.signing import signer_of
from proxy.upstream.tasks import Tasks
from proxy.wire.hold import Boundary

log = structlog.get_logger()

_BACKLOG = 4096
_TELL_S = 0.05
_TELL_LEDGER_S = 5.0
_USAGE_AT_ONCE = 2
# After the streams' time is over they get their error event, and rows are closed: seconds, no more.
_LAST_WORDS_S = 5.0
_KEY_HEADERS = ("authorization", "api-key", "x-api-key")
# A shorter part of a key is no secret, and striking it out would hit words.
_SHORTEST_PART = 6
_counter: TokenCounter | None = None


def preload() -> None:
    """What every worker needs and no fork breaks: the tokenizer and the modules, frozen out of the garbage
    collector."""
    shared_counter()
    gc.collect()
    gc.freeze()


def shared_counter() -> TokenCounter:
    global _counter  # the one thing that forked workers share
    if _counter is None:
        _counter = load_counter()
    return _counter


def run_worker(
    settings: Settings,
    *,
    sock: socket.socket,
    worker: int,
    on_ready: Callable[[], None],
    parent_alive_fd: int | None,
    metrics_dir: Path | None,
) -> int:
    """Serve until SIGTERM, SIGINT or the parent's end; returns the exit code."""
    configure_logging(_secrets(settings))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Worker(settings, sock, worker, parent_alive_fd).run(on_ready))


class Worker:
    """One process's worth of proxy."""

    def __init__(self, settings: Settings, sock: socket.socket, worker: int, parent_alive_fd: int | None) -> None:
        self._settings, self._sock, self._worker, self._parent_fd = settings, sock, worker, parent_alive_fd
        self._stop = asyncio.Event()
        self._stopping = False
        self._rules_dir = settings.rules_dir or default_rules_dir()
        self._rules = load_rules(self._rules_dir)
        check_dialects(settings, self._rules)
        self._prices_dir = settings.prices_dir or default_prices_dir()
        self._prices = load_prices(self._prices_dir)
        self._tokens = token_models(settings, self._rules)

    async def run(self, on_ready: Callable[[], None]) -> int:
        settings = self._settings
        self._listen_to_signals()
        tasks, session, metrics = Tasks(), Session(), Metrics()
        counting = Counting(shared_counter(), tasks)
        # The schema may have to be made: in a thread, because the loop has signals to hear meanwhile.
        ledger = await asyncio.to_thread(
            partial(
                Ledger.start,
                settings.ledger.url,
                settings.ledger.journal_dir,
                settings.instance,
                str(self._worker),
                journal_bytes=settings.ledger.journal_bytes,
            )
        )
        inbox = Inbox(settings.ledger.inbox_dir, _secrets(settings))
        watchers = Watchers(metrics, AttemptLog(), InboxWatcher(inbox))
        services = Services(ledger, counting, Clock(), tasks, watchers, settings.keepalive_s)
        attempts = Attempts(
            routes(settings, self._rules),
            session,
            services,
            shaping(settings),
            lambda: self._rules,
            counting.prompt,
            lambda: self._prices,
        )
        intake = Intake(self._tokens, tasks)
        handlers = Routes(
            attempts,
            keys(settings),
            settings.limits.request_bytes,
            lambda: readiness(ledger.state, stopping=self._stopping),
            lambda: self._stopping,
            lambda: self._rendered(metrics, ledger),
            partial(self._usage, asyncio.Semaphore(_USAGE_AT_ONCE)),
            intake.read,
        )
        # Without handler_cancellation a handler that waits for its upstream is not told that the client left (W8).
        runner = Runner(
            handlers.application(),
            handler_cancellation=True,
            shutdown_timeout=_LAST_WORDS_S,
            handle_signals=False,
        )
        await runner.setup()
        site = web.SockSite(runner, self._sock, backlog=_BACKLOG)
        await site.start()
        watching = [
            tasks.start(self._watch_rules(), "rules"),
            tasks.start(self._watch_prices(), "prices"),
            tasks.start(self._tell_ledger(metrics, ledger), "ledger metrics"),
        ]
        tune_garbage_collector()
        log.info("serving", worker=self._worker, pid=os.getpid(), rules=self._rules.version, writer=ledger.writer)
        on_ready()
        await self._stop.wait()
        self._stopping = True
        await site.stop()
        await self._let_finish(attempts)
        for watch in watching:
            watch.cancel()
        await runner.cleanup()
        await intake.close()
        await tasks.join(_LAST_WORDS_S)
        watchers.flush()
        await session.close()
        await ledger.stop()
        await asyncio.to_thread(inbox.close)
        await asyncio.to_thread(counting.close)
        return 0

    @staticmethod
    def _rendered(metrics: Metrics, ledger: Ledger) -> tuple[bytes, str]:
        """With how the ledger is now; of the other workers, how it was when they were last asked."""
        metrics.ledger(ledger.state, ledger.drain.rows)
        return metrics.render()

    async def _tell_ledger(self, metrics: Metrics, ledger: Ledger) -> None:
        """So that any worker's `/metrics` has every worker's figures."""
        while True:
            metrics.ledger(ledger.state, ledger.drain.rows)
            await asyncio.sleep(_TELL_LEDGER_S)

    async def _usage(self, turn: asyncio.Semaphore, asked: Asked) -> UsageAnswer:
        """In a thread, and not many at once: reports are work, and streams come first."""
        place = LiveLedger(self._settings.ledger.url, self._settings.ledger.journal_dir)
        async with turn:
            return await asyncio.to_thread(usage_answer, place, asked)

    async def _let_finish(self, attempts: Attempts) -> None:
        """Streams may go on for `shutdown_s`; then each gets its error event (contract C1)."""
        if await attempts.wait_idle(self._settings.shutdown_s):
            return
        log.warning("streams interrupted by shutdown", open=attempts.open)
        attempts.interrupt()
        if not await attempts.wait_idle(_LAST_WORDS_S):
            log.warning("streams would not end", open=attempts.open)

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        if self._parent_fd is not None:
            loop.add_reader(self._parent_fd, self._on_orphaned, self._parent_fd)

    def _on_signal(self) -> None:
        """The first asks to stop, the second ends at once: the journal keeps what is needed."""
        if self._stop.is_set():
            os._exit(1)
        self._stop.set()

    def _on_orphaned(self, fd: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)
        # The death signal of the same parent may come too: it is not a second wish.
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        self._stop.set()

    async def _watch_rules(self) -> None:
        watcher = FolderWatcher(load_rules, self._rules.version)
        await watcher.watch(self._rules_dir, self._take_rules, self._refuse_rules)

    async def _watch_prices(self) -> None:
        watcher = FolderWatcher(load_prices, self._prices.version)
        await watcher.watch(self._prices_dir, self._take_prices, self._refuse_prices)

    def _take_prices(self, prices: PriceBook) -> None:
        """For every attempt that begins from now on."""
        self._prices = prices
        log.info("prices reloaded", prices=prices.version)

    def _refuse_prices(self, error: ConfigError) -> None:
        log.error("prices refused", file=error.file, line=error.line, reason=error.reason)

    def _take_rules(self, rules: RuleSet) -> None:
        missing = {u.vendor for u in self._settings.upstreams.values()} - set(rules.vendors)
        if missing:
            log.error("rules refused", reason=f"no rule file for the configured vendor {', '.join(sorted(missing))}")
            return
        self._rules = rules
        log.info("rules reloaded", rules=rules.version)

    def _refuse_rules(self, error: ConfigError) -> None:
        log.error("rules refused", file=error.file, line=error.line, reason=error.reason)


class Counting:
    """The counter that the pump sees: at once for short texts, else in a thread."""

    def __init__(self, counter: TokenCounter, tasks: Tasks) -> None:
        self._pool = CountingPool(counter)
        self._counter, self._tasks = counter, tasks
        self.name = tokenizer_id(counter)
        self.formula = FORMULA

    def count_now(self, texts: Sequence[list[str]]) -> list[int] | None:
        short = short_texts(texts)
        return None if short is None else [self._counter.count(text) for text in short]

    async def count(self, texts: Sequence[list[str]]) -> list[int]:
        return await self._pool.count(texts)

    def growing(self) -> GrowingCount:
        return self._pool.growing()

    def prompt(self, body: Mapping[str, object], size: int) -> PromptCount:
        """What gives our count of a prompt at the end. A long one is being counted from now on, beside its request; a
        short one waits, for nothing may stand between a request and its leaving."""
        if size <= INLINE_CHARS and is_quick(body):
            return lambda: self._short(dict(body), size)
        counting = self._tasks.start(self._pool.count_prompt(dict(body), size), "count prompt")
        return lambda: counting

    def _short(self, body: dict[str, object], size: int) -> Awaitable[int] | int:
        prompt = read_prompt(body)
        if (text := short_text(prompt.pieces, "\n")) is not None:
            return self._counter.count(text) + prompt.extra
        return self._pool.count_prompt(body, size)

    def close(self) -> None:
        self._pool.close()


class InboxWatcher:
    """The watcher that keeps what no rule knew (contract E)."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def closed(self, open_row: AttemptOpen, row: AttemptClose, facts: Facts, added_delay_s: float) -> None:
        if facts.unmapped and (seen := facts.observation) is not None:
            self._inbox.keep(seen, upstream=open_row.upstream, trace_id=open_row.trace_id, at=row.ended_at)


class Watchers:
    """Tells several watchers the same: metrics at once, the others a moment later, so that neither an answer's last
    bytes wait for them nor each attempt finds their code cold (that costs three times as much as telling ten in a
    row)."""

    def __init__(self, metrics: Metrics, *others: AttemptLog | InboxWatcher) -> None:
        self._metrics, self._others = metrics, others
        self._ended: list[tuple[AttemptOpen, AttemptClose, Facts, float]] = []
        self._due: asyncio.TimerHandle | None = None

    def opened(self, upstream: str) -> None:
        self._metrics.opened(upstream)

    def closed(self, open_row: AttemptOpen, row: AttemptClose, facts: Facts, added_delay_s: float) -> None:
        self._metrics.closed(open_row, row, facts, added_delay_s)
        self._ended.append((open_row, row, facts, added_delay_s))
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(_TELL_S, self.flush)

    def flush(self) -> None:
        """Tell what has not been told."""
        self._due = None
        ended, self._ended = self._ended, []
        for watcher in self._others:
            for one in ended:
                watcher.closed(*one)


def tune_garbage_collector() -> None:
    """A stream makes few cycles and many short-lived objects: the default thresholds would search them in vain (10 % of
    the CPU of an aiohttp proxy). What is loaded now lives for ever."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def check_dialects(settings: Settings, rules: RuleSet) -> None:
    """Each upstream's dialect must be one of its vendor's, and one that is built."""
    for name, one in settings.upstreams.items():
        offered = rules.profile(one.vendor).dialects
        chosen = one.dialect or offered[0]
        if chosen not in offered:
            reason = f"upstreams.{name}.dialect: {one.vendor} speaks {', '.join(offered)}, not {chosen}"
            raise ConfigError("configuration", None, reason)
        if chosen not in CHAT_DIALECTS:
            reason = f"upstreams.{name}: the dialect {chosen} is not built, only {', '.join(CHAT_DIALECTS)}"
            raise ConfigError("configuration", None, reason)


def token_models(settings: Settings, rules: RuleSet) -> TokenModels:
    """The aliases whose upstreams take token ids, with what each model takes."""
    if settings.toon_registry is None:
        return TokenModels({})
    from proxy.toon.registry import load_registry

    registry = load_registry(settings.toon_registry)
    cards = {}
    for alias, (target, *_) in settings.models.items():
        vendor = settings.upstreams[target.upstream].vendor
        if rules.profile(vendor).token_route is None:
            continue
        entry = registry.models.get(target.model)
        if entry is not None:
            cards[alias] = entry.card()
        elif vendor == "toon":
            reason = f"models.{alias}: the registry {settings.toon_registry.name} has no model {target.model!r}"
            raise ConfigError("configuration", None, f"{reason}; it has {', '.join(registry.models)}")
    return TokenModels(cards)


def routes(settings: Settings, rules: RuleSet) -> dict[str, Target]:
    """Each alias with the upstream that serves it."""
    upstreams = {name: upstream(one, rules.profile(one.vendor)) for name, one in settings.upstreams.items()}
    return {
        alias: Target(upstreams[targets[0].upstream], targets[0].model) for alias, targets in settings.models.items()
    }


def upstream(settings: UpstreamSettings, profile: VendorProfile) -> Upstream:
    """One vendor account as the session calls it."""
    dialect = CHAT_DIALECTS[settings.dialect or profile.dialect]
    base, headers = URL(settings.base_url), dict(settings.headers)
    signer = None
    if settings.api_key is not None:
        key = settings.api_key.reveal()
        signer = signer_of(dialect.signing, key, base, settings.region) if dialect.signing is not None else None
        if signer is None:
            base, headers = _with_key(key, dialect, profile.key_header, base, headers)
    deadlines = settings.deadlines
    return Upstream(
        name=settings.name,
        vendor=settings.vendor,
        base=base,
        dialect=dialect,
        signer=signer,
        drops=settings.unsupported == "drop",
        headers={"user-agent": "sluice", **{name.lower(): value for name, value in headers.items()}},
        credential=settings.credential,
        secrets=_secrets_of(settings),
        timeouts=Timeouts(
            deadlines.connect,
            deadlines.first_byte,
            deadlines.stall,
            deadlines.idle,
            deadlines.total,
            settings.after_finish_s,
        ),
        timeouts_said=settings.deadlines_said,
        drain=settings.on_client_gone == "drain",
    )


def _with_key(
    key: str, dialect: VendorDialect, key_header: str | None, base: URL, headers: dict[str, str]
) -> tuple[URL, dict[str, str]]:
    """Our key where the vendor wants it: its rule file says so, or else its dialect."""
    if key_header is None and dialect.key_query is not None:
        return base.update_query({dialect.key_query: key}), headers
    place = key_header or dialect.key_header
    return base, headers | ({place: key} if place is not None else {"authorization": f"Bearer {key}"})


def shaping(settings: Settings) -> Shaping:
    """`hold_ms: 0` waits for nothing, which is what `scalar` does."""
    text = settings.text
    return Shaping(
        boundary=Boundary(text.boundary) if text.hold_ms else Boundary.SCALAR,
        hold_s=text.hold_ms / 1000,
        max_line_bytes=settings.limits.line_bytes,
        max_answer_bytes=settings.limits.answer_bytes,
        strip_fences=settings.json_repair == "fences",
    )


def keys(settings: Settings) -> Keys:
    if settings.auth.mode == "none":
        return Keys(None)
    return Keys({key.sha256: key.tenant for key in settings.auth.keys})


def _secrets_of(settings: UpstreamSettings) -> tuple[str, ...]:
    """Our key there, and its parts where it is an id and a secret that sign together. Some vendors want it in a header
    of their own, which is configured as such."""
    if settings.api_key is not None:
        key = settings.api_key.reveal()
        return (key, *(part for part in key.split(":") if len(part) >= _SHORTEST_PART)) if ":" in key else (key,)
    value = next((settings.headers[name] for name in _KEY_HEADERS if name in settings.headers), "")
    return (value.rpartition(" ")[2],) if value else ()


def _secrets(settings: Settings) -> list[str]:
    secrets = [key for one in settings.upstreams.values() for key in _secrets_of(one)]
    password = URL(settings.ledger.url).password if "://" in settings.ledger.url else None
    return [*secrets, *([password] if password else [])]
