"""The inbox: answers that no rule knows, kept until somebody has written a rule for them (contract E).

In: an `Observation` that only the fallback table could class. Out: one recording per distinct answer, as
`<folder>/<vendor>/<status>-<phase>-<hash>.jsonl`, with keys, addresses and the request's own text taken out and at most
16 KiB of it; when the same answer comes again it is counted, and its file's time changes, so that `ls -t` shows what
happens now. When the inbox is full, what came least goes (`inbox_folder`). Moved to `recordings/` an answer is the
evidence of a rule: `sluice learn` does it. Never: hold a request up or fail it (all work is done by one thread, and
what it cannot keep up with is dropped), write the request's messages, or grow without a bound.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from proxy.canon.verdict import Observation, Phase
from proxy.dialects.payload import encode_json
from proxy.errors import ConfigError
from proxy.semantics.sameness import TELLING_HEADER, fingerprint
from proxy.semantics.scrub import scrub
from proxy.stores.inbox_body import clean_body
from proxy.stores.inbox_folder import LIMIT_BYTES, LIMIT_FILES, make_room, see_again
from proxy.stores.logs import Strike
from proxy.stores.recordings import SIMULATED_HEADER, Obtained, Read, Recording, dump_recording

log = structlog.get_logger(__name__)

MAX_BODY: Final = 16 * 1024
ODD: Final = "no rule knows this answer"
# So much of an answer is looked at, and so many answers wait for the thread.
_MAX_SEEN: Final = 64 * 1024
_MAX_WAITING: Final = 64
_HEADERS: Final = frozenset({"content-type", "retry-after", "x-should-retry"})


class Inbox:
    """The inbox of one worker. Several workers, and several starts, share a folder."""

    def __init__(
        self, folder: Path, secrets: Iterable[str], limit_files: int = LIMIT_FILES, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        self._folder, self._limit_files, self._limit_bytes = folder, limit_files, limit_bytes
        self._secrets = list(secrets)
        self._strike = Strike(self._secrets)
        # Its thread starts with the first answer that is kept.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="inbox")
        self._free = threading.Semaphore(_MAX_WAITING)
        self._told: set[str] = set()

    def keep(self, observation: Observation, *, upstream: str, trace_id: str, at: float) -> None:
        """Hands the answer to the thread and returns at once. `at` is unix time."""
        if not self._free.acquire(blocking=False):
            return self._tell_once("answers come faster than they can be kept", "")
        body = observation.body or encode_json(observation.payload)
        try:
            self._thread.submit(
                self._keep, replace(observation, body=body[:_MAX_SEEN], payload=None), upstream, trace_id, at
            )
        except RuntimeError:  # closed: the process ends
            self._free.release()

    def close(self) -> None:
        """Writes what waits, and ends the thread. Blocks."""
        self._thread.shutdown()

    def _keep(self, observation: Observation, upstream: str, trace_id: str, at: float) -> None:
        try:
            self._write(self._as_recording(observation, upstream, trace_id, at), at)
        except (OSError, ConfigError) as error:
            self._tell_once("an answer that no rule knows could not be kept", str(error))
        except Exception:  # whatever a vendor can send: it costs this one answer, never the thread
            log.exception("an answer that no rule knows could not be kept", upstream=upstream, trace_id=trace_id)
        finally:
            self._free.release()

    def _write(self, recording: Recording, at: float) -> None:
        path = recording.path
        if see_again(path, at):
            return
        beside = path.with_name(f".{path.name}.{os.getpid()}")  # appears as a whole or not at all
        try:
            dump_recording(recording, beside, self._strike.secrets)
            if make_room(self._folder, self._limit_files, self._limit_bytes, beside.stat().st_size):
                self._tell_once("the inbox is full", "what came least goes; work through it with `sluice learn`")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        see_again(path, at)
        log.info("an answer that no rule knows was kept", file=str(path), basis=recording.basis)

    def _as_recording(self, seen: Observation, upstream: str, trace_id: str, at: float) -> Recording:
        # Twice: what cleaning cuts must not hide half of a key, and what it decodes may show one.
        body = self._strike.clean(clean_body(self._strike.clean(seen.body), MAX_BODY))
        body = _as_event(seen, body) if seen.phase in (Phase.FIRST, Phase.MID) else body
        obtained: Obtained = "simulated" if SIMULATED_HEADER in seen.headers else "captured"
        vendor = re.sub(r"[^\w.-]", "_", seen.vendor)
        headers = tuple(self._headers(seen))
        same = fingerprint(seen.vendor, seen.status, seen.phase, body, headers)
        name = f"{seen.status or 0}-{seen.phase}-{same}"
        moment = datetime.fromtimestamp(at, UTC)
        return Recording(
            path=self._folder / vendor / f"{name}.jsonl",
            vendor=seen.vendor,
            name=name,
            obtained=obtained,
            odd=ODD,
            request={"method": "POST", "path": "/chat/completions"},
            status=seen.status or 0,
            headers=headers,
            end="close",
            reads=(Read(0.0, body),) if body else (),
            expect={"phase": str(seen.phase)},
            basis=f"upstream {upstream}, {moment.isoformat(timespec='seconds')}, trace {trace_id}",
            at=moment.date().isoformat(),
        )

    def _headers(self, seen: Observation) -> Iterable[tuple[str, str]]:
        for name, value in seen.headers.items():
            if name in _HEADERS or name.startswith("x-ratelimit-") or TELLING_HEADER.search(name):
                yield name, self._strike.clean(scrub(value, 200).encode()).decode()

    def _tell_once(self, what: str, why: str) -> None:
        """A full disk or a full folder is told once, not for each answer."""
        if what not in self._told:
            self._told.add(what)
            log.warning(what, folder=str(self._folder), reason=why)


def _as_event(seen: Observation, body: bytes) -> bytes:
    """The event as it stood in its stream. In other framings the line is all there is."""
    if "event-stream" not in seen.headers.get("content-type", "event-stream"):
        return body + b"\n"
    name = f"event: {scrub(seen.event, 80)}\n" if seen.event else ""
    comments = "".join(f": {scrub(comment, 200)}\n" for comment in seen.comments[:4])
    data = b"".join(b"data: %b\n" % line for line in body.split(b"\n"))
    return f"{comments}{name}".encode() + data + b"\n"
