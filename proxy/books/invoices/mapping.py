"""Any other CSV or JSON, by a small mapping file of the operator's, and names of models that mean ours (contract C3).

In: a YAML file that says which column or JSON path is what. Out: a reader of rows. A mistake in the mapping is a
`ConfigError` with file, line and the nearest right word; one in a row is told with the row's place.

    format: csv                      # csv | json (a list, or one object a line), or the name of a known form
    models: {haus-modell-2: gpt-4o}  # names on the invoice and what the ledger calls them

and, where the format is csv or json:

    rows: data.items                 # json: where the list stands; left out: the document itself
    delimiter: ';'                   # csv; left out: told by the heading
    decimal_comma: true              # 1.234,56
    time_zone: Europe/Berlin         # of days and of moments that do not say theirs
    currency: EUR                    # or {column: ccy}
    day: {column: Datum, form: '%d.%m.%Y'}     # or at: {column: ts} for moments; form: unix, unix_ms, or as here
    model: {column: Modell}          # or a name, where all lines are of one
    request_id: {column: id}
    requests: {column: Anzahl}       # or 1
    tier: {column: Stufe}
    tokens: {input: {column: in, unit: 1000}, output: {column: out}}
    amounts: {all: {column: Betrag, scale: '0.01'}}
    input_is_fresh: false            # input holds what a cache gave and took
    output_is_whole: false           # reasoning is not in output, and is added to it
    only: {Dienst: [LLM]}            # rows that are lines
    skip: {Typ: [Summe, Total]}      # rows that are none
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from proxy.books.invoice import InvoiceLine, Part, PartKind
from proxy.books.invoices.building import without_fees
from proxy.books.invoices.figures import day, moment, money, tokens, whole
from proxy.errors import ConfigError, RuleError
from proxy.semantics.complaints import nearest, shown, unknown_key, wrong_value
from proxy.semantics.nodes import Lines, parse_yaml


def _zone(value: object) -> object:
    try:
        return ZoneInfo(str(value)).key
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"{value!r} is no time zone; write one such as UTC or Europe/Berlin") from error


def _scale(value: object) -> object:
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r} is no decimal number in quotes, such as '0.01'") from None
    if not found.is_finite() or found <= 0:
        raise ValueError("must be more than nought")
    return found


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Where(Closed):
    """A column of CSV or a path such as `usage.input` of JSON."""

    column: Annotated[str, Field(min_length=1)]


class Day(Where):
    """`form` is one of `strptime`."""

    form: str | None = None


class Moment(Where):
    """`form` is `unix`, `unix_ms`, or one of `strptime`."""

    form: str | None = None


class Count(Where):
    unit: Annotated[int, Field(gt=0)] = 1


class Amount(Where):
    scale: Annotated[Decimal, BeforeValidator(_scale)] = Decimal(1)


class Tokens(Closed):
    input: Count | None = None
    cache_read: Count | None = None
    cache_write: Count | None = None
    output: Count | None = None
    reasoning: Count | None = None


class Amounts(Closed):
    input: Amount | None = None
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    output: Amount | None = None
    all: Amount | None = None
    other: Amount | None = None


class Mapped(Closed):
    """The whole file."""

    format: Literal["csv", "json"]
    models: dict[str, str] = Field(default_factory=dict)
    rows: str | None = None
    delimiter: Annotated[str, Field(pattern=r"^[,;|:\t ]$")] | None = None
    decimal_comma: bool = False
    time_zone: Annotated[str, BeforeValidator(_zone)] | None = None
    currency: str | Where | None = None
    day: Day | None = None
    at: Moment | None = None
    model: Where | str | None = None
    request_id: Where | None = None
    requests: Where | Annotated[int, Field(gt=0)] | None = None
    tier: Where | None = None
    tokens: Tokens = Tokens()
    amounts: Amounts = Amounts()
    input_is_fresh: bool = True
    output_is_whole: bool = True
    only: dict[str, list[str]] = Field(default_factory=dict)
    skip: dict[str, list[str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_something(self) -> Mapped:
        if self.day is None and self.at is None:
            raise ValueError("day or at is missing: when is a line of?")
        said = [*self.tokens.model_fields_set, *self.amounts.model_fields_set]
        if not said:
            raise ValueError("tokens or amounts are missing: what does a line say?")
        if self.amounts.model_fields_set and self.currency is None:
            raise ValueError("currency is missing: what are the amounts in?")
        if self.tokens.reasoning is not None and self.output_is_whole:
            raise ValueError("tokens.reasoning is only needed with `output_is_whole: false`; output holds it otherwise")
        return self

    def columns(self) -> list[str]:
        """Every column that it names."""
        told = [self.day, self.at, self.model, self.request_id, self.requests, self.tier, self.currency]
        told += [getattr(self.tokens, name) for name in Tokens.model_fields]
        told += [getattr(self.amounts, name) for name in Amounts.model_fields]
        return [*(one.column for one in told if isinstance(one, Where)), *self.only, *self.skip]


class Renamed(Closed):
    """A mapping of names alone: the file is in a form that is known here."""

    format: str
    models: dict[str, str]


_PLACES = {
    "at the top": tuple(Mapped.model_fields),
    "under tokens": tuple(Tokens.model_fields),
    "under amounts": tuple(Amounts.model_fields),
    "of a column": ("column", "form", "unit", "scale"),
}

#: How pydantic calls the ways of a choice, which are no keys.
_CHOICES = ("Where", "str", "int", "constrained-str", "constrained-int")
Row = Mapping[str, object]


def load_mapping(path: Path, forms: Collection[str]) -> Mapped | Renamed:
    """`forms` are the formats that are known besides csv and json. Raises `ConfigError`."""
    file = str(path)
    try:
        value, lines = parse_yaml(file, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, None, f"cannot be read: {error}") from error
    except RuleError as error:
        raise ConfigError(error.file, error.line, error.reason) from error
    if not isinstance(value, dict):
        raise ConfigError(file, 1, "must be a mapping with keys such as format, day, model, tokens and amounts")
    form = value.get("format")
    if isinstance(form, str) and form not in ("csv", "json", *forms):
        reason = f"format: {shown(form)} is not known; {nearest(form, ('csv', 'json', *forms))}"
        raise ConfigError(file, lines.line_of(("format",)), reason)
    try:
        return (Renamed if form in forms else Mapped).model_validate(value)
    except ValidationError as error:
        raise _first_fault(file, error, lines) from error


def _first_fault(file: str, error: ValidationError, lines: Lines) -> ConfigError:
    faults = []
    for found in error.errors(include_url=False):
        # a choice between forms has its own name in the path
        loc = tuple(step for step in found["loc"] if step not in _CHOICES)
        names = [str(step) for step in loc]
        if found["type"] == "extra_forbidden":
            here = {1: "at the top", 2: f"under {names[0]}"}.get(len(names), "of a column")
            here = here if here in _PLACES else "of a column"
            others = {place: keys for place, keys in _PLACES.items() if place != here}
            reason = unknown_key(names[-1], _PLACES[here], others)
        else:
            kind = "int_type" if found["type"] == "int_parsing" else found["type"]
            reason = wrong_value(kind, found["msg"], found["input"])
        told = f"{'.'.join(names)}: {reason}" if names else reason
        faults.append((found["type"] == "missing", lines.line_of(loc), told))
    _, line, reason = min(faults)
    return ConfigError(file, line, reason)


def reader(mapped: Mapped) -> Callable[[str, Row], Iterator[InvoiceLine]]:
    """What makes lines of rows."""

    def read(place: str, row: Row) -> Iterator[InvoiceLine]:
        if _is_line(mapped, row):
            yield from without_fees(_line(mapped, place, row))

    return read


def _is_line(mapped: Mapped, row: Row) -> bool:
    for name, values in mapped.only.items():
        if _cell(row, name) not in values:
            return False
    return all(_cell(row, name) not in values for name, values in mapped.skip.items())


def _line(mapped: Mapped, place: str, row: Row) -> InvoiceLine:
    parts, digit = _parts(mapped, row)
    requests = mapped.requests
    if isinstance(requests, Where):
        said = _text(row, requests)
        requests = None if said is None else whole(said, requests.column, mapped.decimal_comma)
    currency = _constant(row, mapped.currency)
    if digit is not None and currency is None:
        raise ValueError("an amount without a currency")
    at = mapped.at
    return InvoiceLine(
        place,
        tuple(parts),
        _constant(row, mapped.model),
        at=None if at is None else moment(_needed(row, at), mapped.time_zone, at.form),
        day=None if mapped.day is None else day(_needed(row, mapped.day), mapped.day.form),
        request_id=None if mapped.request_id is None else _text(row, mapped.request_id),
        requests=requests,
        currency=None if currency is None or digit is None else currency.upper(),
        tier=_constant(row, mapped.tier),
        precision=digit,
    )


def _constant(row: Row, said: Where | str | None) -> str | None:
    """A column's text, or what the mapping says of all rows."""
    return _text(row, said) if isinstance(said, Where) else said


def _parts(mapped: Mapped, row: Row) -> tuple[list[Part], int | None]:
    comma = mapped.decimal_comma
    counts: dict[PartKind, int] = {}
    for name in Tokens.model_fields:
        where = getattr(mapped.tokens, name)
        if where is not None and (value := _text(row, where)) is not None:
            kind = PartKind.OUTPUT if name == "reasoning" else PartKind(name)
            counts[kind] = counts.get(kind, 0) + tokens(value, where.unit, comma)
    if not mapped.input_is_fresh and PartKind.INPUT in counts:
        cached = counts.get(PartKind.CACHE_READ, 0) + counts.get(PartKind.CACHE_WRITE, 0)
        if cached > counts[PartKind.INPUT]:
            raise ValueError(f"more tokens from the cache ({cached}) than input ({counts[PartKind.INPUT]})")
        counts[PartKind.INPUT] -= cached
    amounts: dict[PartKind, int] = {}
    digit: int | None = None
    for name in Amounts.model_fields:
        where = getattr(mapped.amounts, name)
        if where is not None and (value := _text(row, where)) is not None:
            amounts[PartKind(name)], one = money(value, where.scale, comma)
            digit = one if digit is None else max(digit, one)
    kinds = [kind for kind in PartKind if kind in counts or kind in amounts]
    if not kinds:
        raise ValueError("says neither tokens nor an amount")
    return [Part(kind, counts.get(kind), amounts.get(kind)) for kind in kinds], digit


def _get(row: Row, path: str) -> object:
    if path in row:
        return row[path]
    value: object = row
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def _cell(row: Row, name: str) -> str:
    value = _get(row, name)
    return "" if value is None else str(value).strip()


def _text(row: Row, where: Where) -> str | None:
    return _cell(row, where.column) or None


def _needed(row: Row, where: Where) -> str:
    value = _text(row, where)
    if value is None:
        raise ValueError(f"{where.column} is empty, or there is no such column")
    return value


def rows_in(mapped: Mapped, place: str, document: object) -> Iterator[tuple[str, Row]]:
    """The rows of one JSON document. Raises `ValueError` where the list is not there."""
    value = document
    for step in (mapped.rows or "").split("."):
        if step:
            value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, dict) and mapped.rows is None:
        value = [value]
    if not isinstance(value, list):
        raise ValueError(f"there is no list at {mapped.rows or 'the top'}")
    under = f"{place}/{mapped.rows.replace('.', '/')}" if mapped.rows else place
    for at, row in enumerate(value):
        if not isinstance(row, dict):
            raise ValueError(f"{under}/{at} is no object")
        yield f"{under}/{at}", row
