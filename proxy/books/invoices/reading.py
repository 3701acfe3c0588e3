"""Which format an export is in, and its lines (contract C3).

In: paths (files, folders, zips), a vendor, perhaps the name of a format or a mapping. Out: one `Invoice` of all of
them, read as it is asked for. Raises `InvoiceError` for what cannot be read, with file, place, reason and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from proxy.books.invoice import Invoice, InvoiceLine
from proxy.books.invoices import api_reports, clouds, platforms
from proxy.books.invoices.building import lines_of
from proxy.books.invoices.files import Source, columns, refuse_wrong, rows, sources_of, values
from proxy.books.invoices.mapping import Mapped, load_mapping, reader, rows_in
from proxy.errors import InvoiceError

Read = Callable[[str, Any], Iterator[InvoiceLine]]


@dataclass(frozen=True, slots=True)
class _Csv:
    """A format by its heading: it has all of these columns, each by one of its names."""

    columns: tuple[tuple[str, ...], ...]
    read: Read
    time_zone: str
    says: tuple[bool, bool, bool]


@dataclass(frozen=True, slots=True)
class _Json:
    """A format by what its first document looks like."""

    looks: Callable[[object], bool]
    rows: Callable[[str, object], Iterator[tuple[str, Any]]]
    read: Read
    time_zone: str
    says: tuple[bool, bool, bool]


_Format = _Csv | _Json
_PAGES = api_reports.results
#: `says`: tokens, money, requests.
_FORMATS: Final[Mapping[str, _Format]] = {
    "openai-usage": _Json(api_reports.is_openai_usage, _PAGES, api_reports.openai_usage, "UTC", (True, False, True)),
    "openai-costs": _Json(api_reports.is_openai_costs, _PAGES, api_reports.openai_costs, "UTC", (False, True, False)),
    "anthropic-usage": _Json(
        api_reports.is_anthropic_usage, _PAGES, api_reports.anthropic_usage, "UTC", (True, False, False)
    ),
    "anthropic-costs": _Json(
        api_reports.is_anthropic_costs, _PAGES, api_reports.anthropic_costs, "UTC", (False, True, False)
    ),
    "openrouter-activity": _Json(
        platforms.is_openrouter_activity,
        platforms.openrouter_rows,
        platforms.openrouter_activity,
        "UTC",
        (True, True, True),
    ),
    "openrouter": _Csv(
        (("generation_id",), ("tokens_prompt",), ("cost_total",)), platforms.openrouter, "UTC", (True, True, True)
    ),
    "deepseek-amount": _Csv(
        (("utc_date",), ("type",), ("amount",)), platforms.deepseek_amount, "UTC", (True, False, True)
    ),
    "deepseek-cost": _Csv(
        (("utc_date",), ("cost",), ("currency",)), platforms.deepseek_cost, "UTC", (False, True, False)
    ),
    "aws": _Csv(
        (("lineItem/UsageType", "line_item_usage_type"), ("lineItem/UnblendedCost", "line_item_unblended_cost")),
        clouds.aws,
        "UTC",
        (True, True, False),
    ),
    "azure": _Csv(
        (("MeterName", "meterName", "Meter Name"), ("Quantity", "quantity", "UsageQuantity")),
        clouds.azure,
        "UTC",
        (True, True, False),
    ),
    "google": _Csv(
        (("sku.description", "sku_description", "SKU description", "Sku description"),),
        clouds.google,
        clouds.GOOGLE_ZONE,
        (True, True, False),
    ),
}
#: The names that `--form` takes.
FORMS: Final = tuple(_FORMATS)


def read_invoice(path: Path, vendor: str, *, form: str | None = None, mapping: Path | None = None) -> Invoice:
    """One export. See `read_invoices`."""
    return read_invoices([path], vendor, form=form, mapping=mapping)


def read_invoices(
    paths: Sequence[Path], vendor: str, *, form: str | None = None, mapping: Path | None = None
) -> Invoice:
    """All of them as one invoice. What a file is stands in it; `form` says it where it does not. Raises
    `InvoiceError`, now or while the lines are read, and `ConfigError` for a wrong mapping."""
    sources = [source for path in paths for source in sources_of(path)]
    if mapping is not None:
        return _mapped(sources, load_mapping(mapping))
    found = [(source, *_format_of(source, form, vendor)) for source in sources]
    zones = sorted({one.time_zone for _, _, one in found})
    if len(zones) > 1:
        names = ", ".join(source.name for source, _, _ in found)
        raise InvoiceError(
            names, ((names, f"their days are cut in several zones ({', '.join(zones)}): give one kind"),)
        )
    lines: Iterable[InvoiceLine] = chain.from_iterable(_lines(source, one) for source, _, one in found)
    says = [any(one.says[place] for _, _, one in found) for place in range(3)]
    return Invoice(" and ".join(sorted({name for _, name, _ in found})), lines, zones[0], *says)


def _format_of(source: Source, form: str | None, vendor: str) -> tuple[str, _Format]:
    head = source.head()
    refuse_wrong(source, head)
    if form is not None:
        return form, _FORMATS[form]
    if head.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        _, first = next(iter(values(source)), ("", None))
        for name, one in _FORMATS.items():
            if isinstance(one, _Json) and one.looks(first):
                return name, one
        if _is_empty_page(first):
            raise source.fail("", "has no results: is the period right, and was it grouped by model?")
    else:
        names = set(columns(head))
        for name, one in _FORMATS.items():
            if isinstance(one, _Csv) and all(names & set(any_of) for any_of in one.columns):
                return name, one
        shown = ", ".join(columns(head)[:12])
        reason = f"is no export that is known here; its columns are {shown}"
        raise source.fail("", f"{reason}. {_what_to_do(vendor)}")
    raise source.fail("", f"is no export that is known here. {_what_to_do(vendor)}")


def _what_to_do(vendor: str) -> str:
    return (
        f"For {vendor} take one of {', '.join(FORMS)} (docs/invoices.md says where from), name it with --form, or "
        "describe the file with --mapping"
    )


def _is_empty_page(page: object) -> bool:
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        return False
    return all(isinstance(bucket, dict) and not bucket.get("results") for bucket in page["data"])


def _lines(source: Source, one: _Format) -> Iterator[InvoiceLine]:
    match one:
        case _Csv():
            yield from lines_of(source.name, rows(source), one.read)
        case _Json():
            yield from lines_of(source.name, _json_rows(source, one.rows), one.read)


def _json_rows(source: Source, of: Callable[[str, object], Iterator[tuple[str, Any]]]) -> Iterator[tuple[str, Any]]:
    for place, document in values(source):
        try:
            yield from of(place, document)
        except ValueError as error:
            raise InvoiceError(source.name, ((place, str(error)),)) from error


def _mapped(sources: Sequence[Source], mapped: Mapped) -> Invoice:
    read = reader(mapped)

    def lines(source: Source) -> Iterator[InvoiceLine]:
        refuse_wrong(source, source.head())
        if mapped.format == "csv":
            return lines_of(source.name, rows(source, mapped.delimiter), read)
        return lines_of(source.name, _json_rows(source, lambda place, one: rows_in(mapped, place, one)), read)

    return Invoice(
        "mapping",
        chain.from_iterable(map(lines, sources)),
        mapped.time_zone,
        says_tokens=bool(mapped.tokens.model_fields_set),
        says_money=bool(mapped.amounts.model_fields_set),
        says_requests=mapped.requests is not None or mapped.request_id is not None,
    )
