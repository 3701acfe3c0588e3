"""Cost exports of Azure, Google Cloud and AWS, as CSV: the lines of them that are of models.

Sources: learn.microsoft.com/azure/cost-management-billing/dataset-schema (cost and usage details, actual cost);
cloud.google.com/billing/docs (standard usage export; cost table; its days are US Pacific); docs.aws.amazon.com/cur
(CUR 1.0 `lineItem/…`, CUR 2.0 `line_item_…`). An export is of everything that an account has: lines of other services
are passed over; a tax, a credit or a refund of a model's service is a line that is no tokens. What a meter counts, and
of which model, is in `meters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from proxy.books.invoice import InvoiceLine, PartKind
from proxy.books.invoices.building import Parts, cell, needed
from proxy.books.invoices.figures import day, moment, money, tokens
from proxy.books.invoices.files import parsed
from proxy.books.invoices.meters import aws_meter, azure_meter, google_meter, unit_of

Row = Mapping[str, str]

# -- Azure ------------------------------------------------------------------------------------------------------------

AZURE: Final = (("MeterName", "meterName", "Meter Name"), ("Quantity", "quantity", "UsageQuantity", "ConsumedQuantity"))
_AZURE_SERVICES = re.compile(r"cognitive|openai|foundry|\bai\b|saas", re.IGNORECASE)


def azure(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A line is a meter on a day. Days are UTC."""
    meter_name = needed(row, *AZURE[0])
    category = cell(row, "MeterCategory", "meterCategory", "Meter Category", "ConsumedService", "consumedService")
    product = cell(row, "MeterSubCategory", "MeterSubcategory", "meterSubCategory", "ProductName", "productName") or ""
    meter = azure_meter(meter_name, product)
    if category is not None and not _AZURE_SERVICES.search(category):
        return
    if category is not None and category.lower() == "saas" and meter.kind is PartKind.OTHER:
        return
    amount, currency = _azure_cost(row)
    charge = (cell(row, "ChargeType", "chargeType") or "usage").lower()
    kind = meter.kind if charge in ("usage", "purchase") else PartKind.OTHER
    nanos, digit = money(amount)
    unit = cell(row, "UnitOfMeasure", "unitOfMeasure", "Unit of Measure", "MeterUnit")
    count = None if kind is PartKind.OTHER else tokens(needed(row, *AZURE[1]), unit_of(unit))
    parts = Parts()
    parts.add_money(kind, nanos, count)
    yield InvoiceLine(
        place,
        tuple(parts.found),
        None if kind is PartKind.OTHER else meter.model,
        day=day(needed(row, "Date", "date", "UsageDateTime", "usageDateTime", "UsageDate")),
        currency=currency,
        tier=meter.tier,
        precision=digit,
    )


def _azure_cost(row: Row) -> tuple[str, str]:
    """What is billed, in the billing currency; older exports have one cost and one currency."""
    billed = cell(row, "CostInBillingCurrency", "costInBillingCurrency", "PreTaxCost", "preTaxCost", "Cost", "cost")
    names = ("BillingCurrency", "BillingCurrencyCode", "billingCurrency", "billingCurrencyCode", "Currency", "currency")
    if billed is None:
        raise ValueError("the column CostInBillingCurrency, PreTaxCost or Cost is empty")
    return billed, needed(row, *names).upper()


# -- Google -----------------------------------------------------------------------------------------------------------

GOOGLE_ZONE: Final = "America/Los_Angeles"
GOOGLE: Final = (("sku.description", "sku_description", "SKU description", "Sku description"),)
_GOOGLE_SERVICES = re.compile(
    r"gemini|vertex|generative|agent platform|claude|mistral|llama|deepseek|qwen", re.IGNORECASE
)
_GOOGLE_COST = re.compile(r"^(?P<exact>unrounded )?(?:cost|subtotal)(?: \((?P<unit>[^)]+)\))?$", re.IGNORECASE)
_GOOGLE_FEES: Final = ("tax", "rounding_error", "rounding error", "adjustment", "credit", "discount")
_TOTAL = re.compile(r"\b(?:sub)?total\b", re.IGNORECASE)


def google(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A line is a SKU for a day or a span; a credit is a line of its own or stands beside it."""
    sku = cell(row, *GOOGLE[0])
    cost_type = (cell(row, "cost_type", "Cost type") or "regular").lower()
    is_fee = cost_type.startswith(_GOOGLE_FEES)
    if sku is None and not is_fee:
        if any(_TOTAL.search(value) for value in row.values()):
            return
        raise ValueError(f"the column {' or '.join(GOOGLE[0])} is empty")
    service = cell(row, "service.description", "service_description", "Service description")
    if service is not None and not _GOOGLE_SERVICES.search(service) and cost_type != "tax":
        return
    meter = google_meter(sku or cost_type)
    kind = PartKind.OTHER if is_fee else meter.kind
    nanos, digit = money(needed(row, *_google_cost(tuple(row))))
    nanos += _google_credits(row)
    amount = cell(row, "usage.amount", "usage_amount", "Usage amount")
    unit = cell(row, "usage.unit", "usage_unit", "Usage unit") or ""
    is_tokens = kind is not PartKind.OTHER and "char" not in unit.lower()
    parts = Parts()
    parts.add_money(kind, nanos, tokens(amount, unit_of(unit)) if is_tokens and amount is not None else None)
    begins, ends = cell(row, "usage_start_time", "Usage start time"), cell(row, "usage_end_time", "Usage end time")
    yield InvoiceLine(
        place,
        tuple(parts.found),
        None if kind is PartKind.OTHER else meter.model,
        at=None if begins is None else moment(begins),
        until=None if begins is None or ends is None else moment(ends),
        day=None if begins is not None else day(needed(row, "Usage start date", "usage_date", "Usage date", "Date")),
        currency=needed(row, "currency", "Currency").upper(),
        tier=meter.tier,
        precision=digit,
    )


@lru_cache(maxsize=64)
def _google_cost(names: tuple[str, ...]) -> tuple[str, ...]:
    """Which columns may hold the cost, the exact one first."""
    found = [(name, match) for name in names if (match := _GOOGLE_COST.match(name)) is not None]
    return tuple(name for name, _ in sorted(found, key=lambda one: one[1]["exact"] is None)) or ("cost",)


def _google_credits(row: Row) -> int:
    """A list in JSON in an export of the table, an amount in a console's."""
    listed = cell(row, "credits")
    if listed is not None and listed.startswith("["):
        try:
            amounts = parsed(listed)
        except RecursionError:
            amounts = None
        if not isinstance(amounts, list) or not all(isinstance(one, dict) for one in amounts):
            raise ValueError(f"credits is {listed[:60]!r}, and must be a list of objects")
        return sum(money(one.get("amount"))[0] for one in amounts)
    told = cell(row, "credits.amount", "credits_amount", "Credits ($)", "Discounts ($)", "Credits", "Discounts")
    return 0 if told is None else money(told)[0]


# -- AWS --------------------------------------------------------------------------------------------------------------

AWS: Final = (
    ("lineItem/UsageType", "line_item_usage_type"),
    ("lineItem/UnblendedCost", "line_item_unblended_cost"),
)
_AWS_TOKENS: Final = ("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage")


def aws(place: str, row: Row) -> Iterator[InvoiceLine]:
    """A line is a usage type for an hour. Amounts are in thousands of tokens, or in millions: the unit says so, or else
    the kind of usage type does."""
    code = cell(row, "lineItem/ProductCode", "line_item_product_code") or ""
    product = cell(row, "product/ProductName", "product_product_name", "product/productName", "product_name") or ""
    usage = cell(row, *AWS[0])
    line_type = cell(row, "lineItem/LineItemType", "line_item_line_item_type") or "Usage"
    is_bedrock = "bedrock" in f"{code} {product}".lower() or not code
    if usage is None and line_type in _AWS_TOKENS and is_bedrock:
        raise ValueError(f"the column {' or '.join(AWS[0])} is empty")
    meter = aws_meter(usage or "", product)
    if not is_bedrock:
        return
    kind = meter.meter.kind if line_type in _AWS_TOKENS else PartKind.OTHER
    nanos, digit = money(needed(row, *AWS[1]))
    count = None if kind is PartKind.OTHER else _aws_tokens(row, meter.unit)
    parts = Parts()
    parts.add_money(kind, nanos, count)
    ends = cell(row, "lineItem/UsageEndDate", "line_item_usage_end_date")
    yield InvoiceLine(
        place,
        tuple(parts.found),
        None if kind is PartKind.OTHER else meter.meter.model,
        at=moment(needed(row, "lineItem/UsageStartDate", "line_item_usage_start_date")),
        until=None if ends is None else moment(ends),
        currency=needed(row, "lineItem/CurrencyCode", "line_item_currency_code").upper(),
        tier=meter.meter.tier,
        precision=digit,
    )


def _aws_tokens(row: Row, usual_unit: int) -> int:
    said = cell(row, "pricing/unit", "pricing_unit")
    # the marketplace's `Units` say no multiple
    unit = usual_unit if said is None or said.lower() in ("unit", "units") else unit_of(said)
    return tokens(needed(row, "lineItem/UsageAmount", "line_item_usage_amount"), unit)
