"""Price files on disk: `prices/<vendor>.yaml` to a `PriceBook`.

In: a folder. Out: the book, or a `ConfigError` with file, line, the wrong word and what is right. A price's version
names its vendor, model, first day and the text of its figures, so that a row tells what it was priced with even after
the file has changed. Never writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime, time
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import orjson
from pydantic import ValidationError

from proxy.errors import ConfigError, RuleError
from proxy.metering.prices import Price, PriceBook, Rates, VendorPrices
from proxy.semantics.complaints import unknown_key, wrong_value
from proxy.semantics.nodes import Lines, parse_yaml
from proxy.stores.ledger_rows import to_micros
from proxy.stores.price_models import PLACES, ModelModel, PriceFileModel, PriceModel, RatesModel

_SUFFIXES = (".yaml", ".yml")
_ANY = "*"


def default_prices_dir() -> Path:
    """The set shipped with the package: data of the wheel, or `prices/` beside the package in a checkout."""
    package = Path(str(files("proxy")))
    shipped = package / "_prices"
    return shipped if shipped.is_dir() else package.parent / "prices"


def load_prices(folder: Path) -> PriceBook:
    """Every file of `folder`. Raises `ConfigError`."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and not path.name.startswith("."))
    except OSError as error:
        raise ConfigError(str(folder), None, f"the prices folder cannot be read: {error.strerror}") from error
    texts: dict[str, str] = {}
    for path in paths:
        try:
            texts[str(path)] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(path), None, f"cannot be read: {error}") from error
    return parse_prices(texts)


def parse_prices(texts: Mapping[str, str]) -> PriceBook:
    """The book of these files, by name. Raises `ConfigError` for the first fault."""
    vendors: dict[str, VendorPrices] = {}
    for file, text in texts.items():
        of_vendor = _parse_file(file, text)
        if of_vendor.vendor in vendors:
            raise ConfigError(file, 1, f"vendor: another file has the prices of {of_vendor.vendor!r} already")
        vendors[of_vendor.vendor] = of_vendor
    digest = hashlib.sha256(orjson.dumps(sorted(texts.values()))).hexdigest()
    return PriceBook(vendors, digest[:12])


def _parse_file(file: str, text: str) -> VendorPrices:
    try:
        value, lines = parse_yaml(file, text)
    except RuleError as error:
        raise ConfigError(error.file, error.line, error.reason) from error
    if not isinstance(value, dict):
        raise ConfigError(file, 1, "must be a mapping with the keys vendor, currency, source, seen, proof and models")
    try:
        model = PriceFileModel.model_validate(value)
    except ValidationError as error:
        raise _first_fault(file, error, lines) from error
    if Path(file).stem != model.vendor:
        line = lines.line_of(("vendor",))
        raise ConfigError(file, line, f"vendor: {model.vendor!r} must be called as its file is: {Path(file).stem!r}")
    return _vendor(file, model, lines)


def _vendor(file: str, model: PriceFileModel, lines: Lines) -> VendorPrices:
    exact: dict[str, tuple[Price, ...]] = {}
    prefixes: dict[str, tuple[Price, ...]] = {}
    for name, one in model.models.items():
        prices = _prices(file, model, name, one, lines)
        for called in (name, *one.names):
            target, key = (prefixes, called[:-1]) if called.endswith(_ANY) else (exact, called)
            if key in target or _ANY in key:
                reason = "stands twice" if key in target else "may have a * at its end alone"
                raise ConfigError(file, lines.line_of(("models", name)), f"models.{name}: the name {called!r} {reason}")
            target[key] = prices
    longest_first = sorted(prefixes.items(), key=lambda pair: (-len(pair[0]), pair[0]))
    return VendorPrices(model.vendor, exact, tuple(longest_first))


def _prices(file: str, model: PriceFileModel, name: str, one: ModelModel, lines: Lines) -> tuple[Price, ...]:
    places = sorted(range(len(one.prices)), key=lambda place: one.prices[place].since)
    found: list[Price] = []
    for order, place in enumerate(places):
        price = one.prices[place]
        line = lines.line_of(("models", name, "prices", place))
        if price.until is not None and price.until <= price.since:
            raise ConfigError(file, line, f"models.{name}: until {price.until} is not after from {price.since}")
        after = one.prices[places[order + 1]].since if order + 1 < len(places) else None
        if after is not None and (after == price.since or (price.until is not None and price.until > after)):
            raise ConfigError(file, line, f"models.{name}: the price from {price.since} overlaps that from {after}")
        ends = price.until if price.until is not None else after
        found.append(_price(model, name, one, price, ends))
    return tuple(found)


def _price(model: PriceFileModel, name: str, one: ModelModel, price: PriceModel, ends: date | None) -> Price:
    figures = orjson.dumps(price.model_dump(mode="json", exclude={"since", "until"}), option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(figures + model.currency.encode()).hexdigest()[:8]
    return Price(
        vendor=model.vendor,
        model=name,
        version=f"{model.vendor}/{name}@{price.since}#{digest}",
        currency=model.currency,
        since=_micros(price.since, model.time_zone),
        until=None if ends is None else _micros(ends, model.time_zone),
        rates=_rates(price),
        tiers={tier.lower(): _rates(rates) for tier, rates in price.tiers.items()},
        long_above=None if price.long is None else price.long.above,
        long=None if price.long is None else _rates(price.long),
        max_output=one.max_output,
    )


def _rates(model: RatesModel) -> Rates:
    return Rates(
        model.input,
        model.output,
        model.input if model.cache_read is None else model.cache_read,
        model.input if model.cache_write is None else model.cache_write,
        model.output if model.reasoning is None else model.reasoning,
    )


def _micros(day: date, zone: str) -> int:
    return to_micros(datetime.combine(day, time(), ZoneInfo(zone)))


def _first_fault(file: str, error: ValidationError, lines: Lines) -> ConfigError:
    """The first by line; a missing key last, for where there is an unknown one as well, it is that one, misspelt."""
    faults = []
    for found in error.errors(include_url=False):
        loc = tuple("from" if step == "since" else step for step in found["loc"] if step != "[key]")
        names = [str(step) for step in loc]
        if found["type"] == "extra_forbidden":
            here = _place_of(loc)
            others = {place: keys for place, keys in PLACES.items() if keys is not PLACES[here]}
            reason = unknown_key(names[-1], PLACES[here], others)
        else:
            reason = wrong_value(found["type"], found["msg"], found["input"])
        faults.append((found["type"] == "missing", lines.line_of(loc), f"{'.'.join(names)}: {reason}"))
    _, line, reason = min(faults)
    return ConfigError(file, line, reason)


def _place_of(loc: tuple[str | int, ...]) -> str:
    match loc:
        case (_,):
            return "at the top"
        case (_, _, _):
            return "under a model"
        case (_, _, _, _, _):
            return "in a price"
        case (_, _, _, _, "long", _):
            return "under long"
        case _:
            return "in a tier"
