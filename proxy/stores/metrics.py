"""Prometheus metrics of a worker, summed over workers in multiprocess mode (contract C1).

Everything is counted once per attempt, never per event. Labels are bounded: configured names, the contract's classes
and endings. In multiprocess mode (`PROMETHEUS_MULTIPROC_DIR` set before this module is imported) each worker writes
its own files and any worker can render the sum.
"""

from __future__ import annotations

import os

import prometheus_client as prom
from prometheus_client import multiprocess

from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.pipeline.values import Facts
from proxy.stores.ledger_db import LedgerState

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_DELAYS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0)


class Metrics:
    """The pump's watcher. Make one per process."""

    def __init__(self) -> None:
        self._shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        self._registry = prom.CollectorRegistry()
        registry = self._registry
        self._attempts = prom.Counter(
            "sluice_attempts", "Attempts that ended.", ("upstream", "error_class", "ending"), registry=registry
        )
        self._ttft = prom.Histogram(
            "sluice_time_to_first_token_seconds",
            "From the request's leaving to the first progress.",
            ("upstream",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._delay = prom.Histogram(
            "sluice_added_delay_seconds",
            "The longest time that one read of a stream took through the proxy.",
            buckets=_DELAYS,
            registry=registry,
        )
        self._held = prom.Counter("sluice_held_chars", "Characters held back to keep them whole.", registry=registry)
        self._heartbeats = prom.Counter(
            "sluice_heartbeats", "Heartbeats of upstreams that were swallowed.", ("upstream",), registry=registry
        )
        self._replaced = prom.Counter(
            "sluice_replaced_chars", "U+FFFD put in for what can never become a character.", registry=registry
        )
        self._unmapped = prom.Counter(
            "sluice_unmapped_errors", "Errors that no rule knew.", ("upstream",), registry=registry
        )
        self._waiting = prom.Gauge(
            "sluice_ledger_waiting_bytes",
            "What the journals hold for the ledger's database.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._away = prom.Gauge(
            "sluice_ledger_away",
            "Workers that cannot reach the ledger's database.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._drained = prom.Gauge(
            "sluice_ledger_drained_rows",
            "Finished attempts that the workers running now have brought into the database.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._open = prom.Gauge(
            "sluice_open_streams", "Attempts running now.", registry=registry, multiprocess_mode="livesum"
        )

    def opened(self, upstream: str) -> None:
        self._open.inc()

    def closed(self, open_row: AttemptOpen, row: AttemptClose, facts: Facts, added_delay_s: float) -> None:
        upstream = open_row.upstream
        self._open.dec()
        self._attempts.labels(upstream, str(row.error_class or ""), str(row.ending)).inc()
        if row.ttft_ms is not None:
            self._ttft.labels(upstream).observe(row.ttft_ms / 1000)
            self._delay.observe(added_delay_s)
        if facts.held_chars:
            self._held.inc(facts.held_chars)
        if facts.heartbeats:
            self._heartbeats.labels(upstream).inc(facts.heartbeats)
        if facts.replaced:
            self._replaced.inc(facts.replaced)
        if facts.unmapped:
            self._unmapped.labels(upstream).inc()

    def ledger(self, state: LedgerState, drained: int) -> None:
        """How the ledger is now."""
        self._waiting.set(state.waiting_bytes)
        self._away.set(state.away_since is not None)
        self._drained.set(drained)

    def render(self) -> tuple[bytes, str]:
        """The exposition text and its content type."""
        registry = self._registry
        if self._shared:
            registry = prom.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # has no annotations
        return prom.generate_latest(registry), prom.CONTENT_TYPE_LATEST
