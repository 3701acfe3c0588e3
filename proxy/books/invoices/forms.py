"""The formats that are known, each by what its files look like (contract C3).

In: the beginning of a file, or its first JSON document. Out: the name and the reader of its format, or an
`InvoiceError` that says what the file is instead, or what it lacks. Never: a guess between two formats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from proxy.books.invoice import InvoiceLine
from proxy.books.invoices import api_reports, clouds, platforms
from proxy.books.invoices.files import Source, refuse_wrong, values
from proxy.books.invoices.tables import Heading, find_heading, first_columns, rows

Read = Callable[[str, Any], Iterator[InvoiceLine]]
#: Whether a format's lines say tokens, money, requests.
Says = tuple[bool, bool, bool]


@dataclass(frozen=True, slots=True)
class CsvForm:
    """A format by its heading: it has all of these columns, each by one of its names. `vendors` are those of the rule
    files whose invoices it is. `zone_of` tells the zone of a file's days by its first row."""

    columns: tuple[tuple[str, ...], ...]
    read: Read
    says: Says
    vendors: tuple[str, ...]
    zone_of: Callable[[Mapping[str, str]], str | None]

    def accepts(self, names: Collection[str]) -> bool:
        return all(any(name in names for name in any_of) for any_of in self.columns)


@dataclass(frozen=True, slots=True)
class JsonForm:
    """A format by what its first document looks like."""

    looks: Callable[[object], bool]
    rows: Callable[[str, object], Iterator[tuple[str, Any]]]
    read: Read
    says: Says
    vendors: tuple[str, ...]


Form = CsvForm | JsonForm


def _utc(_row: Mapping[str, str]) -> str:
    return "UTC"


def _pacific(_row: Mapping[str, str]) -> str:
    return clouds.GOOGLE_ZONE


_PAGES = api_reports.results
_GENERATION = (("generation_id",), ("tokens_prompt", "native_tokens_prompt"), ("cost_total",))
_TOKENS, _MONEY, _BOTH = (True, False, False), (False, True, False), (True, True, False)
_OPENROUTER: Final = ("openrouter",)
FORMS: Final[Mapping[str, Form]] = {
    "openai-usage": JsonForm(
        api_reports.is_openai_usage, _PAGES, api_reports.openai_usage, (True, False, True), ("openai",)
    ),
    "openai-costs": JsonForm(api_reports.is_openai_costs, _PAGES, api_reports.openai_costs, _MONEY, ("openai",)),
    "anthropic-usage": JsonForm(
        api_reports.is_anthropic_usage, _PAGES, api_reports.anthropic_usage, _TOKENS, ("anthropic",)
    ),
    "anthropic-costs": JsonForm(
        api_reports.is_anthropic_costs, _PAGES, api_reports.anthropic_costs, _MONEY, ("anthropic",)
    ),
    "openrouter-activity": JsonForm(
        platforms.is_openrouter_activity,
        platforms.openrouter_rows,
        platforms.openrouter_activity,
        (True, True, True),
        _OPENROUTER,
    ),
    "openrouter": CsvForm(_GENERATION, platforms.openrouter, (True, True, True), _OPENROUTER, _utc),
    "deepseek-amount": CsvForm(
        (platforms.DEEPSEEK_DAY, ("type",), ("amount",), ("model",)),
        platforms.deepseek_amount,
        (True, False, True),
        ("deepseek",),
        platforms.deepseek_zone,
    ),
    "deepseek-cost": CsvForm(
        (platforms.DEEPSEEK_DAY, ("cost",), ("currency",), ("model",)),
        platforms.deepseek_cost,
        _MONEY,
        ("deepseek",),
        platforms.deepseek_zone,
    ),
    "aws": CsvForm(clouds.AWS, clouds.aws, _BOTH, ("bedrock",), _utc),
    "azure": CsvForm(clouds.AZURE, clouds.azure, _BOTH, ("azure_openai",), _utc),
    "google": CsvForm(clouds.GOOGLE, clouds.google, _BOTH, ("gemini", "vertex"), _pacific),
}
_KNOWN_VENDORS: Final = frozenset(vendor for form in FORMS.values() for vendor in form.vendors)


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and the format it is in. `heading` is there for CSV."""

    source: Source
    name: str
    form: Form
    heading: Heading | None
    time_zone: str | None


def form_of(source: Source, vendor: str, name: str | None = None) -> Found:
    """What a file is in, told by itself; `name` insists. Raises `InvoiceError`."""
    head = source.head()
    refuse_wrong(source, head)
    found = _insisted(source, head, name) if name is not None else _sniffed(source, head, vendor)
    if name is None and vendor in _KNOWN_VENDORS and vendor not in found.form.vendors:
        reason = f"is an export of {' or '.join(found.form.vendors)} ({found.name}), and not of {vendor}"
        raise source.fail("", f"{reason}; if that is meant, say --form {found.name}")
    return found


def _insisted(source: Source, head: str, name: str) -> Found:
    form = FORMS[name]
    match form:
        case JsonForm():
            if not _is_json(head):
                raise source.fail("", f"is no JSON, and {name} is")
            return Found(source, name, form, None, "UTC")
        case CsvForm():
            heading = find_heading(head, form.accepts)
            if heading is None:
                names = first_columns(head)
                lacking = [" or ".join(any_of) for any_of in form.columns if not any(one in names for one in any_of)]
                raise source.fail("", f"is not in the form {name}: it has no column {'; no column '.join(lacking)}")
            return _table(source, name, form, heading)


def _sniffed(source: Source, head: str, vendor: str) -> Found:
    if _is_json(head):
        _, first = next(iter(values(source)))
        for name, form in FORMS.items():
            if isinstance(form, JsonForm) and form.looks(first):
                return Found(source, name, form, None, "UTC")
        if api_reports.is_empty_page(first):
            raise source.fail("", "has no results: is the period right?")
        if isinstance(first, dict) and "error" in first:
            raise source.fail("", "is the vendor's error, and no export: was the key an administrator's?")
        raise source.fail("", f"is no export that is known here. {_what_to_do(vendor)}")
    for name, form in FORMS.items():
        if isinstance(form, CsvForm) and (heading := find_heading(head, form.accepts)) is not None:
            return _table(source, name, form, heading)
    shown = ", ".join(name[:40] for name in first_columns(head)[:12])
    raise source.fail("", f"is no export that is known here; its columns are {shown}. {_what_to_do(vendor)}")


def _is_json(head: str) -> bool:
    return head.lstrip()[:1] in ("{", "[")


def _table(source: Source, name: str, form: CsvForm, heading: Heading) -> Found:
    first = next(rows(source, heading), None)
    zone = None
    if first is not None:
        try:
            zone = form.zone_of(first[1])
        except ValueError as error:
            raise source.fail(first[0].removeprefix(source.name), str(error)) from error
    return Found(source, name, form, heading, zone if first is not None else form.zone_of({}))


def _what_to_do(vendor: str) -> str:
    own = [name for name, form in FORMS.items() if vendor in form.vendors]
    return (
        f"For {vendor} take {' or '.join(own or FORMS)} (docs/invoices.md says where from), name it with --form, or "
        "describe the file with --mapping"
    )
