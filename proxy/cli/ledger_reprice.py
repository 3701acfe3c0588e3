"""`sluice ledger reprice`: attempts priced again with the current price files (contract C3, L2).

In: a configuration file, without the vendors' keys; which attempts. Out: what changed, by vendor, model and price. Adds
rows beside the ones that an attempt was first priced with; `sluice report usage --prices latest` reads them.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import click
import orjson

from proxy.cli.books import bounds_of, working
from proxy.cli.ledger import Moment
from proxy.config import load_config
from proxy.metering.money import money_text
from proxy.stores.price_files import default_prices_dir, load_prices
from proxy.stores.repricing import reprice


@click.command("reprice")
@click.option("--config", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option("--prices", type=click.Path(path_type=Path), help="Another folder than the configuration's.")
@click.option("--period", metavar="P", help="2026, 2026-Q3, 2026-10, 2026-10-05 or 2026-10-01..2026-10-15.")
@click.option("--since", type=Moment(), metavar="T", help="Attempts that started at T or later.")
@click.option("--until", type=Moment(), metavar="T", help="Attempts that started before T.")
@click.option("--vendor", help="Only of this vendor.")
@click.option("--model", help="Only of this model.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def ledger_reprice(
    config: Path,
    prices: Path | None,
    period: str | None,
    since: datetime | None,
    until: datetime | None,
    vendor: str | None,
    model: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Price attempts again with the current price files."""
    settings = load_config(config, secrets=False)
    book = load_prices(prices or settings.prices_dir or default_prices_dir())
    first, last, _ = bounds_of(period, since, until, "UTC")
    now = round(time.time() * 1_000_000)
    with working("pricing"):
        changes = reprice(settings.ledger.url, book, first, last, now, vendor=vendor, model=model, dry_run=dry_run)
    if as_json:
        click.echo(orjson.dumps({"dry_run": dry_run, "changes": changes}, option=orjson.OPT_INDENT_2))
        return 0
    total = sum(one.attempts for one in changes)
    click.echo(f"{total} attempts {'would be' if dry_run else 'are'} priced again")
    for one in changes:
        was = "" if one.currency_before == one.currency else f" {one.currency_before}"
        moved = f"{money_text(one.before)}{was} to {money_text(one.after)} {one.currency}"
        fresh = f", {one.unpriced} of them for the first time" if one.unpriced else ""
        click.echo(f"  {one.version}: {one.attempts} attempts{fresh}; {moved} by the vendor's figures")
    return 0
