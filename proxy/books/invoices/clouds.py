"""Cost exports of Azure, Google Cloud and AWS, as CSV.

Sources: learn.microsoft.com/azure/cost-management-billing (cost and usage details); cloud.google.com/billing/docs
(standard usage export; its days are US Pacific); docs.aws.amazon.com/cur (CUR 1.0 `lineItem/…`, CUR 2.0 `line_item_…`)
and docs.aws.amazon.com/bedrock/latest/userguide/cost-mgmt-understanding-cur-data.html (usage types of tokens). Meters
are named for people: which kind of token one means is told by its words, and what is none of them is no token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from proxy.books.invoice import InvoiceLine, PartKind
from proxy.books.invoices.building import Parts, cell, needed
from proxy.books.invoices.figures import day, moment, money, tokens

Row = Mapping[str, str]

_THOUSAND, _MILLION = 1_000, 1_000_000
_UNITS = re.compile(r"\b(?P<count>\d+)?\s*(?P<scale>[KMkm])\b|\b(?P<words>\d{4,})\b")


def kind_of(words: str) -> PartKind:
    """What a meter or a usage type counts."""
    text = re.sub(r"[-_.]+", " ", words.lower())
    if re.search(r"\bcach(e|ed|ing)\b|\bcchd\b", text):
        if re.search(r"\b(write|writes|creation|storage)\b", text):
            return PartKind.OTHER if "storage" in text else PartKind.CACHE_WRITE
        if re.search(r"\b(input|inp|read|reads|in)\b", text):
            return PartKind.CACHE_READ
    if re.search(r"\b(output|outp|opt|out|response|completion)\b", text):
        return PartKind.OUTPUT
    return PartKind.INPUT if re.search(r"\b(input|inp|in|prompt)\b", text) else PartKind.OTHER


def unit_of(words: str | None) -> int:
    """How many tokens one of a quantity is: `1K`, `1M`, `1000`, `1M Tokens`; 1 where nothing is said."""
    found = _UNITS.search(words or "")
    if found is None:
        return 1
    if found["words"]:
        return int(found["words"])
    scale = _THOUSAND if found["scale"].lower() == "k" else _MILLION
    return int(found["count"] or 1) * scale


# -- Azure ------------------------------------------------------------------------------------------------------------

AZURE = ("MeterName", "Quantity")
#: A meter such as `gpt 4o 0806 Inp glbl Tokens`: what is left without the words of its kind is the model.
_AZURE_WORDS = re.compile(
    r"\b(inp|input|opt|outp|output|out|cached|cchd|cache|glbl|global|regnl|regional|data|zone|dz|dzone|batch|tokens?|"
    r"std|1[km])\b",
    re.IGNORECASE,
)


def azure(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A line is a meter on a day. Days are UTC."""
    meter = needed(row, "MeterName", "meterName", "Meter Name")
    amount = needed(row, "CostInBillingCurrency", "costInBillingCurrency", "PreTaxCost", "Cost", "cost")
    quantity = needed(row, "Quantity", "quantity", "UsageQuantity")
    unit = cell(row, "UnitOfMeasure", "unitOfMeasure", "MeterUnit")
    kind = kind_of(meter)
    parts = Parts()
    nanos, digit = money(amount)
    parts.add_money(kind, nanos, digit, None if kind is PartKind.OTHER else tokens(quantity, unit_of(unit)))
    currency = cell(row, "BillingCurrency", "BillingCurrencyCode", "billingCurrency", "Currency")
    yield InvoiceLine(
        place,
        tuple(parts.found),
        azure_model(meter) if kind is not PartKind.OTHER else None,
        day=day(needed(row, "Date", "date", "UsageDateTime", "UsageDate")),
        currency=None if currency is None else currency.upper(),
        tier="batch" if "batch" in meter.lower() else None,
        precision=digit,
    )


def azure_model(meter: str) -> str:
    """`gpt 4o 0806 Inp glbl Tokens` is `gpt-4o-0806`; the year stands in no meter."""
    bare = " ".join(_AZURE_WORDS.sub(" ", meter.replace("-", " ")).split())
    return re.sub(r"\s+", "-", bare.lower())


# -- Google -----------------------------------------------------------------------------------------------------------

GOOGLE_ZONE = "America/Los_Angeles"
_GOOGLE_MODEL = re.compile(r"gemini[ -](\d+(?:\.\d+)?)[ -](pro|flash(?:[ -]lite)?|nano|ultra)", re.IGNORECASE)


def google(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A line is a SKU for a span; credits are lines of their own or a column."""
    sku = needed(row, "sku.description", "sku_description", "SKU description", "Sku description")
    parts = Parts()
    kind = kind_of(sku)
    nanos, digit = money(needed(row, "cost", "Cost", "Cost ($)", "Subtotal ($)", "Unrounded cost ($)"))
    if (credit := cell(row, "credits.amount", "credits_amount", "Credits ($)", "Discounts ($)")) is not None:
        nanos += money(credit)[0]
    amount = cell(row, "usage.amount", "usage_amount", "Usage amount")
    unit = cell(row, "usage.unit", "usage_unit", "Usage unit")
    count = None if kind is PartKind.OTHER or amount is None else tokens(amount, unit_of(unit))
    parts.add_money(kind, nanos, digit, count)
    found = _GOOGLE_MODEL.search(sku)
    model = None if found is None else f"gemini-{found[1]}-{found[2].lower().replace(' ', '-')}"
    begins = cell(row, "usage_start_time", "Usage start time")
    currency = (cell(row, "currency", "Currency") or "USD").upper()
    yield InvoiceLine(
        place,
        tuple(parts.found),
        model,
        at=None if begins is None else moment(begins),
        day=None if begins is not None else day(needed(row, "Usage start date", "Usage date", "Date")),
        currency=currency,
        precision=digit,
    )


# -- AWS --------------------------------------------------------------------------------------------------------------

_AWS_REGION = re.compile(r"^[A-Z]{2,4}\d*-")
_AWS_KIND = re.compile(
    r"-(?:mantle-)?(?P<kind>cache-read-input-token-count|cache-write-input-token-count|input-tokens?|output-tokens?"
    r"|input-token-count|output-token-count)(?P<rest>-[\w-]+)?$",
    re.IGNORECASE,
)
_AWS_SKIPPED = frozenset(("Tax", "Credit", "Refund", "RIFee", "SavingsPlanRecurringFee", "Fee", "EdpDiscount"))


def aws(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A line is a usage type for an hour; amounts of tokens are in thousands."""
    product = cell(row, "lineItem/ProductCode", "line_item_product_code")
    if product is not None and "bedrock" not in product.lower():
        return
    nanos, digit = money(needed(row, "lineItem/UnblendedCost", "line_item_unblended_cost"))
    usage = needed(row, "lineItem/UsageType", "line_item_usage_type")
    line_type = cell(row, "lineItem/LineItemType", "line_item_line_item_type") or "Usage"
    found = _AWS_KIND.search(usage)
    parts = Parts()
    model = None
    if found is None or line_type in _AWS_SKIPPED:
        parts.add_money(PartKind.OTHER, nanos, digit)
    else:
        kind = {"i": PartKind.INPUT, "o": PartKind.OUTPUT}.get(found["kind"][0].lower(), PartKind.CACHE_READ)
        if found["kind"].lower().startswith("cache-write"):
            kind = PartKind.CACHE_WRITE
        model = _AWS_REGION.sub("", usage[: found.start()])
        unit = unit_of(cell(row, "pricing/unit", "pricing_unit") or "1K")
        amount = needed(row, "lineItem/UsageAmount", "line_item_usage_amount")
        parts.add_money(kind, nanos, digit, tokens(amount, unit))
    currency = cell(row, "lineItem/CurrencyCode", "line_item_currency_code") or "USD"
    yield InvoiceLine(
        place,
        tuple(parts.found),
        model,
        at=moment(needed(row, "lineItem/UsageStartDate", "line_item_usage_start_date")),
        currency=currency.upper(),
        precision=digit,
    )
