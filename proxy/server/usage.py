"""`/v1/usage`: a tenant's own figures, as JSON lines or CSV (contract C3, L4).

In: what the query asks, and who asks. Out: the rows of a usage report over this tenant alone, or a mistake that names
the wrong parameter. Reading is work for a thread. There is no way to ask for another tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from proxy.books.document import Table
from proxy.books.grouping import KEYS
from proxy.books.period import parse_period, parse_zone
from proxy.books.render.data import render_csv, render_lines
from proxy.books.source import LiveLedger
from proxy.books.usage_report import UsageQuestion, usage_report
from proxy.dialects.base import BadRequest
from proxy.stores.ledger_rows import to_micros

JSON_LINES: Final = "application/jsonl"
CSV: Final = "text/csv; charset=utf-8"
_KNOWN: Final = ("by", "period", "since", "until", "time_zone", "format", "table")
#: Of a tenant these say nothing new, or are the operator's own business.
_NOT_THEIRS: Final = frozenset(("tenant", "credential", "upstream"))
_FORMATS: Final = ("jsonl", "csv")
_TABLES: Final = ("usage", "open")


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that was understood."""

    question: UsageQuestion
    form: str
    table: str


def parse_query(query: Mapping[str, str], accept: str, tenant: str) -> Asked | BadRequest:
    """`accept` is the request's header, which decides where the query does not."""
    for name in query:
        if name not in _KNOWN:
            return _bad(name, f"There is no parameter `{name[:100]}`; there are {', '.join(_KNOWN)}.")
    form = query.get("format", "csv" if "text/csv" in accept else "jsonl")
    if form not in _FORMATS:
        return _bad("format", f"The format must be one of {', '.join(_FORMATS)}.")
    table = query.get("table", "usage")
    if table not in _TABLES:
        return _bad("table", f"The table must be one of {', '.join(_TABLES)}.")
    by = tuple(name.strip() for name in query.get("by", "model,day").split(",") if name.strip())
    theirs = [name for name in KEYS if name not in _NOT_THEIRS]
    if (odd := next((name for name in by if name not in theirs), None)) is not None:
        return _bad("by", f"Figures cannot be grouped by `{odd[:100]}`; there are {', '.join(theirs)}.")
    try:
        zone = parse_zone(query.get("time_zone", "UTC"))
    except ValueError as error:
        return _bad("time_zone", f"{error}.")
    bounds = _bounds(query, zone)
    if isinstance(bounds, BadRequest):
        return bounds
    try:
        question = UsageQuestion(by, *bounds, zone, {"tenant": (tenant,)})
    except ValueError as error:
        return _bad("by", f"{error}.")
    return Asked(question, form, table)


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
    return found["since"], found["until"]


def _bad(param: str, message: str) -> BadRequest:
    return BadRequest("invalid_parameter", message, param)


def answer(place: LiveLedger, asked: Asked) -> UsageAnswer:
    """Read the ledger. For a thread. Raises `LedgerUnavailable`."""
    document = usage_report(place, asked.question)
    table = next(one for one in document.tables if one.name == asked.table)
    return _rendered(table, asked.form)


def _rendered(table: Table, form: str) -> UsageAnswer:
    return UsageAnswer(render_csv(table), CSV) if form == "csv" else UsageAnswer(render_lines(table), JSON_LINES)
