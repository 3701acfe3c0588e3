"""`sluice ledger prune`: rows that are old enough, or a tenant's, taken out of the ledger for good (contract C3, L3).

In: a configuration file, without the vendors' keys; a moment, or the configuration's retention. Out: how many went, by
tenant. Asks before it does anything; without a terminal it does nothing unless `--yes` is said.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path

import click
import orjson

from proxy.cli.books import working
from proxy.cli.ledger import Moment
from proxy.config import LedgerSettings, load_config
from proxy.stores.ledger_rows import rfc3339, to_micros
from proxy.stores.pruning import Wish, count, prune

_DAY_US = 86_400_000_000
_CANNOT = 2


@click.command("prune")
@click.option("--config", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option("--before", type=Moment(), metavar="T", help="Attempts that started before T. Default: ledger.retention.")
@click.option("--tenant", "tenants", multiple=True, help="Only of this tenant; may be given more than once.")
@click.option("--vendor", help="Only of this vendor.")
@click.option("--dry-run", is_flag=True, help="Only say how many would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def ledger_prune(
    config: Path,
    before: datetime | None,
    tenants: tuple[str, ...],
    vendor: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Take old attempts out of the ledger for good."""
    place = load_config(config, secrets=False).ledger
    now = round(time.time() * 1_000_000)
    if before is not None:
        wishes = [Wish(to_micros(before), tenants or None, vendor=vendor)]
    else:
        wishes = _retention(place, tenants, vendor, now)
    if not wishes:
        raise click.UsageError("say --before T, or how long rows are kept under ledger.retention in the configuration")
    if any(wish.before > now for wish in wishes):
        raise click.UsageError("--before is in the future: nothing that is still to come can be taken out")
    found = count(place.url, wishes)
    total = sum(found.values())
    if not dry_run and total and not yes and not _agreed(total, wishes):
        return _CANNOT
    gone = 0
    if not dry_run and total:
        with working("taking out"):
            gone = sum(prune(place.url, wishes))
    told = {"would_go" if dry_run else "gone": total if dry_run else gone, "tenants": found}
    if as_json:
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    else:
        click.echo(f"{total if dry_run else gone} attempts {'would go' if dry_run else 'are gone'}")
        for tenant, number in found.items():
            click.echo(f"  {tenant}: {number}")
    return 0


def _retention(place: LedgerSettings, tenants: tuple[str, ...], vendor: str | None, now: int) -> list[Wish]:
    """A wish for each tenant with days of its own, and one for all others."""
    special = place.tenant_days
    wishes = [
        Wish(now - days * _DAY_US, (tenant,), vendor=vendor)
        for tenant, days in special.items()
        if not tenants or tenant in tenants
    ]
    others = tuple(tenant for tenant in tenants if tenant not in special)
    if place.retention_days is not None and (others or not tenants):
        before = now - place.retention_days * _DAY_US
        wishes.append(Wish(before, others or None, tuple(special) if not others else (), vendor))
    return wishes


def _agreed(total: int, wishes: list[Wish]) -> bool:
    if not sys.stdin.isatty():
        click.echo("sluice: nobody is there to be asked; say --yes, or --dry-run to look first", err=True)
        return False
    latest = rfc3339(max(wish.before for wish in wishes))
    return click.confirm(f"Take {total} attempts from before {latest} out of the ledger for good?")
