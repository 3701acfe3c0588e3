"""`/v1/usage`: a tenant's own figures and attempts, as JSON lines or CSV (contract C3, L4).

In: what the query asks, and who asks. Out: the rows of a usage report over this tenant alone, or its single attempts;
or a mistake that names the wrong parameter. Reading is work for a thread. There is no way to ask for another tenant.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from mmap import ACCESS_READ, mmap
from typing import Final

from proxy.books.grouping import KEYS
from proxy.books.own_attempts import AttemptsQuestion, attempt_csv, attempt_lines
from proxy.books.period import parse_period, parse_zone
from proxy.books.render.data import render_csv, render_lines
from proxy.books.source import LiveLedger
from proxy.books.usage_report import UsageQuestion, usage_report
from proxy.dialects.base import BadRequest
from proxy.errors import LedgerUnavailable
from proxy.stores.ledger_rows import to_micros

JSON_LINES: Final = "application/jsonl"
CSV: Final = "text/csv; charset=utf-8"
_KNOWN: Final = (*("by", "period", "since", "until", "time_zone", "vendor", "model", "format", "table", "detail"),)
#: Of a tenant these say nothing new, or are the operator's own business.
_NOT_THEIRS: Final = frozenset(("tenant", "credential", "upstream"))
_FORMATS: Final = ("jsonl", "csv")
_TABLES: Final = ("usage", "open")
_FILTERS: Final = ("vendor", "model")
#: These make groups.
_OF_GROUPS: Final = ("by", "table")
#: Some 700,000 attempts. An answer lies in a file while it is read, and disks are finite.
MAX_ANSWER_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """`body` is in memory, or a file that is gone when nobody holds it any more."""

    body: bytes | mmap
    content_type: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that was understood. `table` is of groups."""

    question: UsageQuestion | AttemptsQuestion
    form: str
    table: str = "usage"


def parse_query(query: Mapping[str, str], accept: str, tenant: str) -> Asked | BadRequest:
    """`accept` is the request's header, which decides where the query does not."""
    names = [name for name, _ in query.items()]  # iterating over aiohttp's would tell each name once
    for name in names:
        if name not in _KNOWN:
            return _bad(name, f"There is no parameter `{name[:100]}`; there are {', '.join(_KNOWN)}.")
        if names.count(name) > 1:
            return _bad(name, f"`{name}` stands twice.")
    form = query.get("format", "csv" if "text/csv" in accept else "jsonl")
    if form not in _FORMATS:
        return _bad("format", f"The format must be one of {', '.join(_FORMATS)}.")
    try:
        zone = parse_zone(query.get("time_zone", "UTC"))
    except ValueError as error:
        return _bad("time_zone", f"{error}.")
    bounds = _bounds(query, zone)
    if isinstance(bounds, BadRequest):
        return bounds
    filters = _filters(query)
    if isinstance(filters, BadRequest):
        return filters
    if "detail" in query:
        return _attempts(query, form, AttemptsQuestion(tenant, *bounds, filters))
    return _groups(query, form, bounds, zone, {"tenant": (tenant,), **filters})


def _attempts(query: Mapping[str, str], form: str, question: AttemptsQuestion) -> Asked | BadRequest:
    if query["detail"] != "attempts":
        return _bad("detail", "The detail must be attempts; without it there are groups.")
    for name in _OF_GROUPS:
        if name in query:
            return _bad(name, f"`{name}` is for groups; leave it out with `detail=attempts`.")
    return Asked(question, form)


def _groups(
    query: Mapping[str, str],
    form: str,
    bounds: tuple[int | None, int | None],
    zone: str,
    filters: Mapping[str, tuple[str, ...]],
) -> Asked | BadRequest:
    table = query.get("table", "usage")
    if table not in _TABLES:
        return _bad("table", f"The table must be one of {', '.join(_TABLES)}.")
    by = tuple(name.strip() for name in query.get("by", "model,day").split(",") if name.strip())
    theirs = [name for name in KEYS if name not in _NOT_THEIRS]
    if (odd := next((name for name in by if name not in theirs), None)) is not None:
        return _bad("by", f"Figures cannot be grouped by `{odd[:100]}`; there are {', '.join(theirs)}.")
    try:
        question = UsageQuestion(by, *bounds, zone, filters)
    except ValueError as error:
        return _bad("by", f"{error}.")
    return Asked(question, form, table)


def _filters(query: Mapping[str, str]) -> dict[str, tuple[str, ...]] | BadRequest:
    found: dict[str, tuple[str, ...]] = {}
    for name in _FILTERS:
        if name in query:
            found[name] = tuple(value.strip() for value in query[name].split(",") if value.strip())
            if not found[name]:
                return _bad(name, f"`{name}` must name one, or several with commas between.")
    return found


def _bounds(query: Mapping[str, str], zone: str) -> tuple[int | None, int | None] | BadRequest:
    if "period" in query:
        if "since" in query or "until" in query:
            return _bad("period", "Give `period`, or `since` and `until`.")
        try:
            period = parse_period(query["period"], zone)
        except ValueError as error:
            return _bad("period", f"{error}.")
        return period.since, period.until
    found: dict[str, int | None] = {"since": None, "until": None}
    for name in found:
        if name in query:
            try:
                found[name] = to_micros(datetime.fromisoformat(query[name]))
            except ValueError:
                return _bad(name, f"`{name}` must be a moment such as 2026-10-05 or 2026-10-05T12:00:00Z.")
    since, until = found["since"], found["until"]
    if since is not None and until is not None and since > until:
        return _bad("until", "`until` is earlier than `since`.")
    return since, until


def _bad(param: str, message: str) -> BadRequest:
    return BadRequest("invalid_parameter", message, param)


def answer(place: LiveLedger, asked: Asked) -> UsageAnswer:
    """Read the ledger. For a thread. Raises `LedgerUnavailable`."""
    content_type = CSV if asked.form == "csv" else JSON_LINES
    match asked.question:
        case UsageQuestion() as question:
            document = usage_report(place, question)
            table = next(one for one in document.tables if one.name == asked.table)
            return UsageAnswer(render_csv(table) if asked.form == "csv" else render_lines(table), content_type)
        case AttemptsQuestion() as question:
            lines = attempt_csv(place, question) if asked.form == "csv" else attempt_lines(place, question)
            return UsageAnswer(_filed(lines), content_type)


def _filed(lines: Generator[bytes, None, None]) -> bytes | mmap:
    """The ledger is read to its end before the first byte leaves, so that a slow reader holds no snapshot of it open
    and nobody else's turn up; the answer waits in a nameless file, of which only what is being sent is in memory."""
    try:
        with tempfile.TemporaryFile() as file, closing(lines):  # here, in this thread: it holds a database
            size = 0
            for line in lines:
                size += len(line)
                if size > MAX_ANSWER_BYTES:
                    raise LedgerUnavailable(
                        f"the answer would be larger than {MAX_ANSWER_BYTES} bytes: ask for a shorter period"
                    )
                file.write(line)
            file.flush()
            return mmap(file.fileno(), 0, access=ACCESS_READ) if size else b""
    except OSError as error:
        raise LedgerUnavailable(f"the answer cannot be written to a temporary file: {error}") from error
