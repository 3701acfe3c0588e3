"""`sluice check-prices`: are the price files right, and is every configured model priced? (contract C3)

In: a folder of prices (given, or the configuration's, or the shipped one); with a configuration also its models. Out:
what there is, gaps in time, and the models without a price. Exits 0; 1 where a model has none now or a gap is found; 2
for a file that is wrong, with file, line and reason. Writes nothing.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import click
import orjson

from proxy.config import Settings, load_config
from proxy.metering.prices import Price, PriceBook
from proxy.stores.ledger_rows import rfc3339
from proxy.stores.price_files import default_prices_dir, load_prices


@click.command("check-prices")
@click.option("--config", type=click.Path(path_type=Path), help="Check the folder that this configuration names.")
@click.option("--prices", type=click.Path(path_type=Path), help="Check this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check_prices(config: Path | None, prices: Path | None, as_json: bool) -> int:
    """Validate the price files, and look for models that they leave out."""
    settings = load_config(config, secrets=False) if config is not None else None
    folder = prices or (settings.prices_dir if settings is not None else None) or default_prices_dir()
    book = load_prices(folder)
    gaps = [gap for one in book.vendors.values() for gap in gaps_of(one.vendor, list(one.exact.values()))]
    missing = [] if settings is None else unpriced(settings, book, round(time.time() * 1_000_000))
    told = {
        "folder": str(folder),
        "version": book.version,
        "vendors": {name: len(one.exact) for name, one in sorted(book.vendors.items())},
        "gaps": gaps,
        "unpriced": missing,
    }
    if as_json:
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    else:
        models = sum(len(one.exact) for one in book.vendors.values())
        click.echo(f"prices: {models} models of {len(book.vendors)} vendors in {folder}")
        for gap in gaps:
            click.echo(f"  gap: {gap}")
        for name in missing:
            click.echo(f"  no price: {name}")
        click.echo("nothing is wrong" if not gaps and not missing else "attempts there will have no cost")
    return 1 if gaps or missing else 0


def gaps_of(vendor: str, models: list[tuple[Price, ...]]) -> list[str]:
    """Where one price ends before the next begins."""
    found = set()  # a model of several names is there several times
    for prices in models:
        for one, following in pairwise(prices):
            if one.until is not None and one.until < following.since:
                span = f"from {rfc3339(one.until)} to {rfc3339(following.since)}"
                found.add(f"{vendor}/{one.model} has no price {span}")
    return sorted(found)


def unpriced(settings: Settings, book: PriceBook, now: int) -> list[str]:
    """The configured models without a price at this moment (microseconds)."""
    found = []
    for alias, targets in settings.models.items():
        for target in targets:
            vendor = settings.upstreams[target.upstream].vendor
            if book.find(vendor, (target.model,), now) is None:
                found.append(f"{alias} ({vendor}/{target.model})")
    return sorted(set(found))
