"""One request of a probe, sent as the proxy sends it, and the exchange kept read by read (contract R1, Q2, W6, W8).

In: an upstream and an `Ask`. Out: what was heard: the answer as a `Recording` without secrets, why reading stopped, and
how long it took. The same session as in production: no redirects, no cookies, our own deadlines. Never: an exception
for what a vendor does, a key in anything that is given out, or more of an answer than `MAX_BYTES`, and of a
refusal than `MAX_REFUSAL_BYTES`, also where it was compressed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from proxy.canon.ending import Stop
from proxy.dialects.payload import BROKEN, parse_json
from proxy.errors import LimitExceeded
from proxy.learning.masking import headers_of, mask, masked_reads
from proxy.learning.probes import Ask, Encoded, Key, Probe, Until, encode
from proxy.pipeline import Asked, Pipeline, Setup
from proxy.semantics.rule import VendorProfile
from proxy.stores.recordings import SIMULATED_HEADER, End, Read, Recording
from proxy.upstream.attempts import Upstream, address, timeouts_of
from proxy.upstream.ids import new_id
from proxy.upstream.session import Exchange, Session, Stopped, Timeouts
from proxy.wire.inflate import Inflater

#: Of one answer; a probe asks for a page of text at most.
MAX_BYTES: Final = 4 << 20
#: Of a refusal: the inbox looks at no more of one either.
MAX_REFUSAL_BYTES: Final = 64 << 10
#: The longest that one answer is waited for, whatever the upstream's own deadlines allow.
MAX_TOTAL_S: Final = 180.0
#: Too short for any head; long enough to have sent the request on a fast line.
TOO_SHORT_S: Final = 0.001
#: The recorded request holds so much of a text: an over-long prompt says nothing by its length.
_TOLD_CHARS: Final = 1000
# Of a compressed read, looked at at once.
_SLICE: Final = 256

Account = Callable[[str | None], Upstream]


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is asked. `upstream` is as configured; `with_key` makes it anew for another key (None: for none).
    `extra_secrets` are values of the configuration that may be some."""

    upstream: Upstream
    with_key: Account
    profile: VendorProfile
    model: str
    extra_secrets: tuple[str, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*self.upstream.secrets, *self.extra_secrets)


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of one ask, the `number`th of its probe (from 1). `recording` is None where no head came."""

    probe: Probe
    ask: Ask
    number: int
    stop: Stop
    recording: Recording | None
    took_s: float
    closed_s: float = 0.0


@dataclass(slots=True)
class _Reading:
    reads: list[Read]
    stop: Stop
    end: End
    end_at: float


def name_of(probe: str, number: int) -> str:
    """What the recording of an ask is called."""
    return f"probe-{probe}-{number}"


class Asker:
    """Asks one subject. Built inside a running loop, over a session of its own."""

    def __init__(self, subject: Subject, session: Session) -> None:
        self._subject, self._session = subject, session
        self.sent = 0

    async def ask(self, probe: Probe, number: int, ask: Ask) -> Heard:
        subject = self._subject
        dialect = subject.upstream.dialect
        encoded = encode(ask, dialect, subject.profile.request_fields)
        account = self._account(ask)
        url = address(account.base, encoded.path)
        headers: Mapping[str, str] = _headers(account, ask.request.stream)
        if account.signer is not None:
            headers = account.signer.sign(url, headers, encoded.body, time.time())
        self.sent += 1
        begun = time.perf_counter()
        timeouts = _timeouts(timeouts_of(account, subject.profile), ask.until)
        wait_s, late = timeouts.head()
        try:
            async with asyncio.timeout(wait_s):
                exchange = await self._session.open(url, headers, encoded.body, timeouts)
        except TimeoutError:
            return Heard(probe, ask, number, late, None, time.perf_counter() - begun)
        except Stopped as stopped:
            return Heard(probe, ask, number, stopped.stop, None, time.perf_counter() - begun)
        head_at = time.perf_counter()
        try:
            reading = await self._read(exchange, ask, encoded, timeouts, head_at)
        finally:
            closing = time.perf_counter()
            exchange.close()
        recording = self._recording(probe, number, ask, encoded, exchange, reading)
        closed = time.perf_counter()
        return Heard(probe, ask, number, reading.stop, recording, closed - begun, closed - closing)

    def _account(self, ask: Ask) -> Upstream:
        match ask.key:
            case Key.OURS:
                return self._subject.upstream
            case Key.WRONG:
                return self._subject.with_key(ask.wrong_key)
            case Key.NONE:
                return self._subject.with_key(None)

    async def _read(
        self, exchange: Exchange, ask: Ask, encoded: Encoded, timeouts: Timeouts, head_at: float
    ) -> _Reading:
        """Reads until the answer ends, or we have seen enough."""
        watch = _Watch(self._subject, ask, encoded, exchange, timeouts)
        reads: list[Read] = []
        size, limit = 0, _limit_of(exchange.status)
        while True:
            now = time.perf_counter() - head_at
            wait_s, late = watch.patience(now)
            try:
                async with asyncio.timeout(wait_s):
                    data = await exchange.read()
            except TimeoutError:
                return _Reading(reads, late, "hang", time.perf_counter() - head_at)
            except Stopped as stopped:
                end: End = "reset" if stopped.is_reset else "abort"
                return _Reading(reads, stopped.stop, end, time.perf_counter() - head_at)
            now = time.perf_counter() - head_at
            if not data:
                return _Reading(reads, Stop.EOF, "close", now)
            reads.append(Read(round(now, 6), data))
            size += len(data)
            if (stop := watch.seen(data, now)) is not None or size > limit:
                return _Reading(reads, stop or Stop.AFTER_FINISH, "hang", now)

    def _recording(
        self, probe: Probe, number: int, ask: Ask, encoded: Encoded, exchange: Exchange, reading: _Reading
    ) -> Recording:
        subject = self._subject
        secrets = (*subject.secrets, *((ask.wrong_key,) if ask.wrong_key else ()))
        coding = exchange.headers.get("content-encoding", "")
        reads = _inflated(reading.reads, coding, _limit_of(exchange.status))
        name = name_of(probe.name, number)
        return Recording(
            path=Path(f"{name}.jsonl"),
            vendor=subject.profile.vendor,
            name=name,
            obtained=_obtained(exchange.headers),
            odd=ask.odd,
            request=_told_request(ask, encoded, subject, secrets),
            status=exchange.status,
            headers=tuple(headers_of(exchange.headers, subject.profile, lambda text: mask(text, secrets))),
            end=reading.end,
            reads=masked_reads(reads, secrets),
            expect={},
            basis=f"asked by sluice probe, {probe.name}: {probe.about}",
            at=datetime.now(UTC).date().isoformat(),
            end_at=round(reading.end_at, 6),
            dialect="" if subject.upstream.dialect.name == subject.profile.dialect else subject.upstream.dialect.name,
        )


class _Watch:
    """How long the next read may take, and whether enough was read: the pipeline knows what has come."""

    def __init__(self, subject: Subject, ask: Ask, encoded: Encoded, exchange: Exchange, timeouts: Timeouts) -> None:
        self._ask, self._timeouts = ask, timeouts
        setup = Setup(
            subject.profile,
            subject.upstream.name,
            subject.model,
            "0" * 32,
            "probe",
            time.time(),
            dialect=subject.upstream.dialect.name,
            sent=encoded.sent,
        )
        self._pipeline = Pipeline(setup, Asked(stream=ask.request.stream))
        self._pipeline.head(exchange.status, exchange.headers)
        self._last = self._done_at = 0.0

    def patience(self, now: float) -> tuple[float, Stop]:
        """Seconds that may pass before a read, and why no more."""
        limits = self._timeouts
        waits: list[tuple[float, Stop]] = [((limits.total or MAX_TOTAL_S) - now, Stop.TOTAL)]
        if self._done_at:
            waits.append((self._done_at + limits.after_finish - now, Stop.AFTER_FINISH))
        elif limits.idle and self._ask.request.stream:
            waits.append((limits.idle, Stop.IDLE))
        wait, stop = min(waits)
        return max(wait, 0.0), stop

    def seen(self, data: bytes, now: float) -> Stop | None:
        """Take a read; a reason to stop, if there is one."""
        pipeline = self._pipeline
        if not pipeline.over:
            pipeline.feed(data, now)
        if not self._done_at and (pipeline.over or (pipeline.finished and pipeline.progress_at is not None)):
            self._done_at = now
        match self._ask.until:
            case Until.PROGRESS if pipeline.progress_at is not None:
                return Stop.GONE
            case Until.MIDDLE:
                return Stop.TOTAL
            case _:
                return None


def _timeouts(configured: Timeouts, until: Until) -> Timeouts:
    """The upstream's own, but bounded: a probe has an end."""
    total = min(configured.total or MAX_TOTAL_S, MAX_TOTAL_S)
    first = TOO_SHORT_S if until is Until.HEAD else configured.first_byte or total
    return replace(configured, total=total, first_byte=min(first, total))


def _headers(account: Upstream, stream: bool) -> dict[str, str]:
    dialect = account.dialect
    headers = {
        "content-type": "application/json",
        "accept": dialect.accept if stream else "application/json",
        "accept-encoding": "identity",  # what is compressed cannot be searched for secrets read by read
        "x-request-id": new_id(),
        **dialect.headers,
        **(dialect.stream_headers if stream else {}),
    }
    return {**headers, **account.headers}


def _obtained(headers: Mapping[str, str]) -> Literal["captured", "simulated"]:
    return "simulated" if SIMULATED_HEADER in headers else "captured"


def _limit_of(status: int) -> int:
    return MAX_BYTES if 200 <= status < 300 else MAX_REFUSAL_BYTES


def _inflated(reads: Iterable[Read], coding: str, limit: int) -> list[Read]:
    """`limit` bytes of the reads at most. A vendor may compress what it was asked not to: the recording is of what was
    meant, or of as much as came out before it swelled beyond all bounds."""
    inflater = Inflater(coding)
    made: list[Read] = []
    for read in reads:
        data = bytearray()
        try:
            # In slices that cannot swell much, so that a bomb is seen before it goes off.
            for start in range(0, len(read.data), _SLICE):
                data += b"".join(inflater.feed(read.data[start : start + _SLICE]))
                if len(data) >= limit:
                    return [*made, replace(read, data=bytes(data[:limit]))]
        except LimitExceeded:
            return [*made, replace(read, data=bytes(data))] if data else made
        if data:
            made.append(replace(read, data=bytes(data)))
            limit -= len(data)
    return made


def _told_request(ask: Ask, encoded: Encoded, subject: Subject, secrets: Collection[str]) -> dict[str, object]:
    """Method, path and body as they went out, without what is long and without secrets. `quoted` are the words that the
    vendor may give back, as they stand in the recording."""
    dialect = subject.upstream.dialect
    request: dict[str, object] = {"method": "POST", "path": _masked(encoded.path, secrets)}
    headers = {**dialect.headers, **(dialect.stream_headers if ask.request.stream else {})}
    if headers:
        request["headers"] = [[name, value] for name, value in headers.items()]
    value, _ = parse_json(encoded.body)
    request["body"] = _shortened(
        _masked(encoded.body.decode("utf-8", "replace"), secrets) if value is BROKEN else value, secrets
    )
    quoted = {_masked(word, secrets) for word in (*ask.asked, ask.request.model)}
    return {**request, "quoted": sorted(quoted)}


def _shortened(value: object, secrets: Collection[str]) -> object:
    match value:
        case str() if len(value) > _TOLD_CHARS:
            return f"{_masked(value[:_TOLD_CHARS], secrets)}… ({len(value)} characters)"
        case str():
            return _masked(value, secrets)
        case dict():
            return {name: _shortened(inner, secrets) for name, inner in value.items()}
        case list():
            return [_shortened(inner, secrets) for inner in value]
        case _:
            return value


def _masked(text: str, secrets: Iterable[str]) -> str:
    return mask(text.encode(), tuple(secrets)).decode("utf-8", "replace")
