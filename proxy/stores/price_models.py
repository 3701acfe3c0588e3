"""The keys of a price file, as pydantic models: which there are, of what kind, in what range.

In: plain values of a YAML file. Out: a `PriceFileModel`, or pydantic's errors, which `price_files` tells with file and
line. Closed everywhere: an unknown key is an error.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from proxy.metering.money import parse_money


def _decimal(value: object) -> object:
    """YAML's own numbers are floats: 0.1 is none of them."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a decimal number in quotes: '2.50'")
    if isinstance(value, float):
        raise ValueError(f"put it in quotes: '{value}' (a number without quotes is not exact)")
    nanos = parse_money(str(value))
    if nanos < 0:
        raise ValueError("must not be negative")
    return nanos


def _zone(value: object) -> object:
    try:
        return ZoneInfo(str(value)).key
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"{value!r} is no time zone; write one such as UTC or America/Los_Angeles") from error


def _currency(value: object) -> object:
    if not isinstance(value, str) or len(value) != 3 or not value.isascii() or not value.isupper():
        raise ValueError(f"{value!r} is no currency; write three letters such as USD, EUR or CNY")
    return value


#: Nano-units for a million tokens.
PerMillion = Annotated[int, BeforeValidator(_decimal)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class RatesModel(Closed):
    """Left out: `cache_read` and `cache_write` cost what `input` does, `reasoning` what `output` does."""

    input: PerMillion
    output: PerMillion
    cache_read: PerMillion | None = None
    cache_write: PerMillion | None = None
    reasoning: PerMillion | None = None


class LongModel(RatesModel):
    above: Annotated[int, Field(gt=0)]


class PriceModel(RatesModel):
    since: date = Field(alias="from")
    until: date | None = None
    tiers: dict[Name, RatesModel] = Field(default_factory=dict)
    long: LongModel | None = None


class ModelModel(Closed):
    names: list[Name] = Field(default_factory=list)
    max_output: Annotated[int, Field(gt=0)] | None = None
    prices: Annotated[list[PriceModel], Field(min_length=1)]


class PriceFileModel(Closed):
    vendor: Name
    currency: Annotated[str, BeforeValidator(_currency)]
    time_zone: Annotated[str, BeforeValidator(_zone)] = "UTC"
    source: str
    seen: date
    proof: Literal["published", "contract"]
    models: dict[Name, ModelModel]


#: The keys of each place, for what is told of an unknown one.
PLACES = {
    "at the top": tuple(PriceFileModel.model_fields),
    "under a model": tuple(ModelModel.model_fields),
    "in a price": ("from", *(name for name in PriceModel.model_fields if name != "since")),
    "in a tier": tuple(RatesModel.model_fields),
    "under long": tuple(LongModel.model_fields),
}
