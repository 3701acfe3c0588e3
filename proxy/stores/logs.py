"""Logs: one JSON object a line on standard output, with secrets struck out after rendering (contract L3).

Striking out works on the rendered line, so it does not matter how a secret came into it: as a value, in a URL, in the
text of an exception or of one that caused it. What the standard library logs (aiohttp's own complaints) takes the same
way.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import logging
import sys
from collections.abc import Iterable
from typing import Any, BinaryIO

import orjson
import structlog

from proxy.metering.ledger import AttemptClose, AttemptOpen
from proxy.pipeline.values import Facts

_STRUCK = b"***"
_GATHER_S = 0.05
_SHORTEST = 6  # a shorter "secret" would strike out words


def configure_logging(secrets: Iterable[str], level: int = logging.INFO) -> None:
    """Once per process. `secrets` are the texts that must never be seen."""
    strike = Strike(secrets)
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=_dump), strike],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=LineLoggers(sys.stdout.buffer),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_StandardFormatter(strike))
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)


class LineLoggers:
    """structlog's factory for loggers that gather lines for a moment: one write for many attempts, not one each. What
    is worse than information leaves at once, with what was gathered before it; so does everything at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[bytes] = []
        self._due: asyncio.TimerHandle | None = None
        atexit.register(self.flush)

    def __call__(self, *_: object) -> LineLoggers:
        return self

    def info(self, line: bytes) -> None:
        self._lines.append(line)
        if self._due is not None:
            return
        try:
            self._due = asyncio.get_running_loop().call_later(_GATHER_S, self.flush)
        except RuntimeError:  # another thread, or no loop any more
            self.flush()

    def msg(self, line: bytes) -> None:
        self._lines.append(line)
        self.flush()

    debug = info
    warning = warn = error = critical = exception = fatal = failure = err = msg

    def flush(self) -> None:
        self._due = None
        lines, self._lines = self._lines, []
        if lines:
            self._file.write(b"\n".join(lines) + b"\n")
            self._file.flush()


class Strike:
    """A structlog processor, and a function: rendered bytes in, the same without any secret out."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._hidden: list[bytes] = []
        #: Those that are struck out.
        self.secrets = [secret for secret in secrets if len(secret) >= _SHORTEST]
        for secret in self.secrets:
            raw = secret.encode()
            self._hidden += [raw, base64.b64encode(raw).rstrip(b"="), orjson.dumps(secret)[1:-1]]

    def __call__(self, _logger: object, _method: str, line: Any) -> bytes:
        return self.clean(line)

    def clean(self, line: bytes) -> bytes:
        for hidden in self._hidden:
            if hidden in line:
                line = line.replace(hidden, _STRUCK)
        return line


class _StandardFormatter(logging.Formatter):
    """What the standard library logs, in the same form."""

    def __init__(self, strike: Strike) -> None:
        super().__init__()
        self._strike = strike

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {"event": record.getMessage(), "logger": record.name}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        entry |= {"level": record.levelname.lower(), "timestamp": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")}
        return self._strike.clean(_dump(entry)).decode()


def _dump(entry: object, **_: object) -> bytes:
    return orjson.dumps(entry, default=str)


class AttemptLog:
    """One line per attempt: what an operator looks for first when somebody asks about a trace id."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()

    def closed(self, open_row: AttemptOpen, row: AttemptClose, facts: Facts, added_delay_s: float) -> None:
        self._log.info(
            "attempt",
            trace_id=open_row.trace_id,
            request_id=open_row.request_id,
            attempt_id=open_row.attempt_id,
            tenant=open_row.tenant,
            upstream=open_row.upstream,
            model=open_row.model,
            streamed=open_row.streamed,
            ending=str(row.ending),
            error_class=row.error_class,
            error_code=row.error_code,
            rule=row.rule_id,
            status=row.upstream_status,
            finish=row.finish_reason,
            ttft_ms=row.ttft_ms,
            duration_ms=row.duration_ms,
            events=row.events_out,
            heartbeats=facts.heartbeats,
            replaced=facts.replaced,
        )
