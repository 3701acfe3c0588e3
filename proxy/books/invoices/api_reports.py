"""Usage and cost reports of OpenAI's and Anthropic's own APIs, as JSON pages.

Sources: platform.openai.com/docs/api-reference/usage (organization/usage/completions, organization/costs);
platform.claude.com/docs/en/api/admin (usage_report/messages, cost_report). Days are UTC. Several pages may be in one
file, one a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal

from proxy.books.invoice import InvoiceLine, PartKind
from proxy.books.invoices.building import Parts
from proxy.books.invoices.figures import moment, money, number

_CENT = Decimal("0.01")
_OPENAI_ITEMS = {"input": PartKind.INPUT, "cached input": PartKind.CACHE_READ, "output": PartKind.OUTPUT}
_ANTHROPIC_TOKENS = {
    "uncached_input_tokens": PartKind.INPUT,
    "cache_read_input_tokens": PartKind.CACHE_READ,
    "output_tokens": PartKind.OUTPUT,
}

Page = Mapping[str, object]


def is_openai_usage(page: object) -> bool:
    return _object_of(page).startswith("organization.usage.")


def is_openai_costs(page: object) -> bool:
    return _object_of(page) == "organization.costs.result"


def is_anthropic_usage(page: object) -> bool:
    return "uncached_input_tokens" in _first(page)


def is_anthropic_costs(page: object) -> bool:
    first = _first(page)
    return "amount" in first and ("cost_type" in first or "token_type" in first)


def _first(page: object) -> Mapping[str, object]:
    if isinstance(page, dict):
        for bucket in _list(page.get("data")):
            for result in _list(bucket.get("results")):
                return result
    return {}


def _object_of(page: object) -> str:
    return str(_first(page).get("object", ""))


def _list(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def results(place: str, page: object) -> Iterator[tuple[str, tuple[Page, Page]]]:
    """Each result with its bucket and its place (a JSON pointer behind the file's name)."""
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise ValueError("has no list `data` of buckets")
    for number_of, bucket in enumerate(_list(page["data"])):
        for at, result in enumerate(_list(bucket.get("results"))):
            yield f"{place}/data/{number_of}/results/{at}", (bucket, result)


def _count(value: object) -> int:
    return 0 if value is None else int(number(value))


def openai_usage(place: str, row: tuple[Page, Page]) -> Iterator[InvoiceLine]:
    """Input holds what a cache gave."""
    bucket, result = row
    parts = Parts()
    cached = _count(result.get("input_cached_tokens"))
    asked = _count(result.get("input_tokens"))
    if cached > asked:
        raise ValueError(f"input_cached_tokens {cached} are more than the input_tokens {asked}")
    parts.add(PartKind.INPUT, asked - cached)
    parts.add(PartKind.CACHE_READ, cached)
    parts.add(PartKind.OUTPUT, _count(result.get("output_tokens")))
    begins, ends = _span(bucket, "start_time", "end_time")
    requests = result.get("num_model_requests")
    yield InvoiceLine(
        place,
        tuple(parts.found),
        _text(result.get("model")),
        begins,
        ends,
        requests=None if requests is None else _count(requests),
        tier="batch" if result.get("batch") is True else _text(result.get("service_tier")),
    )


def openai_costs(place: str, row: tuple[Page, Page]) -> Iterator[InvoiceLine]:
    """A line item is `gpt-4o-2024-08-06, cached input`, or no matter of tokens."""
    bucket, result = row
    amount = result.get("amount")
    if not isinstance(amount, dict) or amount.get("value") is None:
        raise ValueError("has no amount.value")
    nanos, digit = money(amount["value"])
    begins, ends = _span(bucket, "start_time", "end_time")
    item = _text(result.get("line_item")) or ""
    model, _, what = item.rpartition(", ")
    kind = _OPENAI_ITEMS.get(what.strip().lower(), PartKind.OTHER) if model else PartKind.OTHER
    if not item:
        kind = PartKind.ALL
    parts = Parts()
    parts.add_money(kind, nanos, digit)
    currency = str(amount.get("currency") or "usd").upper()
    yield InvoiceLine(
        place, tuple(parts.found), model or None, begins, ends, currency=currency, precision=_fine(parts.precision)
    )


def anthropic_usage(place: str, row: tuple[Page, Page]) -> Iterator[InvoiceLine]:
    """Cache writes are of two lifetimes, which are added up."""
    bucket, result = row
    parts = Parts()
    for name, kind in _ANTHROPIC_TOKENS.items():
        parts.add(kind, _count(result.get(name)))
    created = result.get("cache_creation")
    if isinstance(created, dict):
        parts.add(PartKind.CACHE_WRITE, sum(_count(value) for value in created.values()))
    begins, ends = _span(bucket, "starting_at", "ending_at")
    yield InvoiceLine(
        place, tuple(parts.found), _text(result.get("model")), begins, ends, tier=_text(result.get("service_tier"))
    )


def anthropic_costs(place: str, row: tuple[Page, Page]) -> Iterator[InvoiceLine]:
    """Amounts are cents, as decimal texts."""
    bucket, result = row
    nanos, digit = money(result.get("amount"), _CENT)
    kind = PartKind.ALL
    if (token_type := _text(result.get("token_type"))) is not None:
        written = PartKind.CACHE_WRITE if token_type.startswith("cache_creation") else PartKind.OTHER
        kind = _ANTHROPIC_TOKENS.get(token_type, written)
    elif result.get("cost_type") not in (None, "tokens"):
        kind = PartKind.OTHER
    parts = Parts()
    parts.add_money(kind, nanos, digit)
    begins, ends = _span(bucket, "starting_at", "ending_at")
    yield InvoiceLine(
        place,
        tuple(parts.found),
        _text(result.get("model")),
        begins,
        ends,
        currency=str(result.get("currency") or "USD").upper(),
        tier=_text(result.get("service_tier")),
        precision=_fine(parts.precision),
    )


def _span(bucket: Page, first: str, last: str) -> tuple[datetime, datetime | None]:
    if bucket.get(first) is None:
        raise ValueError(f"its bucket has no {first}")
    ends = bucket.get(last)
    return moment(bucket[first]), None if ends is None else moment(ends)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _fine(digit: int | None) -> int | None:
    """JSON writes a number with as many digits as it needs: 0.06 may be a rounded 0.0600004 as well as itself, but what
    was cut off is less than a ten-thousandth of the unit."""
    return None if digit is None else min(digit, 100_000)
