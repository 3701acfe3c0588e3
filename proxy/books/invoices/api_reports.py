"""Usage and cost reports of OpenAI's and Anthropic's own APIs, as JSON pages.

Sources: platform.openai.com/docs/api-reference/usage (organization/usage/completions and its like,
organization/costs); platform.claude.com/docs/en/api/admin (usage_report/messages, cost_report). Days are UTC. Several
pages may be in one file: one a line, or a list of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from proxy.books.invoice import InvoiceLine, PartKind
from proxy.books.invoices.building import Parts, is_empty
from proxy.books.invoices.figures import moment, money, whole

_CENT: Final = Decimal("0.01")
_ANTHROPIC_TOKENS: Final = {
    "uncached_input_tokens": PartKind.INPUT,
    "cache_read_input_tokens": PartKind.CACHE_READ,
    "output_tokens": PartKind.OUTPUT,
}

Page = Mapping[str, object]


def is_openai_usage(page: object) -> bool:
    return _object_of(page).startswith("organization.usage.")


def is_openai_costs(page: object) -> bool:
    first = _first(page)
    return _object_of(page).startswith("organization.costs") or isinstance(first.get("amount"), dict)


def is_anthropic_usage(page: object) -> bool:
    return "uncached_input_tokens" in _first(page)


def is_anthropic_costs(page: object) -> bool:
    first = _first(page)
    return isinstance(first.get("amount"), str) and not {"cost_type", "currency"}.isdisjoint(first)


def is_empty_page(page: object) -> bool:
    """A page of buckets of which none has results."""
    pages = _pages(page)
    return bool(pages) and all(isinstance(one.get("data"), list) for one in pages) and not _first(page)


def _pages(page: object) -> list[Page]:
    return [one for one in (page if isinstance(page, list) else [page]) if isinstance(one, dict)]


def _first(page: object) -> Page:
    for one in _pages(page):
        for bucket in _objects(one.get("data")):
            for result in _objects(bucket.get("results")):
                return result
    return {}


def _object_of(page: object) -> str:
    return str(_first(page).get("object", ""))


def _objects(value: object) -> list[Page]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def results(place: str, page: object) -> Iterator[tuple[str, tuple[Page, Page]]]:
    """Each result with its bucket and its place (a JSON pointer behind the file's name)."""
    if isinstance(page, list):
        for at, one in enumerate(page):
            yield from results(f"{place}/{at}", one)
        return
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise ValueError("has no list `data` of buckets")
    for number, bucket in enumerate(page["data"]):
        if not isinstance(bucket, dict) or not isinstance(bucket.get("results"), list):
            raise ValueError(f"data/{number} has no list `results`")
        for at, result in enumerate(bucket["results"]):
            if not isinstance(result, dict):
                raise ValueError(f"data/{number}/results/{at} is no object")
            yield f"{place}/data/{number}/results/{at}", (bucket, result)


def _count(result: Page, name: str) -> int | None:
    value = result.get(name)
    return None if value is None else whole(value, name)


# -- OpenAI -----------------------------------------------------------------------------------------------------------

#: `priority | gpt-5.6-sol, output, long context`, `gpt-audio-mini-2025-12-15 audio, input`.
_OPENAI_ITEM = re.compile(
    r"(?:(?P<tier>[\w -]+?) \| )?(?P<model>[^\s,|]+)(?: (?:text|audio|image))?, (?P<kind>[^,]+)(?:, (?P<more>.+))?"
)
_OPENAI_KINDS: Final = {
    "input": PartKind.INPUT,
    "cached input": PartKind.CACHE_READ,
    "cache write": PartKind.CACHE_WRITE,
    "cached input write": PartKind.CACHE_WRITE,
    "output": PartKind.OUTPUT,
}
#: A line item that is a model's name and no more; `web search tool calls` is none.
_OPENAI_MODEL = re.compile(r"[A-Za-z][\w.:-]*\d[\w.:-]*")


def openai_usage(place: str, row: tuple[Page, Page]) -> Iterator[InvoiceLine]:
    """Input holds what a cache gave and took. Results without tokens (images, seconds of sound, bytes kept) are no
    lines: the costs say what they were."""
    bucket, result = row
    asked, cached = _count(result, "input_tokens"), _count(result, "input_cached_tokens")
    written, made = _count(result, "input_cache_write_tokens"), _count(result, "output_tokens")
    taken = (cached or 0) + (written or 0)
    if taken > (asked or 0):
        raise ValueError(f"{taken} tokens of a cache are more than the input_tokens {asked}")
    parts = Parts()
    parts.add(PartKind.INPUT, None if asked is None else asked - taken, "input_tokens")
    parts.add(PartKind.CACHE_READ, cached, "input_cached_tokens")
    parts.add(PartKind.CACHE_WRITE, written, "input_cache_write_tokens")
    parts.add(PartKind.OUTPUT, made, "output_tokens")
    if parts.found:
        begins, ends = _span(bucket, "start_time", "end_time")
        yield InvoiceLine(
            place,
            tuple(parts.found),
            _text(result.get("model")),
            begins,
            ends,
            requests=_count(result, "num_model_requests"),
            tier="batch" if result.get("batch") is True else _text(result.get("service_tier")),
        )


def openai_costs(place: str, row: tuple[Page, Page]) -> Iterator[InvoiceLine]:
    """A line item is `gpt-4o-2024-08-06, cached input`, a model's name, or no matter of tokens."""
    bucket, result = row
    amount = result.get("amount")
    if not isinstance(amount, dict) or amount.get("value") is None:
        raise ValueError("has no amount.value")
    nanos, digit = money(amount["value"])
    begins, ends = _span(bucket, "start_time", "end_time")
    kind, model, tier = _openai_item((_text(result.get("line_item")) or "").strip())
    parts = Parts()
    parts.add_money(kind, nanos)
    yield InvoiceLine(
        place,
        tuple(parts.found),
        model,
        begins,
        ends,
        currency=str(amount.get("currency") or "usd").upper(),
        tier=tier,
        precision=_fine(digit),
    )


def _openai_item(item: str) -> tuple[PartKind, str | None, str | None]:
    if not item:
        return PartKind.ALL, None, None
    if _OPENAI_MODEL.fullmatch(item):
        return PartKind.ALL, item, None
    found = _OPENAI_ITEM.fullmatch(item)
    kind = None if found is None else _OPENAI_KINDS.get(found["kind"].strip().lower())
    if found is None or kind is None:
        return PartKind.OTHER, None, None
    return kind, found["model"], ", ".join(one for one in (found["tier"], found["more"]) if one) or None


# -- Anthropic --------------------------------------------------------------------------------------------------------


def anthropic_usage(place: str, row: tuple[Page, Page]) -> Iterator[InvoiceLine]:
    """Cache writes are of two lifetimes, which are added up."""
    bucket, result = row
    parts = Parts()
    for name, kind in _ANTHROPIC_TOKENS.items():
        parts.add(kind, result.get(name), name)
    created = result.get("cache_creation")
    if isinstance(created, dict):
        written = [whole(value, name) for name, value in created.items() if not is_empty(value)]
        parts.add(PartKind.CACHE_WRITE, sum(written) if written else None, "cache_creation")
    if not parts.found:
        raise ValueError(f"has none of {', '.join(_ANTHROPIC_TOKENS)}")
    begins, ends = _span(bucket, "starting_at", "ending_at")
    yield InvoiceLine(place, tuple(parts.found), _text(result.get("model")), begins, ends, tier=_anthropic_tier(result))


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
    parts.add_money(kind, nanos)
    begins, ends = _span(bucket, "starting_at", "ending_at")
    yield InvoiceLine(
        place,
        tuple(parts.found),
        _text(result.get("model")),
        begins,
        ends,
        currency=str(result.get("currency") or "USD").upper(),
        tier=_anthropic_tier(result),
        precision=_fine(digit),
    )


def _anthropic_tier(result: Page) -> str | None:
    """`batch`, and a context beyond the usual; `standard` is none."""
    tier, window = _text(result.get("service_tier")), _text(result.get("context_window"))
    told = (None if tier == "standard" else tier, None if window in (None, "0-200k") else f"context {window}")
    return ", ".join(one for one in told if one) or None


def _span(bucket: Page, first: str, last: str) -> tuple[datetime, datetime | None]:
    if bucket.get(first) is None:
        raise ValueError(f"its bucket has no {first}")
    ends = bucket.get(last)
    return moment(bucket[first]), None if ends is None else moment(ends)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _fine(digit: int) -> int:
    """A number is written with as many digits as it needs: 0.06 may be a rounded 0.0600004 as well as itself, but what
    was cut off is less than a ten-thousandth of the unit."""
    return min(digit, 100_000)
