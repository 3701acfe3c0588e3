"""Exports of DeepSeek's and OpenRouter's own platforms, as CSV or JSON.

Sources: platform.deepseek.com/usage (a zip with `amount-…csv` and `cost-…csv`: a row for each type of figure, of a key
on a day; older exports name the day `utc_date`, newer ones its bounds in a zone that was chosen); openrouter.ai/docs
(activity export: a row for each generation; api-reference/analytics: a row for each model and day, UTC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from proxy.books.invoice import InvoiceLine, Part, PartKind
from proxy.books.invoices.building import Parts, cell, needed, without_fees
from proxy.books.invoices.figures import day, moment, money, whole

Row = Mapping[str, str]

# -- DeepSeek ---------------------------------------------------------------------------------------------------------

DEEPSEEK_DAY: Final = ("utc_date", "start_time_iso")
_DEEPSEEK: Final = {
    "input_cache_miss_tokens": PartKind.INPUT,
    "input_cache_hit_tokens": PartKind.CACHE_READ,
    "output_tokens": PartKind.OUTPUT,
}


def deepseek_amount(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A row is one type of figure, of a key on a day. Its price is shown, and is no charge."""
    kind = needed(row, "type")
    count = whole(needed(row, "amount"), "amount")
    on, model = day(needed(row, *DEEPSEEK_DAY)), needed(row, "model")
    if kind == "request_count":
        # a line without a part would not be seen
        yield InvoiceLine(place, (Part(PartKind.OUTPUT, 0),), model, day=on, requests=count)
    elif kind in _DEEPSEEK:
        yield InvoiceLine(place, (Part(_DEEPSEEK[kind], count),), model, day=on)
    else:
        raise ValueError(f"the type {kind[:60]!r} is not known; known are request_count, {', '.join(_DEEPSEEK)}")


def deepseek_cost(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A row is a model on a day, paid from one wallet; one amount for everything."""
    nanos, digit = money(needed(row, "cost"))
    yield InvoiceLine(
        place,
        (Part(PartKind.ALL, None, nanos),),
        needed(row, "model"),
        day=day(needed(row, *DEEPSEEK_DAY)),
        currency=needed(row, "currency").upper(),
        precision=digit,
    )


def deepseek_zone(row: Row) -> str | None:
    """The zone whose days an export is cut in, by its first row; None where its offset is no zone's name."""
    begins = cell(row, "start_time_iso")
    if begins is None:
        return "UTC"
    offset = moment(begins).utcoffset() or timedelta(0)
    hours, rest = divmod(offset, timedelta(hours=1))
    if rest:
        return None
    # the platform's own days; IANA writes the others with the sign of the way back to UTC
    return "UTC" if hours == 0 else "Asia/Shanghai" if hours == 8 else f"Etc/GMT{-hours:+d}"


# -- OpenRouter -------------------------------------------------------------------------------------------------------


def openrouter(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A row is one generation, by the id that its answer had. The prompt holds what a cache gave, the completion its
    reasoning. What a search or a file costs is a line of its own."""
    asked = whole(needed(row, "native_tokens_prompt", "tokens_prompt"), "tokens_prompt")
    said = cell(row, "native_tokens_cached", "tokens_cached")
    cached = 0 if said is None else whole(said, "tokens_cached")
    if cached > asked:
        raise ValueError(f"tokens_cached {cached} are more than tokens_prompt {asked}")
    parts = Parts([Part(PartKind.INPUT, asked - cached)])
    if said is not None:
        parts.found.append(Part(PartKind.CACHE_READ, cached))
    parts.add(PartKind.OUTPUT, needed(row, "native_tokens_completion", "tokens_completion"), "tokens_completion")
    charged, digit = money(needed(row, "cost_total"))
    extra = sum(money(row[name])[0] for name in ("cost_web_search", "cost_file_processing") if cell(row, name))
    parts.add_money(PartKind.ALL, charged - extra)
    if extra:
        parts.add_money(PartKind.OTHER, extra)
    line = InvoiceLine(
        place,
        tuple(parts.found),
        needed(row, "model_permaslug", "model"),
        moment(needed(row, "created_at")),
        request_id=needed(row, "generation_id"),
        requests=1,
        currency="USD",
        tier=cell(row, "variant"),
        precision=digit,
    )
    yield from without_fees(line)


def is_openrouter_activity(page: object) -> bool:
    rows = page.get("data") if isinstance(page, dict) else None
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and "model_permaslug" in rows[0]


def openrouter_rows(place: str, page: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise ValueError("has no list `data`")
    for at, row in enumerate(page["data"]):
        if not isinstance(row, dict):
            raise ValueError(f"data/{at} is no object")
        yield f"{place}/data/{at}", row


def openrouter_activity(place: str, row: Mapping[str, object]) -> Iterator[InvoiceLine]:
    """A model on a day."""
    nanos, digit = money(row.get("usage"))
    parts = Parts()
    parts.add(PartKind.INPUT, row.get("prompt_tokens"), "prompt_tokens")
    parts.add(PartKind.OUTPUT, row.get("completion_tokens"), "completion_tokens")
    parts.add_money(PartKind.ALL, nanos)
    model = row.get("model_permaslug") or row.get("model")
    if not isinstance(model, str):
        raise ValueError("has no model_permaslug")
    requests = row.get("requests")
    yield InvoiceLine(
        place,
        tuple(parts.found),
        model,
        day=day(row.get("date")),
        requests=None if requests is None else whole(requests, "requests"),
        currency="USD",
        precision=digit,
    )
