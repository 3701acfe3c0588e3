"""An invoice of the files that a vendor gave (contract C3).

In: paths (files, folders, zips), a vendor, perhaps the name of a form or a mapping. Out: one `Invoice` of all of them,
read as it is asked for. Raises `InvoiceError` for what cannot be read, with file, place, reason and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, Final

from proxy.books.invoice import Invoice, InvoiceLine
from proxy.books.invoices.building import lines_of
from proxy.books.invoices.files import Source, refuse_wrong, sources_of, values
from proxy.books.invoices.forms import FORMS as _FORMS
from proxy.books.invoices.forms import CsvForm, Found, JsonForm, form_of
from proxy.books.invoices.mapping import Mapped, Renamed, load_mapping, reader, rows_in
from proxy.books.invoices.tables import Heading, find_heading, first_columns, rows
from proxy.errors import InvoiceError

#: The names that `--form` takes.
FORMS: Final = tuple(_FORMS)


def read_invoice(path: Path, vendor: str, *, form: str | None = None, mapping: Path | None = None) -> Invoice:
    """One export. See `read_invoices`."""
    return read_invoices([path], vendor, form=form, mapping=mapping)


def read_invoices(
    paths: Sequence[Path], vendor: str, *, form: str | None = None, mapping: Path | None = None
) -> Invoice:
    """All of them as one invoice. What a file is stands in it; `form` says it where it does not. Raises
    `InvoiceError`, now or while the lines are read, and `ConfigError` for a wrong mapping."""
    sources = [source for path in paths for source in sources_of(path)]
    _refuse_twice(sources)
    mapped = None if mapping is None else load_mapping(mapping, FORMS)
    match mapped:
        case Mapped():
            return _mapped(sources, mapped)
        case Renamed():
            return _renamed(_known([form_of(source, vendor, mapped.format) for source in sources]), mapped.models)
        case None:
            return _known([form_of(source, vendor, form) for source in sources])


def _refuse_twice(sources: Sequence[Source]) -> None:
    seen: set[tuple[Path, str | None]] = set()
    for source in sources:
        key = (source.path.resolve(), source.member)
        if key in seen:
            raise source.fail("", "is given twice; its lines would count twice")
        seen.add(key)


def _known(found: Sequence[Found]) -> Invoice:
    zones = sorted({one.time_zone or "" for one in found})
    if len(zones) > 1:
        names = ", ".join(one.source.name for one in found)
        reason = f"their days are cut in several zones ({', '.join(zones)}): export all of them in one"
        raise InvoiceError(names, ((names, reason),))
    lines: Iterable[InvoiceLine] = chain.from_iterable(map(_lines, found))
    says = [any(one.form.says[place] for one in found) for place in range(3)]
    return Invoice(" and ".join(sorted({one.name for one in found})), lines, zones[0] or None, *says)


def _lines(found: Found) -> Iterator[InvoiceLine]:
    source, form = found.source, found.form
    match form:
        case JsonForm():
            return lines_of(source.name, _json_rows(source, form.rows), form.read)
        case CsvForm():
            assert found.heading is not None, "a table has a heading"
            return lines_of(source.name, rows(source, found.heading), form.read)


def _json_rows(source: Source, of: Callable[[str, object], Iterator[tuple[str, Any]]]) -> Iterator[tuple[str, Any]]:
    for place, document in values(source):
        try:
            yield from of(place, document)
        except ValueError as error:
            raise InvoiceError(source.name, ((place, str(error)),)) from error


def _renamed(invoice: Invoice, models: Mapping[str, str]) -> Invoice:
    def called(line: InvoiceLine) -> InvoiceLine:
        model = None if line.model is None else models.get(line.model)
        return line if model is None else replace(line, model=model)

    return replace(invoice, lines=map(called, invoice.lines))


def _mapped(sources: Sequence[Source], mapped: Mapped) -> Invoice:
    read = reader(mapped)

    def lines(source: Source) -> Iterator[InvoiceLine]:
        if mapped.format == "csv":
            return lines_of(source.name, rows(source, _heading(source, mapped)), read)
        return lines_of(source.name, _json_rows(source, lambda place, one: rows_in(mapped, place, one)), read)

    for source in sources:
        head = source.head()
        refuse_wrong(source, head)
        if mapped.format == "csv":
            _heading(source, mapped)
    invoice = Invoice(
        "mapping",
        chain.from_iterable(map(lines, sources)),
        mapped.time_zone,
        says_tokens=bool(mapped.tokens.model_fields_set),
        says_money=bool(mapped.amounts.model_fields_set),
        says_requests=mapped.requests is not None or mapped.request_id is not None,
    )
    return _renamed(invoice, mapped.models)


def _heading(source: Source, mapped: Mapped) -> Heading:
    """The line that has every column which the mapping names. Raises `InvoiceError` that names the nearest one."""
    head = source.head()
    wanted = mapped.columns()
    found = find_heading(head, lambda names: all(name in names for name in wanted), mapped.delimiter)
    if found is not None:
        return found
    names = first_columns(head, mapped.delimiter)
    for name in wanted:
        if name not in names:
            near = get_close_matches(name, names, n=1, cutoff=0.5)
            listed = ", ".join(one[:40] for one in names[:20])
            hint = f"the nearest is {near[0]!r} (of {listed})" if near else f"there are {listed}"
            raise source.fail(":1", f"has no column {name!r}, which the mapping names; {hint}")
    raise source.fail(":1", "has no heading that the mapping fits")
