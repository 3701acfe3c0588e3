"""Activity exports of DeepSeek's and OpenRouter's own platforms, as CSV or JSON.

Sources: platform.deepseek.com/usage (a zip with amount-*.csv and cost-*.csv: a row for each type of figure, days UTC);
openrouter.ai/docs (activity export: a row for each generation; the activity API: a row for each model and day, UTC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proxy.books.invoice import InvoiceLine, Part, PartKind
from proxy.books.invoices.building import Parts, cell, needed
from proxy.books.invoices.figures import day, moment, money, number

Row = Mapping[str, str]

_DEEPSEEK = {
    "input_cache_miss_tokens": PartKind.INPUT,
    "input_cache_hit_tokens": PartKind.CACHE_READ,
    "output_tokens": PartKind.OUTPUT,
}


def deepseek_amount(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A row is one type of figure, of a key on a day. Its price is shown, and is no charge."""
    kind = needed(row, "type")
    count = int(number(needed(row, "amount")))
    at = day(needed(row, "utc_date"))
    model = needed(row, "model")
    if kind == "request_count":
        # a line without a part would not be seen
        yield InvoiceLine(place, (Part(PartKind.OUTPUT, 0),), model, day=at, requests=count)
    elif kind in _DEEPSEEK:
        parts = Parts()
        parts.add(_DEEPSEEK[kind], count)
        yield InvoiceLine(place, tuple(parts.found), model, day=at)
    else:
        raise ValueError(f"the type {kind!r} is not known; known are request_count, {', '.join(_DEEPSEEK)}")


def deepseek_cost(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A row is a model on a day; one amount for everything."""
    nanos, digit = money(needed(row, "cost"))
    parts = Parts()
    parts.add_money(PartKind.ALL, nanos, digit)
    yield InvoiceLine(
        place,
        tuple(parts.found),
        needed(row, "model"),
        day=day(needed(row, "utc_date")),
        currency=needed(row, "currency").upper(),
        precision=digit,
    )


def openrouter(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A row is one generation, by the id that its answer had. The prompt holds what a cache gave, the completion its
    reasoning. What a search or a file costs is told apart from the tokens."""
    asked = int(number(needed(row, "tokens_prompt")))
    cached = int(number(cell(row, "tokens_cached") or 0))
    if cached > asked:
        raise ValueError(f"tokens_cached {cached} are more than tokens_prompt {asked}")
    parts = Parts()
    parts.add(PartKind.INPUT, asked - cached)
    if "tokens_cached" in row:
        parts.add(PartKind.CACHE_READ, cached)
    parts.add(PartKind.OUTPUT, needed(row, "tokens_completion"))
    whole, digit = money(needed(row, "cost_total"))
    extra = sum(money(row[name])[0] for name in ("cost_web_search", "cost_file_processing") if cell(row, name))
    parts.add_money(PartKind.ALL, whole - extra, digit)
    if extra:
        parts.add_money(PartKind.OTHER, extra, digit)
    yield InvoiceLine(
        place,
        tuple(parts.found),
        needed(row, "model_permaslug", "model"),
        moment(needed(row, "created_at")),
        request_id=needed(row, "generation_id"),
        requests=1,
        currency="USD",
        precision=digit,
    )


def is_openrouter_activity(page: object) -> bool:
    rows = page.get("data") if isinstance(page, dict) else None
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and "model_permaslug" in rows[0]


def openrouter_rows(place: str, page: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise ValueError("has no list `data`")
    for number_of, row in enumerate(page["data"]):
        if isinstance(row, dict):
            yield f"{place}/data/{number_of}", row


def openrouter_activity(place: str, row: Mapping[str, object]) -> Iterator[InvoiceLine]:
    """A model on a day."""
    nanos, digit = money(row.get("usage"))
    parts = Parts()
    parts.add(PartKind.INPUT, row.get("prompt_tokens"))
    parts.add(PartKind.OUTPUT, row.get("completion_tokens"))
    parts.add_money(PartKind.ALL, nanos, digit)
    yield InvoiceLine(
        place,
        tuple(parts.found),
        str(row.get("model_permaslug") or row.get("model")),
        day=day(row.get("date")),
        requests=int(number(row.get("requests"))),
        currency="USD",
        precision=digit,
    )
